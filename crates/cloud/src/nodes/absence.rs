//! Who has no session with any hub, and since when: a node that stays away is not ready any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use object::Version;

use crate::sessions::NodeName;

/// How long a node may be away. It is more than a lease lasts, so that a node controller, where
/// there is one, is the first to say so.
pub(super) const AWAY_MAX: Duration = Duration::from_secs(60);

/// Nodes that hubs made and that have no session.
#[derive(Debug, Default)]
pub struct Absence {
    away: HashMap<NodeName, Away>,
}

#[derive(Debug)]
struct Away {
    since: Duration,
    /// The version of its Node that was looked at: nothing is to be said of it.
    settled: Option<Version>,
}

/// A node that a hub made, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The node.
    pub node: NodeName,
    /// The version of its Node.
    pub version: Version,
    /// Whether it has a session with any hub.
    pub connected: bool,
}

impl Absence {
    /// Takes all nodes that hubs made, and gives those that are to be looked at: they are away for
    /// long, and what their Node says was not looked at since it changed.
    pub fn look(&mut self, sights: &[Sight], now: Duration) -> Vec<NodeName> {
        let mut due = Vec::new();
        let mut before = std::mem::take(&mut self.away);
        for sight in sights.iter().filter(|sight| !sight.connected) {
            let node = &sight.node;
            let fresh = Away {
                since: now,
                settled: None,
            };
            let away = before.remove(node).unwrap_or(fresh);
            let settled = away.settled.as_ref() == Some(&sight.version);
            if !settled && now.saturating_sub(away.since) >= AWAY_MAX {
                due.push(Arc::clone(node));
            }
            self.away.insert(Arc::clone(node), away);
        }
        due
    }

    /// Nothing is to be said of a node while its Node has this version.
    pub fn settle(&mut self, node: &str, version: Version) {
        if let Some(away) = self.away.get_mut(node) {
            away.settled = Some(version);
        }
    }
}
