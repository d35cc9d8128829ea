//! What a node says of the bytes that it holds.

use wire::difference;
use wire::digest::Sum;
use wire::frame::{Ask, Told};

use crate::cluster::Rows;

/// Says what it holds, by its bytes.
pub(crate) fn tell_content(ask: &Ask, rows: &Rows) -> Told {
    match &ask.entries_of {
        None => {
            let mut buckets = difference::Buckets::new(&ask.resource, ask.bits);
            for (name, object) in rows {
                buckets.add_content(name, Sum::of(&object.bytes));
            }
            Told::Buckets(buckets.digests())
        }
        Some(which) => {
            let entries = difference::Entries::new(&ask.resource, (ask.bits, which));
            let mut entries = entries.expect("buckets that are there");
            for (name, object) in rows {
                entries.add_content(name, Sum::of(&object.bytes));
            }
            Told::Entries(which.clone(), entries.found().expect("a few"))
        }
    }
}
