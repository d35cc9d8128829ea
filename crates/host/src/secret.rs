//! Random bytes, hashes and comparisons for secrets.

use std::io;

use aws_lc_rs::constant_time;
use aws_lc_rs::digest::{Context, SHA256};

/// Random bytes that nobody can guess.
pub fn random<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    let filled = aws_lc_rs::rand::fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the machine has no random bytes"))?;
    Ok(bytes)
}

/// The SHA-256 of these parts, one after the other. Each part has its length before it, so that no
/// two lists of parts look the same.
pub fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    sized(context)
}

/// The SHA-256 of bytes as they are.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    sized(context)
}

/// Whether two hashes are the same, in a time that does not tell where they differ.
pub fn same(left: &[u8; 32], right: &[u8; 32]) -> bool {
    constant_time::verify_slices_are_equal(left, right).is_ok()
}

/// Bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sixty-four hexadecimal digits in lower case -> bytes.
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

fn sized(context: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_where_its_parts_end() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_eq!(hash(&[b"ab", b"c"]), hash(&[b"ab", b"c"]));
        assert!(same(&sha256(b"x"), &sha256(b"x")) && !same(&sha256(b"x"), &sha256(b"y")));
    }

    #[test]
    fn hexadecimal_comes_back_and_nothing_else_is_taken() {
        let bytes = sha256(b"abc");
        let text = hex(&bytes);
        assert!(text.starts_with("ba7816bf8f01cfea"), "{text}");
        assert_eq!(from_hex(&text), Some(bytes));
        for wrong in [&text[1..], &text[2..], &text.to_uppercase(), "", "é"] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn random_bytes_are_not_twice_the_same() {
        assert_ne!(random::<32>().unwrap(), random::<32>().unwrap());
    }
}
