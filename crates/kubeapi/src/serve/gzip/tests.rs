//! What we compress is read back by another program.

use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;

fn compressed(pieces: &[&[u8]]) -> Vec<u8> {
    let mut gzip = Gzip::new();
    let mut made: Vec<u8> = pieces.iter().flat_map(|piece| gzip.piece(piece)).collect();
    made.extend(gzip.finish());
    made
}

/// What another program makes of it, which also compares the checksum and the length.
fn read_back(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = GzDecoder::new(gzip);
    decoder.read_to_end(&mut bytes).expect("gzip");
    bytes
}

/// Numbers that have no pattern.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn list_of_objects(count: usize) -> Vec<u8> {
    let object = |number: usize| {
        format!(
            r#"{{"metadata":{{"name":"object-{number:06}","namespace":"default"}},"data":{{}}}},"#
        )
    };
    (0..count).map(object).collect::<String>().into_bytes()
}

#[test]
fn nothing_is_read_back_as_nothing() {
    assert_eq!(read_back(&compressed(&[])), b"");
    assert_eq!(read_back(&compressed(&[b"", b""])), b"");
}

#[test]
fn objects_that_look_alike_take_a_tenth() {
    let list = list_of_objects(1_000);
    let made = compressed(&[&list]);
    assert_eq!(read_back(&made), list);
    assert!(made.len() * 10 < list.len(), "{}", made.len());
}

#[test]
fn text_without_repetitions_takes_what_its_alphabet_does() {
    let hexadecimal: Vec<u8> = noise(1, 60_000)
        .iter()
        .map(|byte| b"0123456789abcdef"[usize::from(byte >> 4)])
        .collect();
    let made = compressed(&[&hexadecimal]);
    assert_eq!(read_back(&made), hexadecimal);
    assert!(made.len() < 30_500, "{}", made.len());
}

#[test]
fn noise_grows_by_no_more_than_a_few_bytes() {
    for count in [1, 100, 65_535, 65_536, 300_000] {
        let noise = noise(2, count);
        let made = compressed(&[&noise]);
        assert_eq!(read_back(&made), noise);
        assert!(
            made.len() <= count + 18 + 5 * (2 + count / 20_000) + 2,
            "{count}: {}",
            made.len()
        );
    }
}

#[test]
fn a_repetition_may_overlap_itself_and_be_as_long_as_it_likes() {
    for count in [7, 8, 9, 257, 258, 259, 300, 131_072, 131_073, 200_000] {
        let same = vec![b'a'; count];
        assert_eq!(read_back(&compressed(&[&same])), same, "{count}");
    }
}

#[test]
fn the_farthest_repetition_is_said_and_one_farther_is_not() {
    for distance in [32_767, 32_768, 32_769] {
        let mut bytes = b"here and there, once".to_vec();
        bytes.extend(noise(3, distance - bytes.len()));
        bytes.extend(b"here and there, once");
        assert_eq!(read_back(&compressed(&[&bytes])), bytes, "{distance}");
    }
}

#[test]
fn a_repetition_that_is_noticed_late_is_said_from_where_one_can_reach() {
    // In noise one place of sixteen is looked at; only what follows a repetition is looked at
    // closely. So what is there for the second time may be noticed hundreds of bytes after it
    // began. Where the places fall decides it, so all of them are tried.
    let start = noise(4, 3_000);
    for padding in 0..16 {
        let known = [
            &noise(5, 592 + padding),
            &start[2_500..2_524],
            &noise(6, 200),
        ]
        .concat();
        for skipped in 0..16 {
            let bytes = [&start, &known, &noise(7, 3_000), &known[skipped..]].concat();
            assert_eq!(read_back(&compressed(&[&bytes])), bytes);
        }
    }
}

#[test]
fn pieces_are_read_back_as_one() {
    let list = list_of_objects(3_000);
    let pieces: Vec<&[u8]> = list.chunks(70_001).collect();
    assert_eq!(read_back(&compressed(&pieces)), list);
}

/// Noise, or some of what came before once more.
#[derive(Debug, Clone)]
enum Part {
    New(u64, usize),
    Again(prop::sample::Index, usize),
}

fn parts_joined(parts: &[Part]) -> Vec<u8> {
    let mut bytes = noise(8, 2_500);
    for part in parts {
        match part {
            Part::New(seed, count) => bytes.extend(noise(*seed, *count)),
            Part::Again(from, count) => {
                let from = from.index(bytes.len());
                let end = bytes.len().min(from + count);
                bytes.extend_from_within(from..end);
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn whatever_repeats_wherever_is_read_back(
        parts in prop::collection::vec(
            prop_oneof![
                (any::<u64>(), 0..3_000usize).prop_map(|(seed, count)| Part::New(seed, count)),
                (any::<prop::sample::Index>(), 0..1_000usize)
                    .prop_map(|(from, count)| Part::Again(from, count)),
                (any::<prop::sample::Index>(), 6..30usize)
                    .prop_map(|(from, count)| Part::Again(from, count)),
            ],
            0..30,
        ),
    ) {
        let bytes = parts_joined(&parts);
        prop_assert_eq!(read_back(&compressed(&[&bytes])), bytes);
    }

    #[test]
    fn whatever_goes_in_is_read_back(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                prop::collection::vec(0u8..3, 0..3_000),
                (any::<u64>(), 0..2_000usize).prop_map(|(seed, count)| noise(seed, count)),
                (0..300usize).prop_map(list_of_objects),
            ],
            0..6,
        ),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read_back(&compressed(&pieces)), pieces.concat());
        let whole = pieces.concat();
        prop_assert_eq!(read_back(&compressed(&[&whole])), whole);
    }
}
