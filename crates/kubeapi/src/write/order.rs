//! What a write asks for, decoded; and the place where writes are done: the authority here, the
//! tunnel on a node.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use object::Version;

use crate::Status;
use crate::catalog::Kind;
use crate::request::{Query, ResourcePath};
use crate::who::User;

/// A write that was authorized.
#[derive(Debug, Clone)]
pub struct Order {
    /// What is to be done.
    pub verb: Verb,
    /// The kind, in the version of the URL.
    pub kind: Arc<Kind>,
    /// Where.
    pub path: ResourcePath,
    /// The options.
    pub query: Query,
    /// The body, as it came.
    pub body: Bytes,
    /// The body's media type, in lower case and without parameters; empty where there is none.
    pub content_type: String,
    /// Who asks.
    pub user: Arc<User>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of all that are selected.
    DeleteCollection,
}

impl Verb {
    /// The verb as rules spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// What a write came to.
#[derive(Debug, Clone)]
pub struct Written {
    /// 200, 201 or 202.
    pub code: u16,
    /// What the client gets.
    pub body: WrittenBody,
    /// Things that the client should know, one Warning header each.
    pub warnings: Vec<String>,
}

/// What the client of a write gets.
#[derive(Debug, Clone)]
pub enum WrittenBody {
    /// The object of the order's kind, to be put into the form that was asked for.
    Object(Bytes),
    /// A list of them, likewise.
    List(Found),
    /// Something else, as it is: a Status, a Scale, a TokenRequest.
    Verbatim(Bytes),
}

/// What many deletions found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The objects as they are stored.
    pub objects: Vec<Bytes>,
    /// When they were so.
    pub version: Version,
}

/// A write on its way.
pub type Writing<'a> = Pin<Box<dyn Future<Output = Result<Written, Status>> + Send + 'a>>;

/// Does writes. Two lives: the authority of an embedded cluster, and the tunnel of a node.
pub trait Writes: Send + Sync + 'static {
    /// Does one, and comes back when it is durable.
    fn write(&self, order: Order) -> Writing<'_>;
}
