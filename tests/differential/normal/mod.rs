//! What must differ between two servers is made alike, and nothing else. Pure.
//!
//! Each rule replaces a value by a word in angle brackets, so that a value which is missing on one
//! side is still a difference. Uids and versions are numbered on each side by themselves: two sides
//! agree if the same things are equal, and in the same order, in both.

mod alone; // what one side's values say by themselves
mod pairs; // uids and versions, numbered by what stands in the same place on both sides
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use alone::Circumstances;

/// The answers of both sides, made alike.
pub(crate) struct Pair {
    pub(crate) real: Vec<Value>,
    pub(crate) ours: Vec<Value>,
}

/// Makes the answers of two servers to the same conversation alike.
///
/// `said` is the conversation's text: what it says itself is the same on both sides and is kept.
pub(crate) fn normalise(pair: Pair, said: &str, servers: [&str; 2], now: Timestamp) -> Pair {
    let alone = |answers: Vec<Value>, server: &str| -> Vec<Value> {
        let circumstances = Circumstances::new(&answers, said, server, now);
        let answers = answers.into_iter();
        answers.map(|answer| circumstances.apply(answer)).collect()
    };
    let mut pair = Pair {
        real: alone(pair.real, servers[0]),
        ours: alone(pair.ours, servers[1]),
    };
    pairs::number(&mut pair, said);
    pair
}
