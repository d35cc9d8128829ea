//! What nodes are to have beside objects: documents. Some are the same for all nodes; what the
//! accounts of a node's pods may read is each node's own, and nodes with the same accounts share
//! it.
//!
//! What is not known yet is not said: a node keeps what it has of it.

mod effective; // roles and bindings of the cluster -> what accounts may read
mod keys; // who signs tokens in the cluster
mod made; // the sets that sessions have, each once

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object::ObjectName;
use parking_lot::Mutex;
use tracing::warn;
use wire::documents::{DOCUMENT_BYTES_MAX, Documents};
use wire::report::statement::Wanted;

pub use effective::{Effective, follow as follow_rules, role_kinds};
pub use keys::follow as follow_keys;
use made::Made;

/// What the cluster serves.
pub const DISCOVERY: &str = "discovery";
/// Who signs tokens in the cluster.
pub const KEYS: &str = "keys";
/// What the accounts of the node's pods may read.
pub const RULES: &str = "rules";
/// Which version the cluster is of.
pub const VERSION: &str = "version";

/// The documents that all nodes have.
pub const SHARED: [&str; 3] = [DISCOVERY, KEYS, VERSION];

/// The documents of all nodes.
#[derive(Debug, Default)]
pub struct Papers(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Those that all nodes have, as far as it is known: nothing where the cluster has none.
    shared: BTreeMap<&'static str, Option<Bytes>>,
    /// What accounts may read, once that is known.
    effective: Option<Effective>,
    made: Made,
}

impl Papers {
    /// All nodes are to have this document, or none of that name. Says whether that is news.
    pub fn publish(&self, name: &'static str, bytes: Option<Bytes>) -> bool {
        let size = bytes.as_ref().map_or(0, Bytes::len);
        if size > DOCUMENT_BYTES_MAX {
            warn!(
                name,
                bytes = size,
                "a document is too large for nodes, and stays as it was"
            );
            return false;
        }
        let mut inner = self.0.lock();
        let news = inner.shared.get(name) != Some(&bytes);
        if news {
            inner.shared.insert(name, bytes);
            inner.made.clear();
        }
        news
    }

    /// Accounts may read this from now on. Says whether that is news.
    pub fn rule(&self, effective: Effective) -> bool {
        let mut inner = self.0.lock();
        let news = inner.effective.as_ref() != Some(&effective);
        if news {
            inner.effective = Some(effective);
            inner.made.clear();
        }
        news
    }

    /// Which of these an account of a node's pods may list and watch. Nothing while it is not known
    /// which accounts there are, or what they may.
    pub fn allowed<'w>(
        &self,
        accounts: Option<&[ObjectName]>,
        wants: impl Iterator<Item = &'w Wanted>,
    ) -> Option<Vec<Wanted>> {
        let inner = self.0.lock();
        let (accounts, effective) = accounts.zip(inner.effective.as_ref())?;
        let allowed = wants.filter(|wanted| effective.allows(accounts, wanted));
        Some(allowed.cloned().collect())
    }

    /// What a node is to have on which pods with these accounts run; nothing where it is not known
    /// which.
    pub fn of(&self, accounts: Option<&[ObjectName]>) -> Arc<Documents> {
        let mut inner = self.0.lock();
        let Inner {
            shared,
            effective,
            made,
        } = &mut *inner;
        let known = accounts.zip(effective.as_mut());
        let key = accounts.filter(|_| known.is_some()).unwrap_or_default();
        made.get(key, known.is_some(), || {
            let rules = known.map(|(accounts, effective)| effective.document(accounts));
            documents(shared, rules)
        })
    }
}

/// The documents of a node.
fn documents(shared: &BTreeMap<&'static str, Option<Bytes>>, rules: Option<Bytes>) -> Documents {
    let unknown = SHARED.into_iter().filter(|name| !shared.contains_key(name));
    let unknown = unknown.chain(rules.is_none().then_some(RULES));
    let unknown: Vec<Box<str>> = unknown.map(Box::from).collect();
    let of_all = shared.iter();
    let of_all = of_all.filter_map(|(name, bytes)| Some((Box::from(*name), bytes.clone()?)));
    let all = of_all.chain(rules.map(|bytes| (Box::from(RULES), bytes)));
    match Documents::new(all) {
        Ok(documents) => documents.with_unknown(unknown),
        // Each is small enough, and there are few: together they are not too much.
        Err(error) => {
            warn!(%error, "nodes keep the documents that they have");
            let all = SHARED.into_iter().chain([RULES]).map(Box::from);
            Documents::default().with_unknown(all)
        }
    }
}

#[cfg(test)]
mod tests;
