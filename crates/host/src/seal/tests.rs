//! What is sealed, what it shows, and who can open it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const A: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const B: &str = "FFEEDDCCBBAA99887766554433221100ffeeddccbbaa99887766554433221100";

fn keys(text: &str) -> Result<Keys, NoKeys> {
    Keys::parse(text, Path::new("k"))
}

#[test]
fn what_is_sealed_opens_at_its_place_and_shows_nothing() {
    let keys = keys(A).unwrap();
    let place: &[&[u8]] = &[b"secrets", b"a/b"];
    for length in [0, 1, 15, 16, 17, 5000] {
        let bytes = vec![b'x'; length];
        let sealed = keys.seal(place, &bytes).unwrap();
        assert_eq!(sealed.len(), length + SEAL_BYTES);
        assert_eq!(keys.open(place, &sealed).unwrap(), bytes);
        assert!(!sealed.windows(8).any(|window| window == b"xxxxxxxx"));
        let again = keys.seal(place, &bytes).unwrap();
        assert_ne!(sealed, again, "each has a nonce of its own");
    }
}

#[test]
fn it_does_not_open_elsewhere_nor_with_any_bit_changed() {
    let keys = keys(A).unwrap();
    let sealed = keys.seal(&[b"ab", b"c"], b"hidden").unwrap();
    for place in [
        &[b"a" as &[u8], b"bc"][..],
        &[b"abc"],
        &[b"ab", b"c", b""],
        &[],
    ] {
        assert_eq!(keys.open(place, &sealed), Err(NotOpened::Broken));
    }
    for position in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed[position] ^= 1 << bit;
            assert!(keys.open(&[b"ab", b"c"], &changed).is_err(), "{position}");
        }
    }
    for length in 0..sealed.len() {
        assert!(keys.open(&[b"ab", b"c"], &sealed[..length]).is_err());
    }
}

#[test]
fn the_first_key_seals_and_all_of_them_open() {
    let old = keys(A).unwrap();
    let sealed = old.seal(&[b"p"], b"hidden").unwrap();
    let both = keys(&format!("# since May\n{B} # new\n\n{A}\n")).unwrap();
    assert_eq!(both.open(&[b"p"], &sealed).unwrap(), b"hidden");
    assert!(old.is_newest(&sealed) && !both.is_newest(&sealed));
    let again = both.seal(&[b"p"], b"hidden").unwrap();
    assert!(both.is_newest(&again));
    let name = id_of(&again).unwrap();
    assert_eq!(old.open(&[b"p"], &again), Err(NotOpened::OtherKey(name)));
}

#[test]
fn what_is_no_key_is_named_by_its_line_and_not_repeated() {
    let wrong = format!("{A}\n{}", &A[1..]);
    let said = keys(&wrong).unwrap_err().to_string();
    assert!(said.contains("line 2") && !said.contains("2233"), "{said}");
    assert!(matches!(
        keys("# none\n"),
        Err(NoKeys::Count { count: 0, .. })
    ));
    let many = format!("{A}\n").repeat(KEYS_MAX + 1);
    assert!(matches!(keys(&many), Err(NoKeys::Count { count: 17, .. })));
    let shown = format!("{:?}", keys(A).unwrap());
    assert!(!shown.contains("2233") && shown.len() < 20, "{shown}");
}

#[test]
fn a_key_is_made_for_its_owner_alone_and_an_open_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    assert!(matches!(
        Keys::read(&path, Whose::Own),
        Err(NoKeys::File(files::Error::Missing(_)))
    ));
    let made = Keys::make(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let sealed = made.seal(&[b"p"], b"hidden").unwrap();
    let read = Keys::read(&path, Whose::Own).unwrap();
    assert_eq!(read.open(&[b"p"], &sealed).unwrap(), b"hidden");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let said = Keys::read(&path, Whose::Given).unwrap_err().to_string();
    assert!(said.contains("chmod 600"), "{said}");
}
