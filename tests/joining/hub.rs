//! A hub's port with joining behind it, and a node's folder.

use std::sync::Arc;

use cloud::join::authority;
use cloud::join::memory::Memory;
use cloud::join::token::{self, Bound};
use cloud::join::{
    Authorities, Desk, Entered, Linked, Records, Revocations, Serving, Signer, enter, revoked,
    signer,
};
use edge::join::{Home, Hub as Address, Joining};
use host::clock::Hands;
use host::listen::Listener;
use host::pki::{Pin, Wanted};
use host::{Clock, Shutdown, Tasks};
use jiff::SignedDuration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use wire::join::{NodeName, Token};

/// A hub that listens, with records anywhere.
pub(crate) struct Hub {
    pub(crate) address: Address,
    pub(crate) pin: Pin,
    pub(crate) revocations: Revocations,
    entered: mpsc::Receiver<Entered>,
    serving: Arc<Serving>,
    _tasks: Tasks,
}

impl Hub {
    pub(crate) async fn start<R: Records>(
        records: R,
        authorities: impl Into<Authorities>,
        revocations: Revocations,
        clock: &Clock,
    ) -> Self {
        let authorities = authorities.into();
        let pin = Pin::of(authorities.issuing().certificate()).unwrap();
        let wanted = Wanted::Server {
            name: "hub".into(),
            dns: vec!["localhost".into()],
            ips: vec![],
        };
        let serving = Arc::new(Serving::new(authorities.clone(), wanted, clock).unwrap());
        let signer = Signer::new(authorities, signer::LIFE);
        let desk = Desk::new(records, signer, revocations.clone(), clock.clone());
        let desk = Arc::new(desk);
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let port = listener.address().port();
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("connections", 100);
        let (said, entered) = mpsc::channel(100);
        let run = listener.run(serving.tls(), crowd, shutdown, move |accepted| {
            let (desk, said) = (desk.clone(), said.clone());
            async move {
                said.send(enter(accepted, &desk).await)
                    .await
                    .unwrap_or_default()
            }
        });
        tasks.add("listener", run);
        Self {
            address: format!("localhost:{port}").parse().unwrap(),
            pin,
            revocations,
            entered,
            serving,
            _tasks: tasks,
        }
    }

    /// The next link that a node opens.
    pub(crate) async fn link(&mut self) -> Linked {
        loop {
            if let Some(link) = self.entered.recv().await.expect("the hub runs").link {
                return link;
            }
        }
    }
}

/// A hub with records in memory and a clock that the test moves.
pub(crate) struct Stage {
    pub(crate) memory: Memory,
    pub(crate) hub: Hub,
    pub(crate) clock: Clock,
    pub(crate) hands: Hands,
    pub(crate) home: Home,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let (clock, hands) = Clock::manual("2026-01-01T12:00:00Z".parse().unwrap());
        let memory = Memory::default();
        let hub = Self::hub(&memory, &clock).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            memory,
            hub,
            clock,
            hands,
            home: Home::open(&folder.path().join("link")).unwrap(),
            folder,
        }
    }

    /// A hub of these records, as it starts at this moment.
    async fn hub(memory: &Memory, clock: &Clock) -> Hub {
        let authorities = authority::trusted(memory, clock.wall()).await.unwrap();
        let revocations = Revocations::default();
        revocations.handle_record(None);
        Hub::start(memory.clone(), authorities, revocations, clock).await
    }

    /// Another hub in the place of the one that there is, which is handed out. It reads what is
    /// kept now, and has another port.
    pub(crate) async fn restart_hub(&mut self) -> Hub {
        let next = Self::hub(&self.memory, &self.clock).await;
        std::mem::replace(&mut self.hub, next)
    }

    pub(crate) async fn token(&self, name: &str) -> Token {
        let bound = Bound::Node(node(name));
        let ttl = SignedDuration::from_hours(1);
        let made = token::create(&self.memory, bound, ttl, self.clock.wall()).await;
        made.unwrap().0
    }

    pub(crate) async fn joining(&self, name: &str) -> Joining {
        Joining {
            hubs: vec![self.hub.address.clone()],
            node: node(name),
            token: self.token(name).await,
            pin: self.hub.pin,
        }
    }

    /// Lets days pass. The hub renews its own certificate meanwhile, as it does each hour.
    pub(crate) fn days(&self, days: u64) {
        for _ in 0..days {
            self.hands
                .advance(std::time::Duration::from_secs(24 * 3600));
            self.hub.serving.renew_if_due(self.clock.wall()).unwrap();
        }
    }

    pub(crate) async fn revoke(&self, name: &str) {
        let now = self.clock.wall();
        revoked::revoke(&self.memory, &node(name), "", now)
            .await
            .unwrap();
        let list = revoked::fetch(&self.memory).await.unwrap();
        self.hub.revocations.handle_record(list.as_ref());
    }
}

pub(crate) fn node(name: &str) -> NodeName {
    name.parse().unwrap()
}
