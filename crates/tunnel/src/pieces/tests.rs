//! Whatever is written in pieces is read whole, and what is no piece is refused.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

/// What the end that answers reads of a question, and the other of the answer, over a way that
/// takes little at a time.
async fn carried(
    question: &[Vec<u8>],
    answer: &[Vec<u8>],
    (bases, head): ((Base, Base), Head),
    room: usize,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (near, far) = duplex(room);
    let mut near = Pieces::asking(near, bases.0, head);
    let mut far = Pieces::answering(far, bases.1);
    let asking = async {
        write(&mut near, question).await?;
        let mut read = Vec::new();
        near.read_to_end(&mut read).await?;
        Ok::<_, io::Error>(read)
    };
    let answering = async {
        let mut read = Vec::new();
        far.read_to_end(&mut read).await?;
        write(&mut far, answer).await?;
        Ok::<_, io::Error>(read)
    };
    let (answer, question) = tokio::join!(asking, answering);
    Ok((question?, answer?))
}

async fn write<S>(stream: &mut Pieces<S>, all: &[Vec<u8>]) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    for bytes in all {
        stream.write_all(bytes).await?;
        stream.flush().await?;
    }
    stream.shutdown().await
}

fn object(version: u32) -> Vec<u8> {
    let condition = r#"{"lastProbeTime":null,"status":"True","type":"Ready"}"#;
    let conditions = [condition; 20].join(",");
    format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"status":[{conditions}]}}"#).into()
}

#[test]
fn an_object_goes_as_the_difference_from_what_the_other_end_has() {
    let (old, new) = (object(7), object(8));
    let alone = piece(&new, None, &[]);
    let difference = piece(&new, Some(&old), &[]);
    assert!(alone.len() < new.len() / 5, "{} bytes", alone.len());
    assert!(difference.len() < 40, "{} bytes", difference.len());
}

/// What a kubelet says most, with what is different each time.
#[test]
fn heads_that_everybody_knows_take_few_bytes() {
    let question = "POST /api/v1/namespaces/shop/events HTTP/1.1\r\n\
        accept: application/vnd.kubernetes.protobuf,application/json\r\n\
        content-type: application/vnd.kubernetes.protobuf\r\n\
        user-agent: kubelet/v1.36.4 (linux/amd64) kubernetes/3dc4b6a\r\ncontent-length: 312\r\n\
        accept-encoding: gzip\r\nhost: cluster\r\n\r\n";
    let answer = "HTTP/1.1 201 Created\r\naudit-id: 8a0cf6b1-6f24-4a35-9b5e-1f6e0f5be1a7\r\n\
        cache-control: no-cache, private\r\ncontent-type: application/vnd.kubernetes.protobuf\r\n\
        x-kubernetes-pf-flowschema-uid: 1c9a5a6a-93a4-4f7c-a0a5-5b0f6b8b7f10\r\n\
        x-kubernetes-pf-prioritylevel-uid: 3e8f0b52-d2a0-4f2e-8a4e-6a4c2f9e0d11\r\n\
        content-length: 401\r\ndate: Wed, 18 Nov 2026 10:00:00 GMT\r\n\r\n";
    let asked = piece(question.as_bytes(), None, &[]);
    assert!(asked.len() < 80, "{} bytes", asked.len());
    // Three times sixteen random bytes are in it.
    let answered = piece(answer.as_bytes(), None, question.as_bytes());
    assert!(answered.len() < 170, "{} bytes", answered.len());
}

#[test]
fn an_answer_that_repeats_its_question_takes_few_bytes() {
    let question = object(7);
    let answer = [b"created: ", &question[..]].concat();
    let length = piece(&answer, None, &question).len();
    assert!(length < 40, "{length} bytes");
}

#[tokio::test]
async fn who_compares_with_something_else_hears_of_it() {
    let bases = (Base::default(), Base::from(Bytes::from(object(7))));
    let refused = carried(&[], &[object(8)], (bases, Head::Open), 64).await;
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

/// Whoever watches the link must not learn of a secret by how long it is together with something
/// that he chose.
#[tokio::test]
async fn a_private_head_goes_as_it_is_and_nothing_is_compared_with_it() {
    let head = "PUT / HTTP/1.1\r\nauthorization: Bearer a secret secret secret secret\r\n\r\n";
    let body = String::from_utf8(object(7)).unwrap();
    let whole = format!("{head}{body}");
    // Wherever it is cut, and where the body begins in the same write.
    for cut in (0..head.len()).chain([whole.len()]) {
        let (near, mut far) = duplex(100_000);
        let mut near = Pieces::asking(near, Base::default(), Head::Private);
        for part in [&whole[..cut], &whole[cut..]] {
            near.write_all(part.as_bytes()).await.unwrap();
        }
        near.shutdown().await.unwrap();
        assert_eq!(near.question, body.as_bytes(), "{cut}");
        drop(near);
        let mut came = Vec::new();
        far.read_to_end(&mut came).await.unwrap();
        let text = String::from_utf8_lossy(&came);
        let secret = text.contains("secret secret secret secret") || cut < head.len();
        assert!(secret && came.len() < whole.len(), "{cut}");
        let mut answering = Pieces::answering(&came[..], Base::default());
        let mut read = Vec::new();
        answering.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, whole.as_bytes());
        assert_eq!(answering.question, body.as_bytes());
    }
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
        long(PACKED, &[over, 10, 0]),
        long(PACKED, &[10, over, 0]),
        // More of the question than there was, and a base that is not there.
        long(PACKED, &[10, 10, 1]),
        long(DIFFERENCE, &[10, 10, 0]),
        long(PRIVATE, &[over]),
        vec![PLAIN, 0xff, 0xff, 0xff],
        [long(PACKED, &[3, 100, 0]), b"abc".to_vec()].concat(),
        [long(9, &[3, 3]), b"abc".to_vec()].concat(),
    ] {
        assert!(look(&came, None, &[]).is_err(), "{came:?}");
    }
    assert!(matches!(look(&[], None, &[]), Ok(Piece::Lacks(1))));
    assert!(matches!(
        look(&[PACKED, 5, 9], None, &[]),
        Ok(Piece::Lacks(1))
    ));
    assert!(matches!(
        look(&[PLAIN, 5, b'a'], None, &[]),
        Ok(Piece::Lacks(4))
    ));
}

#[tokio::test]
async fn what_breaks_off_within_a_piece_is_an_error_and_between_two_it_is_the_end() {
    let whole = piece(&object(7), None, &[]);
    for length in 0..=whole.len() {
        let mut reader = Pieces::answering(&whole[..length], Base::default());
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
        base in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
        private in any::<bool>(),
        room in 1usize..5_000,
    ) {
        let mut writes = writes;
        writes.push(vec![b'x'; large]);
        let base = || base.clone().map_or_else(Base::default, |base| Bytes::from(base).into());
        let head = if private { Head::Private } else { Head::Open };
        let (question, mut answer) = (writes.clone(), writes);
        // What was asked comes back, and more.
        answer.insert(0, b"an answer".to_vec());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let how = ((base(), base()), head);
        let read = runtime.block_on(carried(&question, &answer, how, room)).unwrap();
        prop_assert_eq!(read, (question.concat(), answer.concat()));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(look(&bytes, Some(b"base"), b"question"));
    }
}
