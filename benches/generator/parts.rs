//! Which parts of a benchmark are to run, by the words that follow its name.

/// What was asked for.
pub(crate) struct Parts(Vec<String>);

impl Parts {
    /// Those on the command line; a word that is none of `known` ends the program.
    pub(crate) fn asked(known: &[&str]) -> Self {
        // Cargo adds a word of its own.
        let words = std::env::args().skip(1).filter(|word| word != "--bench");
        let words: Vec<String> = words.collect();
        if let Some(unknown) = words.iter().find(|word| !known.contains(&word.as_str())) {
            let known = known.join(", ");
            eprintln!("there is no part {unknown:?}; there are: {known}");
            std::process::exit(2);
        }
        Self(words)
    }

    /// Takes a word out that is no part.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let all = self.0.len();
        self.0.retain(|other| other != word);
        self.0.len() < all
    }

    /// Whether a part was named.
    pub(crate) fn named(&self, part: &str) -> bool {
        self.0.iter().any(|word| word == part)
    }

    /// Whether a part is to run: who names none wants all.
    pub(crate) fn wanted(&self, part: &str) -> bool {
        self.0.is_empty() || self.named(part)
    }
}
