//! Deliveries: the parts of a cut, and documents.

use object::codec::{Malformed, Taker, put_number, put_text, put_version};
use object::header::NAME_BYTES_MAX;
use object::{ObjectName, Resource, Scope, Version};

use super::{put_resource, take_resource};
use crate::content::Content;

/// What is delivered. A cut is a Cut, then changes, then resets and ends, then a Progress; between
/// cuts, content is staged for resets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// What follows, up to the Progress, is of this resource.
    Cut {
        /// The resource.
        resource: Resource,
        /// Which history of the cluster the versions belong to.
        epoch: u64,
        /// Where the cut leads.
        aim: Version,
    },
    /// An object, as a change or as a part of a reset.
    Put {
        /// Its name.
        name: ObjectName,
        /// Its bytes.
        content: Content,
    },
    /// An object went, or the node has no more to do with it.
    Delete {
        /// Its name.
        name: ObjectName,
        /// Its uid: another object of this name is not meant.
        uid: Box<str>,
        /// When.
        version: Version,
    },
    /// What follows is kept for a reset of this scope, and shown to nobody.
    Stage {
        /// The resource.
        resource: Resource,
        /// Which history of the cluster the versions belong to.
        epoch: u64,
        /// The scope.
        scope: Scope,
        /// What it is added to.
        from: From,
    },
    /// What is staged for a scope is of no use any more.
    Unstage {
        /// The resource.
        resource: Resource,
        /// The scope.
        scope: Scope,
    },
    /// The content of a scope is replaced by what follows.
    Reset {
        /// The scope.
        scope: Scope,
        /// What of it stays.
        from: From,
    },
    /// In a reset, or what is staged for one: this object does not stay.
    Drop {
        /// Its name.
        name: ObjectName,
    },
    /// The node has no more to do with a scope.
    End {
        /// The scope.
        scope: Scope,
    },
    /// The node is where the cut leads. Everything of it counts from now on.
    Progress,
    /// Named bytes that are no object.
    Document {
        /// The name.
        name: Box<str>,
        /// The bytes.
        content: Content,
    },
    /// There is no such document any more.
    DocumentGone {
        /// The name.
        name: Box<str>,
    },
}

/// What a reset starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Nothing: the scope has exactly what is put.
    Nothing,
    /// What the node holds: what is neither put nor dropped stays.
    Held,
    /// What is staged: what is neither put nor dropped stays.
    Staged,
}

impl From {
    fn number(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Held => 1,
            Self::Staged => 2,
        }
    }

    fn take(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        match taker.number()? {
            0 => Ok(Self::Nothing),
            1 => Ok(Self::Held),
            2 => Ok(Self::Staged),
            _ => Err(Malformed),
        }
    }
}

/// What a delivery without content takes, about.
pub const SMALL_BYTES: usize = 64;

impl Delivery {
    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        match self {
            Self::Put { content, .. } | Self::Document { content, .. } => {
                content.bytes.len() + SMALL_BYTES
            }
            _ => SMALL_BYTES,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cut {
                resource,
                epoch,
                aim,
            } => {
                put_number(out, CUT);
                put_resource(out, resource);
                put_number(out, *epoch);
                put_version(out, Some(aim));
            }
            Self::Put { name, content } => {
                put_number(out, PUT);
                put_text(out, name.as_str());
                content.encode(out);
            }
            Self::Delete { name, uid, version } => {
                put_number(out, DELETE);
                put_text(out, name.as_str());
                put_text(out, uid);
                put_version(out, Some(version));
            }
            Self::Reset { scope, from } => {
                put_number(out, RESET);
                scope.encode(out);
                put_number(out, from.number());
            }
            Self::Stage {
                resource,
                epoch,
                scope,
                from,
            } => {
                put_number(out, STAGE);
                put_resource(out, resource);
                put_number(out, *epoch);
                scope.encode(out);
                put_number(out, from.number());
            }
            Self::Unstage { resource, scope } => {
                put_number(out, UNSTAGE);
                put_resource(out, resource);
                scope.encode(out);
            }
            Self::Drop { name } => {
                put_number(out, DROP);
                put_text(out, name.as_str());
            }
            Self::End { scope } => {
                put_number(out, END);
                scope.encode(out);
            }
            Self::Progress => put_number(out, PROGRESS),
            Self::Document { name, content } => {
                put_number(out, DOCUMENT);
                put_text(out, name);
                content.encode(out);
            }
            Self::DocumentGone { name } => {
                put_number(out, DOCUMENT_GONE);
                put_text(out, name);
            }
        }
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(match taker.number()? {
            CUT => Self::Cut {
                resource: take_resource(taker)?,
                epoch: taker.number()?,
                aim: taker.version()?.ok_or(Malformed)?,
            },
            PUT => Self::Put {
                name: take_name(taker)?,
                content: Content::decode(taker)?,
            },
            DELETE => Self::Delete {
                name: take_name(taker)?,
                uid: take_word(taker)?.into(),
                version: taker.version()?.ok_or(Malformed)?,
            },
            RESET => Self::Reset {
                scope: Scope::decode(taker)?,
                from: From::take(taker)?,
            },
            STAGE => Self::Stage {
                resource: take_resource(taker)?,
                epoch: taker.number()?,
                scope: Scope::decode(taker)?,
                from: From::take(taker)?,
            },
            UNSTAGE => Self::Unstage {
                resource: take_resource(taker)?,
                scope: Scope::decode(taker)?,
            },
            DROP => Self::Drop {
                name: take_name(taker)?,
            },
            END => Self::End {
                scope: Scope::decode(taker)?,
            },
            PROGRESS => Self::Progress,
            DOCUMENT => Self::Document {
                name: take_word(taker)?.into(),
                content: Content::decode(taker)?,
            },
            DOCUMENT_GONE => Self::DocumentGone {
                name: take_word(taker)?.into(),
            },
            _ => return Err(Malformed),
        })
    }
}

/// A name that can be one: both parts are there, and nothing in them leads elsewhere.
fn take_name(taker: &mut Taker<'_>) -> Result<ObjectName, Malformed> {
    let path = taker.text()?;
    let mut parts = path.split('/');
    let plain = parts.clone().count() <= 2 && parts.all(is_word);
    match plain {
        true => Ok(ObjectName::from_path(path)),
        false => Err(Malformed),
    }
}

fn take_word<'a>(taker: &mut Taker<'a>) -> Result<&'a str, Malformed> {
    let word = taker.text()?;
    match is_word(word) {
        true => Ok(word),
        false => Err(Malformed),
    }
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.len() <= NAME_BYTES_MAX && !word.contains(char::is_control)
}

const CUT: u64 = 0;
const PUT: u64 = 1;
const DELETE: u64 = 2;
const RESET: u64 = 3;
const DROP: u64 = 4;
const END: u64 = 5;
const PROGRESS: u64 = 6;
const DOCUMENT: u64 = 7;
const DOCUMENT_GONE: u64 = 8;
const STAGE: u64 = 9;
const UNSTAGE: u64 = 10;
