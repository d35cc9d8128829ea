//! The form of answers: tables, metadata, gzip, HEAD, refusals, and what leads to no object.

mod shape; // Table and PartialObjectMetadata
mod wire; // headers, gzip, HEAD, refusals
mod paths; // discovery, version, health
