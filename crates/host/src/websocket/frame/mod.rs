//! The head of a frame <-> bytes, and every way in which a peer can get it wrong.
//!
//! RFC 6455, and less than it allows: binary messages only, no extensions. Nothing is allocated
//! here. A rule is checked as soon as the bytes that break it are there, so that a peer cannot make
//! us wait for the rest of something that is wrong already.

mod close;
#[cfg(test)]
mod tests;

pub use close::{CLOSE_WORDS_BYTES_MAX, Close, CloseCode};

/// Bytes of the longest head: two, a length of eight, a mask of four.
pub const HEAD_BYTES_MAX: usize = 14;
/// Bytes in a ping, a pong or a close.
pub const CONTROL_BYTES_MAX: usize = 125;

/// One end of a connection. Clients mask what they send, servers do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that opened the connection.
    Client,
    /// The one that accepted it.
    Server,
}

impl Role {
    /// The other end.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message that was begun.
    Continuation,
    /// A message begins.
    Binary,
    /// Nothing follows.
    Close,
    /// To be answered with a pong.
    Ping,
    /// The answer.
    Pong,
}

impl Opcode {
    /// Whether it may come between the frames of a message.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    fn read(number: u8) -> Result<Self, Violation> {
        match number {
            0 => Ok(Self::Continuation),
            1 => Err(Violation::Text),
            2 => Ok(Self::Binary),
            8 => Ok(Self::Close),
            9 => Ok(Self::Ping),
            10 => Ok(Self::Pong),
            _ => Err(Violation::ReservedOpcode(number)),
        }
    }
}

/// Whether more frames of the same message follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// More follow.
    More,
    /// This is the last one, or the only one.
    Last,
}

/// Four bytes that a client mixes into what it sends, so that nobody between the two ends can be
/// made to take the content for something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask(pub [u8; 4]);

impl Mask {
    /// Masks or unmasks bytes that stand `offset` bytes behind the head.
    pub fn apply(self, offset: usize, bytes: &mut [u8]) {
        let mut key = self.0;
        key.rotate_left(offset % 4);
        let (words, rest) = bytes.as_chunks_mut::<4>();
        for word in words {
            for (byte, key) in word.iter_mut().zip(key) {
                *byte ^= key;
            }
        }
        for (byte, key) in rest.iter_mut().zip(key) {
            *byte ^= key;
        }
    }
}

/// What stands before the content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the frame is.
    pub opcode: Opcode,
    /// Whether more follow.
    pub part: Part,
    /// How the content is masked.
    pub mask: Option<Mask>,
    /// Bytes of the content, as claimed.
    pub length: u64,
}

/// What came of reading a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It is not all there: the head has at least so many bytes.
    Needs(usize),
    /// It is there.
    Head {
        /// The head.
        head: Head,
        /// How many bytes it has.
        bytes: usize,
    },
}

impl Head {
    /// Appends the head, in its shortest form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let last = match self.part {
            Part::More => 0,
            Part::Last => LAST_BIT,
        };
        let masked = self.mask.map_or(0, |_| MASK_BIT);
        out.push(last | self.opcode.number());
        if self.length < LENGTH_OF_TWO.into() {
            out.push(masked | self.length as u8);
        } else if let Ok(length) = u16::try_from(self.length) {
            out.push(masked | LENGTH_OF_TWO);
            out.extend(length.to_be_bytes());
        } else {
            out.push(masked | LENGTH_OF_EIGHT);
            out.extend(self.length.to_be_bytes());
        }
        if let Some(Mask(key)) = self.mask {
            out.extend(key);
        }
    }

    /// Reads the head of a frame that `from` sent, from its first bytes.
    pub fn decode(bytes: &[u8], from: Role) -> Result<Decoded, Violation> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
            return Ok(Decoded::Needs(2));
        };
        let start = Start::read(first, second, from)?;
        let (length, rest) = match start.length {
            LENGTH_OF_TWO => match rest.split_first_chunk() {
                None => return Ok(Decoded::Needs(start.head_bytes())),
                Some((length, rest)) => (u16::from_be_bytes(*length).into(), rest),
            },
            LENGTH_OF_EIGHT => match rest.split_first_chunk() {
                None => return Ok(Decoded::Needs(start.head_bytes())),
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            },
            length => (u64::from(length), rest),
        };
        start.check(length)?;
        let mask = match (start.masked, rest.split_first_chunk()) {
            (false, _) => None,
            (true, None) => return Ok(Decoded::Needs(start.head_bytes())),
            (true, Some((key, _))) => Some(Mask(*key)),
        };
        let head = Self {
            opcode: start.opcode,
            part: start.part,
            mask,
            length,
        };
        let bytes = start.head_bytes();
        Ok(Decoded::Head { head, bytes })
    }
}

/// The first two bytes of a head.
struct Start {
    opcode: Opcode,
    part: Part,
    masked: bool,
    /// A length below 126, or which of the longer forms follows.
    length: u8,
}

impl Start {
    fn read(first: u8, second: u8, from: Role) -> Result<Self, Violation> {
        if first & RESERVED_BITS != 0 {
            return Err(Violation::ReservedBits);
        }
        let opcode = Opcode::read(first & OPCODE_BITS)?;
        let part = match first & LAST_BIT {
            0 => Part::More,
            _ => Part::Last,
        };
        let masked = second & MASK_BIT != 0;
        match (from, masked) {
            (Role::Client, false) => return Err(Violation::Unmasked),
            (Role::Server, true) => return Err(Violation::Masked),
            (Role::Client, true) | (Role::Server, false) => {}
        }
        let length = second & !MASK_BIT;
        if opcode.is_control() && part == Part::More {
            return Err(Violation::ControlInParts);
        }
        if opcode.is_control() && usize::from(length) > CONTROL_BYTES_MAX {
            return Err(Violation::ControlTooLong);
        }
        Ok(Self {
            opcode,
            part,
            masked,
            length,
        })
    }

    fn head_bytes(&self) -> usize {
        let length = match self.length {
            LENGTH_OF_TWO => 2,
            LENGTH_OF_EIGHT => 8,
            _ => 0,
        };
        2 + length + if self.masked { 4 } else { 0 }
    }

    fn check(&self, length: u64) -> Result<(), Violation> {
        let least = match self.length {
            LENGTH_OF_TWO => u64::from(LENGTH_OF_TWO),
            LENGTH_OF_EIGHT => u64::from(u16::MAX) + 1,
            _ => 0,
        };
        if length < least {
            return Err(Violation::LengthNotShortest);
        }
        if length > i64::MAX as u64 {
            return Err(Violation::LengthSign);
        }
        Ok(())
    }
}

/// How a peer broke the rules. The connection ends; [`Violation::code`] is what the peer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Bits that belong to extensions, and none was agreed.
    #[error("a frame has reserved bits set, and no extension was agreed")]
    ReservedBits,
    /// A kind of frame that does not exist.
    #[error("a frame has the reserved opcode {0}")]
    ReservedOpcode(u8),
    /// A client must mask.
    #[error("a frame from the client is not masked")]
    Unmasked,
    /// A server must not.
    #[error("a frame from the server is masked")]
    Masked,
    /// Pings, pongs and closes are never in parts.
    #[error("a ping, pong or close is in parts")]
    ControlInParts,
    /// Pings, pongs and closes are short.
    #[error("a ping, pong or close has more than {CONTROL_BYTES_MAX} bytes")]
    ControlTooLong,
    /// A length that would have fitted in fewer bytes.
    #[error("the length of a frame is not written in its shortest form")]
    LengthNotShortest,
    /// The highest bit of a length is always zero.
    #[error("the length of a frame has its highest bit set")]
    LengthSign,
    /// More of a message that was not begun.
    #[error("a frame continues a message that was not begun")]
    NothingToContinue,
    /// A message begins within another.
    #[error("a message begins before the one before it ended")]
    NotEnded,
    /// Links carry bytes.
    #[error("a text message, where only binary ones are spoken")]
    Text,
    /// More than was allowed at the time.
    #[error("a message of more than {bytes_max} bytes")]
    TooLong {
        /// The limit that was broken.
        bytes_max: usize,
    },
    /// A close has no code or one of two bytes.
    #[error("a close with half a code")]
    CloseCutShort,
    /// A code that nobody may send.
    #[error("a close with the code {0}, which nobody may send")]
    CloseCode(u16),
    /// Words must be UTF-8.
    #[error("the words of a close are not UTF-8")]
    CloseWords,
}

impl Violation {
    /// What the peer is told.
    pub fn code(self) -> CloseCode {
        match self {
            Self::Text => CloseCode::UNSUPPORTED,
            Self::TooLong { .. } => CloseCode::TOO_LONG,
            Self::CloseWords => CloseCode::NOT_TEXT,
            Self::ReservedBits
            | Self::ReservedOpcode(_)
            | Self::Unmasked
            | Self::Masked
            | Self::ControlInParts
            | Self::ControlTooLong
            | Self::LengthNotShortest
            | Self::LengthSign
            | Self::NothingToContinue
            | Self::NotEnded
            | Self::CloseCutShort
            | Self::CloseCode(_) => CloseCode::PROTOCOL,
        }
    }
}

const LAST_BIT: u8 = 0x80;
const RESERVED_BITS: u8 = 0x70;
const OPCODE_BITS: u8 = 0x0f;
const MASK_BIT: u8 = 0x80;
const LENGTH_OF_TWO: u8 = 126;
const LENGTH_OF_EIGHT: u8 = 127;
