//! What must differ between two servers is made alike, and nothing else. Pure.
//!
//! Each rule replaces a value by a word in angle brackets, so that a value which is missing on one
//! side is still a difference. Uids and versions are numbered on each side by themselves: two sides
//! agree if the same things are equal, and in the same order, in both.

mod alone; // what one side's values say by themselves
mod times; // times of a server's clock, by how they lie to the conversation
mod pairs; // uids and versions, numbered by what stands in the same place on both sides
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::Value;

use alone::Circumstances;

/// What one server answered.
pub(crate) struct Side {
    pub(crate) kind: Kind,
    /// The server's address with its port.
    pub(crate) server: String,
    /// When the conversation began.
    pub(crate) began: Timestamp,
    /// Its answers, each with when it was there.
    pub(crate) answers: Vec<(Timestamp, Value)>,
}

/// Which side it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Ours,
}

/// The answers of both sides, made alike.
pub(crate) struct Pair {
    pub(crate) real: Vec<Value>,
    pub(crate) ours: Vec<Value>,
}

/// Makes the answers of two servers to the same conversation alike.
///
/// `said` is the conversation's text: what it says itself is the same on both sides and is kept.
pub(crate) fn normalise(real: Side, ours: Side, said: &str) -> Pair {
    let alone = |side: Side| -> Vec<Value> {
        let mut circumstances = Circumstances::new(&side, said);
        let answers = side.answers.into_iter();
        answers
            .map(|(at, answer)| {
                circumstances.at = at;
                circumstances.apply(answer)
            })
            .collect()
    };
    let mut pair = Pair {
        real: alone(real),
        ours: alone(ours),
    };
    pairs::number(&mut pair, said);
    pair
}
