//! Records of what each node holds, published in the cluster for people and tools: an ObjectSync or
//! a ClusterObjectSync for each object on a node's disk, and a NodeSync for each node.
//!
//! Nothing depends on them. They are written after the fact, so they never say more than a node
//! has; the newest word of each wins, a few are written each second, and when the cluster takes
//! none for minutes, what is not written is forgotten beyond a bound and found again by a survey.
//! A survey lists the records, mends those that are wrong, collects those of objects and nodes that
//! are gone, and makes those that are missing.
//!
//! The rules are in [`Records`], without I/O and with the time passed in. [`Recorder`] carries them
//! out, and is what the sessions tell.

mod text; // records as JSON, and back
mod summary; // a node's NodeSync
mod pending; // what is to be written, the newest word of each
mod survey; // what a list of the records brings to light
mod pace; // how fast
mod request; // a word -> a request
mod plan; // facts -> writes
mod recorder; // writes -> requests
mod books; // what a node held and holds -> what is to be said of single objects
mod truth; // what the hub knows of its nodes
mod scribe; // what happens in sessions -> words for the recorder

use object::{ObjectName, Resource, Version};

use crate::view::NodeName;

pub use books::{Books, Said};
pub use plan::{Counts, NODES_MAX, Next, OBJECTS_MAX, Outcome, Records};
pub use recorder::{Recorder, definitions, install};
pub use request::{Verb, Write};
pub use scribe::Scribe;
pub use summary::{Link, ResourceSummary, SetAside, Summary};
pub use survey::Question;
pub use text::{Found, RecordKind};
pub use truth::HubTruth;

/// Which objects have records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// All that nodes hold.
    All,
    /// Those that a node does not share with all others.
    #[default]
    Node,
    /// None, and no summaries either.
    Off,
}

impl std::str::FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "all" => Ok(Self::All),
            "node" => Ok(Self::Node),
            "off" => Ok(Self::Off),
            _ => Err(UnknownMode),
        }
    }
}

/// A word that is no mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("records are for \"all\" objects, for those of a \"node\", or \"off\"")]
pub struct UnknownMode;

/// An object on a node's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Its resource.
    pub resource: Resource,
    /// Its name.
    pub name: ObjectName,
    /// Its uid.
    pub uid: Box<str>,
    /// Its version there.
    pub version: Version,
}

/// What this hub knows of an object on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// The node has it, at this version.
    Holds(Version),
    /// The node does not have it.
    Nothing,
    /// The node is connected elsewhere, or nowhere, or is not in sync: the record may be right.
    Unknown,
}

/// Whether there is a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// There is none: said only from a complete list of nodes.
    Gone,
    /// There is one, or that is not known.
    Possible,
}

/// What the hub knows of its nodes. It is asked without any lock held, and answers without delay.
pub trait Truth: Send + Sync {
    /// Whether there is such a node.
    fn presence(&self, node: &NodeName) -> Presence;
    /// What is known of an object on a node.
    fn known(&self, question: &Question) -> Known;
    /// The next node, by name, of which this hub knows what it holds, and all of that.
    fn holdings(&self, after: Option<&NodeName>) -> Option<(NodeName, Vec<Holding>)>;
}

#[cfg(test)]
mod books_tests;
#[cfg(test)]
mod tests;
