//! What the records of the log say: each kind's meta part, to bytes and back.

use object::{Header, ObjectName, Resource, Version};

use crate::codec::{Malformed, Taker, put_number, put_text, put_version};
use crate::scope::Scope;
use crate::table::{Held, Standing};

/// The format that this program writes. It reads this one and older ones; a newer one is refused without a touch.
pub const FORMAT: u64 = 1;

/// Whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMark {
    pub(crate) format: u64,
    /// Tells two stores apart.
    pub(crate) id: [u8; 16],
    /// Whom the store belongs to: a cluster, or a node by name.
    pub(crate) owner: String,
    pub(crate) number: u32,
    /// One version counter for all tables.
    pub(crate) shared_versions: bool,
}

impl FileMark {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.format);
        out.extend_from_slice(&self.id);
        put_text(&mut out, &self.owner);
        put_number(&mut out, u64::from(self.number));
        put_number(&mut out, u64::from(self.shared_versions));
        out
    }

    /// A newer format may say more: only its number is read then.
    pub(crate) fn decode(meta: &[u8]) -> Result<Self, Malformed> {
        let mut taker = Taker::new(meta);
        let format = taker.number()?;
        if format > FORMAT {
            return Ok(Self {
                format,
                id: [0; 16],
                owner: String::new(),
                number: 0,
                shared_versions: false,
            });
        }
        let mut id = [0; 16];
        for byte in &mut id {
            *byte = taker.byte()?;
        }
        let owner = taker.text()?.to_owned();
        let number = taker.number()?.try_into().map_err(|_| Malformed)?;
        let shared_versions = taker.number()? == 1;
        taker.end()?;
        Ok(Self {
            format,
            id,
            owner,
            number,
            shared_versions,
        })
    }
}

/// A table's name, and the number of its next record.
pub(crate) fn encode_table(resource: &Resource, seq_next: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, resource.group());
    put_text(&mut out, resource.plural());
    put_number(&mut out, seq_next);
    out
}

pub(crate) fn decode_table(meta: &[u8]) -> Result<(Resource, u64), Malformed> {
    let mut taker = Taker::new(meta);
    let group = taker.text()?;
    let resource = Resource::new(group, taker.text()?);
    let seq_next = taker.number()?;
    taker.end()?;
    Ok((resource, seq_next))
}

pub(crate) fn encode_put(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    header.encode(&mut out);
    out
}

pub(crate) fn decode_put(meta: &[u8]) -> Result<Header, Malformed> {
    Header::decode(meta).map_err(|_| Malformed)
}

pub(crate) fn encode_delete(name: &ObjectName, uid: &str, version: &Version) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, name.as_str());
    put_text(&mut out, uid);
    put_version(&mut out, Some(version));
    out
}

pub(crate) fn decode_delete(meta: &[u8]) -> Result<(ObjectName, Box<str>, Version), Malformed> {
    let mut taker = Taker::new(meta);
    let name = taker.name()?;
    let uid = taker.text()?.into();
    let version = taker.version()?.ok_or(Malformed)?;
    taker.end()?;
    Ok((name, uid, version))
}

pub(crate) fn encode_replace(scope: &Scope, version: &Version, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    scope.encode(&mut out);
    put_version(&mut out, Some(version));
    put_number(&mut out, count as u64);
    out
}

pub(crate) fn decode_replace(meta: &[u8]) -> Result<(Scope, Version, usize), Malformed> {
    let mut taker = Taker::new(meta);
    let scope = Scope::decode(&mut taker)?;
    let version = taker.version()?.ok_or(Malformed)?;
    let count = taker.number()?.try_into().map_err(|_| Malformed)?;
    taker.end()?;
    Ok((scope, version, count))
}

/// Whether the transaction goes on in another table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    /// Another table's commit follows; all count together.
    Yes,
    /// This was the last.
    No,
}

pub(crate) fn encode_commit(standing: &Standing, more: More, seq_next: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, u64::from(more == More::Yes));
    put_number(&mut out, seq_next);
    put_version(&mut out, standing.version.as_ref());
    put_version(&mut out, standing.progress.as_ref());
    put_number(&mut out, standing.epoch);
    put_number(&mut out, standing.scopes.len() as u64);
    for held in &standing.scopes {
        held.scope.encode(&mut out);
        put_version(&mut out, Some(&held.floor));
    }
    out
}

pub(crate) fn decode_commit(meta: &[u8]) -> Result<(Standing, More, u64), Malformed> {
    let mut taker = Taker::new(meta);
    let more = if taker.number()? == 1 {
        More::Yes
    } else {
        More::No
    };
    let seq_next = taker.number()?;
    let version = taker.version()?;
    let progress = taker.version()?;
    let epoch = taker.number()?;
    let mut scopes = Vec::new();
    for _ in 0..taker.number()? {
        let scope = Scope::decode(&mut taker)?;
        let floor = taker.version()?.ok_or(Malformed)?;
        scopes.push(Held { scope, floor });
    }
    taker.end()?;
    Ok((
        Standing {
            version,
            progress,
            epoch,
            scopes,
        },
        more,
        seq_next,
    ))
}

pub(crate) fn encode_base(floor: Option<&Version>) -> Vec<u8> {
    let mut out = Vec::new();
    put_version(&mut out, floor);
    out
}

pub(crate) fn decode_base(meta: &[u8]) -> Result<Option<Version>, Malformed> {
    let mut taker = Taker::new(meta);
    let floor = taker.version()?;
    taker.end()?;
    Ok(floor)
}
