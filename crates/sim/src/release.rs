//! Releases: hubs and agents of several at once, as in an update that goes on, or is taken back.
//! What an older one cannot do, it does not offer; and of the same object an older hub makes other
//! bytes.

use cloud::papers::SHARED;
use object::{Object, digest::content_hash};
use wire::documents::Documents;
use wire::frame::Noted;
use wire::session::{FEATURES, RESUMES};

use crate::chance::Chance;

/// A release of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    /// Nothing beyond the protocol.
    First,
    /// It goes on with what is staged.
    Second,
    /// This one.
    Now,
}

impl Release {
    /// What is installed on a machine that starts a process.
    pub(crate) fn drawn(mixed: bool, chance: &mut Chance) -> Self {
        match mixed {
            true => chance.pick(&[Self::First, Self::Second, Self::Now]),
            false => Self::Now,
        }
    }

    /// What it can do, a bit for each.
    pub(crate) fn features(self) -> u64 {
        match self {
            Self::First => 0,
            Self::Second => RESUMES,
            Self::Now => FEATURES,
        }
    }

    /// An object as a hub of this release makes it.
    pub(crate) fn makes(self, object: &Object) -> Object {
        let mut object = object.clone();
        if self < Self::Now {
            let mut bytes = object.bytes.to_vec();
            bytes.push(b'\n');
            object.bytes = bytes.into();
        }
        object
    }
}

/// Whether two objects are the same, whichever release made their bytes.
pub(crate) fn is_same(one: &Object, other: &Object) -> bool {
    one.bytes.trim_ascii_end() == other.bytes.trim_ascii_end()
}

/// Documents that a hub may want on all nodes.
pub(crate) fn documents(chance: &mut Chance) -> Documents {
    let mut all = Vec::new();
    for name in SHARED {
        if !chance.one_in(3) {
            let text = "x".repeat(1 + chance.below(400));
            all.push((name.into(), text.into()));
        }
    }
    Documents::new(all).expect("a few small ones")
}

/// Whether a node has the documents that it is to have.
pub(crate) fn has(noted: &[Noted], wanted: &Documents) -> bool {
    let wanted = wanted
        .iter()
        .map(|(name, it)| (name, content_hash(&it.bytes)));
    wanted.eq(noted.iter().map(|noted| (&*noted.name, noted.hash)))
}
