//! The catalogue of bad inputs, C1 to C5, C7 and C12: each is refused, and the next request works.

mod url; // paths and queries
mod http1; // bytes that could be read as two requests
mod http2; // floods
mod crowd; // too much of everything
