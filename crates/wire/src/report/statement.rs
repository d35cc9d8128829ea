//! What the reports of a node's queues say: that its kubelet lives, what became of the status of
//! its Node and of its pods, and events.
//!
//! A hub writes them into the cluster in the name of the node. A statement names parts, never a
//! path: whoever writes it builds the path, from parts that [`Statement::decode`] has checked.

use bytes::Bytes;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text};
use object::{Range, Resource, Scope};

use crate::frame::Queue;

/// What a report says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Whether a kubelet on the node renews its lease.
    Kubelet(Pulse),
    /// What clients on the node ask for, all of it. What was asked for before and is not named is
    /// not asked for any more.
    Wants(Vec<Wanted>),
    /// What is to change in an object's status.
    Status {
        /// The object.
        about: About,
        /// A strategic merge patch, of status, labels and annotations alone.
        patch: Bytes,
    },
    /// An event that is made, or changed.
    Event {
        /// In which of its two APIs.
        api: EventApi,
        /// What is done.
        act: Act,
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// The event, or what changes.
        body: Bytes,
    },
}

/// Something that clients on a node ask for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Of which resource.
    pub resource: Resource,
    /// Which part of it: everything, a namespace, or one object.
    pub range: Range,
}

/// What may be asked for from one node. More is not understood.
pub const WANTED_MAX: usize = 64;

/// Whether a kubelet lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    /// It renews its lease.
    Alive,
    /// It did not for as long as a lease lasts.
    Stopped,
}

/// An object whose status a node writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The node's own Node.
    Node {
        /// Its uid.
        uid: Box<str>,
    },
    /// A pod on it.
    Pod {
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// Its uid: a pod that took its name later is another one.
        uid: Box<str>,
    },
}

/// The two APIs in which there are events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventApi {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    Events,
}

/// What is done with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is made.
    Create,
    /// It is merged with a strategic merge patch.
    Patch,
    /// It is merged with a merge patch.
    Merge,
}

impl About {
    /// The key of its reports: of several the newest is enough.
    pub fn key(&self) -> String {
        match self {
            Self::Node { uid } => format!("node/{uid}"),
            Self::Pod {
                namespace,
                name,
                uid,
            } => format!("pod/{namespace}/{name}/{uid}"),
        }
    }
}

impl Statement {
    /// The queue in which it goes.
    pub fn queue(&self) -> Queue {
        match self {
            Self::Kubelet(_) | Self::Wants(_) => Queue::Leases,
            Self::Status { .. } => Queue::Statuses,
            Self::Event { .. } => Queue::Events,
        }
    }

    /// The key under which it goes.
    pub fn key(&self) -> String {
        match self {
            Self::Kubelet(_) => "kubelet".to_owned(),
            Self::Wants(_) => "wants".to_owned(),
            Self::Status { about, .. } => about.key(),
            Self::Event {
                namespace, name, ..
            } => format!("{namespace}/{name}"),
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Kubelet(pulse) => {
                put_number(&mut out, u64::from(*pulse == Pulse::Alive));
            }
            Self::Wants(wants) => {
                put_number(&mut out, WANTS);
                put_number(&mut out, wants.len() as u64);
                for Wanted { resource, range } in wants {
                    put_text(&mut out, resource.group());
                    put_text(&mut out, resource.plural());
                    Scope::of(range.clone()).encode(&mut out);
                }
            }
            Self::Status { about, patch } => {
                let (kind, namespace, name, uid) = match about {
                    About::Node { uid } => (NODE, "", "", uid),
                    About::Pod {
                        namespace,
                        name,
                        uid,
                    } => (POD, &**namespace, &**name, uid),
                };
                put_number(&mut out, kind);
                for text in [namespace, name, uid] {
                    put_text(&mut out, text);
                }
                put_bytes(&mut out, patch);
            }
            Self::Event {
                api,
                act,
                namespace,
                name,
                body,
            } => {
                put_number(&mut out, u64::from(*api == EventApi::Events));
                put_number(&mut out, act.number());
                put_text(&mut out, namespace);
                put_text(&mut out, name);
                put_bytes(&mut out, body);
            }
        }
        out.into()
    }

    /// What a report of this queue says. Names are such as can stand in a path.
    pub fn decode(queue: Queue, bytes: &Bytes) -> Result<Self, Malformed> {
        let mut taker = Taker::new(bytes);
        let statement = match queue {
            Queue::Leases => match taker.number()? {
                0 => Self::Kubelet(Pulse::Stopped),
                1 => Self::Kubelet(Pulse::Alive),
                WANTS => Self::decode_wants(&mut taker)?,
                _ => return Err(Malformed),
            },
            Queue::Statuses => Self::decode_status(&mut taker)?,
            Queue::Events => Self::decode_event(&mut taker)?,
            Queue::Messages | Queue::Other(_) => return Err(Malformed),
        };
        taker.end()?;
        Ok(statement)
    }

    fn decode_wants(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let count = usize::try_from(taker.number()?).map_err(|_| Malformed)?;
        if count > WANTED_MAX {
            return Err(Malformed);
        }
        let one = |_| {
            let (group, plural) = (taker.text()?, taker.text()?);
            let Scope { range, selector } = Scope::decode(taker)?;
            let empty_or_name = |text: &str| text.is_empty() || is_name(text);
            let named = match &range {
                Range::All => true,
                Range::Namespace(namespace) => is_name(namespace),
                Range::Name(name) => is_name(name.name()) && empty_or_name(name.namespace()),
                Range::Node(_) => false,
            };
            let is_resource = empty_or_name(group) && is_name(plural) && !plural.contains('.');
            if !is_resource || !named || !selector.is_everything() {
                return Err(Malformed);
            }
            let resource = Resource::new(group, plural);
            Ok(Wanted { resource, range })
        };
        let wants = (0..count).map(one).collect::<Result<_, _>>()?;
        Ok(Self::Wants(wants))
    }

    fn decode_status(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let kind = taker.number()?;
        let (namespace, name) = (taker.text()?, taker.text()?);
        let uid = checked(taker.text()?)?;
        let about = match kind {
            NODE if namespace.is_empty() && name.is_empty() => About::Node { uid },
            POD => About::Pod {
                namespace: checked(namespace)?,
                name: checked(name)?,
                uid,
            },
            _ => return Err(Malformed),
        };
        let patch = Bytes::copy_from_slice(taker.bytes()?);
        Ok(Self::Status { about, patch })
    }

    fn decode_event(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let api = match taker.number()? {
            0 => EventApi::Core,
            1 => EventApi::Events,
            _ => return Err(Malformed),
        };
        let act = Act::from_number(taker.number()?)?;
        Ok(Self::Event {
            api,
            act,
            namespace: checked(taker.text()?)?,
            name: checked(taker.text()?)?,
            body: Bytes::copy_from_slice(taker.bytes()?),
        })
    }
}

impl Act {
    fn number(self) -> u64 {
        match self {
            Self::Create => 0,
            Self::Patch => 1,
            Self::Merge => 2,
        }
    }

    fn from_number(number: u64) -> Result<Self, Malformed> {
        match number {
            0 => Ok(Self::Create),
            1 => Ok(Self::Patch),
            2 => Ok(Self::Merge),
            _ => Err(Malformed),
        }
    }
}

/// Whether a text can be a name in a path as it is: nothing in it leads elsewhere.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.copied().is_some_and(plain);
    let bytes = text.as_bytes();
    bytes.len() <= NAME_MAX
        && bytes
            .iter()
            .all(|byte| plain(*byte) || b"-.".contains(byte))
        && ends(bytes.first())
        && ends(bytes.last())
        && !text.contains("..")
}

fn checked(text: &str) -> Result<Box<str>, Malformed> {
    match is_name(text) {
        true => Ok(text.into()),
        false => Err(Malformed),
    }
}

/// Stands where the pulse of a kubelet may stand.
const WANTS: u64 = 2;
const NODE: u64 = 0;
const POD: u64 = 1;
/// Bytes of a name, as Kubernetes has them.
const NAME_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use object::ObjectName;

    use super::*;

    fn pod(name: &str) -> Statement {
        Statement::Status {
            about: About::Pod {
                namespace: "default".into(),
                name: name.into(),
                uid: "0a-1b".into(),
            },
            patch: Bytes::from_static(b"{}"),
        }
    }

    fn event(namespace: &str, act: Act) -> Statement {
        Statement::Event {
            api: EventApi::Events,
            act,
            namespace: namespace.into(),
            name: "web.17a".into(),
            body: Bytes::from_static(b"{\"reason\":\"Pulled\"}"),
        }
    }

    fn wants(resources: &[&str], range: Range) -> Statement {
        let wanted = |text: &&str| {
            let (plural, group) = text.split_once('.').unwrap_or((text, ""));
            let resource = Resource::new(group, plural);
            let range = range.clone();
            Wanted { resource, range }
        };
        Statement::Wants(resources.iter().map(wanted).collect())
    }

    #[test]
    fn what_is_asked_for_leads_nowhere_else_and_is_not_too_much() {
        let refused = |statement: &Statement| {
            Statement::decode(statement.queue(), &statement.encode()).is_err()
        };
        for range in [
            Range::Node("n1".into()),
            Range::Namespace("../x".into()),
            Range::Namespace("".into()),
            Range::Name(ObjectName::new("a/b", "x")),
        ] {
            assert!(refused(&wants(&["pods"], range.clone())), "{range:?}");
        }
        assert!(refused(&wants(&["po/ds"], Range::All)));
        assert!(!refused(&wants(&["pods"; WANTED_MAX], Range::All)));
        assert!(refused(&wants(&["pods"; WANTED_MAX + 1], Range::All)));
    }

    #[test]
    fn what_is_said_is_heard() {
        let node = About::Node { uid: "u".into() };
        let patch = Bytes::from_static(b"{\"status\":{}}");
        for said in [
            Statement::Kubelet(Pulse::Alive),
            Statement::Kubelet(Pulse::Stopped),
            Statement::Wants(Vec::new()),
            wants(&["widgets.example.com"], Range::Namespace("shop".into())),
            wants(&["namespaces", "leases.coordination.k8s.io"], Range::All),
            wants(&["secrets"], Range::Name(ObjectName::new("shop", "one"))),
            Statement::Status { about: node, patch },
            pod("web-0"),
            event("shop", Act::Create),
            event("shop", Act::Patch),
            event("shop", Act::Merge),
        ] {
            let heard = Statement::decode(said.queue(), &said.encode());
            assert_eq!(heard, Ok(said));
        }
    }

    #[test]
    fn no_name_leads_elsewhere_in_a_path() {
        for name in [
            "", "..", "a/b", "a..b", "A", "a?b", "a%2fb", "a b", ".a", "a\n",
        ] {
            let said = pod(name);
            assert!(
                Statement::decode(said.queue(), &said.encode()).is_err(),
                "{name:?}"
            );
            let said = event(name, Act::Create);
            assert!(
                Statement::decode(said.queue(), &said.encode()).is_err(),
                "{name:?}"
            );
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_no_statement() {
        let said = pod("web-0");
        let bytes = said.encode();
        for end in 0..bytes.len() {
            assert!(Statement::decode(said.queue(), &bytes.slice(..end)).is_err());
        }
        let longer = [&bytes[..], b"x"].concat().into();
        assert!(Statement::decode(said.queue(), &longer).is_err());
        assert!(Statement::decode(Queue::Messages, &bytes).is_err());
        assert!(Statement::decode(Queue::Leases, &Bytes::from_static(b"\x07")).is_err());
    }
}
