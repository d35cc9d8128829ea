//! The agent's life with its hubs: a session after the other, for as long as it runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::curt::Curt;
use host::websocket::{self, Role, Socket};
use host::{Shutdown, Times, chain, dial, quic, secret};
use store::replica::Refusal;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};
use wire::frame::{Hello, Machine, REGISTER_NODE, Reason};
use wire::session::{Ended, FEATURES, LEASES, PROTOCOL_NEWEST, PROTOCOL_OLDEST};

use crate::join::{Hub, Identity, not_trusted};
use crate::keep::Keep;
use crate::reconnect::{Attempt, Lasted, Reconnect};
use crate::reports::Reports;
use crate::status::Status;
use crate::talk::{Closed, Talk};
use crate::transport::{Choice, QUIC_TIME_MAX, Transport};
use crate::tunnel::Tunnel;

/// How long it may take to reach a hub, and to be let in.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// An agent that has an identity and a store.
pub struct Agent {
    /// The node's store.
    pub keep: Keep,
    /// The hubs, each of which will do.
    pub hubs: Vec<Hub>,
    /// Who the node is, now and when its certificate is renewed.
    pub identity: watch::Receiver<Arc<Identity>>,
    /// Over what links go.
    pub transport: Transport,
    /// How it is doing.
    pub status: Arc<Status>,
    /// The time.
    pub times: Times,
    /// The program and its release, for people.
    pub program: Box<str>,
    /// The machine that it runs on.
    pub machine: Machine,
    /// Who registers the node in the cluster.
    pub registration: Registration,
    /// What the node has to report, if anything is.
    pub reports: Option<Reports>,
}

/// Who registers a node in the cluster and keeps its lease alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registration {
    /// The hub, for this agent.
    #[default]
    Hub,
    /// A kubelet on the node, or nobody.
    Elsewhere,
}

impl Registration {
    /// What a hello says of it.
    fn features(self) -> u64 {
        match self {
            Self::Hub => REGISTER_NODE,
            Self::Elsewhere => 0,
        }
    }
}

/// Why an agent gives up.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The store takes nothing any more: after a failed write nobody knows what is on disk. It must
    /// be opened anew.
    #[error("the store takes nothing any more; the agent must be started anew")]
    Store(#[source] Refusal),
}

/// Why there was no session.
#[derive(Debug, thiserror::Error)]
enum Unlinked {
    #[error("the certificate cannot be used: {0}")]
    Identity(String),
    #[error("hub {hub} cannot be reached: {cause}")]
    Unreachable { hub: String, cause: String },
    #[error("hub {hub} did not let us in: {cause}")]
    NotLetIn { hub: String, cause: String },
    #[error("the store refuses")]
    Store(#[source] Refusal),
}

impl Agent {
    /// Keeps a session with a hub until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Failed> {
        self.go_on(None, shutdown).await
    }

    /// The same, and requests to the cluster go through its sessions.
    pub async fn run_with(self, tunnel: Tunnel, shutdown: Shutdown) -> Result<(), Failed> {
        self.go_on(Some(&tunnel), shutdown).await
    }

    async fn go_on(self, tunnel: Option<&Tunnel>, shutdown: Shutdown) -> Result<(), Failed> {
        let mut reconnect = Reconnect::new(self.hubs.len(), chance());
        let mut choice = Choice::new(self.transport);
        let mut linked_until = self.times.now();
        loop {
            let began = self.times.now();
            let hub = &self.hubs[reconnect.hub()];
            let attempt = tokio::select! {
                closed = self.session((hub, &mut choice), tunnel, &shutdown) => closed,
                () = shutdown.triggered() => return Ok(()),
            };
            let now = self.times.now();
            let seconds = now.saturating_sub(began).as_secs();
            if attempt.is_ok() {
                linked_until = now;
            }
            let ended = match attempt {
                Ok((Closed::Stopping, _)) => return Ok(()),
                Ok((Closed::NotStored(refusal), _)) | Err(Unlinked::Store(refusal))
                    if !self.keep.reader().is_writable() =>
                {
                    return Err(Failed::Store(refusal));
                }
                Ok((closed, lasted)) => self.closed(&closed, (seconds, lasted)),
                Err(unlinked) => self.unlinked(&unlinked, now.saturating_sub(linked_until)),
            };
            let wait = reconnect.after(ended, chance());
            let until = self.times.moment(self.times.now() + wait);
            tokio::select! {
                () = self.times.clock().sleep_until(until) => {}
                () = shutdown.triggered() => return Ok(()),
            }
        }
    }

    /// One session, or why there was none.
    async fn session(
        &self,
        (hub, choice): (&Hub, &mut Choice),
        tunnel: Option<&Tunnel>,
        shutdown: &Shutdown,
    ) -> Result<(Closed, Lasted), Unlinked> {
        let opened = self.connect(hub, choice).await;
        if matches!(opened, Err(Unlinked::NotLetIn { .. })) {
            choice.websocket_lost();
        }
        let opened = opened?;
        let hello = self.hello().await.map_err(Unlinked::Store)?;
        let transport = opened.name();
        self.status.opened(transport, hello.session);
        info!(
            hub = hub.address(),
            session = hello.session,
            transport,
            "link open"
        );
        let beside = (&self.times, &*self.status);
        let stop = shutdown.triggered();
        let began = self.times.now();
        Ok(match opened {
            Opened::WebSocket(socket) => {
                let talk = Talk::new(*socket, hello, &self.keep, beside);
                let talk = talk.with_tunnel(tunnel).with_reports(self.reports.as_ref());
                let (closed, lasted) = talk.run(stop).await;
                if closed.is_lost() {
                    choice.websocket_lost();
                }
                (closed, lasted)
            }
            Opened::Quic(socket) => {
                let talk = Talk::new(*socket, hello, &self.keep, beside);
                let talk = talk.with_tunnel(tunnel).with_reports(self.reports.as_ref());
                let (closed, lasted) = talk.run(stop).await;
                if closed.is_lost() {
                    let now = self.times.now();
                    choice.quic_lost(now.saturating_sub(began), now);
                }
                (closed, lasted)
            }
        })
    }

    /// What is said first. What no hub could use is discarded.
    async fn hello(&self) -> Result<Hello, Refusal> {
        for resource in self.keep.forget_damaged().await? {
            warn!(%resource, "damaged on disk: asking for it again");
        }
        let session = self.keep.next_session().await?;
        let staged = self.keep.staged();
        self.keep.unstage_all_but(&staged).await?;
        Ok(Hello {
            oldest: PROTOCOL_OLDEST,
            newest: PROTOCOL_NEWEST,
            session,
            features: FEATURES | LEASES | self.registration.features(),
            program: self.program.clone(),
            holdings: self.keep.holdings(),
            machine: self.machine.clone(),
            staged,
            documents: self.keep.documents(),
            aside: self.keep.aside(),
        })
    }

    /// Opens a link over what gets through.
    async fn connect(&self, hub: &Hub, choice: &mut Choice) -> Result<Opened, Unlinked> {
        let identity = self.identity.borrow().clone();
        self.status.certificate(identity.validity.not_after);
        let tls = identity.tls(self.times.clock());
        let tls = tls.map_err(|error| Unlinked::Identity(error.to_string()))?;
        if choice.tries_quic(self.times.now()) {
            let within = match choice.tries_websocket() {
                true => QUIC_TIME_MAX,
                false => CONNECT_TIME_MAX,
            };
            match quic::dial(hub.address(), hub.name(), &tls, within).await {
                Ok(stream) => {
                    let socket = Socket::new(stream, Role::Client, Bytes::new());
                    return Ok(Opened::Quic(Box::new(socket)));
                }
                Err(error) if choice.tries_websocket() => {
                    let error = chain(&error);
                    info!(
                        hub = hub.address(),
                        error, "no QUIC to this hub: trying WebSocket"
                    );
                }
                Err(error) => return Err(unreachable(hub, chain(&error))),
            }
            choice.quic_failed(self.times.now());
        }
        let dialled = dial::dial_with(hub.address(), CONNECT_TIME_MAX, choice.packets()).await;
        let tcp = dialled.map_err(|error| unreachable(hub, error.to_string()))?;
        let not_let_in = |cause: String| Unlinked::NotLetIn {
            hub: hub.address().to_owned(),
            cause,
        };
        let opened = dial::encrypted(tcp, hub.name().clone(), tls, CONNECT_TIME_MAX).await;
        let stream = opened.map_err(|error| match dial::nobody_answered(&error) {
            true => unreachable(hub, error.to_string()),
            false => not_let_in(not_trusted(hub, error)),
        })?;
        let stream = Curt::new(stream).map_err(|error| unreachable(hub, error.to_string()))?;
        let let_in = websocket::connect(stream, hub.address());
        let let_in = timeout(CONNECT_TIME_MAX, let_in).await;
        let let_in = let_in.map_err(|_| not_let_in("no answer in time".to_owned()))?;
        let socket = let_in.map_err(|error| not_let_in(chain(&error)))?;
        Ok(Opened::WebSocket(Box::new(socket)))
    }

    fn closed(&self, closed: &Closed, (seconds, lasted): (u64, Lasted)) -> Attempt {
        let words = chain(closed);
        let wall = self.times.clock().wall();
        let (hub, transport) = self.status.ended(closed.label(), &words, wall);
        info!(hub, transport, seconds, reason = closed.label(), closed = %words, "session ended");
        match closed {
            Closed::Ended(Ended::Told(bye)) => {
                let wait = Duration::from_secs(bye.wait_seconds);
                match bye.reason {
                    Reason::Stopping if wait.is_zero() => Attempt::Lost(lasted),
                    _ => Attempt::SentAway { wait },
                }
            }
            // What could not be joined was forgotten: it is asked for at once.
            Closed::NotStored(Refusal::Misbehaved(_)) => Attempt::Lost(lasted),
            Closed::NotStored(_) => Attempt::SentAway { wait: STORE_WAIT },
            _ => Attempt::Lost(lasted),
        }
    }

    fn unlinked(&self, unlinked: &Unlinked, outage: Duration) -> Attempt {
        let words = chain(unlinked);
        warn!(error = %words, "no session");
        let wall = self.times.clock().wall();
        self.status.ended("unlinked", &words, wall);
        match unlinked {
            Unlinked::Store(_) => Attempt::SentAway { wait: STORE_WAIT },
            Unlinked::Unreachable { .. } => Attempt::Unreachable { outage },
            Unlinked::Identity(_) | Unlinked::NotLetIn { .. } => Attempt::Failed,
        }
    }
}

/// A link that is open, and over what.
enum Opened {
    WebSocket(Box<Socket<Curt<dial::Secure>>>),
    Quic(Box<Socket<quic::Stream>>),
}

impl Opened {
    fn name(&self) -> &'static str {
        match self {
            Self::WebSocket(_) => "websocket",
            Self::Quic(_) => "quic",
        }
    }
}

fn unreachable(hub: &Hub, cause: String) -> Unlinked {
    Unlinked::Unreachable {
        hub: hub.address().to_owned(),
        cause,
    }
}

/// How long to wait when the store refused: a full disk is not empty a moment later.
const STORE_WAIT: Duration = Duration::from_secs(10);

/// A random number; without one, agents that start at once come at once.
fn chance() -> u64 {
    u64::from_le_bytes(secret::random().unwrap_or_default())
}
