//! The node's store, as a session needs it: what is held is told, and pieces of cuts are stored.

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use host::seal::Keys;
use host::secret;
use kubeapi::catalog::Names;
use object::{Header, ObjectName, Resource, Scope};
use parking_lot::Mutex;
use store::replica::{Cut, CutEnd, Misbehaved, Onto, Refusal, Reset, Stage, Until, fits};
use store::{ReadFailed, Reader, Replica, Unreadable};
use tokio::sync::watch;
use wire::digest::{Digest, Sum, content_hash};
use wire::documents::TOLD_MAX;
use wire::frame::{Asides, Holding, Noted, STAGED_MAX, Staged};
use wire::inbox::{self, Complete, Held, Piece, Replaced};
use wire::session::{Kept, RESUMES, Task};

use crate::status;

/// The store of a node. Cheap to clone.
#[derive(Clone)]
pub struct Keep {
    replica: Replica,
    /// Objects that could not be taken. The next hub is told of them; a process that starts anew
    /// finds out again.
    aside: Arc<Mutex<Asides>>,
    /// How often documents of hubs changed.
    papers: watch::Sender<u64>,
    /// What secret things of the node's own are sealed with.
    keys: Option<Arc<Keys>>,
}

/// The document that has the number of the last session.
const SESSION: &str = "holdfast/session";
/// Where the documents of hubs are: none of them can take the place of one of the node's own.
const OF_HUBS: &str = "hub/";
/// Where the store has what the cluster says of itself.
pub const TOLD: Names = Names {
    version: "hub/version",
    discovery: "hub/discovery",
};
/// Bytes that a hello may have for what is staged. What has no room there is discarded.
const STAGED_BYTES_MAX: usize = 64 * 1024;
/// Bytes that one of them takes beside its scope and its last name, at most: a resource's name and
/// numbers.
const STAGED_REST_BYTES: usize = 600;

/// Something that a session wants stored.
#[derive(Debug)]
pub enum Stored {
    /// A piece of a cut, or of what is staged.
    Piece(Piece),
    /// A document.
    Document {
        /// The delivery's number.
        number: u64,
        /// The name.
        name: Box<str>,
        /// The bytes; nothing if it goes.
        bytes: Option<Bytes>,
    },
    /// Nothing that is staged is of use: the hub does not know of it.
    NothingStaged,
}

impl Stored {
    /// What a task of a session asks of the disk, if anything.
    pub fn of(task: Task) -> Option<Self> {
        match task {
            Task::Store(piece) => Some(Self::Piece(piece)),
            Task::Document {
                number,
                name,
                bytes,
            } => Some(Self::Document {
                number,
                name,
                bytes,
            }),
            // Nothing was delivered yet: this comes first.
            Task::Welcome(welcome) if welcome.features & RESUMES == 0 => Some(Self::NothingStaged),
            // The loop of the session sees to these.
            Task::Reported(_) | Task::Stream { .. } | Task::Welcome(_) => None,
        }
    }
}

/// A cut that is being stored piece by piece.
#[derive(Debug, Default)]
pub struct Begun {
    /// Scopes whose new content is staged and waits for the end of the cut.
    resets: Vec<Scope>,
}

impl Keep {
    /// The store is open.
    pub fn new(replica: Replica) -> Self {
        Self {
            replica,
            aside: Arc::default(),
            papers: watch::Sender::default(),
            keys: None,
        }
    }

    /// The same with keys, which secret things of the node's own are sealed with.
    pub fn with_keys(self, keys: Arc<Keys>) -> Self {
        let keys = Some(keys);
        Self { keys, ..self }
    }

    /// What secret things of the node's own are sealed with. Without keys none of them may lie on
    /// the disk.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Tells when documents of hubs are others than before.
    pub fn papers(&self) -> watch::Receiver<u64> {
        self.papers.subscribe()
    }

    /// Objects that could not be taken, as the next hello names them.
    pub fn aside(&self) -> Asides {
        self.aside.lock().clone()
    }

    /// Notes which objects could not be taken by now.
    pub fn note_aside(&self, aside: &Asides) {
        let mut noted = self.aside.lock();
        if *noted != *aside {
            noted.clone_from(aside);
        }
    }

    /// The documents of hubs that the node has, as its hello names them.
    pub fn documents(&self) -> Vec<Noted> {
        let names = self.reader().documents().into_iter();
        let noted = names.filter_map(|name| {
            let name = name.as_str().strip_prefix(OF_HUBS)?;
            let bytes = self.document(name)?;
            Some(Noted {
                name: name.into(),
                hash: content_hash(&bytes),
            })
        });
        noted.take(TOLD_MAX).collect()
    }

    /// Reads what is stored.
    pub fn reader(&self) -> &Reader {
        self.replica.reader()
    }

    /// What the node says in a hello that it holds.
    pub fn holdings(&self) -> Vec<Holding> {
        let reader = self.reader();
        let all = reader.resources().into_iter();
        all.filter_map(|resource| reader.holding(&resource))
            .map(|held| Holding {
                resource: held.resource,
                epoch: held.epoch,
                standing: held.standing,
                reached: held.reached,
                scopes: held.scopes,
                objects: held.objects,
                digest: held.digest,
            })
            .collect()
    }

    /// What is held, resource by resource, for people.
    pub fn held(&self) -> Vec<status::Held> {
        let all = self.holdings().into_iter();
        all.map(|holding| status::Held {
            resource: holding.resource.to_string(),
            version: holding.standing.map(|at| at.progress.to_string()),
            objects: holding.objects,
            scopes: holding.scopes.len(),
            digest: secret::hex(&holding.digest.to_bytes()),
        })
        .collect()
    }

    /// Every object that is held, a line each: resource, name, uid, version and a hash of its
    /// bytes. Two dumps are the same if and only if the same is held.
    pub fn dump(&self) -> String {
        let reader = self.reader();
        let mut out = String::new();
        for resource in reader.resources() {
            for row in reader.rows(&resource) {
                let name = &row.header.name;
                let bytes = reader.object(&resource, name).ok().flatten();
                let hash = bytes.map(|object| content_hash(&object.bytes));
                let (uid, version) = (&row.header.uid, &row.header.version);
                // Writing to a string does not fail.
                let _ = match hash {
                    Some(hash) => writeln!(out, "{resource} {name} {uid} {version} {hash:016x}"),
                    None => writeln!(out, "{resource} {name} {uid} {version} unreadable"),
                };
            }
        }
        out
    }

    /// Forgets what is damaged: it is not served, and must be sent again. Returns what that was.
    pub async fn forget_damaged(&self) -> Result<Vec<Resource>, Refusal> {
        let damaged = self.reader().damaged();
        for resource in &damaged {
            self.replica.forget(resource.clone()).await?;
        }
        let documents = self.reader().document(SESSION);
        if let Err(ReadFailed::Refused(_) | ReadFailed::Unreadable(Unreadable::Damaged { .. })) =
            documents
        {
            // Without them there would be no session ever again.
            self.replica.forget_documents().await?;
        }
        Ok(damaged)
    }

    /// What the node says in a hello that is staged from sessions before.
    pub fn staged(&self) -> Vec<Staged> {
        let mut room = STAGED_BYTES_MAX;
        let all = self.reader().resumable().into_iter();
        let staged = all.map(|staged| Staged {
            resource: staged.resource,
            scope: staged.scope,
            epoch: staged.epoch,
            last: staged.last,
            objects: staged.objects,
            digest: staged.digest,
        });
        let fits = |staged: &Staged| {
            let mut scope = Vec::new();
            staged.scope.encode(&mut scope);
            let bytes = scope.len() + staged.last.as_str().len() + STAGED_REST_BYTES;
            let left = room.checked_sub(bytes);
            room = left.unwrap_or(room);
            left.is_some()
        };
        staged.filter(fits).take(STAGED_MAX).collect()
    }

    /// Discards everything that is staged but this.
    pub async fn unstage_all_but(&self, kept: &[Staged]) -> Result<(), Refusal> {
        for (resource, scope) in self.reader().staged() {
            let mut kept = kept.iter();
            if !kept.any(|staged| staged.resource == resource && staged.scope == scope) {
                self.replica.unstage(resource, Some(scope)).await?;
            }
        }
        Ok(())
    }

    /// The number of the next session: on disk, and higher than any before it.
    pub async fn next_session(&self) -> Result<u64, Refusal> {
        let before = self.reader().document(SESSION);
        let before = before.ok().flatten().and_then(|bytes| {
            let digits = std::str::from_utf8(&bytes).ok()?;
            digits.parse::<u64>().ok()
        });
        let number = before.unwrap_or(0).saturating_add(1);
        let bytes = Bytes::from(number.to_string());
        self.replica.put_document(SESSION, Some(bytes)).await?;
        Ok(number)
    }

    /// Keeps a document of the node's own, or takes it away.
    pub(crate) async fn put_own(&self, name: &str, bytes: Option<Bytes>) -> Result<(), Refusal> {
        assert!(!name.starts_with(OF_HUBS), "{name} is a hub's");
        self.replica.put_document(name, bytes).await?;
        Ok(())
    }

    /// Stores what a session hands on, in its order. Returns the number that is stored by that.
    pub async fn store(&self, task: Stored, begun: &mut Begun) -> Result<u64, Refusal> {
        match task {
            Stored::Piece(piece) => {
                let resource = piece.resource.clone();
                let stored = self.store_piece(piece, begun).await;
                if let Err(Refusal::Misbehaved(misbehaved)) = &stored
                    && cannot_be_joined(misbehaved)
                {
                    // Asked for again and again, it would be refused again and again.
                    self.replica.forget(resource).await?;
                }
                stored
            }
            Stored::Document {
                number,
                name,
                bytes,
            } => {
                let name = format!("{OF_HUBS}{name}");
                self.replica.put_document(&name, bytes).await?;
                self.papers.send_modify(|changes| *changes += 1);
                Ok(number)
            }
            Stored::NothingStaged => {
                self.unstage_all_but(&[]).await?;
                Ok(0)
            }
        }
    }

    /// Closes the store when everything that was asked for is done.
    pub fn close(self) {
        self.replica.close();
    }

    async fn store_piece(&self, piece: Piece, begun: &mut Begun) -> Result<u64, Refusal> {
        if piece.starts {
            begun.resets.clear();
        }
        let number = piece.number;
        let whole = piece.complete == Complete::Yes;
        let Some(aim) = piece.aim else {
            for scope in piece.unstaged {
                let resource = piece.resource.clone();
                self.replica.unstage(resource, Some(scope)).await?;
            }
            self.stage(&piece.resource, piece.epoch, piece.resets)
                .await?;
            return Ok(number);
        };
        let until = match whole {
            true => Until::End(CutEnd {
                progress: aim,
                resets: last_resets(piece.resets, begun),
                ended: piece.ended,
            }),
            false => {
                begun.note(&piece.resets);
                self.stage(&piece.resource, piece.epoch, piece.resets)
                    .await?;
                Until::Piece { aim }
            }
        };
        if !whole && piece.changes.is_empty() {
            return Ok(number);
        }
        let cut = Cut {
            resource: piece.resource,
            epoch: piece.epoch,
            changes: piece.changes,
            until,
        };
        self.replica.apply(cut).await?;
        Ok(number)
    }

    async fn stage(
        &self,
        resource: &Resource,
        epoch: u64,
        parts: Vec<Replaced>,
    ) -> Result<(), Refusal> {
        for part in parts {
            let stage = Stage {
                resource: resource.clone(),
                epoch,
                scope: part.scope,
                onto: onto(part.onto),
                puts: part.puts,
                drops: part.drops,
            };
            self.replica.stage(stage).await?;
        }
        Ok(())
    }
}

impl Begun {
    /// Notes whose new content is staged until the cut is complete.
    fn note(&mut self, parts: &[Replaced]) {
        for part in parts {
            if !self.resets.contains(&part.scope) {
                self.resets.push(part.scope.clone());
            }
        }
    }
}

/// The resets of a whole cut: those of its last piece, and those that were staged before.
fn last_resets(parts: Vec<Replaced>, begun: &mut Begun) -> Vec<Reset> {
    let mut waiting = std::mem::take(&mut begun.resets);
    waiting.retain(|scope| parts.iter().all(|part| part.scope != *scope));
    let staged = waiting.into_iter().map(|scope| Reset {
        scope,
        onto: Onto::Staged,
        puts: Vec::new(),
        drops: Vec::new(),
    });
    let last = parts.into_iter().map(|part| Reset {
        scope: part.scope,
        onto: onto(part.onto),
        puts: part.puts,
        drops: part.drops,
    });
    staged.chain(last).collect()
}

/// Whether what the hub has and what is held here belong to two histories: a backup of the cluster
/// was restored, and nobody noticed. Then what is held is forgotten, and sent anew.
fn cannot_be_joined(misbehaved: &Misbehaved) -> bool {
    match misbehaved {
        Misbehaved::OutOfOrder { .. }
        | Misbehaved::OutsideScopes { .. }
        | Misbehaved::ProgressBackwards { .. }
        | Misbehaved::ResetWithoutVersion { .. }
        | Misbehaved::EpochWithoutReset { .. } => true,
        // These would come again as they are.
        Misbehaved::Twice { .. }
        | Misbehaved::TooManyScopes { .. }
        | Misbehaved::TooLarge { .. }
        | Misbehaved::NoDocument { .. }
        | Misbehaved::TooManyDocuments => false,
    }
}

fn onto(onto: inbox::Onto) -> Onto {
    match onto {
        inbox::Onto::Nothing => Onto::Nothing,
        inbox::Onto::Held => Onto::Held,
        // The pieces before were staged.
        inbox::Onto::Staged | inbox::Onto::Piece => Onto::Staged,
    }
}

impl Held for Keep {
    fn object(&self, resource: &Resource, name: &ObjectName) -> Option<Bytes> {
        let object = self.reader().object(resource, name).ok().flatten()?;
        Some(object.bytes)
    }

    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        // Selectable fields of custom kinds come with the kinds themselves.
        Vec::new()
    }

    fn document(&self, name: &str) -> Option<Bytes> {
        let name = format!("{OF_HUBS}{name}");
        self.reader().document(&name).ok().flatten()
    }

    fn covers(&self, resource: &Resource, header: &Header) -> bool {
        self.reader().contains(resource, header)
    }

    fn fits(&self, header: &Header, bytes: usize) -> bool {
        fits(header, bytes)
    }
}

impl Kept for Keep {
    fn digest(&self) -> Digest {
        let reader = self.reader();
        let all = reader.resources().into_iter();
        let digests = all.filter_map(|resource| Some(reader.holding(&resource)?.digest));
        digests.fold(Digest::default(), Digest::and)
    }

    fn each(&self, resource: &Resource, look: &mut dyn FnMut(&Header)) {
        self.reader().each(resource, look);
    }

    fn each_staged(
        &self,
        resource: &Resource,
        scope: &Scope,
        look: &mut dyn FnMut(&Header),
    ) -> bool {
        self.reader().each_staged(resource, scope, look)
    }

    fn each_content(&self, resource: &Resource, look: &mut dyn FnMut(&ObjectName, Sum)) -> bool {
        self.reader().each_content(resource, look)
    }
}

#[cfg(test)]
mod tests;
