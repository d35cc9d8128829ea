//! Secrets on the disk: sealed wherever they lie, and readable for who has the key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use host::seal::{Keys, Whose};
use object::{Object, Resource};
use store::authority::{Action, Draft, Expect, Swap};
use store::disk::real::RealDisk;
use store::replica::{Change, Cut, CutEnd, Onto, Reset, Stage, Until};
use store::{
    At, Authority, KeyFile, NotKept, OpenError, Options, Part, Range, Replica, Scope, Step, keys,
};

use crate::bench_objects::{name, small, version, want};

pub(crate) fn secrets() -> Resource {
    Resource::new("", "secrets")
}

fn configmaps() -> Resource {
    Resource::new("", "configmaps")
}

/// Both, to see what is seen of the one and must not be of the other.
fn both() -> [Resource; 2] {
    [secrets(), configmaps()]
}

/// Keys, from digits that are repeated.
pub(crate) fn made_keys(digits: &[&str]) -> Arc<Keys> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let lines: Vec<String> = digits.iter().map(|digit| digit.repeat(64)).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Arc::new(Keys::read(&path, Whose::Own).unwrap())
}

fn options(keys: Option<Arc<Keys>>) -> Options {
    let keep = small(1_000_000);
    Options { keys, ..keep }
}

fn try_open(folder: &Path, options: Options) -> Result<Replica, OpenError> {
    let disk = Arc::new(RealDisk::open(folder).unwrap());
    Replica::open(disk, options, Clock::machine())
}

fn open(folder: &Path, digits: &[&str]) -> Replica {
    try_open(folder, options(Some(made_keys(digits)))).unwrap()
}

/// What nobody may find: another one for each resource and each moment.
fn marker(resource: &Resource, at: u64) -> String {
    format!("marker-{}-{at:06}", resource.plural())
}

fn text(resource: &Resource, path: &str, at: u64) -> String {
    let named = name(path);
    let marker = marker(resource, at);
    let (name, namespace) = (named.name(), named.namespace());
    let metadata = format!(
        r#""name":"{name}","namespace":"{namespace}","uid":"u{name}","resourceVersion":"{at}""#
    );
    format!(r#"{{"metadata":{{{metadata}}},"data":"{marker}"}}"#)
}

fn object(resource: &Resource, path: &str, at: u64) -> Object {
    Object::parse(resource, text(resource, path, at).into(), &[]).unwrap()
}

/// Which markers are found in the files of the store.
fn found(folder: &Path, resource: &Resource) -> Vec<u64> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let start = format!("marker-{}-", resource.plural());
        for (place, _) in bytes
            .windows(start.len())
            .enumerate()
            .filter(|(_, window)| *window == start.as_bytes())
        {
            let digits = &bytes[place + start.len()..][..6];
            found.push(std::str::from_utf8(digits).unwrap().parse().unwrap());
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn scope() -> Scope {
    Scope::of(Range::Namespace("a".into()))
}

fn stage(resource: &Resource, onto: Onto, puts: Vec<Object>) -> Stage {
    Stage {
        resource: resource.clone(),
        epoch: 1,
        scope: scope(),
        onto,
        puts,
        drops: vec![],
    }
}

fn cut(resource: &Resource, changes: Vec<Change>, at: u64, resets: Vec<Reset>) -> Cut {
    Cut {
        resource: resource.clone(),
        epoch: 1,
        changes,
        until: Until::End(CutEnd {
            progress: version(at),
            resets,
            ended: vec![],
        }),
    }
}

fn reset(onto: Onto, puts: Vec<Object>) -> Reset {
    Reset {
        scope: scope(),
        onto,
        puts,
        drops: vec![],
    }
}

fn bytes_of(replica: &Replica, resource: &Resource, path: &str) -> Option<Bytes> {
    let read = replica.reader().object(resource, &name(path)).unwrap();
    read.map(|object| object.bytes)
}

/// Everything in every way: staged, taken over, reset, changed, deleted, staged and left there.
fn write_all(replica: &Replica, resource: &Resource) {
    let object = |path, at| object(resource, path, at);
    let put = |path, at| Change::Put(object(path, at));
    let first = stage(resource, Onto::Nothing, vec![object("a/1", 1)]);
    replica.stage_blocking(first).unwrap();
    let second = stage(resource, Onto::Staged, vec![object("a/2", 2)]);
    replica.stage_blocking(second).unwrap();
    let taken = reset(Onto::Staged, vec![object("a/3", 3)]);
    replica
        .apply_blocking(cut(resource, vec![], 10, vec![taken]))
        .unwrap();
    let changes = vec![put("a/1", 11), put("a/4", 12)];
    replica
        .apply_blocking(cut(resource, changes, 20, vec![]))
        .unwrap();
    let gone = Change::Delete {
        name: name("a/2"),
        uid: "u2".into(),
        version: version(21),
    };
    replica
        .apply_blocking(cut(resource, vec![gone], 30, vec![]))
        .unwrap();
    let left = stage(resource, Onto::Nothing, vec![object("a/5", 31)]);
    replica.stage_blocking(left).unwrap();
}

const WRITTEN: [u64; 6] = [1, 2, 3, 11, 12, 31];

/// What must be there after `write_all`.
fn check_all(replica: &Replica, resource: &Resource) {
    for (path, at) in [("a/1", 11), ("a/3", 3), ("a/4", 12)] {
        let wanted = Bytes::from(text(resource, path, at));
        assert_eq!(bytes_of(replica, resource, path), Some(wanted), "{path}");
    }
    assert_eq!(bytes_of(replica, resource, "a/2"), None);
    let want = want(resource.clone(), Range::Namespace("a".into()));
    let reader = replica.reader();
    // As it was, from history.
    let then = At::Exactly(version(10));
    let page = reader.page(&want, &then, &Part::default()).unwrap();
    let mut ahead = store::Ahead::default();
    let read = (0..page.rows.len()).map(|number| page.read(number, &mut ahead).unwrap());
    let wanted = [("a/1", 1), ("a/2", 2), ("a/3", 3)];
    let wanted = wanted.map(|(path, at)| Bytes::from(text(resource, path, at)));
    assert_eq!(read.collect::<Vec<Bytes>>(), wanted);
    // And as a watcher is told.
    let mut watch = reader.watch(&want, &version(10)).unwrap();
    let Step::Events(events) = watch.step().unwrap() else {
        panic!("there is history")
    };
    let store::What::Changed {
        after: Some(row), ..
    } = &events[0].what
    else {
        panic!("a change")
    };
    let told = reader.event_bytes(resource, &events[0], row).unwrap();
    assert_eq!(told, text(resource, "a/1", 11));
}

#[test]
fn a_secret_is_found_in_no_file_however_it_came_there() {
    let folder = tempfile::tempdir().unwrap();
    let replica = open(folder.path(), &["a"]);
    for resource in &both() {
        write_all(&replica, resource);
        check_all(&replica, resource);
    }
    // The same look finds everything of a kind that is not sealed.
    assert_eq!(found(folder.path(), &configmaps()), WRITTEN);
    assert_eq!(found(folder.path(), &secrets()), Vec::<u64>::new());
    drop(replica);
    // Read from the disk, and folded into a base: the log is larger than what it holds.
    let fold = Options {
        compact_bytes_min: 1,
        ..options(Some(made_keys(&["a"])))
    };
    let replica = try_open(folder.path(), fold).unwrap();
    for resource in &both() {
        check_all(&replica, resource);
    }
    for at in 40..60 {
        for resource in &both() {
            let changes = vec![Change::Put(object(resource, "a/6", at))];
            let cut = cut(resource, changes, at, vec![]);
            replica.apply_blocking(cut).unwrap();
        }
    }
    drop(replica);
    let names = fs::read_dir(folder.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.any(|name| name.ends_with(".base")));
    let replica = open(folder.path(), &["a"]);
    for resource in &both() {
        let wanted = Bytes::from(text(resource, "a/6", 59));
        assert_eq!(bytes_of(&replica, resource, "a/6"), Some(wanted));
    }
    assert_eq!(replica.reader().resumable().len(), 2, "what is staged");
    assert!(found(folder.path(), &configmaps()).contains(&31));
    assert_eq!(found(folder.path(), &secrets()), Vec::<u64>::new());
}

#[test]
fn an_authority_seals_secrets_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
        let options = options(Some(made_keys(&["a"])));
        Authority::open(disk, options, Clock::machine()).unwrap()
    };
    let authority = open();
    authority.open_tables_blocking(Vec::from(both())).unwrap();
    for resource in &both() {
        let text = text(resource, "a/1", 7);
        let (head, tail) = text.split_once("\"7\"").unwrap();
        let draft = Draft {
            header: object(resource, "a/1", 7).header,
            head: format!("{head}\"").into(),
            tail: format!("\"{tail}").into(),
        };
        let swap = Swap {
            resource: resource.clone(),
            name: name("a/1"),
            expect: Expect::Absent,
            action: Action::Put(Box::new(draft)),
        };
        authority.swap_blocking(vec![swap]).unwrap();
    }
    drop(authority);
    let authority = open();
    let read = authority.reader().object(&secrets(), &name("a/1")).unwrap();
    let text = String::from_utf8(read.unwrap().bytes.to_vec()).unwrap();
    assert!(text.contains(&marker(&secrets(), 7)));
    assert_eq!(found(folder.path(), &configmaps()), [7]);
    assert_eq!(found(folder.path(), &secrets()), Vec::<u64>::new());
}

fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn without_its_key_a_store_is_not_opened_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let replica = open(folder.path(), &["a"]);
    write_all(&replica, &secrets());
    drop(replica);
    // A torn end would be cut off by whoever opens it.
    let (last, mut bytes) = files(folder.path()).pop().unwrap();
    bytes.extend_from_slice(b"HFr1 torn");
    fs::write(last, bytes).unwrap();
    let before = files(folder.path());
    for keys in [None, Some(made_keys(&["b"]))] {
        let refused = try_open(folder.path(), options(keys)).map(drop);
        let Err(error @ OpenError::OtherKey { .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(error.to_string().contains("put that key back"), "{error}");
        assert!(files(folder.path()) == before);
    }
    let replica = open(folder.path(), &["b", "a"]);
    check_all(&replica, &secrets());
}

#[test]
fn what_lay_there_as_it_was_is_sealed_when_there_is_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let replica = try_open(folder.path(), options(None)).unwrap();
    for resource in &both() {
        write_all(&replica, resource);
    }
    drop(replica);
    assert_eq!(found(folder.path(), &secrets()), WRITTEN);
    let replica = open(folder.path(), &["a"]);
    for resource in &both() {
        check_all(&replica, resource);
    }
    drop(replica);
    assert_eq!(found(folder.path(), &secrets()), Vec::<u64>::new());
    assert!(!found(folder.path(), &configmaps()).is_empty());
    let before = files(folder.path());
    let replica = open(folder.path(), &["a"]);
    for resource in &both() {
        check_all(&replica, resource);
    }
    let names = |files: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<std::path::PathBuf> {
        files.into_iter().map(|(path, _)| path).collect()
    };
    let after = names(files(folder.path()));
    assert_eq!(after, names(before), "once is enough");
}

#[test]
fn a_key_can_be_changed_and_the_older_one_is_not_needed_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let replica = open(folder.path(), &["a"]);
    write_all(&replica, &secrets());
    drop(replica);
    drop(open(folder.path(), &["b", "a"]));
    let refused = try_open(folder.path(), options(Some(made_keys(&["a"]))));
    assert!(matches!(refused, Err(OpenError::OtherKey { .. })));
    let replica = open(folder.path(), &["b"]);
    check_all(&replica, &secrets());
}

/// Bytes of a record's head, and where the kind and the checksum of the value stand in it.
const HEAD_BYTES: usize = 40;

/// Where the sealed values of a file lie: the start of each record, of its value, and its end.
fn sealed_values(bytes: &[u8]) -> Vec<(usize, usize, usize)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut values, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let value = at + HEAD_BYTES + word(at + 4);
        let end = value + word(at + 8);
        if bytes[at + 16] == 12 {
            values.push((at, value, end));
        }
        at = end;
    }
    values
}

/// Puts a value into a record, with the right checksums.
fn set_value(bytes: &mut [u8], (at, start, end): (usize, usize, usize), value: &[u8]) {
    bytes[start..end].copy_from_slice(value);
    bytes[at + 32..at + 36].copy_from_slice(&crc32fast::hash(value).to_le_bytes());
    let head_sum = crc32fast::hash(&bytes[at..at + HEAD_BYTES - 4]);
    bytes[at + HEAD_BYTES - 4..at + HEAD_BYTES].copy_from_slice(&head_sum.to_le_bytes());
}

#[test]
fn a_value_that_was_put_in_the_place_of_another_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let replica = open(folder.path(), &["a"]);
    write_all(&replica, &secrets());
    drop(replica);
    let (path, mut bytes) = files(folder.path()).pop().unwrap();
    let values = sealed_values(&bytes);
    assert_eq!(values.len(), WRITTEN.len());
    let (one, other) = (values[1], values[2]);
    assert_eq!(one.2 - one.1, other.2 - other.1);
    let moved = bytes[other.1..other.2].to_vec();
    set_value(&mut bytes, one, &moved);
    fs::write(path, bytes).unwrap();
    let replica = open(folder.path(), &["a"]);
    assert!(replica.reader().object(&secrets(), &name("a/1")).is_err());
}

#[test]
fn a_key_is_made_once_and_never_in_place_of_one_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secrets.key");
    let disk = RealDisk::open(folder.path()).unwrap();
    let given = keys(KeyFile::Given(&path), &disk);
    assert!(matches!(&given, Err(NotKept::NotThere(missing)) if *missing == path));
    let made = keys(KeyFile::Own(&path), &disk).unwrap();
    let replica = try_open(folder.path(), options(Some(made))).unwrap();
    write_all(&replica, &configmaps());
    drop(replica);
    // Nothing is sealed yet, so another one will do.
    fs::remove_file(&path).unwrap();
    let made = keys(KeyFile::Own(&path), &disk).unwrap();
    let replica = try_open(folder.path(), options(Some(made))).unwrap();
    write_all(&replica, &secrets());
    drop(replica);
    let aside = home.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    for file in [KeyFile::Own(&path), KeyFile::Given(&path)] {
        let said = keys(file, &disk).unwrap_err().to_string();
        assert!(said.contains("put the file back"), "{said}");
        assert!(!path.exists());
    }
    fs::rename(&aside, &path).unwrap();
    let again = keys(KeyFile::Given(&path), &disk).unwrap();
    let replica = try_open(folder.path(), options(Some(again))).unwrap();
    check_all(&replica, &secrets());
}
