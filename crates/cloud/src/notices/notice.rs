//! What can be told of nodes and of the hub, in words for people.

use std::net::IpAddr;

use object::{ObjectName, Resource};
use serde_json::{Value, json};
use wire::window::Why;

use crate::join::{self, Happening, NAMESPACE};
use crate::ledger;

/// Characters of an event's message.
const MESSAGE_MAX: usize = 1000;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A node joined.
    Joined {
        /// The node.
        node: Box<str>,
        /// The pool whose token it had, if it had one.
        pool: Option<Box<str>>,
    },
    /// A node was revoked.
    Revoked {
        /// The node.
        node: Box<str>,
    },
    /// Somebody was refused who wanted to join, to renew or to open a link.
    Refused {
        /// The name that was asked for, if it was one.
        node: Option<Box<str>>,
        /// From where.
        remote: IpAddr,
        /// Why.
        why: join::Why,
    },
    /// A node could not take an object.
    SetAside {
        /// The node.
        node: Box<str>,
        /// The resource.
        resource: Resource,
        /// The object.
        name: ObjectName,
        /// Why.
        why: Why,
    },
    /// Sessions of a node take over from each other: two agents may have its identity.
    Cloned {
        /// The node.
        node: Box<str>,
        /// From where the last one came.
        remote: Box<str>,
    },
    /// The cluster's history is another one: its store was restored from a backup.
    EpochBegan {
        /// The number of the new epoch.
        epoch: u64,
    },
    /// A resource cannot be followed for a while: nodes keep what they have of it.
    Frozen {
        /// The resource.
        resource: Resource,
        /// Why.
        why: Box<str>,
    },
    /// A resource is followed again.
    Thawed {
        /// The resource.
        resource: Resource,
    },
}

/// What makes two notices the same one, told twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    reason: &'static str,
    about: Box<str>,
}

impl Notice {
    /// What makes it the same as another.
    pub(super) fn key(&self) -> Key {
        let about = match self {
            Self::Joined { node, .. } | Self::Revoked { node } | Self::Cloned { node, .. } => {
                node.clone()
            }
            Self::SetAside { node, .. } => node.clone(),
            // Whoever is refused can call himself as he likes, and often.
            Self::Refused { remote, why, .. } => format!("{remote} {why:?}").into(),
            Self::EpochBegan { epoch } => epoch.to_string().into(),
            Self::Frozen { resource, .. } | Self::Thawed { resource } => resource.as_str().into(),
        };
        Key {
            reason: self.reason(),
            about,
        }
    }

    /// In a word, as events have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Joined { .. } => "NodeJoined",
            Self::Revoked { .. } => "NodeRevoked",
            Self::Refused { .. } => "JoinRefused",
            Self::SetAside { .. } => "ObjectSetAside",
            Self::Cloned { .. } => "IdentityCloned",
            Self::EpochBegan { .. } => "EpochBegan",
            Self::Frozen { .. } => "ResourceFrozen",
            Self::Thawed { .. } => "ResourceFollowed",
        }
    }

    /// Whether it is of those that strangers can bring about as often as they like.
    pub(super) fn is_of_strangers(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether somebody should look.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Joined { .. } | Self::Thawed { .. } => "Normal",
            _ => "Warning",
        }
    }

    /// What it is about, as an object of the cluster: a node, or our namespace.
    pub(super) fn involved(&self) -> Value {
        let node = match self {
            Self::Joined { node, .. }
            | Self::Revoked { node }
            | Self::Cloned { node, .. }
            | Self::SetAside { node, .. } => Some(node),
            Self::Refused { node, .. } => node.as_ref(),
            Self::EpochBegan { .. } | Self::Frozen { .. } | Self::Thawed { .. } => None,
        };
        match node {
            // As a kubelet does it: kubectl finds events of a node by this.
            Some(node) => json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}),
            None => json!({"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE}),
        }
    }

    /// The name that events of it begin with.
    pub(super) fn prefix(&self) -> String {
        let involved = self.involved();
        involved["name"].as_str().unwrap_or_default().to_owned()
    }

    /// In words.
    pub(super) fn message(&self) -> String {
        let words = match self {
            Self::Joined { pool: None, .. } => "the node joined with a token of its own".to_owned(),
            Self::Joined {
                pool: Some(pool), ..
            } => format!("the node joined with a token of the pool {pool}"),
            Self::Revoked { .. } => {
                "the node is revoked: certificates that it has are void".to_owned()
            }
            Self::Refused { remote, why, .. } => format!("refused from {remote}: {why}"),
            Self::SetAside {
                resource,
                name,
                why,
                ..
            } => {
                let why = ledger::words(*why);
                format!("{resource} {name} is not on the node: {why}")
            }
            Self::Cloned { remote, .. } => format!(
                "sessions of this node take over from each other, the last one from {remote}: two \
                 agents may have its identity; revoke it and let it join anew"
            ),
            Self::EpochBegan { epoch } => format!(
                "the cluster's history is another one, epoch {epoch}: its store may have been \
                 restored from a backup; nodes are sent everything anew"
            ),
            Self::Frozen { resource, why } => {
                format!("{resource} cannot be followed, nodes keep what they have of it: {why}")
            }
            Self::Thawed { resource } => format!("{resource} is followed again"),
        };
        words.chars().take(MESSAGE_MAX).collect()
    }
}

impl From<&Happening> for Notice {
    fn from(happening: &Happening) -> Self {
        match happening {
            Happening::Joined { node, pool } => Self::Joined {
                node: node.as_str().into(),
                pool: pool.as_deref().map(Into::into),
            },
            Happening::Revoked { node } => Self::Revoked {
                node: node.as_str().into(),
            },
            Happening::Refused { node, remote, why } => Self::Refused {
                node: node.as_ref().map(|node| node.as_str().into()),
                remote: remote.ip(),
                why: *why,
            },
        }
    }
}
