//! The first words of both sides: what each can speak, and where the node stands.

use object::codec::{Malformed, Taker, put_number, put_text, put_version};
use object::standing::Parts;
use object::{ObjectName, Resource, Scope, Standing, Version};

use super::noted::{Asides, Noted, put_documents, take_documents};
use super::{cut, put_resource, take_resource};
use crate::digest::Digest;

/// Resources that a node may stand somewhere with.
pub const HOLDINGS_MAX: usize = 1024;
/// Scopes of one resource that a node may hold.
pub const SCOPES_MAX: usize = 16 * 1024;
/// Scopes for which a node says that something is staged. What else is staged, it discards.
pub const STAGED_MAX: usize = 256;

/// A feature: the hub is to register the node in the cluster and to keep its lease alive, as a
/// kubelet would.
pub const REGISTER_NODE: u64 = 1;

/// The agent's first words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The oldest protocol that it speaks.
    pub oldest: u64,
    /// The newest.
    pub newest: u64,
    /// The number of this session: on the node's disk, and higher than any before it.
    pub session: u64,
    /// What it can do beyond the protocol, a bit for each.
    pub features: u64,
    /// The program and its release, for people.
    pub program: Box<str>,
    /// Where it stands, resource by resource.
    pub holdings: Vec<Holding>,
    /// The machine that it runs on. An older agent does not say.
    pub machine: Machine,
    /// What is staged there from sessions before. An older agent has nothing.
    pub staged: Vec<Staged>,
    /// The documents that it has.
    pub documents: Vec<Noted>,
    /// Objects that it could not take.
    pub aside: Asides,
}

/// What an agent tells of its machine, in the words of Kubernetes' labels. It is a claim: nothing
/// is decided by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// What it is called.
    pub host: Box<str>,
    /// Its operating system, such as `linux`.
    pub os: Box<str>,
    /// Its processor, such as `arm64`.
    pub arch: Box<str>,
}

/// What is staged on a node for a scope: all that will be there up to a name, as it was once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The resource.
    pub resource: Resource,
    /// The scope.
    pub scope: Scope,
    /// Which history of the cluster its versions belong to.
    pub epoch: u64,
    /// The last name of it.
    pub last: ObjectName,
    /// How many objects are staged.
    pub objects: u64,
    /// Their digest.
    pub digest: Digest,
}

/// Where a node stands with a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The resource.
    pub resource: Resource,
    /// Which history of the cluster its versions belong to.
    pub epoch: u64,
    /// How far it is; nothing if it cannot say, and must be asked what it holds.
    pub standing: Option<Standing>,
    /// The highest version that it has shown, or was to show.
    pub reached: Option<Version>,
    /// What it was given to hold. This says what can end there, never what it may have.
    pub scopes: Vec<Scope>,
    /// How many objects it holds.
    pub objects: u64,
    /// Their digest.
    pub digest: Digest,
}

/// The hub's first words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol that is spoken from now on.
    pub protocol: u64,
    /// What both can do beyond it.
    pub features: u64,
    /// Which hub it is, for people.
    pub hub: Box<str>,
    /// How often the agent says that it is there.
    pub heartbeat_seconds: u64,
    /// How many deliveries may be in flight.
    pub window: u64,
}

/// The protocol that both sides know best, if there is one.
pub fn common(hello: &Hello, oldest: u64, newest: u64) -> Option<u64> {
    let best = hello.newest.min(newest);
    (best >= hello.oldest && best >= oldest).then_some(best)
}

impl Hello {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.oldest, self.newest, self.session, self.features] {
            put_number(out, number);
        }
        put_text(out, cut(&self.program));
        put_number(out, self.holdings.len() as u64);
        for holding in &self.holdings {
            holding.encode(out);
        }
        self.machine.encode(out);
        put_number(out, self.staged.len() as u64);
        self.staged.iter().for_each(|staged| staged.encode(out));
        put_documents(out, &self.documents);
        self.aside.encode(out);
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let (oldest, newest) = (taker.number()?, taker.number()?);
        let (session, features) = (taker.number()?, taker.number()?);
        let program = cut(taker.text()?).into();
        let count = taker.number()?;
        if count > HOLDINGS_MAX as u64 || oldest > newest {
            return Err(Malformed);
        }
        let holdings = (0..count).map(|_| Holding::decode(taker));
        let holdings = holdings.collect::<Result<_, _>>()?;
        let machine = match taker.is_empty() {
            true => Machine::default(),
            false => Machine::decode(taker)?,
        };
        let count = match taker.is_empty() {
            true => 0,
            false => taker.number()?,
        };
        if count > STAGED_MAX as u64 {
            return Err(Malformed);
        }
        let staged = (0..count).map(|_| Staged::decode(taker));
        let staged = staged.collect::<Result<_, _>>()?;
        Ok(Self {
            oldest,
            newest,
            session,
            features,
            program,
            holdings,
            machine,
            staged,
            documents: take_documents(taker)?,
            aside: Asides::take(taker)?,
        })
    }
}

impl Machine {
    fn encode(&self, out: &mut Vec<u8>) {
        for text in [&self.host, &self.os, &self.arch] {
            put_text(out, cut(text));
        }
    }

    fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            host: cut(taker.text()?).into(),
            os: cut(taker.text()?).into(),
            arch: cut(taker.text()?).into(),
        })
    }
}

impl Holding {
    fn encode(&self, out: &mut Vec<u8>) {
        put_resource(out, &self.resource);
        put_number(out, self.epoch);
        put_version(
            out,
            self.standing.as_ref().map(|standing| &standing.progress),
        );
        if let Some(standing) = &self.standing {
            standing.parts.encode(out);
        }
        put_version(out, self.reached.as_ref());
        put_number(out, self.scopes.len() as u64);
        self.scopes.iter().for_each(|scope| scope.encode(out));
        put_number(out, self.objects);
        out.extend_from_slice(&self.digest.to_bytes());
    }

    fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let resource = take_resource(taker)?;
        let epoch = taker.number()?;
        let standing = match taker.version()? {
            None => None,
            Some(progress) => Some(Standing {
                progress,
                parts: Parts::decode(taker)?,
            }),
        };
        if standing
            .as_ref()
            .is_some_and(|standing| !standing.is_in_order())
        {
            return Err(Malformed);
        }
        let reached = taker.version()?;
        let count = taker.number()?;
        if count > SCOPES_MAX as u64 {
            return Err(Malformed);
        }
        let scopes = (0..count).map(|_| Scope::decode(taker));
        let scopes = scopes.collect::<Result<_, _>>()?;
        Ok(Self {
            resource,
            epoch,
            standing,
            reached,
            scopes,
            objects: taker.number()?,
            digest: Digest::from_bytes(taker.exactly()?),
        })
    }
}

impl Staged {
    fn encode(&self, out: &mut Vec<u8>) {
        put_resource(out, &self.resource);
        self.scope.encode(out);
        put_number(out, self.epoch);
        put_text(out, self.last.as_str());
        put_number(out, self.objects);
        out.extend_from_slice(&self.digest.to_bytes());
    }

    fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            resource: take_resource(taker)?,
            scope: Scope::decode(taker)?,
            epoch: taker.number()?,
            last: taker.name()?,
            objects: taker.number()?,
            digest: Digest::from_bytes(taker.exactly()?),
        })
    }
}

impl Welcome {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.protocol);
        put_number(out, self.features);
        put_text(out, cut(&self.hub));
        put_number(out, self.heartbeat_seconds);
        put_number(out, self.window);
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            protocol: taker.number()?,
            features: taker.number()?,
            hub: cut(taker.text()?).into(),
            heartbeat_seconds: taker.number()?,
            window: taker.number()?,
        })
    }
}
