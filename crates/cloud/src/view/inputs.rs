//! How far the objects that decide about views can be relied on.

use object::references::Kind;

/// How far the objects of an input can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// They are all that there are.
    Complete,
    /// Some may be missing, or be gone: a list is under way, or the cluster does not answer.
    Frozen,
}

/// A resource that says something about views.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Pods,
    Volumes,
    Attachments,
}

/// How far each source can be relied on, and whether it ever could.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inputs {
    now: [bool; 3],
    once: [bool; 3],
}

impl Inputs {
    pub(super) fn set(&mut self, source: Source, input: Input) {
        let complete = input == Input::Complete;
        self.now[source as usize] = complete;
        self.once[source as usize] |= complete;
    }

    /// Whether all that decides about a kind can be relied on.
    pub(super) fn are_complete(&self, kind: Kind) -> bool {
        sources(kind)
            .iter()
            .all(|source| self.now[*source as usize])
    }

    /// Whether all that decides about a kind could be relied on once.
    pub(super) fn were_complete(&self, kind: Kind) -> bool {
        sources(kind)
            .iter()
            .all(|source| self.once[*source as usize])
    }
}

/// What decides whether an object of a kind is needed.
fn sources(kind: Kind) -> &'static [Source] {
    match kind {
        Kind::Secret | Kind::Volume => &[Source::Pods, Source::Volumes],
        Kind::Attachment | Kind::Slice => &[Source::Attachments],
        Kind::Pod | Kind::ConfigMap | Kind::ServiceAccount | Kind::Claim | Kind::ResourceClaim => {
            &[Source::Pods]
        }
    }
}
