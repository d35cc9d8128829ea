//! What conversations of a node with an API server look like: heads, and bodies of what a kubelet
//! says most. Pieces are compared with it, so what is in it goes over the link in a few bytes.
//!
//! It is part of the protocol: both ends must have the same. Who changes a byte of it gives the
//! purpose [`crate::PACKED_HTTP`] another name, and `wire::session::PACKED` another bit.

/// What everybody has.
pub const PRIMER: &[u8] = include_bytes!("primer.txt");

#[test]
fn the_primer_is_the_one_that_the_purpose_names() {
    let hash = object::digest::content_hash(PRIMER);
    assert_eq!((PRIMER.len(), hash), (14_733, 16_500_219_032_241_985_395));
}
