//! What happens, in words: `TRACE=1 SEED=… SEEDS=1 cargo test -p wire --test session`.

use std::sync::OnceLock;

use object::Scope;
use wire::frame::{Delivery, Frame};
use wire::inbox::Piece;

use crate::cluster::told;

/// Says something, if somebody listens.
pub(crate) fn trace(words: impl FnOnce() -> String) {
    static LISTENING: OnceLock<bool> = OnceLock::new();
    if *LISTENING.get_or_init(|| std::env::var_os("TRACE").is_some()) {
        eprintln!("{}", words());
    }
}

pub(crate) fn scope(scope: &Scope) -> String {
    format!("[{} {}]", scope.range, scope.selector.labels)
}

pub(crate) fn scopes(all: &[Scope]) -> String {
    all.iter().map(scope).collect::<Vec<_>>().join(" ")
}

pub(crate) fn frame(frame: &Frame) -> String {
    let Frame::Deliver { number, delivery } = frame else {
        return format!("{frame:?}");
    };
    let what = match delivery {
        Delivery::Cut { resource, aim, .. } => format!("cut of {resource} to {aim}"),
        Delivery::Put { name, content } => format!("put {name} {}", content.length),
        Delivery::Delete { name, version, .. } => format!("delete {name}@{version}"),
        Delivery::Stage {
            resource,
            scope: of,
            from,
            ..
        } => format!("stage {resource} {} from {from:?}", scope(of)),
        Delivery::Reset { scope: of, .. } => format!("reset {}", scope(of)),
        Delivery::End { scope: of } => format!("end {}", scope(of)),
        other => format!("{other:?}"),
    };
    format!("{number} {what}")
}

pub(crate) fn piece(piece: &Piece) -> String {
    let resets = piece.resets.iter().map(|part| {
        let puts: Vec<String> = part.puts.iter().map(told).collect();
        let scope = scope(&part.scope);
        format!("{scope} onto {:?}: {puts:?} -{:?}", part.onto, part.drops)
    });
    let resets: Vec<String> = resets.collect();
    let Piece {
        number,
        resource,
        aim,
        complete,
        ended,
        ..
    } = piece;
    let (changes, ended) = (piece.changes.len(), scopes(ended));
    format!(
        "   stored {number} {resource} to {aim:?}: {changes} changes, {resets:?}, end {ended}, \
         complete {complete:?}"
    )
}
