//! The last frame: why a connection ends, in a number and in words.

use std::fmt;

use super::{CONTROL_BYTES_MAX, Violation};

/// Bytes of the words in a close. Longer ones are cut.
pub const CLOSE_WORDS_BYTES_MAX: usize = CONTROL_BYTES_MAX - 2;

/// Why a connection ends, as a number that may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// All is said.
    pub const NORMAL: Self = Self(1000);
    /// The one that says it goes away: a server that stops, for instance.
    pub const AWAY: Self = Self(1001);
    /// The peer broke the rules of WebSocket.
    pub const PROTOCOL: Self = Self(1002);
    /// The peer sent a kind of message that is not spoken here.
    pub const UNSUPPORTED: Self = Self(1003);
    /// The peer called something text that is none.
    pub const NOT_TEXT: Self = Self(1007);
    /// The peer broke the rules of what the messages say.
    pub const POLICY: Self = Self(1008);
    /// The peer sent a message that is too long.
    pub const TOO_LONG: Self = Self(1009);
    /// Our own fault.
    pub const INTERNAL: Self = Self(1011);

    /// The code as a number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// A code that came from a peer. Some numbers stand for an end without a close and are never
    /// sent; others belong to nobody.
    pub fn read(number: u16) -> Result<Self, Violation> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Ok(Self(number)),
            _ => Err(Violation::CloseCode(number)),
        }
    }
}

impl fmt::Debug for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a peer said when it closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// Why; it may say nothing.
    pub code: Option<CloseCode>,
    /// Why, for people. Never more than [`CLOSE_WORDS_BYTES_MAX`].
    pub words: Box<str>,
}

/// What follows "closed", for people.
impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code {
            write!(f, " with code {}", code.number())?;
        }
        match self.words.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.words),
        }
    }
}

impl Close {
    /// Says why. Words that are too long are cut between two characters.
    pub fn new(code: CloseCode, words: &str) -> Self {
        let end = words.floor_char_boundary(CLOSE_WORDS_BYTES_MAX);
        Self {
            code: Some(code),
            words: words[..end].into(),
        }
    }

    /// The content of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut content = Vec::new();
        if let Some(code) = self.code {
            content.extend(code.number().to_be_bytes());
            content.extend(self.words.bytes());
        }
        content
    }

    /// Reads the content of the frame.
    pub fn decode(content: &[u8]) -> Result<Self, Violation> {
        let (code, words) = match content {
            [] => (None, ""),
            [_] => return Err(Violation::CloseCutShort),
            [high, low, words @ ..] => {
                let code = CloseCode::read(u16::from_be_bytes([*high, *low]))?;
                let words = str::from_utf8(words).map_err(|_| Violation::CloseWords)?;
                (Some(code), words)
            }
        };
        let words = words.into();
        Ok(Self { code, words })
    }
}
