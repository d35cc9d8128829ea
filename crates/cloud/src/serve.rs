//! A link that was let in -> a session, from its hello to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use host::websocket::Socket;
use host::{Shutdown, Times};
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::{info, warn};
use wire::frame::{Bye, Hello, REGISTER_NODE, Reason};
use wire::session::{Patience, REFRESH_EVERY, Sender, Terms, greet};
use wire::window::Limits;

use crate::guest::Guest;
use crate::hub::Hub;
use crate::join::{Peer, Revocations};
use crate::ledger::Began;
use crate::notices::Notice;
use crate::sessions::{Begun, Bell};
use crate::talk::{Closed, Desk, Talk};

/// How sessions are served.
#[derive(Clone)]
pub struct Service {
    /// What they share.
    pub hub: Arc<Hub>,
    /// The terms.
    pub terms: Arc<Terms>,
    /// How much may be on its way to a node.
    pub limits: Limits,
    /// Who may not have one any more.
    pub revocations: Revocations,
    /// Ends all of them, spread in time.
    pub shutdown: Shutdown,
    /// Over how long they are spread.
    pub drain: Duration,
}

/// Who opened a link.
pub struct Caller {
    /// Who it is, by its certificate.
    pub peer: Peer,
    /// From where.
    pub remote: Box<str>,
    /// Over what.
    pub transport: &'static str,
}

impl Service {
    /// Serves a node that was let in, until its session is over.
    ///
    /// Each part has memory of its own, which goes with it: a session lasts for months, and there
    /// are thousands.
    pub fn serve<S>(self, socket: Socket<S>, caller: Caller) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let welcomed = Box::pin(self.welcome(socket, caller));
        async move {
            if let Some(session) = welcomed.await {
                session.run().await;
            }
        }
    }

    /// Hears what a node says first, and decides whether there is a session.
    async fn welcome<S>(self, socket: Socket<S>, caller: Caller) -> Option<Box<Session<S>>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut guest = Guest::new(socket);
        let node: Arc<str> = caller.peer.node.as_str().into();
        let greeted = match guest.hello(self.hub.times()).await {
            Ok(hello) => self.greet(hello, &node, &caller),
            Err(closed) => Err(closed),
        };
        let (number, bell, sender) = match greeted {
            Ok(greeted) => greeted,
            Err(closed) => {
                info!(%node, remote = %caller.remote, closed = %closed, "no session");
                guest.leave(&closed).await;
                return None;
            }
        };
        let desk = (Arc::clone(&self.hub), bell);
        let talk = Talk::new(guest, Arc::clone(&node), desk, sender).numbered(number);
        Some(Box::new(Session {
            began: self.hub.times().now(),
            service: self,
            node,
            caller,
            number,
            talk,
        }))
    }

    /// Decides whether there is a session.
    fn greet(
        &self,
        hello: Hello,
        node: &Arc<str>,
        caller: &Caller,
    ) -> Result<(u64, Arc<Bell>, Sender), Closed> {
        if self.revocations.refuses(&caller.peer) {
            return Err(Closed::SentAway(revoked()));
        }
        let welcome = greet(&hello, &self.terms).map_err(Closed::SentAway)?;
        if !self.hub.knows_epochs_of(&hello) {
            let words = "whether the node's epoch is a newer one is looked up";
            return Err(away(Reason::Busy, words, EPOCH_WAIT));
        }
        let times = self.hub.times();
        let number = hello.session;
        let begun = self.hub.sessions().begin(node, number, times.now());
        let bell = match begun {
            Begun::Yes { bell, clone } => {
                if clone {
                    warn!(%node, remote = %caller.remote,
                        "its sessions take over from each other: two agents may have its identity");
                    self.hub.notice(Notice::Cloned {
                        node: (**node).into(),
                        remote: caller.remote.clone(),
                    });
                }
                bell
            }
            Begun::Older { number } => {
                let words = format!("the node has a newer session, number {number}");
                return Err(away(Reason::Superseded, &words, SUPERSEDED_WAIT));
            }
        };
        self.tell_foreign(node, &hello);
        let began = Began {
            number,
            at: times.now(),
            remote: caller.remote.clone(),
            transport: caller.transport,
            program: hello.program.clone(),
        };
        let wall = times.clock().wall();
        self.hub.ledger().began(node, began, wall);
        self.hub.owners().lock().began(node, number);
        if welcome.features & REGISTER_NODE != 0 {
            let register = self.hub.register();
            register.began(node, number, hello.machine, times.now());
        }
        let mut sender = Sender::new(
            welcome,
            (hello.holdings, hello.staged),
            (self.limits, Patience::HUB),
            times.now(),
        );
        // After an update of the hub all nodes may get new bytes: not all of them at once.
        sender.learn(hello.documents, hello.aside);
        let wait = REFRESH_EVERY.mul_f64(0.5 + share(node));
        sender.refresh_after(wait, times.now());
        Ok((number, bell, sender))
    }

    /// What a node holds of kinds that are not followed here stays: another hub may have given it.
    fn tell_foreign(&self, node: &Arc<str>, hello: &Hello) {
        let held = hello.holdings.iter().filter(|held| held.objects > 0);
        for held in held.filter(|held| !self.hub.follows(&held.resource)) {
            let (resource, objects) = (&held.resource, held.objects);
            info!(%node, %resource, objects,
                "the node holds a kind that this hub does not follow: it is left as it is");
        }
    }
}

/// A session that has begun.
struct Session<S> {
    service: Service,
    node: Arc<str>,
    caller: Caller,
    number: u64,
    began: Duration,
    talk: Talk<S, Hub>,
}

impl<S> Session<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    async fn run(mut self: Box<Self>) {
        let (number, began) = (self.number, self.began);
        let Self {
            service,
            node,
            caller,
            talk,
            ..
        } = &mut *self;
        let hub = &service.hub;
        let stop = async {
            tokio::select! {
                bye = drained(&service.shutdown, hub.times(), (node, service.drain)) => bye,
                () = service.revocations.until_refused(&caller.peer) => revoked(),
            }
        };
        let closed = talk.run(pin!(stop)).await;
        hub.sessions().end(node, number);
        hub.owners().lock().ended(node, number);
        hub.register().ended(node, number);
        hub.replay().ended(node, number);
        hub.forget_wishes(node);
        let wall = hub.times().clock().wall();
        let words = closed.to_string();
        let end = (closed.label(), words.as_str());
        hub.ledger().ended(node, number, end, wall);
        let lasted = hub.times().now().saturating_sub(began).as_secs();
        let Caller {
            remote, transport, ..
        } = caller;
        info!(%node, session = number, %remote, transport, seconds = lasted,
            reason = closed.label(), closed = %words, "session ended");
    }
}

/// Waits for the shutdown, and then for the node's own moment: the nodes of a hub that stops go
/// elsewhere one after the other.
async fn drained(shutdown: &Shutdown, times: &Times, (node, over): (&str, Duration)) -> Bye {
    shutdown.triggered().await;
    let moment = times.now() + over.mul_f64(share(node));
    times.clock().sleep_until(times.moment(moment)).await;
    Bye {
        reason: Reason::Stopping,
        words: "this hub stops".into(),
        wait_seconds: 0,
    }
}

/// Where among all nodes this one has its turn, from 0 to 1.
fn share(node: &str) -> f64 {
    wire::digest::content_hash(node.as_bytes()) as f64 / u64::MAX as f64
}

fn revoked() -> Bye {
    Bye {
        reason: Reason::Revoked,
        words: "this node is revoked".into(),
        wait_seconds: 300,
    }
}

fn away(reason: Reason, words: &str, wait: Duration) -> Closed {
    Closed::SentAway(Bye {
        reason,
        words: words.into(),
        wait_seconds: wait.as_secs(),
    })
}

/// How long an agent waits until its epoch was looked up.
const EPOCH_WAIT: Duration = Duration::from_secs(3);
/// How long an agent that was superseded waits: the other one may be a clone of it.
const SUPERSEDED_WAIT: Duration = Duration::from_secs(20);
