//! What the records of the log say: each kind's meta part, to bytes and back.

use object::{Header, ObjectName, Resource, Version};

use crate::row::Fate;
use crate::table::shelf::{Over, Shelving};
use crate::table::{Held, Holds, Standing, TableName};
use object::codec::{Malformed, Taker, put_number, put_text, put_version};
use object::digest::Digest;
use object::scope::Scope;
use object::standing::Parts;

/// The format that this program writes. It reads this one and older ones; a newer one is refused
/// without a touch. Whatever a later format changes, the framing of a file's first record and the
/// place of this number in it stay, or an older program could not know that it must not touch it.
pub const FORMAT: u64 = 4;
/// The first format whose commits say what came of cuts that were cut off.
pub(crate) const FORMAT_WITH_PARTS: u64 = 2;
/// The first format that has content which is shown to nobody: what is staged, and documents.
pub(crate) const FORMAT_WITH_SHELVES: u64 = 3;
/// The first format that has values which are sealed.
pub(crate) const FORMAT_WITH_SEALS: u64 = 4;

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
    /// That counter when the file was begun, so that damage to the newest table cannot turn it
    /// back.
    pub(crate) version: Option<Version>,
}

impl FileMark {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.format);
        out.extend_from_slice(&self.id);
        put_text(&mut out, &self.owner);
        put_number(&mut out, u64::from(self.number));
        put_number(&mut out, u64::from(self.shared_versions));
        put_version(&mut out, self.version.as_ref());
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
                version: None,
            });
        }
        let mut id = [0; 16];
        for byte in &mut id {
            *byte = taker.byte()?;
        }
        let owner = taker.text()?.to_owned();
        let number = taker.number()?.try_into().map_err(|_| Malformed)?;
        let shared_versions = taker.number()? == 1;
        let version = taker.version()?;
        taker.end()?;
        Ok(Self {
            format,
            id,
            owner,
            number,
            shared_versions,
            version,
        })
    }
}

/// A table's name, and the number of its next record.
pub(crate) fn encode_table(name: &TableName, seq_next: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, name.resource.group());
    put_text(&mut out, name.resource.plural());
    put_number(&mut out, seq_next);
    // What holds objects is written as it always was.
    match name.holds {
        Holds::Objects => {}
        Holds::Staged => put_number(&mut out, STAGED),
        Holds::Documents => put_number(&mut out, DOCUMENTS),
    }
    out
}

pub(crate) fn decode_table(meta: &[u8]) -> Result<(TableName, u64), Malformed> {
    let mut taker = Taker::new(meta);
    let group = taker.text()?;
    let resource = Resource::new(group, taker.text()?);
    let seq_next = take_seq(&mut taker)?;
    let holds = match taker.is_empty() {
        true => Holds::Objects,
        false => match taker.number()? {
            STAGED => Holds::Staged,
            DOCUMENTS => Holds::Documents,
            _ => return Err(Malformed),
        },
    };
    taker.end()?;
    Ok((TableName { resource, holds }, seq_next))
}

const STAGED: u64 = 1;
const DOCUMENTS: u64 = 2;

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

/// What a `Replace` record says.
#[derive(Debug)]
pub(crate) struct ReplaceEntry {
    pub(crate) scope: Scope,
    pub(crate) fate: Fate,
    pub(crate) version: Version,
    /// How many rows follow that belong to it.
    pub(crate) count: usize,
}

impl ReplaceEntry {
    pub(crate) fn encode(scope: &Scope, fate: Fate, version: &Version, count: usize) -> Vec<u8> {
        let mut out = Vec::new();
        scope.encode(&mut out);
        put_number(&mut out, u64::from(fate == Fate::Ended));
        put_version(&mut out, Some(version));
        put_number(&mut out, count as u64);
        out
    }

    pub(crate) fn decode(meta: &[u8]) -> Result<Self, Malformed> {
        let mut taker = Taker::new(meta);
        let scope = Scope::decode(&mut taker)?;
        let fate = match taker.number()? {
            0 => Fate::Reset,
            1 => Fate::Ended,
            _ => return Err(Malformed),
        };
        let version = taker.version()?.ok_or(Malformed)?;
        let count = taker.number()?.try_into().map_err(|_| Malformed)?;
        taker.end()?;
        Ok(Self {
            scope,
            fate,
            version,
            count,
        })
    }
}

/// What a `Shelf` record says.
#[derive(Debug)]
pub(crate) struct ShelfEntry {
    pub(crate) scope: Scope,
    pub(crate) epoch: u64,
    pub(crate) shelving: Shelving,
    /// How many rows follow that belong to it.
    pub(crate) count: usize,
}

impl ShelfEntry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let shelving = match self.shelving {
            Shelving::Anew(Over::Nothing) => 0,
            Shelving::Anew(Over::Held) => 1,
            Shelving::More => 2,
            Shelving::Gone => 3,
        };
        put_number(&mut out, shelving);
        put_number(&mut out, self.epoch);
        self.scope.encode(&mut out);
        put_number(&mut out, self.count as u64);
        out
    }

    pub(crate) fn decode(meta: &[u8]) -> Result<Self, Malformed> {
        let mut taker = Taker::new(meta);
        let shelving = match taker.number()? {
            0 => Shelving::Anew(Over::Nothing),
            1 => Shelving::Anew(Over::Held),
            2 => Shelving::More,
            3 => Shelving::Gone,
            _ => return Err(Malformed),
        };
        let epoch = taker.number()?;
        let scope = Scope::decode(&mut taker)?;
        let count = taker.number()?.try_into().map_err(|_| Malformed)?;
        taker.end()?;
        Ok(Self {
            scope,
            epoch,
            shelving,
            count,
        })
    }
}

/// What an `Adopt` record says: which shelf is taken over, and what lies on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdoptEntry {
    /// The number of the table that has the shelf.
    pub(crate) table: u32,
    /// How many rows lie there.
    pub(crate) count: usize,
    /// Their digest: where a record of theirs was lost, something else lies there.
    pub(crate) digest: Digest,
}

impl AdoptEntry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, u64::from(self.table));
        put_number(&mut out, self.count as u64);
        out.extend_from_slice(&self.digest.to_bytes());
        out
    }

    pub(crate) fn decode(meta: &[u8]) -> Result<Self, Malformed> {
        let mut taker = Taker::new(meta);
        let table = taker.number()?.try_into().map_err(|_| Malformed)?;
        let count = taker.number()?.try_into().map_err(|_| Malformed)?;
        let digest = Digest::from_bytes(taker.exactly()?);
        taker.end()?;
        Ok(Self {
            table,
            count,
            digest,
        })
    }
}

/// Whether the transaction goes on in another table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    /// Another table's commit follows; all count together.
    Yes,
    /// This was the last.
    No,
}

/// What a `Commit` record says.
#[derive(Debug)]
pub(crate) struct CommitEntry {
    pub(crate) version: Option<Version>,
    pub(crate) progress: Option<Version>,
    pub(crate) parts: Parts,
    pub(crate) epoch: u64,
    /// Nothing where the scopes are as the commit before left them: most changes leave them alone,
    /// and a node may hold thousands.
    pub(crate) scopes: Option<Vec<Held>>,
    pub(crate) more: More,
    pub(crate) seq_next: u64,
}

impl CommitEntry {
    /// The commit that leads from one standing to the next.
    pub(crate) fn between(
        before: &Standing,
        after: &Standing,
        more: More,
        seq_next: u64,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, u64::from(more == More::Yes));
        put_number(&mut out, seq_next);
        put_version(&mut out, after.version.as_ref());
        put_version(&mut out, after.progress.as_ref());
        put_number(&mut out, after.epoch);
        if before.scopes == after.scopes {
            put_number(&mut out, 0);
        } else {
            put_number(&mut out, 1);
            put_scopes(&mut out, &after.scopes);
        }
        if !after.parts.is_empty() {
            after.parts.encode(&mut out);
        }
        out
    }

    pub(crate) fn decode(meta: &[u8]) -> Result<Self, Malformed> {
        let mut taker = Taker::new(meta);
        let more = match taker.number()? {
            0 => More::No,
            1 => More::Yes,
            _ => return Err(Malformed),
        };
        let seq_next = take_seq(&mut taker)?;
        let version = taker.version()?;
        let progress = taker.version()?;
        let epoch = taker.number()?;
        let scopes = match taker.number()? {
            0 => None,
            1 => Some(take_scopes(&mut taker)?),
            _ => return Err(Malformed),
        };
        // Format 1 knows of no parts, and most commits have none.
        let parts = match taker.is_empty() {
            true => Parts::default(),
            false => Parts::decode(&mut taker)?,
        };
        taker.end()?;
        Ok(Self {
            version,
            progress,
            parts,
            epoch,
            scopes,
            more,
            seq_next,
        })
    }

    /// Where the table stands after the commit.
    pub(crate) fn standing(self, before: &Standing) -> Standing {
        Standing {
            version: self.version,
            progress: self.progress,
            parts: self.parts,
            epoch: self.epoch,
            scopes: match self.scopes {
                Some(scopes) => scopes.into(),
                None => before.scopes.clone(),
            },
        }
    }
}

/// Appends scopes with their floors.
pub(crate) fn put_scopes(out: &mut Vec<u8>, scopes: &[Held]) {
    put_number(out, scopes.len() as u64);
    for held in scopes {
        held.scope.encode(out);
        put_version(out, Some(&held.floor));
    }
}

fn take_scopes(taker: &mut Taker<'_>) -> Result<Vec<Held>, Malformed> {
    let mut scopes = Vec::new();
    for _ in 0..taker.number()? {
        let scope = Scope::decode(taker)?;
        let floor = taker.version()?.ok_or(Malformed)?;
        scopes.push(Held { scope, floor });
    }
    Ok(scopes)
}

/// A record number that leaves room to count on.
fn take_seq(taker: &mut Taker<'_>) -> Result<u64, Malformed> {
    match taker.number()? {
        seq if seq <= SEQ_MAX => Ok(seq),
        _ => Err(Malformed),
    }
}

/// Numbers above this were never given out: a million records a second reach it in 200,000 years.
pub(crate) const SEQ_MAX: u64 = u64::MAX / 2;

/// What a seal says: the number of each table's next record.
pub(crate) fn encode_seal(tables: impl ExactSizeIterator<Item = (u32, u64)>) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, tables.len() as u64);
    for (table, seq_next) in tables {
        put_number(&mut out, u64::from(table));
        put_number(&mut out, seq_next);
    }
    out
}

pub(crate) fn decode_seal(meta: &[u8]) -> Result<Vec<(u32, u64)>, Malformed> {
    let mut taker = Taker::new(meta);
    let mut tables = Vec::new();
    for _ in 0..taker.number()? {
        let table = taker.number()?.try_into().map_err(|_| Malformed)?;
        if table == 0 {
            return Err(Malformed);
        }
        tables.push((table, take_seq(&mut taker)?));
    }
    taker.end()?;
    Ok(tables)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_gives_back_what_was_sealed_and_knows_no_table_zero() {
        let tables = vec![(1, 7), (3, 1)];
        let sealed = encode_seal(tables.iter().copied());
        assert_eq!(decode_seal(&sealed), Ok(tables));
        // The fuzzer made one: a table that nobody has came and went from start to start.
        let zero = encode_seal([(0, 7)].into_iter());
        assert_eq!(decode_seal(&zero), Err(Malformed));
    }

    #[test]
    fn tables_that_nobody_lists_say_so_and_shelves_give_back_what_was_written() {
        let pods = Resource::new("", "pods");
        for name in [TableName::staged(&pods), TableName::documents()] {
            assert_eq!(decode_table(&encode_table(&name, 7)), Ok((name, 7)));
        }
        let over = [Over::Nothing, Over::Held].map(Shelving::Anew);
        for shelving in over.into_iter().chain([Shelving::More, Shelving::Gone]) {
            let written = ShelfEntry {
                scope: Scope::all(),
                epoch: 9,
                shelving,
                count: 300,
            };
            let read = ShelfEntry::decode(&written.encode()).unwrap();
            assert_eq!((read.shelving, read.epoch, read.count), (shelving, 9, 300));
            assert_eq!(read.scope, written.scope);
        }
        let adopted = AdoptEntry {
            table: 3,
            count: 300,
            digest: Digest::from_bytes([7; 16]),
        };
        assert_eq!(AdoptEntry::decode(&adopted.encode()), Ok(adopted));
    }

    #[test]
    fn numbers_that_leave_no_room_to_count_on_are_refused() {
        let name = TableName::objects(&Resource::new("apps", "deployments"));
        let most = encode_table(&name, SEQ_MAX);
        assert_eq!(decode_table(&most), Ok((name.clone(), SEQ_MAX)));
        assert_eq!(
            decode_table(&encode_table(&name, SEQ_MAX + 1)),
            Err(Malformed)
        );
    }
}
