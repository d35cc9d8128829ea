//! What is held, bucket by bucket: the question and the answer.

use object::codec::{Malformed, Taker, put_number};
use object::{Resource, Scope};

use super::{put_resource, take_resource};
use crate::difference::{BITS_MAX, ENTRIES_MAX, Entry};

/// By what two ends compare what they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By name, uid and version. Whoever differs is out of date.
    Version,
    /// By name and bytes. Where versions are the same and this is not, the bytes were made by
    /// another release.
    Content,
}

/// What do you hold of a resource?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The resource.
    pub resource: Resource,
    /// Into how many buckets it is divided, as a power of two.
    pub bits: u32,
    /// The buckets whose entries are wanted; nothing if the digests of all are.
    pub entries_of: Option<Vec<usize>>,
    /// The scope, if it is asked what is staged for it and not what is held.
    pub staged: Option<Scope>,
    /// By what objects are told apart.
    pub by: By,
}

/// What is held of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tell {
    /// The resource.
    pub resource: Resource,
    /// Into how many buckets it is divided, as a power of two.
    pub bits: u32,
    /// What was asked for.
    pub told: Told,
    /// The scope, if this is what is staged for it.
    pub staged: Option<Scope>,
    /// By what objects are told apart.
    pub by: By,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The digests of all buckets.
    Buckets(Vec<u64>),
    /// All entries in these buckets.
    Entries(Vec<usize>, Vec<Entry>),
    /// There are too many to tell, or nothing is staged that could be told of.
    TooMany,
}

impl Ask {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_resource(out, &self.resource);
        put_number(out, self.bits.into());
        put_number(out, u64::from(self.entries_of.is_some()));
        if let Some(which) = &self.entries_of {
            put_buckets(out, which);
        }
        put_scope(out, self.staged.as_ref());
        self.by.encode(out);
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            resource: take_resource(taker)?,
            bits: take_bits(taker)?,
            entries_of: match taker.number()? {
                0 => None,
                1 => Some(take_buckets(taker)?),
                _ => return Err(Malformed),
            },
            staged: take_scope(taker)?,
            by: By::take(taker)?,
        })
    }
}

impl Tell {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_resource(out, &self.resource);
        put_number(out, self.bits.into());
        match &self.told {
            Told::Buckets(digests) => {
                put_number(out, 0);
                put_number(out, digests.len() as u64);
                for digest in digests {
                    out.extend_from_slice(&digest.to_le_bytes());
                }
            }
            Told::Entries(which, entries) => {
                put_number(out, 1);
                put_buckets(out, which);
                put_number(out, entries.len() as u64);
                entries.iter().for_each(|entry| entry.encode(out));
            }
            Told::TooMany => put_number(out, 2),
        }
        put_scope(out, self.staged.as_ref());
        self.by.encode(out);
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let resource = take_resource(taker)?;
        let bits = take_bits(taker)?;
        let told = match taker.number()? {
            0 => {
                let count = take_count(taker, 1 << BITS_MAX)?;
                let digest = |_| Ok(u64::from_le_bytes(taker.exactly()?));
                Told::Buckets((0..count).map(digest).collect::<Result<_, _>>()?)
            }
            1 => {
                let which = take_buckets(taker)?;
                let count = take_count(taker, ENTRIES_MAX)?;
                let entries = (0..count).map(|_| Entry::decode(taker));
                Told::Entries(which, entries.collect::<Result<_, _>>()?)
            }
            2 => Told::TooMany,
            _ => return Err(Malformed),
        };
        Ok(Self {
            resource,
            bits,
            told,
            staged: take_scope(taker)?,
            by: By::take(taker)?,
        })
    }
}

impl By {
    fn encode(self, out: &mut Vec<u8>) {
        let number = match self {
            Self::Version => 0,
            Self::Content => 1,
        };
        put_number(out, number);
    }

    /// An older end knows versions alone, and says nothing of it.
    fn take(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        if taker.is_empty() {
            return Ok(Self::Version);
        }
        match taker.number()? {
            0 => Ok(Self::Version),
            1 => Ok(Self::Content),
            _ => Err(Malformed),
        }
    }
}

fn put_scope(out: &mut Vec<u8>, scope: Option<&Scope>) {
    put_number(out, u64::from(scope.is_some()));
    scope.into_iter().for_each(|scope| scope.encode(out));
}

/// An older end says nothing of a scope.
fn take_scope(taker: &mut Taker<'_>) -> Result<Option<Scope>, Malformed> {
    if taker.is_empty() {
        return Ok(None);
    }
    match taker.number()? {
        0 => Ok(None),
        1 => Scope::decode(taker).map(Some),
        _ => Err(Malformed),
    }
}

fn put_buckets(out: &mut Vec<u8>, which: &[usize]) {
    put_number(out, which.len() as u64);
    for index in which {
        put_number(out, *index as u64);
    }
}

fn take_buckets(taker: &mut Taker<'_>) -> Result<Vec<usize>, Malformed> {
    let count = take_count(taker, 1 << BITS_MAX)?;
    (0..count)
        .map(|_| take_count(taker, 1 << BITS_MAX))
        .collect()
}

fn take_bits(taker: &mut Taker<'_>) -> Result<u32, Malformed> {
    let bits = u32::try_from(taker.number()?).map_err(|_| Malformed)?;
    match bits <= BITS_MAX {
        true => Ok(bits),
        false => Err(Malformed),
    }
}

fn take_count(taker: &mut Taker<'_>, most: usize) -> Result<usize, Malformed> {
    let count = usize::try_from(taker.number()?).map_err(|_| Malformed)?;
    match count <= most {
        true => Ok(count),
        false => Err(Malformed),
    }
}
