//! Scopes: the units in which a replica is told what is complete, and the questions that they
//! cover.

use std::fmt;
use std::sync::Arc;

use crate::codec::{Malformed, Taker, put_number, put_text};
use crate::select::Selector;
use crate::{Header, ObjectName, Resource};

/// A part of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Range {
    /// All of it.
    All,
    /// What is in one namespace.
    Namespace(Arc<str>),
    /// One object.
    Name(ObjectName),
    /// Pods bound to one node.
    Node(Arc<str>),
}

/// A part of a resource, narrowed by a selector: the unit of completeness, subscription and
/// history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Which part.
    pub range: Range,
    /// What of it; a selector that selects everything for most.
    pub selector: Selector,
}

/// What a reader asks for: a resource, perhaps a namespace, perhaps a name, and a selector.
#[derive(Debug, Clone)]
pub struct Want {
    /// The resource.
    pub resource: Resource,
    /// All, a namespace or a name.
    pub range: Range,
    /// What of it.
    pub selector: Selector,
    /// Whether all of it is wanted, or what there happens to be.
    pub extent: Extent,
}

/// How much of what is wanted must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// All of it: whoever has only a part does not answer.
    #[default]
    Whole,
    /// What is held, though there may be more elsewhere.
    Held,
}

impl Scope {
    /// The whole of a resource.
    pub fn all() -> Self {
        Self {
            range: Range::All,
            selector: Selector::default(),
        }
    }

    /// A part without a selector.
    pub fn of(range: Range) -> Self {
        Self {
            range,
            selector: Selector::default(),
        }
    }

    /// Whether an object with this header is in the scope.
    pub fn contains(&self, header: &Header) -> bool {
        self.range.contains(header) && self.selector.matches(header)
    }

    /// Whether everything that `want` can select is in the scope.
    pub fn covers(&self, want: &Want) -> bool {
        let same_selector = self.selector == want.selector;
        if !self.selector.is_everything() && !same_selector {
            return false;
        }
        match (&self.range, &want.range) {
            (Range::All, _) => true,
            (Range::Namespace(held), Range::Namespace(wanted)) => held == wanted,
            (Range::Namespace(held), Range::Name(wanted)) => **held == *wanted.namespace(),
            (Range::Name(held), wanted) => match wanted {
                Range::Name(wanted) => held == wanted,
                Range::Namespace(namespace) => {
                    **namespace == *held.namespace()
                        && want.selector.fields.exact("metadata.name") == Some(held.name())
                }
                Range::All | Range::Node(_) => false,
            },
            (Range::Node(held), Range::Node(wanted)) => held == wanted,
            (Range::Node(held), _) => want.selector.fields.exact("spec.nodeName") == Some(&**held),
            (Range::Namespace(_), Range::All | Range::Node(_)) => false,
        }
    }

    /// Whether an object could be in the scope and in `range` at once. May say yes too often, never
    /// no too often.
    pub fn may_meet(&self, range: &Range) -> bool {
        match (&self.range, range) {
            (Range::Namespace(a), Range::Namespace(b)) => a == b,
            (Range::Namespace(namespace), Range::Name(name))
            | (Range::Name(name), Range::Namespace(namespace)) => **namespace == *name.namespace(),
            (Range::Name(a), Range::Name(b)) => a == b,
            (Range::Node(a), Range::Node(b)) => a == b,
            (Range::All | Range::Node(_), _) | (_, Range::All | Range::Node(_)) => true,
        }
    }

    /// Appends the scope, which [`Scope::decode`] reads.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (tag, text) = match &self.range {
            Range::All => (0, ""),
            Range::Namespace(namespace) => (1, &**namespace),
            Range::Name(name) => (2, name.as_str()),
            Range::Node(node) => (3, &**node),
        };
        put_number(out, tag);
        put_text(out, text);
        put_text(out, &self.selector.labels.to_string());
        put_text(out, &self.selector.fields.to_string());
    }

    /// Takes a scope.
    pub fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let tag = taker.number()?;
        let text = taker.text()?;
        let range = match tag {
            0 => Range::All,
            1 => Range::Namespace(text.into()),
            2 => Range::Name(ObjectName::from_path(text)),
            3 => Range::Node(text.into()),
            _ => return Err(Malformed),
        };
        let labels = taker.text()?;
        let selector = Selector::parse(labels, taker.text()?).map_err(|_| Malformed)?;
        Ok(Self { range, selector })
    }
}

impl Range {
    /// Whether an object with this header is in the range.
    pub fn contains(&self, header: &Header) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => header.name.namespace() == &**namespace,
            Self::Name(name) => header.name == *name,
            Self::Node(node) => header.fields.get("spec.nodeName") == Some(node),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
            Self::Name(name) => write!(f, "name {name}"),
            Self::Node(node) => write!(f, "node {node}"),
        }
    }
}
