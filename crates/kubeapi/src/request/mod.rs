//! An HTTP request, decoded once: what it is about, with which options, and in which form the
//! answer is wanted.

mod percent; // the bytes that a part of a URL stands for
pub mod path; // the URL's path -> a resource, or a path of its own
pub mod query; // the URL's query -> options
pub mod deadline; // the query's timeout -> how long a request may take
pub mod accept; // the Accept header -> the form of the answer

pub use accept::{Form, Shape};
pub use path::{BadPath, ResourcePath, Target};
pub use query::Query;
