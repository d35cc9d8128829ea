//! A conversation as its file tells it: steps that are asked one after the other. Pure.
//!
//! `tests/conversations/README.md` describes the form. What a file says wrong is an error with its
//! line; nothing is guessed.

mod read; // text -> steps
#[cfg(test)]
mod tests;

use crate::values::Template;

/// A file of the corpus.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Where it is, from the root of the project.
    pub(crate) path: String,
    /// All of it, as it was written.
    pub(crate) text: String,
    /// What stands before the first step.
    pub(crate) preface: String,
    /// What is asked, in order.
    pub(crate) steps: Vec<Step>,
}

/// One thing that is asked.
#[derive(Debug)]
pub(crate) struct Step {
    /// The line of its title.
    pub(crate) line: usize,
    /// What stands after `###`.
    pub(crate) title: String,
    /// All of it, as it was written, from its title on.
    pub(crate) source: String,
    /// What later steps call its answer.
    pub(crate) name: Option<String>,
    /// Who asks.
    pub(crate) who: Who,
    /// When it has been asked often enough.
    pub(crate) until: Option<Until>,
    /// How often it is asked.
    pub(crate) repeat: u32,
    /// Paths that differ, with their reasons.
    pub(crate) differs: Vec<Differs>,
    /// Lists of which the real server has more.
    pub(crate) subsets: Vec<Subset>,
    /// What is asked.
    pub(crate) act: Act,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum Act {
    /// A request with a whole answer.
    Ask(Ask),
    /// A request whose answer stays open.
    Watch {
        /// What later steps call the stream.
        stream: String,
        /// Whether periodic bookmarks count.
        bookmarks: Bookmarks,
        /// The request.
        ask: Ask,
    },
    /// The next events of a stream.
    Events {
        /// Which.
        stream: String,
        /// How many.
        count: Count,
    },
}

/// A request.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) target: Template,
    pub(crate) headers: Vec<(String, Template)>,
    pub(crate) body: Option<Template>,
}

/// Whether a watch's periodic bookmarks are among its events. When they come is not the same on two
/// servers, so mostly they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bookmarks {
    LeftOut,
    Counted,
}

/// How many events are taken.
#[derive(Debug)]
pub(crate) enum Count {
    /// So many.
    Next(usize),
    /// All, up to one that has this value there.
    Until { path: String, value: Template },
    /// All, up to the end of the stream.
    End,
}

/// Who asks.
#[derive(Debug, Clone, Default)]
pub(crate) enum Who {
    /// A member of system:masters.
    #[default]
    Admin,
    /// Somebody without a certificate.
    Nobody,
    /// Somebody with a certificate.
    User {
        name: Template,
        groups: Vec<Template>,
    },
}

/// What an answer must be before it counts.
#[derive(Debug)]
pub(crate) enum Until {
    /// It has this status code.
    Status(u16),
    /// Its body has this value there.
    Field { path: String, value: Template },
}

/// A difference that has a reason.
#[derive(Debug)]
pub(crate) struct Differs {
    /// The entry in docs/conformance.md.
    pub(crate) entry: u32,
    /// Where.
    pub(crate) marks: Vec<Mark>,
}

/// A place that differs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Where; all that is below it differs too.
    pub(crate) path: String,
    /// What our side has there, where the mark says so.
    pub(crate) ours: Option<String>,
}

/// A list or map of which the real server has more.
#[derive(Debug)]
pub(crate) struct Subset {
    /// The entry in docs/conformance.md.
    pub(crate) entry: u32,
    /// Where it is.
    pub(crate) path: String,
    /// What tells its entries apart; nothing for maps and for lists of plain values.
    pub(crate) key: Option<String>,
    /// How many entries our side has, in all places of the path together.
    pub(crate) ours: usize,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{path}:{line}: {why}")]
pub(crate) struct BadFile {
    path: String,
    line: usize,
    why: String,
}

/// How much is asked in a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) requests: usize,
    pub(crate) streams: usize,
}

impl Conversation {
    /// Reads a file's text.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, BadFile> {
        read::conversation(path, text)
    }

    /// How many requests and streams it has.
    pub(crate) fn size(&self) -> Size {
        let mut size = Size::default();
        for step in &self.steps {
            let times = usize::try_from(step.repeat).unwrap_or(usize::MAX);
            match step.act {
                Act::Ask(_) => size.requests += times,
                Act::Watch { .. } => size.streams += times,
                Act::Events { .. } => {}
            }
        }
        size
    }

    /// The namespace that is this conversation's own: made of the file's name.
    pub(crate) fn namespace(&self) -> String {
        let path = self.path.strip_prefix("tests/conversations/");
        let path = path.unwrap_or(&self.path).trim_end_matches(".http");
        let name = path.to_ascii_lowercase();
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        // A namespace has at most 63 letters, and some are needed for what is named after it.
        let start = name.len().saturating_sub(NAMESPACE_LETTERS_MAX);
        name[start..].trim_matches('-').to_owned()
    }
}

const NAMESPACE_LETTERS_MAX: usize = 40;
