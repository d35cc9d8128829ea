//! Heads there and back, and each rule of RFC 6455 broken once.

use proptest::prelude::*;

use super::*;

fn decode(bytes: &[u8]) -> Result<Decoded, Violation> {
    Head::decode(bytes, Role::Server)
}

fn broken(bytes: &[u8]) -> Violation {
    decode(bytes).expect_err("a violation")
}

fn encoded(length: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = Head {
        opcode: Opcode::Binary,
        part: Part::Last,
        mask: None,
        length,
    };
    head.encode(&mut bytes);
    bytes
}

#[test]
fn a_length_is_written_in_its_shortest_form() {
    assert_eq!(encoded(0), [0x82, 0]);
    assert_eq!(encoded(125), [0x82, 125]);
    assert_eq!(encoded(126), [0x82, 126, 0, 126]);
    assert_eq!(encoded(65_535), [0x82, 126, 0xff, 0xff]);
    assert_eq!(encoded(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn the_examples_of_the_rfc_are_read_as_it_says() {
    // Section 5.7: a masked pong with "Hello", and 64 KiB of binary in one frame.
    let pong = [
        0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
    ];
    let Ok(Decoded::Head { head, bytes: 6 }) = Head::decode(&pong, Role::Client) else {
        panic!("not read");
    };
    assert_eq!((head.opcode, head.length), (Opcode::Pong, 5));
    let mut content = pong[6..].to_vec();
    head.mask.expect("masked").apply(0, &mut content);
    assert_eq!(content, b"Hello");
    let long = [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0];
    let Ok(Decoded::Head { head, bytes: 10 }) = decode(&long) else {
        panic!("not read");
    };
    assert_eq!((head.opcode, head.length), (Opcode::Binary, 65_536));
}

#[test]
fn who_must_mask_and_does_not_or_must_not_and_does_breaks_the_rules() {
    let unmasked = Head::decode(&[0x82, 5], Role::Client);
    assert_eq!(unmasked, Err(Violation::Unmasked));
    assert_eq!(broken(&[0x82, 0x85]), Violation::Masked);
}

#[test]
fn reserved_bits_and_opcodes_break_the_rules() {
    for bit in [0x40, 0x20, 0x10] {
        assert_eq!(broken(&[0x82 | bit, 0]), Violation::ReservedBits);
    }
    for opcode in (3..=7).chain(11..=15) {
        assert_eq!(
            broken(&[0x80 | opcode, 0]),
            Violation::ReservedOpcode(opcode)
        );
    }
}

#[test]
fn text_is_not_spoken() {
    assert_eq!(broken(&[0x81, 5]), Violation::Text);
    assert_eq!(broken(&[0x01, 5]), Violation::Text);
    assert_eq!(Violation::Text.code().number(), 1003);
}

#[test]
fn controls_are_short_and_whole() {
    for opcode in [0x8, 0x9, 0xa] {
        assert_eq!(broken(&[opcode, 0]), Violation::ControlInParts);
        for length in [126, 127] {
            assert_eq!(broken(&[0x80 | opcode, length]), Violation::ControlTooLong);
        }
        assert!(decode(&[0x80 | opcode, 125]).is_ok());
    }
}

#[test]
fn lengths_that_are_longer_than_needed_or_negative_break_the_rules() {
    let two = |length: u16| [&[0x82, 126], &length.to_be_bytes()[..]].concat();
    let eight = |length: u64| [&[0x82, 127], &length.to_be_bytes()[..]].concat();
    for length in [0, 1, 125] {
        assert_eq!(broken(&two(length)), Violation::LengthNotShortest);
        assert_eq!(broken(&eight(length.into())), Violation::LengthNotShortest);
    }
    assert_eq!(broken(&eight(65_535)), Violation::LengthNotShortest);
    assert!(decode(&two(126)).is_ok() && decode(&eight(65_536)).is_ok());
    assert_eq!(broken(&eight(1 << 63)), Violation::LengthSign);
    assert_eq!(broken(&eight(u64::MAX)), Violation::LengthSign);
    assert!(decode(&eight((1 << 63) - 1)).is_ok());
}

#[test]
fn what_is_wrong_is_said_before_the_rest_of_the_head_is_there() {
    let masked_but_cut = [0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let early = Head::decode(&masked_but_cut, Role::Client);
    assert_eq!(early, Err(Violation::LengthSign));
    assert_eq!(broken(&[0x81, 127]), Violation::Text);
}

#[test]
fn a_close_is_empty_or_has_a_code_and_words() {
    let empty = Close::decode(&[]).unwrap();
    assert_eq!((empty.code, &*empty.words), (None, ""));
    assert_eq!(empty.encode(), []);
    assert_eq!(Close::decode(&[3]), Err(Violation::CloseCutShort));
    let away = Close::decode(b"\x03\xe9bye").unwrap();
    assert_eq!(away, Close::new(CloseCode::AWAY, "bye"));
    assert_eq!(away.encode(), b"\x03\xe9bye");
    let not_text = Close::decode(b"\x03\xe9\xff").unwrap_err();
    assert_eq!(not_text.code().number(), 1007);
}

#[test]
fn some_codes_nobody_may_send() {
    let refused = [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ];
    for code in refused {
        let close = Close::decode(&u16::to_be_bytes(code));
        assert_eq!(close, Err(Violation::CloseCode(code)));
        assert_eq!(Violation::CloseCode(code).code(), CloseCode::PROTOCOL);
    }
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1014, 3000, 4999,
    ] {
        let close = Close::decode(&u16::to_be_bytes(code)).unwrap();
        assert_eq!(close.code.unwrap().number(), code);
    }
}

#[test]
fn words_that_are_too_long_are_cut_between_characters() {
    let close = Close::new(CloseCode::NORMAL, &"ä".repeat(100));
    assert_eq!(&*close.words, "ä".repeat(61));
    assert!(close.encode().len() <= CONTROL_BYTES_MAX);
    assert_eq!(Close::decode(&close.encode()), Ok(close));
}

fn any_head() -> impl Strategy<Value = Head> {
    let data = prop_oneof![Just(Opcode::Binary), Just(Opcode::Continuation)];
    let control = prop_oneof![Just(Opcode::Close), Just(Opcode::Ping), Just(Opcode::Pong)];
    let part = prop_oneof![Just(Part::More), Just(Part::Last)];
    let length = prop_oneof![0..200_u64, 65_000..66_000_u64, 0..=i64::MAX as u64];
    let data = (data, part, length);
    let control = (control, Just(Part::Last), 0..=CONTROL_BYTES_MAX as u64);
    let mask = prop::option::of(any::<[u8; 4]>().prop_map(Mask));
    (prop_oneof![data, control], mask).prop_map(|((opcode, part, length), mask)| Head {
        opcode,
        part,
        mask,
        length,
    })
}

proptest! {
    #[test]
    fn a_head_is_read_as_it_was_written_and_asks_for_what_it_lacks(head in any_head()) {
        let from = if head.mask.is_some() { Role::Client } else { Role::Server };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        prop_assert!(bytes.len() <= HEAD_BYTES_MAX);
        for cut in 0..bytes.len() {
            let needs = if cut < 2 { 2 } else { bytes.len() };
            prop_assert_eq!(Head::decode(&bytes[..cut], from), Ok(Decoded::Needs(needs)));
        }
        let decoded = Decoded::Head { head, bytes: bytes.len() };
        bytes.extend([7; 3]);
        prop_assert_eq!(Head::decode(&bytes, from), Ok(decoded));
    }

    #[test]
    fn a_mask_may_be_applied_piece_by_piece(
        key: [u8; 4],
        content: Vec<u8>,
        cut: prop::sample::Index,
    ) {
        let slow = content.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key);
        let slow: Vec<u8> = slow.collect();
        let cut = cut.index(content.len() + 1);
        let mut fast = content;
        Mask(key).apply(0, &mut fast[..cut]);
        Mask(key).apply(cut, &mut fast[cut..]);
        prop_assert_eq!(fast, slow);
    }
}
