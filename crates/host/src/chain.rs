//! An error with its causes, as one line for a log.

use std::error::Error;

/// An error and what caused it, from the outside in.
pub fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words.push_str(": ");
        words.push_str(&next.to_string());
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Outside(#[source] std::num::ParseIntError);

    #[test]
    fn causes_follow_what_they_caused() {
        let inside = "x".parse::<u8>().unwrap_err();
        let words = chain(&Outside(inside));
        assert_eq!(words, "outside: invalid digit found in string");
    }
}
