//! What must hold at every step, at every node. The numbers are those of the invariants in
//! `docs/failure-modes.md`.

use std::sync::Arc;

use edge::keep::Stored;
use object::{Object, ObjectName, Resource, Version};
use store::Reader;
use wire::frame::Holding;

use crate::agent::{Kept, Machine};
use crate::around::{Around, Lacks};
use crate::cluster::Rows;
use crate::objects::{self, STEADY, number};

impl Machine {
    /// Looks at everything that changed since the last look.
    pub(crate) fn check(&mut self, around: &mut Around) {
        let Some(running) = &self.running else { return };
        let reader = running.keep.reader().clone();
        let holdings = self.kept.holdings.clone();
        for holding in &holdings {
            self.check_acked(holding, around);
            if !self.checked.contains(holding) {
                self.check_content(holding, &reader, around);
            }
        }
        self.checked = holdings;
        for client in &mut self.clients {
            client.turn(&reader, &mut around.seen);
        }
    }

    /// I3, I4: what a hub was told is on disk is there.
    fn check_acked(&self, holding: &Holding, around: &Around) {
        let acked = around.acked[self.number].get(&holding.resource);
        let Some((_, version)) = acked.filter(|(epoch, _)| *epoch == holding.epoch) else {
            return;
        };
        let progress = holding.standing.as_ref().map(|standing| &standing.progress);
        assert!(
            holding.standing.is_none() || progress >= Some(version),
            "agent{} {}: acked {version}, is at {progress:?}",
            self.number,
            holding.resource
        );
    }

    fn check_content(&mut self, holding: &Holding, reader: &Reader, around: &Around) {
        let resource = &holding.resource;
        let rows = content(reader, resource);
        // I13: nothing is on a node that never was to be there.
        for object in rows.values() {
            assert!(
                around.cluster.may_hold(self.node, resource, object),
                "agent{} holds {resource} {}",
                self.number,
                object.header.name
            );
        }
        // I2, I5, I6, I7: at a Progress it is what there was then.
        if let Some(standing) = &holding.standing
            && standing.parts.as_slice().is_empty()
        {
            let at = number(&standing.progress);
            let lacks = &around.lacks[self.number];
            let may_lack = |object: &Object| may_lack(lacks, holding, object);
            let within = (resource, &*holding.scopes, at);
            let same = around.cluster.was(within, &rows, may_lack);
            if let Err(differs) = same {
                panic!("agent{} {resource} at {at}: {differs}", self.number);
            }
        }
        self.check_steady(resource, &rows);
    }

    /// I7, I17: what always is in the cluster and in the view is never missing, once it was there.
    fn check_steady(&mut self, resource: &Resource, rows: &Rows) {
        let name = match resource.plural() {
            "pods" => objects::steady_pod(self.node),
            "secrets" | "configmaps" => ObjectName::from_path(STEADY),
            "nodes" => ObjectName::new("", self.node),
            _ => return,
        };
        let there = rows.contains_key(&name);
        let was = self.steady.contains(resource);
        assert!(there || !was, "agent{} lost {resource} {name}", self.number);
        if there && !was {
            self.steady.push(resource.clone());
        }
    }

    /// Notes what will be reset, so that it is known who may be sent away.
    pub(crate) fn note_stored(&mut self, task: &Stored) {
        let Stored::Piece(piece) = task else { return };
        let Some(aim) = &piece.aim else { return };
        if piece.resets.is_empty() && piece.ended.is_empty() {
            return;
        }
        let clients = self.clients.iter_mut();
        for client in clients.filter(|client| *client.resource() == piece.resource) {
            client.reset = Some((piece.epoch, aim.clone()));
        }
    }

    /// The disk is another one: what was known of it says nothing.
    pub(crate) fn forget(&mut self) {
        self.kept = Kept::unknown();
        self.desk.replaced();
        self.checked.clear();
        self.steady.clear();
        self.clients.iter_mut().for_each(|client| client.forget());
    }

    /// The agent forgot a resource, since what it held and what the hub has are of two histories:
    /// what was known of that says nothing.
    pub(crate) fn forget_one(&mut self, resource: &Resource, around: &mut Around) {
        assert!(around.cluster.was_restored(), "{resource} is forgotten");
        around.seen.note("histories collide");
        around.acked[self.number].remove(resource);
        self.kept.forget(resource);
        self.checked.retain(|it| it.resource != *resource);
        self.steady.retain(|it| it != resource);
        let own = self.clients.iter_mut();
        let own = own.filter(|client| client.resource() == resource);
        own.for_each(|client| client.forget());
    }
}

/// Whether a node may lack an object that was given up, and has not changed since.
fn may_lack(lacks: &Lacks, holding: &Holding, object: &Object) -> bool {
    let same = |lack: &&(u64, Resource, ObjectName, Version)| {
        let (epoch, resource, name, aim) = lack;
        let of_it = *resource == holding.resource && *name == object.header.name;
        of_it && *epoch == holding.epoch && object.header.version <= *aim
    };
    lacks.iter().any(|lack| same(&lack))
}

/// Everything that a node has of a resource, with its bytes.
pub(crate) fn content(reader: &Reader, resource: &Resource) -> Rows {
    let names = reader.rows(resource).into_iter();
    let read = |name: &ObjectName| {
        let read = reader.object(resource, name);
        let read = read.expect("what is held can be read");
        Arc::new(read.expect("a row has its object"))
    };
    names
        .map(|row| (row.header.name.clone(), read(&row.header.name)))
        .collect()
}
