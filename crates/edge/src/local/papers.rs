//! What the hub says of the cluster's accounts and keys -> who is known on the node, and may read
//! what. It lies on the node's disk, so it counts without a hub too.
//!
//! What cannot be read counts as if it was not there: then fewer are known, and may less, and
//! whoever is not known is passed on to the cluster.

use std::convert::Infallible;
use std::sync::Arc;

use host::{Shutdown, chain};
use kubeapi::who::Authorizer;
use kubeapi::who::rbac::Readable;
use kubeapi::who::token::{Bound, Published, Verifier, Verifying};
use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::warn;
use wire::inbox::Held as _;
use wire::join::NodeName;

use super::rights;
use crate::keep::Keep;

/// What the accounts of the node's pods may read.
const RULES: &str = "rules";
/// Who signs tokens in the cluster.
const KEYS: &str = "keys";

/// Who is known on the node, and may read what.
pub(super) struct Rights {
    keep: Keep,
    node: NodeName,
    authorizer: Arc<RwLock<Authorizer>>,
    verifying: Arc<Verifying>,
    changes: watch::Receiver<u64>,
}

impl Rights {
    /// As the node's disk says.
    pub(super) fn new(keep: Keep, node: &NodeName) -> Self {
        let changes = keep.papers();
        let rights = Self {
            keep,
            node: node.clone(),
            authorizer: Arc::default(),
            verifying: Arc::default(),
            changes,
        };
        rights.read();
        rights
    }

    /// Who may read what.
    pub(super) fn authorizer(&self) -> Arc<RwLock<Authorizer>> {
        Arc::clone(&self.authorizer)
    }

    /// Which tokens are known.
    pub(super) fn verifying(&self) -> Arc<Verifying> {
        Arc::clone(&self.verifying)
    }

    /// Follows what hubs say, until the shutdown.
    pub(super) async fn run(mut self, shutdown: Shutdown) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                changed = self.changes.changed() => if changed.is_err() { return Ok(()) },
                () = shutdown.triggered() => return Ok(()),
            }
            self.read();
        }
    }

    fn read(&self) {
        let mut authorizer = rights::authorizer(&self.node);
        let rules = self.keep.document(RULES);
        for readable in rules.map(|text| accounts(&text)).unwrap_or_default() {
            authorizer.put_readable(readable);
        }
        *self.authorizer.write() = authorizer;
        let keys = self.keep.document(KEYS);
        let known = keys.and_then(|text| verifier(&text, &self.node));
        self.verifying.replace(known.unwrap_or_default());
    }
}

fn accounts(text: &[u8]) -> Vec<Readable> {
    serde_json::from_slice(text).unwrap_or_else(|error| {
        let why = chain(&error);
        warn!(
            why,
            "what accounts may read cannot be read: they are passed on to the cluster"
        );
        Vec::new()
    })
}

fn verifier(text: &[u8], node: &NodeName) -> Option<Verifier> {
    match Published::parse(text) {
        Ok(published) => Some(published.verifier(Bound::PodOn(node.as_str().into()))),
        Err(error) => {
            let why = chain(&error);
            warn!(
                why,
                "the keys of the cluster cannot be read: tokens are passed on to it"
            );
            None
        }
    }
}
