//! A node: the inbox with its rules, and a disk that keeps what was synced.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use object::{Header, Object, ObjectName, Resource, Scope, Standing, Version};
use wire::difference;
use wire::digest::{Digest, Member, content_hash};
use wire::frame::{Ask, By, Frame, Holding, Noted, Staged, Tell, Told};
use wire::inbox::{Action, Change, Complete, Held, Inbox, Misbehaved, Onto, Piece, Replaced};

use crate::bytes::tell_content;
use crate::cluster::{Cluster, Rows, inside, resources, told};

use crate::trace::{self, trace};

#[derive(Default)]
pub(crate) struct Node {
    pub(crate) inbox: Inbox,
    pub(crate) disk: Disk,
    /// What was handed on and is not synced.
    pending: VecDeque<Handed>,
    acked: u64,
    /// Whether something was given up: then it may lack something that it should have.
    pub(crate) lacks: bool,
}

/// Something that the disk is to take.
enum Handed {
    Piece(Piece),
    Document {
        number: u64,
        name: Box<str>,
        bytes: Option<Bytes>,
    },
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) documents: BTreeMap<Box<str>, Bytes>,
    /// Whether it takes no object of one name.
    pub(crate) narrow: bool,
    pub(crate) tables: BTreeMap<Resource, Shelf>,
    /// Whether it finds nothing that a difference could be made from.
    pub(crate) blind: bool,
    /// Whether pieces of a reset are kept where content is staged.
    pub(crate) merges: bool,
    /// Whether something may have been withheld: then what goes need not be there.
    pub(crate) withheld: bool,
    /// Whether it may lack something that was given up.
    lacks: bool,
}

/// What the disk has of one resource.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) rows: Rows,
    pub(crate) held: Vec<Scope>,
    standing: Option<Standing>,
    staged: Vec<(Scope, Staging)>,
    /// Resets of the cut that is not complete, and where it leads.
    resets: Option<(Version, Vec<(Scope, Rows)>)>,
}

/// What is staged. What is to be laid over what is held cannot be gone on with.
#[derive(Clone)]
struct Staging {
    rows: Rows,
    over_held: bool,
}

impl Held for Disk {
    fn object(&self, resource: &Resource, name: &ObjectName) -> Option<Bytes> {
        let row = self.tables.get(resource)?.rows.get(name)?;
        (!self.blind).then(|| row.bytes.clone())
    }
    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        Vec::new()
    }
    fn document(&self, name: &str) -> Option<Bytes> {
        self.documents.get(name).cloned()
    }
    fn covers(&self, resource: &Resource, header: &Header) -> bool {
        let table = self.tables.get(resource);
        table.is_some_and(|table| table.held.iter().any(|scope| scope.contains(header)))
    }
    fn fits(&self, header: &Header, _: usize) -> bool {
        !self.narrow || header.name.as_str() != "a/z"
    }
}

impl Node {
    /// The digest of all that it holds.
    pub(crate) fn digest(&self) -> Digest {
        let all = self.holdings().into_iter();
        all.fold(Digest::default(), |sum, holding| sum.and(holding.digest))
    }

    /// Where it stands, as it says in a hello.
    pub(crate) fn holdings(&self) -> Vec<Holding> {
        let empty = Shelf::default();
        let holding = |resource: Resource| {
            let table = self.disk.tables.get(&resource).unwrap_or(&empty);
            let mut digest = Digest::default();
            for row in table.rows.values() {
                digest.add(Member::of(&resource, &row.header));
            }
            let in_order = table.standing.as_ref().is_some_and(Standing::is_in_order);
            let standing = table.standing.clone();
            let aims = standing.iter().flat_map(|at| at.parts.as_slice());
            let aims = aims.map(|part| part.aim.clone());
            Holding {
                resource,
                epoch: 0,
                reached: standing
                    .iter()
                    .map(|at| at.shown().clone())
                    .chain(aims)
                    .max(),
                scopes: table.held.clone(),
                standing: standing.filter(|_| in_order),
                objects: table.rows.len() as u64,
                digest,
            }
        };
        resources().map(holding).into()
    }

    /// What is staged there, as it says in a hello. What cannot be told of goes.
    pub(crate) fn staged_holdings(&mut self) -> Vec<Staged> {
        let mut all = Vec::new();
        for (resource, table) in &mut self.disk.tables {
            table.staged.retain(|(_, staging)| staging.is_of_use());
            for (scope, Staging { rows, .. }) in &table.staged {
                let mut digest = Digest::default();
                for row in rows.values() {
                    digest.add(Member::of(resource, &row.header));
                }
                all.push(Staged {
                    resource: resource.clone(),
                    scope: scope.clone(),
                    epoch: 0,
                    last: rows.keys().next_back().unwrap().clone(),
                    objects: rows.len() as u64,
                    digest,
                });
            }
        }
        all
    }

    /// A new session: nothing that was received is remembered but what is on the disk.
    pub(crate) fn reconnect(&mut self) {
        self.inbox = Inbox::after(self.inbox.aside().clone());
        self.acked = 0;
        // What was handed on is still stored: the writer does not know of sessions.
        self.sync_all_unseen();
    }

    /// For how many scopes something is staged.
    pub(crate) fn staged(&self) -> usize {
        let tables = self.disk.tables.values();
        tables.map(|table| table.staged.len()).sum()
    }

    /// The power goes.
    pub(crate) fn crash(&mut self) {
        self.pending.clear();
        self.inbox = Inbox::default();
        self.acked = 0;
    }

    /// Takes a frame. Returns what it answers.
    pub(crate) fn take(&mut self, frame: Frame) -> Result<Vec<Frame>, Misbehaved> {
        trace(|| trace::frame(&frame));
        let actions = match frame {
            Frame::Deliver { number, delivery } => self.inbox.take(number, delivery, &self.disk)?,
            Frame::Void { number } => {
                self.lacks = true;
                self.inbox.void(number, &self.disk)?
            }
            Frame::Ping { number, .. } => {
                let received = Some(self.inbox.received());
                return Ok(vec![Frame::Pong { number, received }]);
            }
            Frame::Ask(ask) => {
                let told = self.tell(&ask);
                return Ok(vec![Frame::Tell(Tell {
                    resource: ask.resource,
                    bits: ask.bits,
                    told,
                    staged: ask.staged,
                    by: ask.by,
                })]);
            }
            _ => Vec::new(),
        };
        let mut answers = Vec::new();
        for action in actions {
            match action {
                Action::Store(piece) => self.pending.push_back(Handed::Piece(piece)),
                Action::Reject { number, fault } => answers.push(Frame::Reject {
                    number,
                    fault,
                    words: format!("{fault:?}").into(),
                }),
                Action::AckAgain => answers.push(Frame::Ack {
                    number: self.inbox.acked(),
                }),
                Action::Document {
                    number,
                    name,
                    bytes,
                } => self.pending.push_back(Handed::Document {
                    number,
                    name,
                    bytes,
                }),
            }
        }
        answers.extend(self.ack());
        Ok(answers)
    }

    /// Says what it holds.
    fn tell(&self, ask: &Ask) -> Told {
        let (resource, bits) = (&ask.resource, ask.bits);
        let empty = Shelf::default();
        let table = self.disk.tables.get(resource).unwrap_or(&empty);
        let rows = match &ask.staged {
            None => &table.rows,
            Some(scope) => match table.staging(scope).filter(|staging| staging.is_of_use()) {
                Some(staging) => &staging.rows,
                None => return Told::TooMany,
            },
        };
        if ask.by == By::Content {
            return tell_content(ask, rows);
        }
        let rows = rows.values();
        let rows = rows.map(|object| &object.header);
        match &ask.entries_of {
            None => Told::Buckets(difference::buckets(resource, rows, bits)),
            Some(which) => difference::entries(resource, rows, (bits, which))
                .map_or(Told::TooMany, |entries| {
                    Told::Entries(which.clone(), entries)
                }),
        }
    }

    /// Hands on what was received so far.
    pub(crate) fn flush(&mut self) {
        if let Some(Action::Store(piece)) = self.inbox.flush() {
            self.pending.push_back(Handed::Piece(piece));
        }
    }

    /// The disk takes the next piece. Returns the ack, if there is something new to ack.
    pub(crate) fn sync(&mut self, cluster: &Cluster) -> Option<Frame> {
        let handed = self.pending.pop_front()?;
        self.disk.lacks = self.lacks;
        let number = self.disk.take(handed, Some(cluster));
        self.inbox.stored(number);
        self.ack()
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    fn sync_all_unseen(&mut self) {
        self.disk.lacks = self.lacks;
        for handed in std::mem::take(&mut self.pending) {
            self.disk.take(handed, None);
        }
    }

    fn ack(&mut self) -> Option<Frame> {
        let number = self.inbox.acked();
        assert!(number >= self.acked, "an ack is never taken back");
        let new = number > self.acked;
        self.acked = number;
        new.then_some(Frame::Ack { number })
    }
}

impl Disk {
    /// The documents that it has, as it says in a hello.
    pub(crate) fn noted(&self) -> Vec<Noted> {
        let all = self.documents.iter();
        all.map(|(name, bytes)| Noted {
            name: name.clone(),
            hash: content_hash(bytes),
        })
        .collect()
    }

    /// Stores something. Says which number is stored by that.
    fn take(&mut self, handed: Handed, cluster: Option<&Cluster>) -> u64 {
        match handed {
            Handed::Piece(piece) => {
                let number = piece.number;
                self.store(piece, cluster);
                number
            }
            Handed::Document {
                number,
                name,
                bytes,
            } => {
                match bytes {
                    Some(bytes) => self.documents.insert(name, bytes),
                    None => self.documents.remove(&name),
                };
                number
            }
        }
    }

    /// Stores a piece, all of it or nothing, and checks that it may be shown.
    fn store(&mut self, piece: Piece, cluster: Option<&Cluster>) {
        trace(|| trace::piece(&piece));
        let table = self.tables.entry(piece.resource.clone()).or_default();
        let Some(aim) = &piece.aim else {
            for part in &piece.resets {
                table.stage(part);
            }
            let kept = |scope: &Scope| !piece.unstaged.contains(scope);
            table.staged.retain(|(scope, _)| kept(scope));
            return;
        };
        if piece.starts {
            table.resets = None;
        }
        for change in piece.changes {
            table.change(change, aim, self.lacks || self.withheld);
        }
        for part in piece.resets {
            // A store keeps the pieces of a reset where it keeps what is staged.
            if self.merges && piece.complete == Complete::No {
                table.stage(&part);
            }
            table.reset(part, aim);
        }
        if piece.complete == Complete::Yes {
            table.complete(aim.clone(), &piece.ended, self.lacks);
            if let Some(cluster) = cluster.filter(|_| !self.lacks) {
                let rows: Vec<String> = table.rows.values().map(told).collect();
                let view = cluster.view(&piece.resource, &table.held, aim);
                assert_eq!(rows, view, "{} at {aim}", piece.resource);
            }
        }
    }
}

impl Staging {
    /// Whether another session can go on with it.
    fn is_of_use(&self) -> bool {
        !self.over_held && !self.rows.is_empty()
    }
}

impl Shelf {
    fn change(&mut self, change: Change, aim: &Version, lacks: bool) {
        let version = match &change {
            Change::Put(object) => object.header.version.clone(),
            Change::Delete { version, .. } => version.clone(),
        };
        let standing = self.standing.as_mut().expect("changes of what is held");
        assert!(version > *standing.shown(), "shown in order");
        standing.parts.show(aim, version);
        match change {
            Change::Put(object) => {
                assert!(inside(&self.held, &object), "nothing that it may not have");
                self.rows.insert(object.header.name.clone(), object);
            }
            Change::Delete { name, uid, .. } => {
                let gone = self.rows.remove(&name);
                let gone = gone.map(|object| object.header.uid);
                assert!(gone == Some(uid) || lacks, "what goes was there");
            }
        }
    }

    fn staging(&self, scope: &Scope) -> Option<&Staging> {
        let mut staged = self.staged.iter();
        staged.find(|(other, _)| other == scope).map(|(_, it)| it)
    }

    fn stage(&mut self, part: &Replaced) {
        let scope = part.scope.clone();
        let before = self.staging(&scope).is_some_and(|it| it.over_held);
        let over_held = match part.onto {
            Onto::Nothing => false,
            Onto::Held => true,
            Onto::Staged | Onto::Piece => before,
        };
        let rows = self.content(part, None);
        self.staged.retain(|(other, _)| *other != scope);
        self.staged.push((scope, Staging { rows, over_held }));
    }

    fn reset(&mut self, part: Replaced, aim: &Version) {
        let mut resets = self
            .resets
            .take()
            .map(|(_, resets)| resets)
            .unwrap_or_default();
        let scope = part.scope.clone();
        let earlier = resets.iter().position(|(other, _)| *other == scope);
        let earlier = earlier.map(|index| resets.remove(index).1);
        let content = self.content(&part, earlier);
        resets.push((scope, content));
        self.resets = Some((aim.clone(), resets));
    }

    /// The content that a part makes, from what it is added to.
    fn content(&self, part: &Replaced, earlier: Option<Rows>) -> Rows {
        let staged = || {
            let staging = self.staging(&part.scope);
            staging.map(|staging| staging.rows.clone())
        };
        let mut rows = match part.onto {
            Onto::Nothing => Rows::new(),
            Onto::Held => {
                let rows = self.rows.iter();
                let inside = rows.filter(|(_, object)| part.scope.contains(&object.header));
                inside
                    .map(|(name, object)| (name.clone(), object.clone()))
                    .collect()
            }
            Onto::Staged => staged().expect("something is staged"),
            Onto::Piece => earlier.or_else(staged).expect("a piece came before"),
        };
        for object in &part.puts {
            assert!(part.scope.contains(&object.header), "of the scope alone");
            rows.insert(object.header.name.clone(), Object::clone(object));
        }
        part.drops.iter().for_each(|name| drop(rows.remove(name)));
        rows
    }

    fn complete(&mut self, aim: Version, ended: &[Scope], lacks: bool) {
        self.held.retain(|scope| !ended.contains(scope));
        self.staged.retain(|(scope, _)| !ended.contains(scope));
        let before = self.seen_at(&aim);
        let shown = self.standing.as_ref().is_some_and(|at| *at.shown() == aim);
        let rows = if shown {
            self.rows.clone()
        } else {
            Rows::new()
        };
        let resets = self.resets.take().filter(|(of, _)| *of == aim);
        for (scope, content) in resets.map(|(_, resets)| resets).unwrap_or_default() {
            self.rows
                .retain(|_, object| !scope.contains(&object.header));
            self.rows.extend(content);
            self.staged.retain(|(other, _)| *other != scope);
            if !self.held.contains(&scope) {
                self.held.push(scope);
            }
        }
        // What was shown at a version keeps its bytes at this version.
        for (name, old) in rows {
            let same = |new: &&mut Object| {
                (&new.header.uid, &new.header.version) == (&old.header.uid, &old.header.version)
            };
            if let Some(new) = self.rows.get_mut(&name).filter(same) {
                *new = old;
            }
        }
        let held = &self.held;
        self.rows.retain(|_, object| inside(held, object));
        let altered = |(scope, seen): &(Scope, Vec<String>)| self.listed(scope) != *seen;
        let alters = before.iter().any(altered);
        assert!(lacks || !alters, "a version of its own");
        self.standing = Some(Standing::complete(aim));
    }

    /// What clients may have seen at this version, of each scope that stays.
    fn seen_at(&self, aim: &Version) -> Vec<(Scope, Vec<String>)> {
        let Some(standing) = &self.standing else {
            return Vec::new();
        };
        assert!(standing.shown() <= aim, "never back");
        let held = self.held.iter().filter(|_| standing.shown() == aim);
        held.map(|scope| (scope.clone(), self.listed(scope)))
            .collect()
    }

    fn listed(&self, scope: &Scope) -> Vec<String> {
        let rows = self.rows.values();
        let inside = rows.filter(|object| scope.contains(&object.header));
        inside.map(told).collect()
    }
}
