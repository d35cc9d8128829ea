//! Frames: what the two ends say to each other, and how it is written.
//!
//! A message of the transport has one or more frames: kind, length, body. A body may have more than
//! is known here, and a frame of an even kind that is not known is passed over: so a newer end can
//! say more than an older one understands.

mod class; // what a frame is for
mod deliver; // a delivery <-> bytes
mod hello; // the first words of both sides
mod noted; // which documents a node has, and what it could not take
mod report; // an entry of a queue that goes up <-> bytes
mod stream; // what is said of a stream <-> bytes
mod tell; // what is held, bucket by bucket

use object::Resource;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text};
use object::header::NAME_BYTES_MAX;

use crate::digest::Digest;

pub use class::{Class, Weight};
pub use deliver::{Delivery, From, SMALL_BYTES};
pub use hello::{
    HOLDINGS_MAX, Hello, Holding, Machine, REGISTER_NODE, SCOPES_MAX, STAGED_MAX, Staged, Welcome,
    common,
};
pub use noted::{ASIDE_MAX, Aside, Asides, Noted};
pub use report::{Form, KEY_BYTES_MAX, Queue, REPORT_BYTES_MAX, Report, Reported};
pub use stream::{Cause, End, PURPOSE_BYTES_MAX, Said};
pub use tell::{Ask, By, Tell, Told};

/// Bytes of a message before the hello was answered.
pub const FIRST_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of any other message: room for the largest object, and for what is said of it.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Frames of a message.
pub const FRAMES_MAX: usize = 4096;
/// Bytes of words that are for people. Longer ones are cut.
pub const WORDS_BYTES_MAX: usize = 1024;

/// Something that is said over a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The agent begins.
    Hello(Hello),
    /// The hub agrees.
    Welcome(Welcome),
    /// It is over.
    Bye(Bye),
    /// Are you there? From an agent, with the digest of all that it holds.
    Ping {
        /// Comes back in the pong.
        number: u64,
        /// Of everything, or nothing from a hub.
        holds: Option<Digest>,
    },
    /// I am.
    Pong {
        /// That of the ping.
        number: u64,
        /// Up to which number deliveries were received, stored or not; nothing from a hub.
        received: Option<u64>,
    },
    /// The hub sends something.
    Deliver {
        /// Its number in the session.
        number: u64,
        /// What it is.
        delivery: Delivery,
    },
    /// Everything up to this number is on disk, was rejected or is void.
    Ack {
        /// The number.
        number: u64,
    },
    /// This one cannot be stored as it is.
    Reject {
        /// Its number.
        number: u64,
        /// Why.
        fault: Fault,
        /// The same for people.
        words: Box<str>,
    },
    /// This one will not come again.
    Void {
        /// Its number.
        number: u64,
    },
    /// What do you hold?
    Ask(Ask),
    /// That is what.
    Tell(Tell),
    /// Something about a stream.
    Stream {
        /// Which one: odd if the agent opened it, even if the hub did.
        id: u64,
        /// What is said of it.
        said: Said,
    },
    /// The node reports something.
    Report(Report),
    /// The hub has it.
    Reported(Reported),
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bye {
    /// Why.
    pub reason: Reason,
    /// The same for people.
    pub words: Box<str>,
    /// How long to wait before the next attempt, at least.
    pub wait_seconds: u64,
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Whoever ends it stops.
    Stopping,
    /// There is no protocol that both know.
    NoCommonProtocol,
    /// What the other side said makes no sense.
    Misbehaved,
    /// The node has a newer session, here or elsewhere.
    Superseded,
    /// The node may not be here any more.
    Revoked,
    /// There is no room now.
    Busy,
    /// Something that this release does not know.
    Other(u64),
}

/// Why a delivery cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The base of a difference is not there: the whole is needed.
    NoBase,
    /// What came of it is not what was sent: the whole is needed.
    Different,
    /// It is no object, or not the one that it should be.
    NoObject,
    /// It is larger than the node takes.
    TooLarge,
    /// It does not fit to what came before: its scope must be reset.
    OutOfOrder,
    /// The node's disk does not take it now.
    NotStored,
    /// Something that this release does not know.
    Other(u64),
}

/// Why a message was not understood. The link is closed: what follows could be anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUnderstood {
    /// Its bytes do not say what their kind demands.
    #[error("a frame of kind {kind} is malformed")]
    Malformed {
        /// The kind; 0 if not even that could be read.
        kind: u64,
    },
    /// A kind that must be understood, and is not.
    #[error("a frame of kind {kind} is not known here")]
    UnknownKind {
        /// The kind.
        kind: u64,
    },
    /// More bytes than a message may have.
    #[error("a message of {bytes} bytes")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// More frames than a message may have.
    #[error("a message of more than {FRAMES_MAX} frames")]
    TooMany,
    /// Nothing.
    #[error("an empty message")]
    Empty,
}

impl Frame {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = self.encode_body(&mut body);
        put_number(out, kind);
        put_bytes(out, &body);
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> u64 {
        match self {
            Self::Hello(hello) => {
                hello.encode(out);
                HELLO
            }
            Self::Welcome(welcome) => {
                welcome.encode(out);
                WELCOME
            }
            Self::Bye(bye) => {
                put_number(out, bye.reason.number());
                put_text(out, cut(&bye.words));
                put_number(out, bye.wait_seconds);
                BYE
            }
            Self::Ping { number, holds } => {
                put_number(out, *number);
                if let Some(digest) = holds {
                    out.extend_from_slice(&digest.to_bytes());
                }
                PING
            }
            Self::Pong { number, received } => {
                put_number(out, *number);
                received.iter().for_each(|number| put_number(out, *number));
                PONG
            }
            Self::Deliver { number, delivery } => {
                put_number(out, *number);
                delivery.encode(out);
                DELIVER
            }
            Self::Ack { number } => {
                put_number(out, *number);
                ACK
            }
            Self::Reject {
                number,
                fault,
                words,
            } => {
                put_number(out, *number);
                put_number(out, fault.number());
                put_text(out, cut(words));
                REJECT
            }
            Self::Void { number } => {
                put_number(out, *number);
                VOID
            }
            Self::Ask(ask) => {
                ask.encode(out);
                ASK
            }
            Self::Tell(tell) => {
                tell.encode(out);
                TELL
            }
            Self::Stream { id, said } => said.encode(*id, out),
            Self::Report(report) => {
                report.encode(out);
                REPORT
            }
            Self::Reported(reported) => {
                reported.encode(out);
                REPORTED
            }
        }
    }

    /// Takes a frame apart; nothing for one that may be passed over.
    fn decode(kind: u64, body: &[u8]) -> Result<Option<Self>, NotUnderstood> {
        let mut taker = Taker::new(body);
        let known = Self::decode_body(kind, &mut taker);
        let frame = known.map_err(|Malformed| NotUnderstood::Malformed { kind })?;
        match frame {
            None if kind % 2 == 1 => Err(NotUnderstood::UnknownKind { kind }),
            frame => Ok(frame),
        }
    }

    fn decode_body(kind: u64, taker: &mut Taker<'_>) -> Result<Option<Self>, Malformed> {
        Ok(Some(match kind {
            HELLO => Self::Hello(Hello::decode(taker)?),
            WELCOME => Self::Welcome(Welcome::decode(taker)?),
            BYE => Self::Bye(Bye {
                reason: Reason::from_number(taker.number()?),
                words: cut(taker.text()?).into(),
                wait_seconds: taker.number()?,
            }),
            PING => Self::Ping {
                number: taker.number()?,
                holds: match taker.is_empty() {
                    true => None,
                    false => Some(Digest::from_bytes(taker.exactly()?)),
                },
            },
            PONG => Self::Pong {
                number: taker.number()?,
                received: match taker.is_empty() {
                    true => None,
                    false => Some(taker.number()?),
                },
            },
            DELIVER => Self::Deliver {
                number: taker.number()?,
                delivery: Delivery::decode(taker)?,
            },
            ACK => Self::Ack {
                number: taker.number()?,
            },
            REJECT => Self::Reject {
                number: taker.number()?,
                fault: Fault::from_number(taker.number()?),
                words: cut(taker.text()?).into(),
            },
            VOID => Self::Void {
                number: taker.number()?,
            },
            ASK => Self::Ask(Ask::decode(taker)?),
            TELL => Self::Tell(Tell::decode(taker)?),
            OPEN | DATA | WINDOW | CLOSE => Self::Stream {
                id: taker.number()?,
                said: Said::decode(kind, taker)?,
            },
            REPORT => Self::Report(Report::decode(taker)?),
            REPORTED => Self::Reported(Reported::decode(taker)?),
            _ => return Ok(None),
        }))
    }
}

/// Takes a message apart. `bytes_max` is what a message may have now.
pub fn frames(message: &[u8], bytes_max: usize) -> Result<Vec<Frame>, NotUnderstood> {
    match message.len() {
        0 => return Err(NotUnderstood::Empty),
        bytes if bytes > bytes_max => return Err(NotUnderstood::TooLarge { bytes }),
        _ => {}
    }
    let mut taker = Taker::new(message);
    let mut frames = Vec::new();
    while !taker.is_empty() {
        let nothing = |Malformed| NotUnderstood::Malformed { kind: 0 };
        let kind = taker.number().map_err(nothing)?;
        let body = taker.bytes().map_err(nothing)?;
        if frames.len() >= FRAMES_MAX {
            return Err(NotUnderstood::TooMany);
        }
        frames.extend(Frame::decode(kind, body)?);
    }
    Ok(frames)
}

impl Reason {
    fn number(self) -> u64 {
        match self {
            Self::Stopping => 1,
            Self::NoCommonProtocol => 2,
            Self::Misbehaved => 3,
            Self::Superseded => 4,
            Self::Revoked => 5,
            Self::Busy => 6,
            Self::Other(number) => number,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Stopping,
            2 => Self::NoCommonProtocol,
            3 => Self::Misbehaved,
            4 => Self::Superseded,
            5 => Self::Revoked,
            6 => Self::Busy,
            number => Self::Other(number),
        }
    }
}

impl Fault {
    /// Whether the object itself is at fault. Otherwise it is the form that it came in, or what
    /// came before it, and it may be taken when it comes whole.
    pub fn is_of_the_object(self) -> bool {
        match self {
            Self::NoObject | Self::TooLarge | Self::NotStored | Self::Other(_) => true,
            Self::NoBase | Self::Different | Self::OutOfOrder => false,
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::NoBase => 1,
            Self::Different => 2,
            Self::NoObject => 3,
            Self::TooLarge => 4,
            Self::OutOfOrder => 5,
            Self::NotStored => 6,
            Self::Other(number) => number,
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            1 => Self::NoBase,
            2 => Self::Different,
            3 => Self::NoObject,
            4 => Self::TooLarge,
            5 => Self::OutOfOrder,
            6 => Self::NotStored,
            number => Self::Other(number),
        }
    }
}

/// Words for people, as long as they may be.
pub(crate) fn cut(words: &str) -> &str {
    &words[..words.floor_char_boundary(WORDS_BYTES_MAX)]
}

fn put_resource(out: &mut Vec<u8>, resource: &Resource) {
    put_text(out, resource.group());
    put_text(out, resource.plural());
}

fn take_resource(taker: &mut Taker<'_>) -> Result<Resource, Malformed> {
    let (group, plural) = (taker.text()?, taker.text()?);
    let plain = |text: &str| text.len() <= NAME_BYTES_MAX && !text.contains(['/', ' ']);
    match plain(group) && plain(plural) && !plural.is_empty() && !plural.contains('.') {
        true => Ok(Resource::new(group, plural)),
        false => Err(Malformed),
    }
}

const HELLO: u64 = 1;
const WELCOME: u64 = 3;
const BYE: u64 = 5;
const PING: u64 = 7;
const PONG: u64 = 9;
const DELIVER: u64 = 11;
const ACK: u64 = 13;
const REJECT: u64 = 15;
const VOID: u64 = 17;
const ASK: u64 = 19;
const TELL: u64 = 21;
const OPEN: u64 = 31;
const DATA: u64 = 33;
const WINDOW: u64 = 35;
const CLOSE: u64 = 37;
const REPORT: u64 = 41;
const REPORTED: u64 = 43;

#[cfg(test)]
mod tests;
