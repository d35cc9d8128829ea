//! What an authority issues, and what its folder does with files that are right, old or damaged.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, Hands};

fn new_year() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn admin() -> Wanted {
    Wanted::Client {
        user: "admin".into(),
        groups: vec!["system:masters".into()],
    }
}

fn serving() -> Wanted {
    Wanted::Server {
        name: "kube-apiserver".into(),
        dns: vec!["localhost".into(), "kubernetes.default.svc".into()],
        ips: vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()],
    }
}

fn opened() -> (tempfile::TempDir, Folder, Hands) {
    let temporary = tempfile::tempdir().unwrap();
    let (clock, hands) = Clock::manual(new_year());
    let folder = Folder::open(&temporary.path().join("pki"), clock).unwrap();
    (temporary, folder, hands)
}

fn days(count: u64) -> std::time::Duration {
    std::time::Duration::from_secs(count * 24 * 3600)
}

#[test]
fn a_client_certificate_carries_its_user_and_every_group_in_order() {
    let authority = Authority::create("ca", new_year()).unwrap();
    let groups: Vec<String> = ["b", "a", "system:nodes"].map(String::from).to_vec();
    let wanted = Wanted::Client {
        user: "system:node:n1".into(),
        groups: groups.clone(),
    };
    let issued = authority.issue(&wanted, new_year()).unwrap();
    let leaf = Leaf::read(&issued.certificate).unwrap();
    assert_eq!(
        (leaf.common_name.as_str(), &leaf.organizations),
        ("system:node:n1", &groups)
    );
    assert!(!leaf.serial.is_empty());
    assert!(leaf::is_signed_by(&issued.certificate, &authority));
    let stranger = Authority::create("ca", new_year()).unwrap();
    assert!(!leaf::is_signed_by(&issued.certificate, &stranger));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_user_and_groups_come_back_as_they_went_in(
        user in "\\PC{1,300}",
        groups in proptest::collection::vec("\\PC{1,300}", 0..5),
    ) {
        let authority = Authority::create("ca", new_year()).unwrap();
        let wanted = Wanted::Client { user, groups };
        let issued = authority.issue(&wanted, new_year()).unwrap();
        prop_assert!(Leaf::read(&issued.certificate).unwrap().says(&wanted));
        prop_assert!(leaf::is_signed_by(&issued.certificate, &authority));
    }

    #[test]
    fn reading_hostile_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Leaf::read(&bytes.into()).is_err());
    }

    #[test]
    fn a_damaged_certificate_says_nothing_else_under_a_good_signature(
        at in 0_usize..400,
        bit in 0_u8..8,
    ) {
        let authority = Authority::create("ca", new_year()).unwrap();
        let mut bytes = authority.certificate().to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let damaged = CertificateDer::from(bytes);
        let says_the_same = match Leaf::read(&damaged) {
            Ok(leaf) => leaf == Leaf::read(authority.certificate()).unwrap(),
            Err(_) => false,
        };
        prop_assert!(says_the_same || !leaf::is_signed_by(&damaged, &authority));
    }
}

#[test]
fn a_certificate_is_due_in_its_last_third_and_before_its_time() {
    let leaf = |at: &str| at.parse::<Timestamp>().unwrap();
    let (not_before, not_after) = (leaf("2026-01-01T00:00:00Z"), leaf("2026-01-31T00:00:00Z"));
    let validity = Validity {
        not_before,
        not_after,
    };
    assert!(!validity.is_due(leaf("2026-01-20T23:00:00Z")));
    assert!(validity.is_due(leaf("2026-01-21T01:00:00Z")));
    assert!(validity.is_due(leaf("2027-01-01T00:00:00Z")));
    assert!(validity.is_due(leaf("1970-01-01T00:00:00Z")));
}

#[test]
fn a_leaf_does_not_outlive_its_authority() {
    let authority = Authority::create("ca", new_year()).unwrap();
    let end = Leaf::read(authority.certificate())
        .unwrap()
        .validity
        .not_after;
    let late = end - SignedDuration::from_hours(24);
    let issued = authority.issue(&admin(), late).unwrap();
    assert_eq!(
        Leaf::read(&issued.certificate).unwrap().validity.not_after,
        end
    );
}

#[test]
fn a_second_start_finds_what_the_first_one_made() {
    let (_temporary, folder, _) = opened();
    let first = folder.authority("ca", "test-ca").unwrap();
    let admin_first = folder.credential("admin", &first, &admin()).unwrap();
    let key_first = folder.signing_key("service-account").unwrap();
    let second = folder.authority("ca", "test-ca").unwrap();
    let admin_second = folder.credential("admin", &second, &admin()).unwrap();
    let key_second = folder.signing_key("service-account").unwrap();
    assert_eq!(first.certificate(), second.certificate());
    assert_eq!(admin_first.certificate, admin_second.certificate);
    assert_eq!(admin_first.key_pem(), admin_second.key_pem());
    assert_eq!(key_first.secret_pkcs8_der(), key_second.secret_pkcs8_der());
}

#[test]
fn no_key_on_disk_is_readable_by_others() {
    let (temporary, folder, _) = opened();
    let authority = folder.authority("ca", "test-ca").unwrap();
    folder
        .credential("serving", &authority, &serving())
        .unwrap();
    folder.signing_key("service-account").unwrap();
    let mut keys = 0;
    for entry in fs::read_dir(temporary.path().join("pki")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode() & 0o777;
        match entry.path().extension().and_then(|ending| ending.to_str()) {
            Some("key") => assert_eq!(mode, 0o600, "{:?}", entry.path()),
            _ => continue,
        }
        keys += 1;
    }
    assert_eq!(keys, 3);
}

#[test]
fn a_certificate_is_renewed_when_due_or_when_something_else_is_wanted() {
    let (_temporary, folder, hands) = opened();
    let authority = folder.authority("ca", "test-ca").unwrap();
    let first = folder
        .credential("serving", &authority, &serving())
        .unwrap();
    hands.advance(days(200));
    let kept = folder
        .credential("serving", &authority, &serving())
        .unwrap();
    assert_eq!(kept.certificate, first.certificate);
    hands.advance(days(50));
    let renewed = folder
        .credential("serving", &authority, &serving())
        .unwrap();
    assert_ne!(renewed.certificate, first.certificate);

    let Wanted::Server { name, dns, mut ips } = serving() else {
        unreachable!()
    };
    ips.push([10, 96, 0, 1].into());
    let more = Wanted::Server { name, dns, ips };
    let changed = folder.credential("serving", &authority, &more).unwrap();
    assert!(Leaf::read(&changed.certificate).unwrap().says(&more));
}

#[test]
fn a_damaged_or_mismatched_leaf_is_replaced() {
    let (temporary, folder, _) = opened();
    let authority = folder.authority("ca", "test-ca").unwrap();
    let path = |name: &str| temporary.path().join("pki").join(name);
    for (name, bytes) in [
        ("admin.crt", &b""[..]),
        (
            "admin.crt",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
        ("admin.key", b"half a ke"),
    ] {
        let before = folder.credential("admin", &authority, &admin()).unwrap();
        fs::write(path(name), bytes).unwrap();
        let after = folder.credential("admin", &authority, &admin()).unwrap();
        assert_ne!(before.certificate, after.certificate, "{name}");
    }
    let other = Authority::create("test-ca", new_year()).unwrap();
    let before = folder.credential("admin", &authority, &admin()).unwrap();
    let after = folder.credential("admin", &other, &admin()).unwrap();
    assert_ne!(before.certificate, after.certificate);
}

#[test]
fn an_authority_is_never_replaced_behind_the_users_back() {
    let (temporary, folder, hands) = opened();
    let path = |name: &str| temporary.path().join("pki").join(name);
    let authority = folder.authority("ca", "test-ca").unwrap();

    fs::remove_file(path("ca.crt")).unwrap();
    let again = folder.authority("ca", "test-ca").unwrap();
    let issued = again.issue(&admin(), new_year()).unwrap();
    assert!(
        leaf::is_signed_by(&issued.certificate, &authority),
        "the key stayed"
    );

    let key = fs::read(path("ca.key")).unwrap();
    fs::remove_file(path("ca.key")).unwrap();
    assert!(matches!(
        folder.authority("ca", "test-ca"),
        Err(Error::KeyLost(_))
    ));
    write_private(
        &path("ca.key"),
        Authority::create("x", new_year())
            .unwrap()
            .key_pem()
            .as_bytes(),
    );
    assert!(matches!(
        folder.authority("ca", "test-ca"),
        Err(Error::NotAPair { .. })
    ));
    write_private(&path("ca.key"), b"not a key");
    assert!(matches!(
        folder.authority("ca", "test-ca"),
        Err(Error::BadKeyFile(_))
    ));
    write_private(&path("ca.key"), &key);
    folder.authority("ca", "test-ca").unwrap();

    hands.advance(days(3651));
    assert!(matches!(
        folder.authority("ca", "test-ca"),
        Err(Error::AuthorityExpired { .. })
    ));
}

#[test]
fn a_key_that_others_may_read_is_refused_and_not_quietly_replaced() {
    let (temporary, folder, _) = opened();
    let authority = folder.authority("ca", "test-ca").unwrap();
    folder.credential("admin", &authority, &admin()).unwrap();
    let key = temporary.path().join("pki/admin.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = folder
        .credential("admin", &authority, &admin())
        .err()
        .unwrap();
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
}

fn write_private(path: &Path, bytes: &[u8]) {
    files::write(path, bytes, files::Audience::Owner).unwrap();
}
