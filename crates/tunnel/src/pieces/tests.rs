//! Whatever is written in pieces is read whole, and what is no piece is refused.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

/// What one end reads of what the other writes, over a way that takes little at a time.
async fn carried(writes: &[Vec<u8>], bases: (Base, Base), room: usize) -> io::Result<Vec<u8>> {
    let (near, far) = duplex(room);
    let (mut near, mut far) = (Packing::new(near, bases.0), Unpacking::new(far, bases.1));
    let writing = async {
        for bytes in writes {
            near.write_all(bytes).await?;
            near.flush().await?;
        }
        near.shutdown().await
    };
    let mut read = Vec::new();
    let reading = far.read_to_end(&mut read);
    let (written, length) = tokio::join!(writing, reading);
    written?;
    length?;
    Ok(read)
}

fn object(version: u32) -> Vec<u8> {
    let condition = r#"{"lastProbeTime":null,"status":"True","type":"Ready"}"#;
    let conditions = [condition; 20].join(",");
    format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"status":[{conditions}]}}"#).into()
}

#[test]
fn an_object_goes_as_the_difference_from_what_the_other_end_has() {
    let (old, new) = (object(7), object(8));
    let alone = piece(&new, &[]);
    let difference = piece(&new, &old);
    assert!(alone.len() < new.len() / 5, "{} bytes", alone.len());
    assert!(difference.len() < 40, "{} bytes", difference.len());
}

#[tokio::test]
async fn who_compares_with_something_else_hears_of_it() {
    let bases = (Base::from(Bytes::from(object(7))), Base::default());
    let refused = carried(&[object(8)], bases, 64).await;
    assert!(refused.is_err() || refused.unwrap() != object(8));
}

#[test]
fn what_is_no_piece_is_refused_before_it_takes_memory() {
    let long = |form: u8, numbers: &[u64]| {
        let mut out = vec![form];
        numbers
            .iter()
            .for_each(|number| put_number(&mut out, *number));
        out
    };
    let over = PIECE_BYTES_MAX as u64 + 1;
    for came in [
        long(PLAIN, &[0]),
        long(PLAIN, &[over]),
        long(PACKED, &[over, 10]),
        long(PACKED, &[10, over]),
        vec![PLAIN, 0xff, 0xff, 0xff],
        [long(PACKED, &[3, 100]), b"abc".to_vec()].concat(),
        [long(9, &[3, 3]), b"abc".to_vec()].concat(),
    ] {
        assert!(look(&came, &[]).is_err(), "{came:?}");
    }
    assert!(matches!(look(&[], &[]), Ok(Piece::Lacks(1))));
    assert!(matches!(look(&[PACKED, 5], &[]), Ok(Piece::Lacks(1))));
    assert!(matches!(look(&[PLAIN, 5, b'a'], &[]), Ok(Piece::Lacks(4))));
}

#[tokio::test]
async fn what_breaks_off_within_a_piece_is_an_error_and_between_two_it_is_the_end() {
    let whole = piece(&object(7), &[]);
    for length in 0..=whole.len() {
        let mut reader = Unpacking::new(&whole[..length], Base::default());
        let mut read = Vec::new();
        let ended = reader.read_to_end(&mut read).await;
        assert_eq!(
            ended.is_ok(),
            length == 0 || length == whole.len(),
            "{length}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_is_read(
        writes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
        large in 0usize..80_000,
        base in prop::collection::vec(any::<u8>(), 0..300),
        room in 1usize..5_000,
    ) {
        let mut writes = writes;
        writes.push(vec![b'x'; large]);
        let base = Bytes::from(base);
        let bases = (Base::from(base.clone()), Base::from(base));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(carried(&writes, bases, room)).unwrap();
        prop_assert_eq!(read, writes.concat());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(look(&bytes, b"base"));
    }
}
