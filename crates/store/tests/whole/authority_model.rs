//! Random swaps, lists, watches, trims, compactions and restarts of an authority, against a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host::Clock;
use object::Resource;
use store::authority::{Action, Expect, Outcome, Refusal, Swap};
use store::disk::memory::MemoryDisk;
use store::{At, Authority, Ended, Part, Range, Refused, Step, Watch, What};

use crate::bench_objects::*;

const STEPS: usize = 12_000;
const NAMES: [&str; 9] = [
    "a/1", "a/2", "a/3", "a-b/1", "b/1", "b/2", "b/3", "b/4", "cluster",
];

/// A change: its version, the path, and the row after it.
type Past = (u64, String, Option<(u64, String)>);

/// What is stored of one resource, as simply as possible.
#[derive(Default)]
struct Model {
    /// Path to version and bytes.
    rows: BTreeMap<String, (u64, String)>,
    /// Every change.
    history: Vec<Past>,
    /// The rows below which nothing is known, and their version.
    start: (u64, BTreeMap<String, (u64, String)>),
}

impl Model {
    fn change(&mut self, at: u64, path: &str, after: Option<String>) {
        let after = after.map(|bytes| (at, bytes));
        match &after {
            Some(row) => drop(self.rows.insert(path.to_owned(), row.clone())),
            None => drop(self.rows.remove(path)),
        }
        self.history.push((at, path.to_owned(), after));
    }

    fn empty(&mut self, at: u64) {
        *self = Self {
            start: (at, BTreeMap::new()),
            ..Self::default()
        };
    }

    /// Forgets steps that nobody can ask about any more.
    fn fold(&mut self, floor: u64) {
        if self.history.len() > 300 {
            self.start = (floor, self.rows_at(floor));
            self.history.retain(|(at, _, _)| *at > floor);
        }
    }

    fn rows_at(&self, version: u64) -> BTreeMap<String, (u64, String)> {
        let mut rows = self.start.1.clone();
        for (at, path, after) in &self.history {
            if *at > version {
                break;
            }
            match after {
                Some(row) => drop(rows.insert(path.clone(), row.clone())),
                None => drop(rows.remove(path)),
            }
        }
        rows
    }
}

fn is_in(range: &Range, path: &str) -> bool {
    match range {
        Range::All => true,
        Range::Namespace(namespace) => name(path).namespace() == &**namespace,
        Range::Name(wanted) => wanted.as_str() == path,
        Range::Node(_) => panic!("pods here have no node"),
    }
}

struct Follower {
    watch: Watch,
    resource: Resource,
    range: Range,
    /// Everything up to here was given.
    at: u64,
    /// The highest version that was shown, by an event or a progress.
    shown: u64,
}

struct Run {
    chance: Chance,
    disk: Arc<MemoryDisk>,
    clock: Clock,
    hands: host::clock::Hands,
    authority: Option<Authority>,
    models: BTreeMap<Resource, Model>,
    followers: Vec<Follower>,
    newest: u64,
    lagged: usize,
    events: usize,
    uids: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let (clock, hands) = Clock::manual(jiff_epoch());
        let mut run = Self {
            chance: Chance(seed),
            disk: Arc::new(MemoryDisk::default()),
            clock,
            hands,
            authority: None,
            models: BTreeMap::from([(pods(), Model::default()), (leases(), Model::default())]),
            followers: vec![],
            newest: 1,
            lagged: 0,
            events: 0,
            uids: 0,
        };
        run.reopen();
        for model in run.models.values_mut() {
            model.start.0 = 1;
        }
        run
    }

    fn authority(&self) -> &Authority {
        self.authority.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.followers.clear();
        self.authority = None;
        let opened = Authority::open(self.disk.clone(), small(3_000), self.clock.clone());
        let opened = opened.unwrap();
        opened.open_tables_blocking(vec![pods(), leases()]).unwrap();
        self.authority = Some(opened);
    }

    fn resource(&mut self) -> Resource {
        self.chance.pick(&[pods(), leases()]).clone()
    }

    fn range(&mut self) -> Range {
        match self.chance.below(4) {
            0 => Range::Name(name(self.chance.pick::<&str>(&NAMES))),
            1 => Range::Namespace((*self.chance.pick(&["a", "b", "a-b", "none"])).into()),
            _ => Range::All,
        }
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..50 => self.swap(),
            50..62 => self.list(),
            62..65 => self.pages(),
            65..72 => self.follow(),
            72..96 => self.pull(),
            96..98 => self.hands.advance(Duration::from_secs(25)),
            _ if self.chance.one_in(6) => self.reopen(),
            _ if self.chance.one_in(8) => self.empty(),
            _ => self.stale_swap(),
        }
    }

    fn random_swap(&mut self) -> Swap {
        let (resource, path) = (self.resource(), *self.chance.pick(&NAMES));
        let found = self.models[&resource].rows.get(path).map(|row| row.0);
        let expect = match found {
            None => Expect::Absent,
            Some(_) if self.chance.one_in(2) => Expect::Present,
            Some(at) => Expect::Version(version(at)),
        };
        let action = match found {
            Some(_) if self.chance.one_in(3) => Action::Delete,
            Some(_) if self.chance.one_in(9) => Action::Check,
            found => {
                self.uids += 1;
                let filling = self.chance.below(200);
                let draft = Box::new(draft(path, &format!("u{}", self.uids), filling));
                match found {
                    Some(_) if self.chance.one_in(6) => Action::PutAndDelete(draft),
                    _ => Action::Put(draft),
                }
            }
        };
        let name = name(path);
        Swap {
            resource,
            name,
            expect,
            action,
        }
    }

    fn swap(&mut self) {
        let mut swaps: Vec<Swap> = Vec::new();
        for _ in 0..=self.chance.below(3) {
            let swap = self.random_swap();
            let twice = |other: &Swap| other.resource == swap.resource && other.name == swap.name;
            if !swaps.iter().any(twice) {
                swaps.push(swap);
            }
        }
        let said: Vec<_> = swaps
            .iter()
            .map(|swap| {
                (
                    swap.resource.clone(),
                    swap.name.clone(),
                    last_words(&swap.action),
                )
            })
            .collect();
        let (outcomes, _) = self.authority().swap_blocking(swaps).unwrap();
        for ((resource, name, last), outcome) in said.iter().zip(outcomes) {
            let (at, after) = match outcome {
                Outcome::Stored(object) => {
                    let bytes = String::from_utf8(object.bytes.to_vec()).unwrap();
                    (number(&object.header.version), Some(bytes))
                }
                Outcome::Deleted(version) => (number(&version), None),
                Outcome::Checked => continue,
            };
            let model = self.models.get_mut(resource).unwrap();
            if let Some((head, tail)) = last {
                let at = at - 1;
                assert!(at > self.newest, "versions never go back");
                self.newest = at;
                model.change(at, name.as_str(), Some(format!("{head}{at}{tail}")));
            }
            assert!(at > self.newest, "versions never go back");
            self.newest = at;
            model.change(at, name.as_str(), after);
        }
    }

    /// A transaction of which one part cannot be: nothing of it counts.
    fn stale_swap(&mut self) {
        let path = *self.chance.pick(&NAMES);
        let possible = put(pods(), path, "never", Expect::Absent);
        let impossible = put(leases(), path, "never", Expect::Version(version(1)));
        let refused = self.authority().swap_blocking(vec![possible, impossible]);
        assert!(matches!(refused, Err(Refusal::Conflict { .. })));
    }

    fn empty(&mut self) {
        let resource = self.resource();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(self.authority().empty_table(resource.clone()))
            .unwrap();
        self.newest += 1;
        self.models.get_mut(&resource).unwrap().empty(self.newest);
        // Nobody who watched it may take what comes for a continuation.
        let (gone, stay) = std::mem::take(&mut self.followers)
            .into_iter()
            .partition(|follower| follower.resource == resource);
        self.followers = stay;
        for mut follower in gone {
            let ended = follower.watch.step().unwrap_err();
            assert_eq!(ended, Ended::Replaced);
        }
    }

    fn list(&mut self) {
        let (resource, range) = (self.resource(), self.range());
        let wanted = want(resource.clone(), range.clone());
        let reader = self.authority().reader().clone();
        let floor = number(&reader.floor(&wanted).unwrap());
        assert!(floor <= self.newest);
        self.models.get_mut(&resource).unwrap().fold(floor);
        let (at, asked) = match self.chance.below(3) {
            0 => (At::Now, self.newest),
            _ => {
                let low = floor.saturating_sub(3).max(1);
                let asked = low + self.chance.below((self.newest - low + 1) as usize) as u64;
                (At::Exactly(version(asked)), asked)
            }
        };
        let page = match reader.page(&wanted, &at, &Part::default()) {
            Ok(page) => page,
            Err(Refused::TooOld { .. }) => return assert!(asked < floor),
            Err(other) => panic!("{other}"),
        };
        assert!(asked >= floor);
        assert_eq!(number(&page.version), asked);
        let expected = self.models[&resource].rows_at(asked);
        let expected: Vec<_> = expected
            .into_iter()
            .filter(|(path, _)| is_in(&range, path))
            .map(|(path, (at, bytes))| (path, at, bytes))
            .collect();
        let found: Vec<_> = page
            .rows
            .iter()
            .map(|row| {
                let bytes = String::from_utf8(page.bytes(row).unwrap().to_vec()).unwrap();
                let header = &row.header;
                (
                    header.name.as_str().to_owned(),
                    number(&header.version),
                    bytes,
                )
            })
            .collect();
        assert_eq!(found, expected, "{resource} {range} at {asked}");
    }

    /// A list in parts, at one version, while the table moves on.
    fn pages(&mut self) {
        let wanted = want(pods(), Range::All);
        let reader = self.authority().reader().clone();
        let first = Part {
            from: None,
            limit: Some(2),
        };
        let page = reader.page(&wanted, &At::Now, &first).unwrap();
        let at = page.version.clone();
        let expected = self.models[&pods()].rows_at(number(&at));
        let total = expected.len();
        let mut found: Vec<String> = Vec::new();
        let mut page = page;
        loop {
            found.extend(
                page.rows
                    .iter()
                    .map(|row| row.header.name.as_str().to_owned()),
            );
            assert_eq!(page.more, found.len() < total);
            let rest = (total - found.len()) as u64;
            assert_eq!(page.remaining, page.more.then_some(rest));
            let Some(last) = found.last().filter(|_| page.more).cloned() else {
                break;
            };
            self.swap();
            let next = format!("{last}\0");
            let part = Part {
                from: Some(&next),
                limit: Some(2),
            };
            match reader.page(&wanted, &At::Exactly(at.clone()), &part) {
                Ok(next) => page = next,
                Err(Refused::TooOld { .. }) => return,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(found.iter().eq(expected.keys()));
    }

    fn follow(&mut self) {
        let (resource, range) = (self.resource(), self.range());
        let wanted = want(resource.clone(), range.clone());
        let reader = self.authority().reader().clone();
        let floor = number(&reader.floor(&wanted).unwrap());
        let from = floor.saturating_sub(2).max(1);
        let from = from + self.chance.below((self.newest - from + 3) as usize) as u64;
        match reader.watch(&wanted, &version(from)) {
            Ok(watch) => {
                assert!(from >= floor);
                if self.followers.len() == 12 {
                    self.followers.swap_remove(0);
                }
                self.followers.push(Follower {
                    watch,
                    resource,
                    range,
                    at: from,
                    shown: from,
                });
            }
            Err(Refused::TooOld { .. }) => assert!(from < floor),
            Err(other) => panic!("{other}"),
        }
    }

    fn pull(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let index = self.chance.below(self.followers.len());
        let reader = self.authority.as_ref().unwrap().reader().clone();
        let follower = &mut self.followers[index];
        let model = &self.models[&follower.resource];
        match follower.watch.step() {
            Ok(Step::Events(events)) => {
                self.events += events.len();
                let expected = model
                    .history
                    .iter()
                    .filter(|(at, path, _)| *at > follower.at && is_in(&follower.range, path));
                let expected: Vec<_> = expected.take(events.len()).collect();
                assert_eq!(events.len(), expected.len(), "an event that never happened");
                for (event, (at, path, after)) in events.iter().zip(expected) {
                    assert_eq!(number(&event.version), *at);
                    assert_eq!(event.name().unwrap().as_str(), path);
                    let What::Changed { after: row, .. } = &event.what else {
                        panic!("an authority replaces nothing")
                    };
                    assert_eq!(row.is_some(), after.is_some());
                    if let (Some(row), Some((_, bytes))) = (row, after) {
                        let found = reader.event_bytes(&follower.resource, event, row);
                        assert_eq!(found.unwrap(), bytes.as_bytes());
                    }
                }
                follower.at = number(&events.last().unwrap().version);
                assert!(follower.at > follower.shown);
                follower.shown = follower.at;
            }
            Ok(Step::Progress(at)) => {
                let at = number(&at);
                assert!(at >= follower.shown && at <= self.newest.max(follower.shown));
                let missed = model.history.iter().find(|(event, path, _)| {
                    *event > follower.at && *event <= at && is_in(&follower.range, path)
                });
                assert_eq!(missed, None, "progress {at} is ahead of what was given");
                (follower.at, follower.shown) = (at, at);
            }
            Err(Ended::Lagged) => {
                let wanted = want(follower.resource.clone(), follower.range.clone());
                let floor = number(&reader.floor(&wanted).unwrap());
                assert!(floor > follower.at, "an end needs a reason");
                self.lagged += 1;
                self.followers.swap_remove(index);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn jiff_epoch() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

#[test]
fn an_authority_lists_and_watches_exactly_what_was_swapped() {
    let seed = seed(1);
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
    }
    println!(
        "{} events, {} lagged, version {}",
        run.events, run.lagged, run.newest
    );
    assert!(
        run.events > 1_000 && run.lagged > 10,
        "the run is worth something"
    );
    let resources = run.authority().reader().resources();
    assert_eq!(resources.len(), 2, "{resources:?}");
    let names = store::disk::Disk::list(&*run.disk).unwrap();
    assert!(
        names.iter().any(|name| name.ends_with(".base")),
        "{names:?}"
    );
}

/// What an object says for the last time, before and after its version, where it goes in the same
/// step.
fn last_words(action: &Action) -> Option<(String, String)> {
    let Action::PutAndDelete(draft) = action else {
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    Some((text(&draft.head), text(&draft.tail)))
}
