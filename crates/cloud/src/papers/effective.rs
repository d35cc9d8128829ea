//! Roles and bindings of the cluster -> what each account may read. They are read anew as a whole
//! when any of them changed: that is rare, and there are hundreds of them, not millions.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::Shutdown;
use kubeapi::who::{Attributes, Authorizer, Place, User};
use object::{ObjectName, Range, Resource, Scope};
use tracing::warn;
use wire::digest::content_hash;
use wire::documents::DOCUMENT_BYTES_MAX;
use wire::report::statement::Wanted;

use crate::cache::{Cache, State};
use crate::hub::Hub;
use crate::sessions::Word;
use crate::talk::Desk as _;

/// Bytes of what one account may read. One of which there is more to say has to ask the cluster.
const ACCOUNT_BYTES_MAX: usize = 128 * 1024;
/// How long changes are gathered before they are looked at.
const GATHER: Duration = Duration::from_secs(1);

/// What says who may what.
pub fn role_kinds() -> [Resource; 4] {
    let kinds = [
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
    ];
    kinds.map(|plural| Resource::new(kubeapi::who::rbac::GROUP, plural))
}

/// What accounts may read.
#[derive(Debug, Default)]
pub struct Effective {
    authorizer: Authorizer,
    /// Of which versions of which objects it was made.
    mark: u64,
    /// What is said of an account, once somebody asked: nothing if that is too much.
    said: HashMap<ObjectName, Option<Arc<str>>>,
}

impl PartialEq for Effective {
    fn eq(&self, other: &Self) -> bool {
        self.mark == other.mark
    }
}

impl Effective {
    /// What the cache says; nothing while it does not know everything.
    pub fn read(cache: &Cache) -> Option<Self> {
        let mut effective = Self::default();
        let mut seen = Vec::new();
        for resource in role_kinds() {
            if cache.state(&resource) == State::Unlisted {
                return None;
            }
            for header in cache.headers(&resource, &[Scope::all()]) {
                let name = &header.name;
                let Some((header, bytes)) = cache.object(&resource, name) else {
                    continue;
                };
                seen.extend_from_slice(resource.as_str().as_bytes());
                seen.extend_from_slice(header.uid.as_bytes());
                seen.extend_from_slice(header.version.to_string().as_bytes());
                seen.push(0);
                let put = effective.authorizer.handle_put(&resource, name, &bytes);
                if let Err(error) = put {
                    warn!(%error, "an object grants nothing on nodes");
                }
            }
        }
        effective.mark = content_hash(&seen);
        Some(effective)
    }

    /// Whether any of these accounts may list and watch this.
    pub(super) fn allows(&self, accounts: &[ObjectName], wanted: &Wanted) -> bool {
        let (group, plural) = (wanted.resource.group(), wanted.resource.plural());
        let place = match &wanted.range {
            Range::All => Place::new(group, plural, ""),
            Range::Namespace(namespace) => Place::new(group, plural, namespace),
            Range::Name(name) => Place::new(group, plural, name.namespace()).named(name.name()),
            Range::Node(_) => return false,
        };
        accounts.iter().any(|account| {
            let user = User::service_account(account.namespace(), account.name());
            let user = Arc::new(user.authenticated());
            let may = |verb| {
                let asked = Attributes::resource(&user, verb, place.clone());
                self.authorizer.decide(&asked).is_allowed()
            };
            may("list") && may("watch")
        })
    }

    /// What these accounts may read, as nodes are told it.
    pub(super) fn document(&mut self, accounts: &[ObjectName]) -> Bytes {
        let mut text = String::from("[");
        for account in accounts {
            let Some(said) = self.account(account) else {
                continue;
            };
            if text.len() + said.len() + 2 > DOCUMENT_BYTES_MAX {
                warn!(%account, "a node has too many accounts: the rest have to ask the cluster");
                break;
            }
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&said);
        }
        text.push(']');
        Bytes::from(text)
    }

    fn account(&mut self, account: &ObjectName) -> Option<Arc<str>> {
        let Self {
            authorizer, said, ..
        } = self;
        let words = || {
            let readable = authorizer
                .rules()
                .readable(account.namespace(), account.name());
            let text = serde_json::to_string(&readable).ok()?;
            if text.len() > ACCOUNT_BYTES_MAX {
                warn!(%account, bytes = text.len(), "an account has too many rules for nodes");
                return None;
            }
            Some(Arc::from(text))
        };
        said.entry(account.clone()).or_insert_with(words).clone()
    }
}

/// Follows what accounts may read, for as long as the hub runs.
pub async fn follow(hub: Arc<Hub>, shutdown: Shutdown) -> Result<(), Infallible> {
    let clock = hub.times().clock().clone();
    let following = async {
        loop {
            hub.rules_changed().await;
            clock.sleep_until(clock.now() + GATHER).await;
            let effective = Effective::read(&hub.cache().read());
            if effective.is_some_and(|effective| hub.papers().rule(effective)) {
                hub.sessions().ring_all(Word::Papers);
                hub.grant_all();
            }
        }
    };
    tokio::select! {
        () = following => Ok(()),
        () = shutdown.triggered() => Ok(()),
    }
}
