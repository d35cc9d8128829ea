//! The power goes before any call, the disk fills, a sync fails: what was acked is there, whole and
//! in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::Resource;
use store::authority::{Expect, Refusal, Swap};
use store::disk::lossy::{Fault, LossyDisk};
use store::{At, Authority, Failed, Options, Part, Range, Step, What};

use crate::bench_objects::*;

/// One request of the script.
#[derive(Debug, Clone)]
enum Request {
    /// Objects to put together: resource and path. A path that is there is updated.
    Put(Vec<(Resource, &'static str)>),
    Delete(Resource, &'static str),
    Empty(Resource),
}

/// Paths of each resource, with the version of each object.
type State = BTreeMap<(Resource, String), u64>;

fn script() -> Vec<Request> {
    let mut script = Vec::new();
    for round in 0..4 {
        for path in ["a/1", "a/2", "b/1"] {
            script.push(Request::Put(vec![(pods(), path), (leases(), path)]));
        }
        script.push(Request::Delete(pods(), "a/1"));
        script.push(Request::Put(vec![(leases(), "a/1")]));
        if round == 2 {
            script.push(Request::Empty(leases()));
        }
    }
    script
}

fn options() -> Options {
    small(1_500)
}

fn request(authority: &Authority, request: &Request, state: &mut State) -> Result<(), Refusal> {
    let swaps: Vec<Swap> = match request {
        Request::Put(objects) => {
            let swap = |(resource, path): &(Resource, &'static str)| {
                let there = state.contains_key(&(resource.clone(), (*path).to_owned()));
                let expect = if there {
                    Expect::Present
                } else {
                    Expect::Absent
                };
                put(resource.clone(), path, path, expect)
            };
            objects.iter().map(swap).collect()
        }
        Request::Delete(resource, path) => vec![delete(resource.clone(), path)],
        Request::Empty(resource) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            runtime.block_on(authority.empty_table(resource.clone()))?;
            state.retain(|(other, _), _| other != resource);
            return Ok(());
        }
    };
    let names: Vec<_> = swaps
        .iter()
        .map(|swap| (swap.resource.clone(), swap.name.as_str().to_owned()))
        .collect();
    let (outcomes, _) = authority.swap_blocking(swaps)?;
    for (key, outcome) in names.into_iter().zip(&outcomes) {
        match request {
            Request::Delete(..) => drop(state.remove(&key)),
            _ => drop(state.insert(key, stored(outcome))),
        }
    }
    Ok(())
}

/// What the script leaves behind if all of it works, without versions.
fn paths(state: &State) -> Vec<(Resource, String)> {
    state.keys().cloned().collect()
}

/// The state after a request that may or may not have been stored.
fn expected_after(state: &State, request: &Request) -> Vec<(Resource, String)> {
    let mut after = state.clone();
    match request {
        Request::Put(objects) => {
            for (resource, path) in objects {
                after.insert((resource.clone(), (*path).to_owned()), 0);
            }
        }
        Request::Delete(resource, path) => {
            after.remove(&(resource.clone(), (*path).to_owned()));
        }
        Request::Empty(resource) => after.retain(|(other, _), _| other != resource),
    }
    paths(&after)
}

fn found(authority: &Authority) -> State {
    let mut state = State::new();
    for resource in [pods(), leases()] {
        let wanted = want(resource.clone(), Range::All);
        let page = authority.reader().page(&wanted, &At::Now, &Part::default());
        let page = page.unwrap();
        for row in &page.rows {
            let bytes = page.bytes(row).unwrap();
            let parsed = object::Object::parse(&pods(), bytes, &[]).unwrap();
            assert_eq!(
                parsed.header, row.header,
                "bytes and header belong together"
            );
            let key = (resource.clone(), row.header.name.as_str().to_owned());
            state.insert(key, number(&row.header.version));
        }
        check_history(authority, &resource);
    }
    state
}

/// The history above the floor leads from the list at the floor to the list of now.
fn check_history(authority: &Authority, resource: &Resource) {
    let wanted = want(resource.clone(), Range::All);
    let reader = authority.reader();
    let floor = reader.floor(&wanted).unwrap();
    let at_floor = At::Exactly(floor.clone());
    let page = reader.page(&wanted, &at_floor, &Part::default()).unwrap();
    let header = |row: &Arc<store::Row>| (row.header.name.clone(), row.header.version.clone());
    let mut rows: BTreeMap<_, _> = page.rows.iter().map(header).collect();
    let mut watch = reader.watch(&wanted, &floor).unwrap();
    let mut last = floor;
    while let Step::Events(events) = watch.step().unwrap() {
        for event in events {
            assert!(event.version > last, "history goes on");
            last = event.version.clone();
            let What::Changed { before, after } = &event.what else {
                panic!("an authority replaces nothing")
            };
            let name = event.name().unwrap();
            let known = before.as_ref().map(|row| &row.header.version);
            assert_eq!(rows.get(name), known, "each step fits the one before");
            match after {
                Some(row) => drop(rows.insert(name.clone(), row.header.version.clone())),
                None => drop(rows.remove(name)),
            }
        }
    }
    let now = reader.page(&wanted, &At::Now, &Part::default()).unwrap();
    assert_eq!(rows, now.rows.iter().map(header).collect());
}

/// A run that was cut short: what was acked, and the request that was not.
struct Short {
    state: State,
    unsure: Option<Request>,
}

fn run(disk: &LossyDisk) -> Short {
    let mut short = Short {
        state: State::new(),
        unsure: None,
    };
    let clock = host::Clock::machine();
    let Ok(authority) = Authority::open(Arc::new(disk.clone()), options(), clock) else {
        return short;
    };
    if authority
        .open_tables_blocking(vec![pods(), leases()])
        .is_err()
    {
        return short;
    }
    for next in script() {
        if request(&authority, &next, &mut short.state).is_err() {
            short.unsure = Some(next);
            break;
        }
    }
    short
}

/// Opens what a crash left, and compares it with what was acked.
fn check(disk: &LossyDisk, short: &Short, context: &str) {
    let authority = opened(Arc::new(disk.clone()), &options());
    let state = found(&authority);
    let with = short
        .unsure
        .as_ref()
        .map(|next| expected_after(&short.state, next));
    if paths(&state) == paths(&short.state) {
        for (key, at) in &short.state {
            let unsure = with.is_some() && state[key] > *at;
            assert!(state[key] == *at || unsure, "{context}: {key:?} is another");
        }
    } else {
        let found = paths(&state);
        let acked = paths(&short.state);
        assert_eq!(Some(&found), with.as_ref(), "{context}: acked {acked:?}");
    }
    let created = create(&authority, pods(), "after/crash").unwrap();
    let newest = short.state.values().max().copied().unwrap_or(0);
    assert!(created > newest, "{context}: versions go on");
    drop(authority);
    let authority = opened(Arc::new(disk.clone()), &options());
    assert!(found(&authority).contains_key(&(pods(), "after/crash".into())));
}

/// Decides what a crash keeps, write by write.
type Keep = Box<dyn FnMut() -> bool>;

/// Ways in which a crash decides what to keep of what was not synced.
fn patterns() -> Vec<(&'static str, Keep)> {
    let mut chance = Chance(99);
    let mut odd = false;
    vec![
        ("nothing", Box::new(|| false)),
        ("everything", Box::new(|| true)),
        ("by chance", Box::new(move || chance.one_in(2))),
        (
            "every other",
            Box::new(move || {
                odd = !odd;
                odd
            }),
        ),
    ]
}

#[test]
fn a_power_cut_before_any_call_loses_nothing_that_was_acked() {
    let disk = LossyDisk::default();
    assert!(run(&disk).unsure.is_none());
    let calls = disk.calls();
    assert!(calls > 60, "{calls} calls are worth a test");
    for call in 0..calls {
        for (index, (kept, keep)) in patterns().into_iter().enumerate() {
            let disk = LossyDisk::default();
            disk.fail_at(call, Fault::Dead);
            let short = run(&disk);
            disk.crash(keep);
            // Once more, while what the first left is being put in order.
            if index % 2 == 0 {
                disk.fail_at(disk.calls() + call % 5, Fault::Dead);
                let clock = host::Clock::machine();
                drop(Authority::open(Arc::new(disk.clone()), options(), clock));
                disk.crash(patterns().remove(3 - index).1);
            }
            check(&disk, &short, &format!("call {call}, {kept} kept"));
        }
    }
}

#[test]
fn what_a_killed_process_left_unsynced_is_durable_before_it_is_shown() {
    let disk = LossyDisk::default();
    let calls = {
        run(&disk);
        disk.calls()
    };
    for call in 0..calls {
        let disk = LossyDisk::default();
        disk.fail_at(call, Fault::Dead);
        let short = run(&disk);
        // The process died, the machine did not: its cache still has everything.
        disk.heal();
        let shown = found(&opened(Arc::new(disk.clone()), &options()));
        disk.crash(|| false);
        let kept = found(&opened(Arc::new(disk.clone()), &options()));
        assert_eq!(shown, kept, "call {call}");
        check(&disk, &short, &format!("call {call}"));
    }
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room() {
    for fault in [Fault::Full, Fault::ShortWrite] {
        let disk = LossyDisk::default();
        run(&disk);
        for call in 0..disk.calls() {
            let disk = LossyDisk::default();
            let authority = opened(Arc::new(disk.clone()), &options());
            disk.fail_at(call.max(disk.calls()), fault);
            let mut state = State::new();
            for next in script() {
                let before = state.clone();
                while let Err(refusal) = request(&authority, &next, &mut state) {
                    let Refusal::Failed(Failed::NotStored(_)) = refusal else {
                        panic!("{fault:?} at {call}: {refusal}")
                    };
                    assert_eq!(found(&authority), before, "{fault:?} at {call}");
                    disk.heal();
                }
            }
            assert_eq!(found(&authority), state, "{fault:?} at {call}");
            drop(authority);
            disk.crash(|| false);
            let authority = opened(Arc::new(disk.clone()), &options());
            assert_eq!(
                found(&authority),
                state,
                "{fault:?} at {call}, opened again"
            );
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_acked_until_the_store_is_opened_anew() {
    let disk = LossyDisk::default();
    run(&disk);
    let mut seen = 0;
    for call in 0..disk.calls() {
        let disk = LossyDisk::default();
        disk.fail_at(call, Fault::SyncFails);
        let short = run(&disk);
        if short.unsure.is_some() {
            seen += 1;
        }
        disk.crash(|| call % 2 == 0);
        check(&disk, &short, &format!("sync {call}"));
    }
    assert!(seen > 10, "{seen} requests met a failing sync");
    let disk = LossyDisk::default();
    let authority = opened(Arc::new(disk.clone()), &options());
    disk.fail_at(disk.calls() + 1, Fault::SyncFails);
    assert!(authority.reader().is_writable());
    for _ in 0..3 {
        let refused = create(&authority, pods(), "a/1").unwrap_err();
        assert!(
            matches!(refused, Refusal::Failed(Failed::Unsafe(_))),
            "{refused}"
        );
        assert!(
            found(&authority).is_empty(),
            "what is not durable is not shown"
        );
        assert!(!authority.reader().is_writable(), "and it is said");
    }
}
