//! Bits flip, pages go, files are cut, swapped, lost or brought from elsewhere: nothing wrong is
//! ever served, and what is not affected still is.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::Clock;
use object::Resource;
use store::disk::Disk;
use store::disk::lossy::LossyDisk;
use store::replica::{Cut, CutEnd, Refusal, Reset, Until};
use store::{At, Authority, OpenError, Options, Part, Range, Refused, Replica, Scope};

use crate::bench_objects::*;

type Files = BTreeMap<String, Vec<u8>>;
/// Path to version and bytes, for each resource.
type State = BTreeMap<Resource, BTreeMap<String, (u64, Vec<u8>)>>;

fn quiet() -> Resource {
    Resource::new("", "nodes")
}

fn resources() -> [Resource; 3] {
    [pods(), leases(), quiet()]
}

fn options() -> Options {
    Options {
        compact_bytes_min: 6_000,
        ..Options::new("test")
    }
}

fn files(disk: &LossyDisk) -> Files {
    let names = disk.list().unwrap();
    let bytes = |name: String| {
        let bytes = disk.bytes(&name).unwrap();
        (name, bytes)
    };
    names.into_iter().map(bytes).collect()
}

fn disk_of(files: &Files) -> LossyDisk {
    let disk = LossyDisk::default();
    for (name, bytes) in files {
        disk.set_bytes(name, bytes);
    }
    disk
}

/// A store with a base and a log, closed in order, and every state that it went through.
fn sample() -> (Files, Vec<State>) {
    let disk = LossyDisk::default();
    let authority = open(Arc::new(disk.clone()), &options());
    authority.open_tables_blocking(resources().into()).unwrap();
    let mut states = vec![served(&authority).unwrap()];
    create(&authority, quiet(), "node").unwrap();
    for round in 0..24 {
        create(&authority, pods(), &format!("a/{round}")).unwrap();
        states.push(served(&authority).unwrap());
        create(&authority, leases(), &format!("a/{round}")).unwrap();
        states.push(served(&authority).unwrap());
    }
    drop(authority);
    let files = files(&disk);
    let size = |end: &str| {
        let found = files.iter().find(|(name, _)| name.ends_with(end));
        found.map_or(0, |(_, bytes)| bytes.len())
    };
    assert!(
        size(".base") > 2_000 && size(".log") > 1_000,
        "both are worth damaging"
    );
    (files, states)
}

/// What is served: everything, or which tables are refused as damaged.
fn served(authority: &Authority) -> Result<State, (State, Vec<Resource>)> {
    let (mut state, mut damaged) = (State::new(), Vec::new());
    for resource in resources() {
        let wanted = want(resource.clone(), Range::All);
        let page = match authority.reader().page(&wanted, &At::Now, &Part::default()) {
            Ok(page) => page,
            Err(Refused::Damaged { .. }) => {
                damaged.push(resource);
                continue;
            }
            Err(Refused::NotCovered) => {
                // Known by name only, or not even that: nothing wrong is shown.
                damaged.push(resource);
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let rows = page.rows.iter().map(|row| {
            let bytes = page.bytes(row).unwrap().to_vec();
            let name = row.header.name.as_str().to_owned();
            (name, (number(&row.header.version), bytes))
        });
        state.insert(resource, rows.collect());
    }
    match damaged.is_empty() {
        true => Ok(state),
        false => Err((state, damaged)),
    }
}

/// Opens damaged files. Returns the tables that are not served; panics if wrong data is.
fn open_damaged(files: &Files, states: &[State], context: &str) -> Vec<Resource> {
    let disk = disk_of(files);
    let opened = Authority::open(Arc::new(disk.clone()), options(), Clock::machine());
    let authority = match opened {
        Ok(authority) => authority,
        Err(OpenError::Destroyed | OpenError::Mixed { .. }) => return resources().into(),
        Err(other) => panic!("{context}: {other}"),
    };
    let (state, damaged) = match served(&authority) {
        Ok(state) => (state, vec![]),
        Err(found) => found,
    };
    for (resource, rows) in &state {
        let known = states.iter().any(|state| &state[resource] == rows);
        assert!(known, "{context}: {resource} was never so");
    }
    for resource in &damaged {
        // What is damaged takes no writes, and is of use again after it was emptied.
        assert!(
            create(&authority, resource.clone(), "x/new").is_err(),
            "{context}"
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for resource in &damaged {
        runtime
            .block_on(authority.empty_table(resource.clone()))
            .unwrap();
        create(&authority, resource.clone(), "x/new").unwrap();
    }
    let before = served(&authority).expect("all is well again");
    drop(authority);
    let authority = open(Arc::new(disk), &options());
    let after = served(&authority).unwrap_or_else(|found| panic!("{context}: {:?}", found.1));
    assert!(before == after, "{context}: the repair is durable");
    damaged
}

#[test]
fn a_flipped_bit_anywhere_is_seen_and_costs_at_most_its_own_table() {
    let (files, states) = sample();
    let newest = std::slice::from_ref(states.last().unwrap());
    let (mut flips, mut unharmed, mut wide) = (0, 0, Vec::new());
    for (file, bytes) in &files {
        for offset in (0..bytes.len()).step_by(11) {
            let mut damaged = files.clone();
            damaged.get_mut(file).unwrap()[offset] ^= 1 << (offset % 8);
            let context = format!("{file} at {offset} of {}", bytes.len());
            let lost = open_damaged(&damaged, newest, &context);
            flips += 1;
            unharmed += usize::from(lost.is_empty());
            if lost.len() > 1 {
                wide.push(context);
            }
        }
    }
    println!("{flips} flips, {unharmed} without effect, wide: {wide:?}");
    assert!(
        unharmed * 20 < flips,
        "damage is seen: {unharmed} of {flips}"
    );
    assert!(wide.len() * 100 <= flips, "damage is contained: {wide:?}");
}

#[test]
fn zeroed_swapped_and_foreign_pages_are_never_served() {
    const PAGE: usize = 512;
    let (files, states) = sample();
    let (foreign, _) = sample();
    for (file, bytes) in &files {
        let pages = bytes.len() / PAGE;
        for page in 0..pages {
            let at = page * PAGE..(page + 1) * PAGE;
            let mut zeroed = files.clone();
            zeroed.get_mut(file).unwrap()[at.clone()].fill(0);
            open_damaged(&zeroed, &states, &format!("{file} page {page} zeroed"));
            let mut swapped = files.clone();
            let other = (page + 3) % pages * PAGE;
            let content = swapped.get_mut(file).unwrap();
            let kept = content[at.clone()].to_vec();
            content.copy_within(other..other + PAGE, at.start);
            content[other..other + PAGE].copy_from_slice(&kept);
            open_damaged(&swapped, &states, &format!("{file} page {page} swapped"));
            let mut mixed = files.clone();
            let theirs = foreign.get(file).and_then(|bytes| bytes.get(at.clone()));
            if let Some(theirs) = theirs {
                mixed.get_mut(file).unwrap()[at].copy_from_slice(theirs);
                open_damaged(&mixed, &states, &format!("{file} page {page} foreign"));
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_shows_an_earlier_state_or_none() {
    let (files, states) = sample();
    for (file, bytes) in &files {
        for size in (0..bytes.len()).step_by(13) {
            let mut cut = files.clone();
            cut.get_mut(file).unwrap().truncate(size);
            open_damaged(&cut, &states, &format!("{file} cut to {size}"));
        }
        let mut longer = files.clone();
        longer.get_mut(file).unwrap().extend_from_slice(&[0; 777]);
        let newest = std::slice::from_ref(states.last().unwrap());
        open_damaged(&longer, newest, &format!("{file} with zeros behind it"));
    }
}

#[test]
fn a_lost_file_is_missed() {
    let (files, states) = sample();
    let newest = std::slice::from_ref(states.last().unwrap());
    for file in files.keys() {
        let mut fewer = files.clone();
        fewer.remove(file);
        let lost = open_damaged(&fewer, newest, &format!("without {file}"));
        assert_eq!(lost.len(), 3, "without {file}");
        let mut emptied = files.clone();
        emptied.insert(file.clone(), vec![]);
        open_damaged(&emptied, &states, &format!("{file} empty"));
    }
}

#[test]
fn files_that_do_not_belong_change_nothing() {
    let (files, states) = sample();
    let newest = std::slice::from_ref(states.last().unwrap());
    for stranger in [
        "99999999.log",
        "+0000009.base",
        "notes.txt",
        "00000001.log.bak",
    ] {
        let mut more = files.clone();
        more.insert(stranger.into(), b"HFr1 and so on".repeat(90));
        assert!(
            open_damaged(&more, newest, stranger).is_empty(),
            "{stranger}"
        );
    }
    // A base that cannot say whose it is must not make the others needless.
    let mut more = files.clone();
    more.insert("00900000.base".into(), vec![7; 9_000]);
    let disk = disk_of(&more);
    let authority = open(Arc::new(disk.clone()), &options());
    assert!(served(&authority).unwrap() == newest[0]);
    assert!(
        more.keys().all(|name| disk.bytes(name).is_some()),
        "nothing was removed"
    );
}

#[test]
fn a_store_of_another_owner_or_kind_is_refused_and_not_touched() {
    let (files, _) = sample();
    let disk = disk_of(&files);
    let try_open = |options| Authority::open(Arc::new(disk.clone()), options, Clock::machine());
    let refused = try_open(Options::new("somebody"));
    assert!(matches!(refused, Err(OpenError::Foreign { .. })));
    let refused = Replica::open(Arc::new(disk.clone()), options(), Clock::machine());
    assert!(matches!(refused, Err(OpenError::OtherFeeder)));
    assert!(self::files(&disk) == files);
    let (foreign, _) = sample();
    let mut mixed = files.clone();
    let (log, bytes) = foreign
        .iter()
        .find(|(name, _)| name.ends_with(".log"))
        .unwrap();
    mixed.insert(log.clone(), bytes.clone());
    let disk = disk_of(&mixed);
    let refused = Authority::open(Arc::new(disk.clone()), options(), Clock::machine());
    assert!(matches!(refused, Err(OpenError::Mixed { .. })));
    assert!(self::files(&disk) == mixed);
}

#[test]
fn a_store_that_cannot_be_read_at_all_is_not_taken_for_a_new_one() {
    let (files, _) = sample();
    let noise: Files = files
        .iter()
        .map(|(name, bytes)| (name.clone(), vec![0xa5; bytes.len()]))
        .collect();
    let disk = disk_of(&noise);
    let refused = Authority::open(Arc::new(disk.clone()), options(), Clock::machine());
    assert!(matches!(refused, Err(OpenError::Destroyed)));
    assert!(self::files(&disk) == noise);
}

#[test]
fn a_young_store_that_lost_its_first_record_is_repaired_table_by_table() {
    let disk = LossyDisk::default();
    let authority = open(Arc::new(disk.clone()), &options());
    authority.open_tables_blocking(resources().into()).unwrap();
    create(&authority, pods(), "a/1").unwrap();
    let empty = served(&authority).unwrap();
    drop(authority);
    let files = files(&disk);
    for offset in [3, 30, 45, 60] {
        let mut damaged = files.clone();
        damaged.get_mut("00000001.log").unwrap()[offset] ^= 4;
        let states = std::slice::from_ref(&empty);
        let lost = open_damaged(&damaged, states, &format!("first record at {offset}"));
        assert_eq!(lost.len(), 3);
    }
}

#[test]
fn a_lone_record_in_a_file_without_a_mark_is_left_alone() {
    // A seal in the place of a first record, found by the fuzzer: what was stored behind it could
    // not be told to be ours.
    let mut seal = b"HFr1".to_vec();
    seal.extend_from_slice(&[0; 12]);
    seal.extend_from_slice(&[9, 0, 0, 0]);
    seal.extend_from_slice(&[0; 16]);
    let sum = crc32fast::hash(&seal);
    seal.extend_from_slice(&sum.to_le_bytes());
    let disk = disk_of(&Files::from([("00000001.log".into(), seal)]));
    let authority = opened(Arc::new(disk.clone()), &options());
    create(&authority, pods(), "a/1").unwrap();
    drop(authority);
    let authority = opened(Arc::new(disk), &options());
    assert_eq!(authority.reader().count(&pods()), 1);
}

#[test]
fn a_store_without_a_file_number_left_is_refused_before_it_makes_a_file() {
    let disk = disk_of(&Files::from([("16777208.log".into(), vec![])]));
    for _ in 0..2 {
        let refused = Authority::open(Arc::new(disk.clone()), options(), Clock::machine());
        assert!(matches!(refused, Err(OpenError::Disk(_))));
        assert_eq!(disk.list().unwrap().len(), 1);
    }
}

#[test]
fn versions_go_on_above_those_of_a_damaged_table() {
    let (files, states) = sample();
    let newest = states
        .last()
        .unwrap()
        .values()
        .flat_map(|rows| rows.values());
    let newest = newest.map(|row| row.0).max().unwrap();
    let (log, bytes) = files
        .iter()
        .find(|(name, _)| name.ends_with(".log"))
        .unwrap();
    for offset in (0..bytes.len()).step_by(17) {
        let mut damaged = files.clone();
        damaged.get_mut(log).unwrap()[offset] ^= 0x10;
        let disk = disk_of(&damaged);
        let authority = open(Arc::new(disk), &options());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(authority.empty_table(quiet())).unwrap();
        let at = create(&authority, quiet(), "x/new").unwrap();
        assert!(at > newest, "{at} after {newest}, damage at {offset}");
    }
}

#[test]
fn damage_that_a_read_finds_ends_the_service_of_its_table_only() {
    let disk = LossyDisk::default();
    let authority = opened(Arc::new(disk.clone()), &options());
    create(&authority, pods(), "a/1").unwrap();
    create(&authority, leases(), "a/1").unwrap();
    let mut watch = {
        let wanted = want(pods(), Range::All);
        let from = authority.reader().version(&pods()).unwrap();
        authority.reader().watch(&wanted, &from).unwrap()
    };
    // Somebody writes into the file while it is open.
    let file = disk.open("00000001.log").unwrap();
    let bytes = disk.bytes("00000001.log").unwrap();
    let found = bytes.windows(8).position(|piece| piece == b"\"filling");
    file.write_at(b"\"FILLING", found.unwrap() as u64).unwrap();
    let read = authority.reader().object(&pods(), &name("a/1"));
    assert!(read.is_err());
    let wanted = want(pods(), Range::All);
    let refused = authority.reader().page(&wanted, &At::Now, &Part::default());
    assert!(matches!(refused, Err(Refused::Damaged { .. })));
    assert_eq!(watch.step().unwrap_err(), store::Ended::Damaged);
    assert!(
        create(&authority, pods(), "a/2").is_err(),
        "nothing is acked on top of damage"
    );
    assert!(
        authority
            .reader()
            .object(&leases(), &name("a/1"))
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_damaged_replica_acks_nothing_until_its_table_is_forgotten_and_sent_again() {
    let disk = LossyDisk::default();
    let open = || Replica::open(Arc::new(disk.clone()), options(), Clock::machine()).unwrap();
    let cut = |at: u64| Cut {
        resource: pods(),
        epoch: 1,
        changes: vec![],
        until: Until::End(CutEnd {
            progress: version(at),
            resets: vec![Reset::whole(
                Scope::all(),
                vec![object("a/1", "u", "red", 5)],
            )],
            ended: vec![],
        }),
    };
    let replica = open();
    replica.apply_blocking(cut(10)).unwrap();
    replica.apply_blocking(cut(11)).unwrap();
    drop(replica);
    let mut bytes = disk.bytes("00000001.log").unwrap();
    let found = bytes
        .windows(8)
        .position(|piece| piece == b"\"filling")
        .unwrap();
    bytes[found] ^= 1;
    disk.set_bytes("00000001.log", &bytes);
    let replica = open();
    let refused = replica.apply_blocking(cut(20)).unwrap_err();
    assert!(matches!(refused, Refusal::Damaged { .. }), "{refused}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(replica.forget(pods())).unwrap();
    replica.apply_blocking(cut(20)).unwrap();
    drop(replica);
    assert_eq!(open().reader().count(&pods()), 1);
}
