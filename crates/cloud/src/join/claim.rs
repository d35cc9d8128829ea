//! Who has a name: a record for each node that joined.
//!
//! A pool's token does not say which name it is for, so it must not give the name of a node that is
//! there already, ours or not: whoever has a node's name has its secrets. A token for one node is
//! the word of an administrator and takes the name over.

use jiff::Timestamp;
use wire::join::NodeName;

use super::record::{Record, Resource};
use super::records::{RecordError, Records};
use super::token::{Bound, Kept};
use host::secret;

/// The kind of record that a claim is.
pub const KIND: &str = "node";

/// A node as it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The node.
    pub node: NodeName,
    /// Its pool, if it joined with a pool's token.
    pub pool: Option<String>,
    /// When it joined last.
    pub joined: Timestamp,
    /// The token that it joined with.
    pub token: String,
    key: [u8; 32],
}

/// Whether a name is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Nobody has it, or this very node, or the token is for it.
    Free,
    /// Another node has it.
    Taken,
}

impl Claim {
    /// The claim of a node that joins with a token and a key.
    pub fn new(node: &NodeName, token: &Kept, key: [u8; 32], now: Timestamp) -> Self {
        Self {
            node: node.clone(),
            pool: token.pool().map(str::to_owned),
            joined: now,
            token: token.id.clone(),
            key,
        }
    }

    /// The name of the record. A long node name is hashed: a record's name has room for no more.
    pub fn record_name(node: &NodeName) -> String {
        let name = format!("{KIND}.{node}");
        match name.len() <= 253 {
            true => name,
            false => format!(
                "{KIND}.{}",
                secret::hex(&secret::sha256(node.as_str().as_bytes()))
            ),
        }
    }

    fn record(&self) -> Record {
        let record = Record::new(Resource::ConfigMaps, &Self::record_name(&self.node), KIND)
            .with("node", self.node.as_str())
            .with("joined", self.joined.to_string())
            .with("token", &self.token)
            .with("key", secret::hex(&self.key));
        match &self.pool {
            Some(pool) => record.with("pool", pool),
            None => record,
        }
    }

    /// Reads a record; a damaged one is nobody's.
    pub fn read(record: &Record) -> Option<Self> {
        Some(Self {
            node: record.text("node")?.parse().ok()?,
            pool: record.text("pool").map(str::to_owned),
            joined: record.text("joined")?.parse().ok()?,
            token: record.text("token")?.to_owned(),
            key: secret::from_hex(record.text("key")?)?,
        })
    }

    /// Whether the name of this claim is to be had with a token that is bound so.
    pub async fn is_free(
        &self,
        bound: &Bound,
        records: &impl Records,
    ) -> Result<Name, RecordError> {
        if matches!(bound, Bound::Node(_)) {
            return Ok(Name::Free);
        }
        let name = Self::record_name(&self.node);
        match records.get(Resource::ConfigMaps, &name).await? {
            // A record that cannot be read is somebody's.
            Some(record) => Ok(self.unless_of_another(Self::read(&record).as_ref())),
            None => match records.get(Resource::Nodes, self.node.as_str()).await? {
                Some(_) => Ok(Name::Taken),
                None => Ok(Name::Free),
            },
        }
    }

    /// Writes the claim down. It may turn out that another node was faster.
    pub async fn keep(&self, bound: &Bound, records: &impl Records) -> Result<Name, RecordError> {
        let mut wanted = self.record();
        for _ in 0..ATTEMPTS_MAX {
            let found = records.get(Resource::ConfigMaps, &wanted.name).await?;
            let written = match found {
                None => records.create(&wanted).await,
                Some(found) => {
                    let held = Self::read(&found);
                    if !matches!(bound, Bound::Node(_))
                        && self.unless_of_another(held.as_ref()) == Name::Taken
                    {
                        return Ok(Name::Taken);
                    }
                    wanted.version = found.version;
                    records.update(&wanted).await
                }
            };
            match written {
                Ok(()) => return Ok(Name::Free),
                Err(RecordError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Err(RecordError::Conflict)
    }

    fn unless_of_another(&self, held: Option<&Self>) -> Name {
        match held {
            Some(held) if held.node == self.node && held.key == self.key => Name::Free,
            Some(_) | None => Name::Taken,
        }
    }
}

/// How often a claim is tried to be written that others write too.
const ATTEMPTS_MAX: u32 = 4;
