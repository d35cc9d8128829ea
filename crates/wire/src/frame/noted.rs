//! What a hello says beside where the node stands: which documents it has, and which objects it
//! could not take.

use object::codec::{Malformed, Taker, put_number, put_text};
use object::{ObjectName, Resource};

use super::{Fault, put_resource, take_resource};
use crate::documents::{self, TOLD_MAX};

/// Objects that a node says it could not take. Of more it says only how many.
pub const ASIDE_MAX: usize = 64;

/// A document that a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// Its name.
    pub name: Box<str>,
    /// The hash of its bytes.
    pub hash: u64,
}

/// Objects that a node could not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asides {
    /// The last of them.
    pub last: Vec<Aside>,
    /// How many there were before.
    pub more: u64,
}

/// An object that a node could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// Its resource.
    pub resource: Resource,
    /// Its name.
    pub name: ObjectName,
    /// The hash of the bytes that it was.
    pub hash: u64,
    /// Why.
    pub fault: Fault,
}

pub(super) fn put_documents(out: &mut Vec<u8>, documents: &[Noted]) {
    put_number(out, documents.len() as u64);
    for document in documents {
        put_text(out, &document.name);
        out.extend_from_slice(&document.hash.to_le_bytes());
    }
}

/// An older agent has none.
pub(super) fn take_documents(taker: &mut Taker<'_>) -> Result<Vec<Noted>, Malformed> {
    let count = take_count(taker, TOLD_MAX)?;
    let document = |_| {
        let name = taker.text()?;
        let name = Some(name).filter(|name| documents::is_name(name));
        Ok(Noted {
            name: name.ok_or(Malformed)?.into(),
            hash: u64::from_le_bytes(taker.exactly()?),
        })
    };
    (0..count).map(document).collect()
}

impl Asides {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.last.len() as u64);
        for aside in &self.last {
            put_resource(out, &aside.resource);
            put_text(out, aside.name.as_str());
            out.extend_from_slice(&aside.hash.to_le_bytes());
            put_number(out, aside.fault.number());
        }
        put_number(out, self.more);
    }

    /// An older agent says nothing of them.
    pub(super) fn take(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        if taker.is_empty() {
            return Ok(Self::default());
        }
        let count = take_count(taker, ASIDE_MAX)?;
        let aside = |_| {
            Ok(Aside {
                resource: take_resource(taker)?,
                name: taker.name()?,
                hash: u64::from_le_bytes(taker.exactly()?),
                fault: Fault::from_number(taker.number()?),
            })
        };
        let last = (0..count).map(aside).collect::<Result<_, _>>()?;
        let more = taker.number()?;
        Ok(Self { last, more })
    }

    /// Notes one. Of those that were noted before, the oldest goes where there is no room.
    pub fn note(&mut self, aside: Aside) {
        self.taken(&aside.resource, &aside.name);
        if self.last.len() >= ASIDE_MAX {
            self.last.remove(0);
            self.more += 1;
        }
        self.last.push(aside);
    }

    /// An object of this name was taken, or went.
    pub fn taken(&mut self, resource: &Resource, name: &ObjectName) {
        let same = |aside: &Aside| aside.resource == *resource && aside.name == *name;
        self.last.retain(|aside| !same(aside));
    }
}

fn take_count(taker: &mut Taker<'_>, most: usize) -> Result<usize, Malformed> {
    if taker.is_empty() {
        return Ok(0);
    }
    let count = usize::try_from(taker.number()?).map_err(|_| Malformed)?;
    match count <= most {
        true => Ok(count),
        false => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aside(number: usize) -> Aside {
        Aside {
            resource: Resource::new("", "pods"),
            name: ObjectName::new("n", &number.to_string()),
            hash: u64::MAX,
            fault: Fault::TooLarge,
        }
    }

    #[test]
    fn of_more_objects_than_fit_the_oldest_are_only_counted() {
        let mut asides = Asides::default();
        (0..ASIDE_MAX + 3).for_each(|number| asides.note(aside(number)));
        asides.note(aside(ASIDE_MAX));
        assert_eq!((asides.last.len(), asides.more), (ASIDE_MAX, 3));
        assert_eq!(asides.last[0], aside(3));
        assert_eq!(asides.last.last(), Some(&aside(ASIDE_MAX)));
        asides.taken(&aside(3).resource, &aside(3).name);
        assert_eq!(asides.last.len(), ASIDE_MAX - 1);
    }

    #[test]
    fn what_is_noted_arrives_and_an_older_agent_notes_nothing() {
        let last = vec![aside(1), aside(2)];
        let asides = Asides { last, more: 7 };
        let (name, hash) = ("routes.json".into(), 9);
        let documents = vec![Noted { name, hash }];
        let mut out = Vec::new();
        put_documents(&mut out, &documents);
        asides.encode(&mut out);
        let mut taker = Taker::new(&out);
        assert_eq!(take_documents(&mut taker), Ok(documents));
        assert_eq!(Asides::take(&mut taker), Ok(asides));
        let mut nothing = Taker::new(&[]);
        assert_eq!(take_documents(&mut nothing), Ok(vec![]));
        assert_eq!(Asides::take(&mut nothing), Ok(Asides::default()));
    }

    #[test]
    fn more_than_may_be_noted_is_refused() {
        let mut out = Vec::new();
        put_number(&mut out, ASIDE_MAX as u64 + 1);
        assert!(Asides::take(&mut Taker::new(&out)).is_err());
        let mut out = Vec::new();
        put_number(&mut out, TOLD_MAX as u64 + 1);
        assert!(take_documents(&mut Taker::new(&out)).is_err());
        let mut out = Vec::new();
        put_documents(
            &mut out,
            &[Noted {
                name: "../a".into(),
                hash: 1,
            }],
        );
        assert!(take_documents(&mut Taker::new(&out)).is_err());
    }
}
