//! The Kubernetes API over a store: what a client asks, who it is, whether it may, and the answer.
//!
//! Reads are written against [`store::Reader`] alone and do not know who feeds it. Writes have a
//! place of their own: the authority of an embedded cluster here, the tunnel on a node.

pub mod serve; // connections, limits, and the one place where a request meets its answer
pub mod request; // an HTTP request -> what is asked, decoded once
pub mod protobuf; // bodies of built-in kinds in protobuf -> JSON
pub mod who; // certificates and tokens -> a user; a user and a question -> yes or no
pub mod catalog; // which kinds there are: the built-in ones and the custom ones
pub mod discovery; // the catalog as clients ask for it
pub mod openapi; // the schemas as clients ask for them
pub mod schema; // the shape of a kind: prune, default, validate, merge keys
pub mod custom; // CustomResourceDefinition -> kinds and schemas
pub mod read; // get, list, watch over a reader
pub mod table; // objects as rows for people, and as metadata only
pub mod write; // create, update, patch, delete through the authority
pub mod kubeconfig; // how a client finds an API and who it is there
pub mod status; // every refusal, as the Status object that clients expect

pub use status::Status;
