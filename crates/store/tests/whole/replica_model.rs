//! Random cuts, resets, epochs, repeats and restarts of a replica, against a small source.

use std::sync::Arc;

use host::Clock;
use object::Object;
use object::digest::{Digest, Member};
use object::select::Selector;
use store::disk::memory::MemoryDisk;
use store::replica::{Change, Cut, CutEnd, Misbehaved, Onto, Refusal, Reset};
use store::{At, Ended, Extent, Part, Range, Refused, Replica, Scope, Step, Want, Watch, What};

use crate::bench_objects::*;
use crate::replica_source::{
    Concern, NAMES, Past, Rows, Source, concerns, correction, headers, possible_scopes,
};

const STEPS: usize = 10_000;

struct Follower {
    watch: Watch,
    want: Want,
    at: u64,
    shown: u64,
    /// Where in the node's past it stands.
    next: usize,
}

pub(crate) struct Run {
    pub(crate) chance: Chance,
    disk: Arc<MemoryDisk>,
    replica: Option<Replica>,
    pub(crate) source: Source,
    scopes: Vec<Scope>,
    /// What the node shows, and its version.
    pub(crate) rows: Rows,
    version: u64,
    /// What the node showed at each version, newest last.
    snapshots: Vec<(u64, Rows)>,
    past: Vec<Past>,
    followers: Vec<Follower>,
    pub(crate) counts: Counts,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    events: usize,
    replaced: usize,
    lagged: usize,
    epochs: usize,
    repeated: usize,
    refused: usize,
    pub(crate) staged: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let source = Source {
            epoch: 1,
            version: 100,
            rows: Rows::new(),
            graves: vec![],
            uids: 0,
        };
        let mut run = Self {
            chance: Chance(seed),
            disk: Arc::new(MemoryDisk::default()),
            replica: None,
            source,
            scopes: vec![],
            rows: Rows::new(),
            version: 0,
            snapshots: vec![],
            past: vec![],
            followers: vec![],
            counts: Counts::default(),
        };
        run.reopen();
        run.source.change(&mut run.chance);
        run.start_scope();
        run
    }

    pub(crate) fn replica(&self) -> &Replica {
        self.replica.as_ref().unwrap()
    }

    pub(crate) fn reopen(&mut self) {
        self.followers.clear();
        self.replica = None;
        let opened = Replica::open(self.disk.clone(), small(3_000), Clock::machine());
        self.replica = Some(opened.unwrap());
    }

    fn step(&mut self) {
        match self.chance.below(100) {
            0..30 => self.source.change(&mut self.chance),
            30..45 => self.cut(),
            45..48 => self.start_scope(),
            48..50 => self.end_scope(),
            50..52 => self.repair(),
            52..60 => self.list(),
            60..68 => self.follow(),
            68..96 => self.pull(),
            96 => self.reopen(),
            97 => self.misbehave(),
            _ if self.chance.one_in(10) => self.new_epoch(),
            _ => self.heartbeat(),
        }
    }

    fn apply(&mut self, changes: Vec<Change>, end: Option<CutEnd>) -> Result<(), Refusal> {
        let cut = Cut {
            resource: pods(),
            epoch: self.source.epoch,
            changes,
            until: until(end),
        };
        let (applied, _) = self.replica().apply_blocking(cut)?;
        self.counts.repeated += applied.repeated;
        Ok(())
    }

    /// A cut in pieces, some of them sent twice.
    fn cut(&mut self) {
        let mut changes = self.source.changes(&self.rows, &self.scopes);
        let all = changes.clone();
        while !changes.is_empty() {
            let piece: Vec<Change> = {
                let size = 1 + self.chance.below(changes.len());
                changes.drain(..size).collect()
            };
            self.apply(piece.clone(), None).unwrap();
            for change in &piece {
                self.note(change);
            }
            if self.chance.one_in(4) {
                self.apply(piece, None).unwrap();
            }
            self.pull();
            self.list();
        }
        let end = self.progress();
        self.apply(vec![], Some(end)).unwrap();
        self.arrive();
        let view = self.source.view(&self.scopes);
        assert!(
            headers(&self.rows).eq(headers(&view)),
            "the node has what it should"
        );
        if self.chance.one_in(4) {
            // Everything once more, in any order: all of it is below the progress.
            let mut again = all;
            again.reverse();
            self.apply(again, None).unwrap();
        }
    }

    fn note(&mut self, change: &Change) {
        let (at, path) = match change {
            Change::Put(object) => {
                let path = object.header.name.as_str().to_owned();
                self.rows.insert(path.clone(), object.clone());
                (number(&object.header.version), path)
            }
            Change::Delete { name, version, .. } => {
                self.rows.remove(name.as_str());
                (number(version), name.as_str().to_owned())
            }
        };
        self.version = at;
        self.past.push(Past::Changed(at, path));
        self.snapshots.push((at, self.rows.clone()));
    }

    /// The node is where the source is.
    fn arrive(&mut self) {
        self.version = self.source.version;
        self.snapshots.push((self.version, self.rows.clone()));
        if self.snapshots.len() > 400 {
            self.snapshots.drain(..200);
        }
    }

    fn replace(&mut self, scope: &Scope, content: Rows) {
        let mut differs: Vec<Object> = Vec::new();
        let old = std::mem::take(&mut self.rows);
        for (path, object) in old {
            match scope.contains(&object.header) && !content.contains_key(&path) {
                true => differs.push(object),
                false => drop(self.rows.insert(path, object)),
            }
        }
        for (path, object) in content {
            let before = self.rows.insert(path, object.clone());
            if before
                .as_ref()
                .is_none_or(|before| before.header != object.header)
            {
                differs.extend(before);
                differs.push(object);
            }
        }
        self.past.push(Past::Reset(differs));
    }

    fn start_scope(&mut self) {
        let scope = self.chance.pick(&possible_scopes()).clone();
        if !self.scopes.contains(&scope) {
            self.send_reset(scope);
        }
    }

    fn repair(&mut self) {
        if !self.scopes.is_empty() {
            let scope = self.chance.pick(&self.scopes.clone()).clone();
            self.send_reset(scope);
        }
    }

    /// The scope as the source has it, at a version that nobody was shown.
    fn send_reset(&mut self, scope: Scope) {
        let pending = self.source.changes(&self.rows, &self.scopes);
        if !pending.is_empty() {
            self.cut();
        }
        self.source.version += 1;
        let content = self.source.view(std::slice::from_ref(&scope));
        let reset = match self.chance.below(3) {
            0 => Reset::whole(scope.clone(), content.values().cloned().collect()),
            1 => correction(&scope, Onto::Held, &self.held(&scope), &content),
            _ => self.stage_some(&scope, &content),
        };
        let mut end = self.progress();
        end.resets.push(reset);
        self.apply(vec![], Some(end)).unwrap();
        assert_eq!(self.replica().reader().staged(), [], "a reset takes it");
        if !self.scopes.contains(&scope) {
            self.scopes.push(scope.clone());
        }
        self.replace(&scope, content);
        self.arrive();
    }

    /// A scope ends, sometimes at a version that was shown already.
    fn end_scope(&mut self) {
        if self.scopes.len() < 2 {
            return;
        }
        self.cut();
        let index = self.chance.below(self.scopes.len());
        let scope = self.scopes.remove(index);
        let mut end = self.progress();
        end.ended.push(scope.clone());
        self.apply(vec![], Some(end)).unwrap();
        self.rows = self.source.view(&self.scopes);
        self.past.push(Past::Ended(scope, self.scopes.clone()));
        self.arrive();
    }

    /// The cluster came back from a backup: lower versions, other objects.
    fn new_epoch(&mut self) {
        self.counts.epochs += 1;
        self.source.epoch += 1;
        self.source.version = 50 + self.chance.below(40) as u64;
        let mut rows = std::mem::take(&mut self.source.rows);
        for (index, (path, object)) in rows.iter_mut().enumerate() {
            let at = 10 + index as u64;
            *object = self::object(path, &object.header.uid, "red", at);
        }
        self.source.rows = rows;
        self.source.graves.clear();
        let progress = self.progress();
        let stale = self.apply(vec![], Some(progress));
        assert!(matches!(
            stale,
            Err(Refusal::Misbehaved(Misbehaved::EpochWithoutReset { .. }))
        ));
        let mut end = self.progress();
        for scope in &self.scopes {
            let view = self.source.view(std::slice::from_ref(scope));
            let whole = view.into_values().collect();
            end.resets.push(Reset::whole(scope.clone(), whole));
        }
        self.apply(vec![], Some(end)).unwrap();
        self.rows = self.source.view(&self.scopes);
        self.snapshots.clear();
        self.arrive();
        for mut follower in std::mem::take(&mut self.followers) {
            assert_eq!(follower.watch.step().unwrap_err(), Ended::Replaced);
        }
    }

    fn progress(&self) -> CutEnd {
        CutEnd {
            progress: version(self.source.version),
            resets: vec![],
            ended: vec![],
        }
    }

    fn heartbeat(&mut self) {
        let end = CutEnd {
            progress: version(self.version),
            resets: vec![],
            ended: vec![],
        };
        self.apply(vec![], Some(end)).unwrap();
    }

    /// What breaks the rules is refused as a whole.
    fn misbehave(&mut self) {
        self.cut();
        let at = self.source.version;
        let later = object("a/1", "wrong", "red", at + 7);
        let earlier = object("a/2", "wrong", "red", at + 3);
        let inside = |object: &Object| self.scopes.iter().any(|s| s.contains(&object.header));
        if !inside(&later) || !inside(&earlier) {
            return;
        }
        let changes = vec![Change::Put(later), Change::Put(earlier)];
        let refused = self.apply(changes, None).unwrap_err();
        let Refusal::Misbehaved(Misbehaved::OutOfOrder { .. }) = refused else {
            panic!("{refused}")
        };
        self.counts.refused += 1;
    }

    fn want(&mut self) -> Want {
        let range = match self.chance.below(5) {
            0 => Range::Name(name(self.chance.pick::<&str>(&NAMES))),
            1 => Range::Namespace("a".into()),
            2 => Range::Namespace("b".into()),
            _ => Range::All,
        };
        let selector = match self.chance.below(3) {
            0 => Selector::parse("app=red", "").unwrap(),
            _ => Selector::default(),
        };
        Want {
            resource: pods(),
            range,
            selector,
            extent: Extent::Whole,
        }
    }

    pub(crate) fn list(&mut self) {
        let want = self.want();
        let reader = self.replica().reader().clone();
        let Some(holding) = reader.holding(&pods()) else {
            return assert!(self.scopes.is_empty());
        };
        let mut digest = Digest::default();
        for header in headers(&self.rows) {
            digest.add(Member::of(&pods(), header));
        }
        assert_eq!(holding.digest, digest);
        assert_eq!(holding.objects, self.rows.len() as u64);
        let covered = self.scopes.iter().any(|scope| scope.covers(&want));
        assert_eq!(reader.covers(&want), covered);
        let Ok(floor) = reader.floor(&want) else {
            return;
        };
        let floor = number(&floor);
        let asked = floor + self.chance.below((self.version - floor + 1) as usize) as u64;
        let page = reader.page(&want, &At::Exactly(version(asked)), &Part::default());
        let page = page.unwrap();
        let Some((_, rows)) = self.snapshots.iter().rev().find(|(at, _)| *at <= asked) else {
            return;
        };
        let wanted = |object: &&Object| {
            want.range.contains(&object.header) && want.selector.matches(&object.header)
        };
        let expected: Vec<_> = rows.values().filter(wanted).map(|o| &o.header).collect();
        let found: Vec<_> = page.rows.iter().map(|row| &row.header).collect();
        assert_eq!(
            found, expected,
            "at {asked}, floor {floor}, now {}",
            self.version
        );
        for row in &page.rows {
            let expected = &rows[row.header.name.as_str()].bytes;
            assert_eq!(page.bytes(row).unwrap(), expected);
        }
    }

    fn follow(&mut self) {
        let want = self.want();
        let reader = self.replica().reader().clone();
        match reader.watch(&want, &version(self.version)) {
            Ok(watch) => {
                if self.followers.len() == 12 {
                    self.followers.swap_remove(0);
                }
                self.followers.push(Follower {
                    watch,
                    want,
                    at: self.version,
                    shown: self.version,
                    next: self.past.len(),
                });
            }
            Err(Refused::NotCovered) => {
                assert!(!self.scopes.iter().any(|scope| scope.covers(&want)));
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn pull(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let index = self.chance.below(self.followers.len());
        let mut follower = self.followers.swap_remove(index);
        match follower.watch.step() {
            Ok(Step::Events(events)) => {
                self.counts.events += events.len();
                for event in events {
                    self.check_event(&mut follower, &event);
                }
                self.followers.push(follower);
            }
            Ok(Step::Progress(at)) => {
                let at = number(&at);
                assert_eq!(at, self.version.max(follower.shown));
                let missed = self.past[follower.next..].iter().find(|past| {
                    let concern = concerns(past, &follower.want);
                    concern == Concern::Event || concern == Concern::Ends
                });
                assert!(missed.is_none(), "progress {at} is ahead of what was given");
                (follower.at, follower.shown) = (at, at);
                follower.next = self.past.len();
                self.followers.push(follower);
            }
            Err(Ended::Replaced) => {
                let reason = self.past[follower.next..]
                    .iter()
                    .find(|past| concerns(past, &follower.want) != Concern::No);
                let reason = reason.map(|past| concerns(past, &follower.want));
                assert!(matches!(reason, Some(Concern::Ends | Concern::MayEnd)));
                self.counts.replaced += 1;
            }
            Err(Ended::Lagged) => {
                let floor = self.replica().reader().floor(&follower.want);
                let reason = floor.is_ok_and(|floor| number(&floor) < follower.at);
                assert!(!reason, "an end needs a reason");
                self.counts.lagged += 1;
            }
            Err(Ended::PassedOver) => panic!("it starts where the replica stands"),
            Err(Ended::Damaged) => panic!("nothing is damaged here"),
        }
    }

    fn check_event(&self, follower: &mut Follower, event: &store::Event) {
        let What::Changed { .. } = &event.what else {
            panic!("a replacement is no event")
        };
        let at = number(&event.version);
        assert!(at > follower.shown, "no event at or below what was shown");
        loop {
            let past = &self.past[follower.next];
            follower.next += 1;
            match concerns(past, &follower.want) {
                Concern::No | Concern::MayEnd => {}
                Concern::Ends => panic!("the watch should have ended before"),
                Concern::Event => {
                    let Past::Changed(expected, path) = past else {
                        panic!("only changes are events")
                    };
                    assert_eq!((at, event.name().unwrap().as_str()), (*expected, &**path));
                    break;
                }
            }
        }
        (follower.at, follower.shown) = (at, at);
    }
}

#[test]
fn a_replica_lists_and_watches_exactly_what_its_source_said() {
    let seed = seed(7);
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step();
    }
    println!("{:?}", run.counts);
    let counts = &run.counts;
    let worth = [
        counts.events > 500,
        counts.replaced > 50,
        counts.epochs > 5,
        counts.repeated > 100,
        counts.refused > 5,
        counts.staged > 50,
    ];
    assert!(worth.iter().all(|enough| *enough), "{counts:?}");
}
