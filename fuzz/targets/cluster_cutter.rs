//! A list of the cluster: wherever its chunks end, the same pieces come of it, or the same refusal.
//! What serde reads as a list is cut into the items that serde finds.

#![no_main]

use cloud::cluster::cutter::{Cutter, Piece};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

/// The pieces up to the end or the refusal, and whether it was refused.
fn cut(text: &[u8], chunk: usize) -> (Vec<Piece>, bool) {
    let mut cutter = Cutter::default();
    let mut pieces = Vec::new();
    for chunk in text.chunks(chunk.max(1)) {
        cutter.push(chunk);
        loop {
            match cutter.piece() {
                Ok(Some(Piece::End)) => {
                    pieces.push(Piece::End);
                    return (pieces, false);
                }
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break,
                Err(_) => return (pieces, true),
            }
        }
    }
    (pieces, false)
}

#[derive(serde::Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let (whole, refused) = cut(text, text.len());
    let (parts, refused_in_parts) = cut(text, usize::from(*first));
    assert_eq!((&whole, refused), (&parts, refused_in_parts));
    if refused || whole.last() != Some(&Piece::End) {
        return;
    }
    let Ok(list) = serde_json::from_slice::<List<'_>>(text) else {
        return;
    };
    let items = whole.iter().filter_map(|piece| match piece {
        Piece::Item(bytes) => Some(&bytes[..]),
        _ => None,
    });
    let found: Vec<&[u8]> = items.collect();
    let read: Vec<&[u8]> = list
        .items
        .iter()
        .map(|item| item.get().as_bytes())
        .collect();
    assert_eq!(found, read);
});
