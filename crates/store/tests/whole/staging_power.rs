//! The power goes, the disk fails or bits flip while content is staged, shown and discarded: what
//! was acked is there, and nothing wrong ever is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use object::Object;
use object::digest::{Digest, Member};
use store::disk::Disk;
use store::disk::lossy::{Fault, LossyDisk};
use store::disk::memory::MemoryDisk;
use store::replica::{Change, Cut, CutEnd, Onto, Refusal, Reset, Stage, Until};
use store::{Range, Replica, Scope};

use crate::bench_objects::*;

/// One request of the script.
#[derive(Debug, Clone)]
enum Request {
    Stage(Stage),
    Unstage(Scope),
    Apply(Cut),
    Document(&'static str, Option<&'static str>),
}

/// What can be seen of a store: rows, scopes with something staged, documents.
#[derive(Debug, Clone, PartialEq)]
struct State {
    rows: BTreeMap<String, u64>,
    staged: usize,
    documents: Vec<Option<Bytes>>,
}

const DOCUMENTS: [&str; 2] = ["session", "key"];

fn namespace(name: &str) -> Scope {
    Scope::of(Range::Namespace(name.into()))
}

fn pod(path: &str, at: u64) -> Object {
    object(path, path, "red", at)
}

fn stage(scope: Scope, onto: Onto, puts: Vec<Object>, drops: &[&str]) -> Request {
    Request::Stage(Stage {
        resource: pods(),
        epoch: 1,
        scope,
        onto,
        puts,
        drops: drops.iter().map(|path| name(path)).collect(),
    })
}

fn cut(changes: Vec<Change>, at: u64, resets: Vec<Reset>, ended: Vec<Scope>) -> Request {
    Request::Apply(Cut {
        resource: pods(),
        epoch: 1,
        changes,
        until: Until::End(CutEnd {
            progress: version(at),
            resets,
            ended,
        }),
    })
}

fn reset(scope: Scope, onto: Onto, puts: Vec<Object>, drops: &[&str]) -> Reset {
    let drops = drops.iter().map(|path| name(path)).collect();
    Reset {
        scope,
        onto,
        puts,
        drops,
    }
}

/// Each of these can be asked for again if nobody knows whether it was stored.
fn script() -> Vec<Request> {
    let mut script = Vec::new();
    for round in 1..=3 {
        let at = round * 100;
        let (a, b) = (namespace("a"), namespace("b"));
        let page = |from: u64| {
            let path = |index: u64| pod(&format!("a/{index}"), at + index);
            (from..from + 3).map(path).collect::<Vec<_>>()
        };
        script.push(Request::Document("session", Some("x")));
        script.push(stage(a.clone(), Onto::Nothing, page(0), &[]));
        script.push(stage(a.clone(), Onto::Staged, page(3), &["a/0"]));
        script.push(stage(b.clone(), Onto::Nothing, vec![pod("b/1", at)], &[]));
        script.push(Request::Unstage(b.clone()));
        script.push(stage(b.clone(), Onto::Held, vec![pod("b/2", at)], &["b/1"]));
        let puts = vec![pod("a/1", at + 20)];
        let from_a = reset(a.clone(), Onto::Staged, puts, &["a/2"]);
        let from_b = reset(b.clone(), Onto::Staged, vec![], &[]);
        script.push(cut(vec![], at + 30, vec![from_a, from_b], vec![]));
        let change = Change::Put(pod("a/7", at + 40));
        script.push(cut(vec![change], at + 40, vec![], vec![]));
        script.push(Request::Document("key", Some("secret")));
        let repair = reset(a.clone(), Onto::Held, vec![pod("a/8", at + 45)], &["a/3"]);
        script.push(cut(vec![], at + 50, vec![repair], vec![]));
        script.push(Request::Document("key", None));
        if round == 2 {
            script.push(stage(b.clone(), Onto::Nothing, vec![], &[]));
            script.push(cut(vec![], at + 60, vec![], vec![b]));
        }
    }
    script
}

fn open(disk: Arc<dyn Disk>) -> Result<Replica, store::OpenError> {
    Replica::open(disk, small(1_500), Clock::machine())
}

fn ask(replica: &Replica, request: &Request) -> Result<(), Refusal> {
    match request.clone() {
        Request::Stage(stage) => replica.stage_blocking(stage).map(drop),
        Request::Unstage(scope) => replica.unstage_blocking(pods(), Some(scope)).map(drop),
        Request::Apply(cut) => replica.apply_blocking(cut).map(drop),
        Request::Document(name, text) => {
            let bytes = text.map(|text| Bytes::from_static(text.as_bytes()));
            replica.put_document_blocking(name, bytes).map(drop)
        }
    }
}

fn state(replica: &Replica) -> State {
    let reader = replica.reader();
    let rows = reader.rows(&pods());
    let mut digest = Digest::default();
    for row in &rows {
        digest.add(Member::of(&pods(), &row.header));
        let read = reader.object(&pods(), &row.header.name).unwrap().unwrap();
        let parsed = Object::parse(&pods(), read.bytes, &[]).unwrap();
        assert_eq!(
            parsed.header, row.header,
            "bytes and header belong together"
        );
    }
    let held = reader.holding(&pods()).map(|holding| holding.digest);
    assert_eq!(held.unwrap_or_default(), digest);
    let row = |row: &Arc<store::Row>| {
        let header = &row.header;
        (header.name.as_str().to_owned(), number(&header.version))
    };
    State {
        rows: rows.iter().map(row).collect(),
        staged: reader.staged().len(),
        documents: DOCUMENTS.map(|name| reader.document(name).unwrap()).into(),
    }
}

/// What is there before each request, and after the last.
fn states() -> Vec<State> {
    let replica = open(Arc::new(MemoryDisk::default())).unwrap();
    let mut states = vec![state(&replica)];
    for request in script() {
        ask(&replica, &request).unwrap();
        states.push(state(&replica));
    }
    states
}

/// Runs the script until something fails. Returns how many requests were acked.
fn run(disk: &LossyDisk) -> usize {
    let Ok(replica) = open(Arc::new(disk.clone())) else {
        return 0;
    };
    let script = script();
    let failed = script
        .iter()
        .position(|request| ask(&replica, request).is_err());
    failed.unwrap_or(script.len())
}

/// What a crash left is what was acked, perhaps with the next; and the script can go on from it.
fn check(disk: &LossyDisk, acked: usize, states: &[State], context: &str) {
    let replica = open(Arc::new(disk.clone())).unwrap();
    let found = state(&replica);
    let next = states.get(acked + 1).filter(|next| **next == found);
    let next = match next {
        _ if states[acked] == found => acked,
        Some(_) => acked + 1,
        None => panic!("{context}: {found:?} after {acked}"),
    };
    for request in &script()[next..] {
        ask(&replica, request).unwrap_or_else(|refusal| panic!("{context}: {refusal}"));
    }
    assert_eq!(&state(&replica), states.last().unwrap(), "{context}");
    drop(replica);
    let replica = open(Arc::new(disk.clone())).unwrap();
    assert_eq!(&state(&replica), states.last().unwrap(), "{context}");
}

#[test]
fn a_power_cut_before_any_call_loses_nothing_that_was_staged_or_shown() {
    let disk = LossyDisk::default();
    let states = states();
    assert_eq!(run(&disk), script().len());
    let calls = disk.calls();
    assert!(calls > 60, "{calls} calls are worth a test");
    let mut chance = Chance(5);
    for call in 0..calls {
        for keep in 0..3 {
            let disk = LossyDisk::default();
            disk.fail_at(call, Fault::Dead);
            let acked = run(&disk);
            disk.crash(|| match keep {
                0 => false,
                1 => true,
                _ => chance.one_in(2),
            });
            check(&disk, acked, &states, &format!("call {call}, kept {keep}"));
        }
    }
}

#[test]
fn a_full_disk_or_a_failed_sync_changes_nothing_that_was_staged_or_shown() {
    let disk = LossyDisk::default();
    let states = states();
    run(&disk);
    for call in 0..disk.calls() {
        for fault in [Fault::Full, Fault::ShortWrite, Fault::SyncFails] {
            let disk = LossyDisk::default();
            disk.fail_at(call, fault);
            let acked = run(&disk);
            disk.crash(|| call % 2 == 0);
            check(&disk, acked, &states, &format!("{fault:?} at {call}"));
        }
    }
}

/// A store with something shown, something staged and a document, partly in a base.
fn sample() -> BTreeMap<String, Vec<u8>> {
    let disk = LossyDisk::default();
    let replica = open(Arc::new(disk.clone())).unwrap();
    let shown = (0..8).map(|index| pod(&format!("b/{index}"), 5)).collect();
    let shown = reset(namespace("b"), Onto::Nothing, shown, &[]);
    let page = |from: u64| {
        let path = |index: u64| pod(&format!("a/{index}"), 7);
        (from..from + 6).map(path).collect::<Vec<_>>()
    };
    let script = [
        Request::Document("key", Some("secret")),
        cut(vec![], 10, vec![shown], vec![]),
        stage(namespace("a"), Onto::Nothing, page(0), &[]),
        stage(namespace("a"), Onto::Staged, page(6), &["a/3"]),
    ];
    for request in &script {
        ask(&replica, request).unwrap();
    }
    replica.close();
    let names = disk.list().unwrap().into_iter();
    let files: BTreeMap<_, _> = names
        .map(|name| (name.clone(), disk.bytes(&name).unwrap()))
        .collect();
    assert!(files.keys().any(|name| name.ends_with(".base")));
    files
}

/// What a damaged store does not give back: objects, staged content, documents.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lost {
    shown: bool,
    staged: bool,
    documents: bool,
}

/// Opens what was damaged, goes on as an agent would, and says what was lost.
fn repaired(files: &BTreeMap<String, Vec<u8>>, context: &str) -> Lost {
    let disk = LossyDisk::default();
    for (name, bytes) in files {
        disk.set_bytes(name, bytes);
    }
    let replica = open(Arc::new(disk.clone())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let reader = replica.reader();
    let document = reader.document("key");
    let documents = !matches!(&document, Ok(Some(bytes)) if bytes == "secret");
    if document.is_err() {
        runtime.block_on(replica.forget_documents()).unwrap();
    }
    ask(&replica, &Request::Document("key", Some("secret"))).unwrap();
    let count = reader.holding(&pods()).map_or(0, |holding| holding.objects);
    assert!([0, 8].contains(&count), "{context}: all or nothing");
    for damaged in reader.damaged() {
        runtime.block_on(replica.forget(damaged)).unwrap();
    }
    let from_staged = reset(namespace("a"), Onto::Staged, vec![], &[]);
    let end = cut(vec![], 20, vec![from_staged.clone()], vec![]);
    let staged = match ask(&replica, &end) {
        Ok(()) => false,
        Err(Refusal::NothingStaged { .. }) => {
            let puts = (0..12).filter(|index| *index != 3);
            let puts = puts.map(|index| pod(&format!("a/{index}"), 7)).collect();
            ask(&replica, &stage(namespace("a"), Onto::Nothing, puts, &[])).unwrap();
            ask(&replica, &end).unwrap();
            true
        }
        Err(other) => panic!("{context}: {other}"),
    };
    drop(replica);
    let replica = open(Arc::new(disk)).unwrap();
    let state = state(&replica);
    let path = |index: u64| (format!("a/{index}"), 7);
    let staged_rows = (0..12).filter(|index| *index != 3).map(path);
    let shown_rows = (0..count).map(|index| (format!("b/{index}"), 5));
    let expected: BTreeMap<_, _> = staged_rows.chain(shown_rows).collect();
    assert_eq!(state.rows, expected, "{context}");
    assert_eq!(state.documents[1].as_deref(), Some(&b"secret"[..]));
    Lost {
        shown: count == 0,
        staged,
        documents,
    }
}

#[test]
fn a_flipped_bit_in_what_is_staged_costs_what_is_staged_and_nothing_that_is_shown() {
    let files = sample();
    let (mut flips, mut wide) = (0, Vec::new());
    let (mut staged, mut shown) = (0, 0);
    for (file, bytes) in &files {
        for offset in (0..bytes.len()).step_by(5) {
            let mut damaged = files.clone();
            damaged.get_mut(file).unwrap()[offset] ^= 1 << (offset % 8);
            let context = format!("{file} at {offset} of {}", bytes.len());
            let lost = repaired(&damaged, &context);
            flips += 1;
            let all = [lost.shown, lost.staged, lost.documents];
            // To forget a resource is to forget what is staged for it.
            let count = all.iter().filter(|lost| **lost).count();
            if count > 1 && !(lost.shown && lost.staged && !lost.documents) {
                wide.push(context);
            }
            staged += usize::from(lost.staged && !lost.shown);
            shown += usize::from(lost.shown);
        }
    }
    println!("{flips} flips, {staged} cost what is staged, {shown} what is shown, wide: {wide:?}");
    assert!(
        staged * 4 > flips && shown * 8 > flips,
        "{staged}, {shown} of {flips}"
    );
    assert!(wide.len() * 50 <= flips, "damage is contained: {wide:?}");
}
