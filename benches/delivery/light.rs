//! Light agents: many real sessions from one process. The link, its TLS and its rules are those of
//! the agent; what differs is where things are stored, and that somebody notes when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use edge::keep::{Begun, Keep, Stored};
use edge::reconnect::{Attempt, Lasted, Reconnect};
use host::tls::{self, HTTP1, Party};
use host::websocket::{self, Pump, Received};
use host::{Clock, Times, dial, secret};
use object::{Change, Header, ObjectName, Resource, Scope, Version};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use store::disk::Disk;
use store::{Options, Replica};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::digest::Digest;
use wire::frame::{
    Asides, Delivery, Frame, Hello, MESSAGE_BYTES_MAX, Machine, REGISTER_NODE, frames,
};
use wire::inbox::{Held, Piece};
use wire::session::{Kept, PROTOCOL_NEWEST, PROTOCOL_OLDEST, Receiver, Task};

use crate::ground::Ground;
use crate::memory_store::MemoryStore;

/// Where an agent stores what it gets.
pub(crate) enum Place {
    /// In maps, at once: nothing waits for anything.
    Maps(MemoryStore),
    /// In the store of an agent.
    Store(Keep),
}

impl Place {
    /// The store of an agent on this disk.
    pub(crate) fn store(disk: Arc<dyn Disk>) -> Self {
        let options = Options::new("node light");
        let opened = Replica::open(disk, options, Clock::machine());
        Self::Store(Keep::new(opened.expect("a store")))
    }

    fn holdings(&self) -> Vec<wire::frame::Holding> {
        match self {
            Self::Maps(maps) => maps.holdings(),
            Self::Store(keep) => keep.holdings(),
        }
    }

    async fn store_piece(&self, piece: Piece, begun: &mut Begun) -> u64 {
        match self {
            Self::Maps(maps) => maps.store(piece),
            Self::Store(keep) => {
                let stored = keep.store(Stored::Piece(piece), begun).await;
                stored.expect("room on the disk")
            }
        }
    }
}

impl Held for Place {
    fn object(&self, resource: &Resource, name: &ObjectName) -> Option<bytes::Bytes> {
        match self {
            Self::Maps(maps) => maps.object(resource, name),
            Self::Store(keep) => keep.object(resource, name),
        }
    }

    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        Vec::new()
    }

    fn document(&self, _: &str) -> Option<bytes::Bytes> {
        None
    }

    fn covers(&self, resource: &Resource, header: &Header) -> bool {
        match self {
            Self::Maps(maps) => maps.covers(resource, header),
            Self::Store(keep) => keep.covers(resource, header),
        }
    }

    fn fits(&self, _: &Header, _: usize) -> bool {
        true
    }
}

impl Kept for Place {
    fn digest(&self) -> Digest {
        match self {
            Self::Maps(maps) => maps.digest(),
            Self::Store(keep) => keep.digest(),
        }
    }

    fn each(&self, resource: &Resource, look: &mut dyn FnMut(&Header)) {
        match self {
            Self::Maps(maps) => maps.each(resource, look),
            Self::Store(keep) => keep.each(resource, look),
        }
    }

    fn each_staged(&self, _: &Resource, _: &Scope, _: &mut dyn FnMut(&Header)) -> bool {
        // A light agent says of nothing that it is staged.
        false
    }
}

/// What all agents of a crowd note together.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Sessions that were welcomed and last.
    pub(crate) connected: AtomicU64,
    /// Sessions that ended without having been told to.
    pub(crate) lost: AtomicU64,
    /// Objects that were put or deleted, in deliveries.
    pub(crate) objects: AtomicU64,
    /// Changes that were put with the number of a version, and when their ack was sent.
    pub(crate) acked: Option<std::sync::Mutex<Vec<(u64, Instant)>>>,
}

impl Tally {
    fn note(&self, versions: Vec<Version>) {
        let Some(acked) = &self.acked else { return };
        let now = Instant::now();
        let number = |version: Version| version.to_string().parse::<u64>().ok();
        let versions = versions.into_iter().filter_map(number);
        let mut acked = acked.lock().expect("nobody panicked");
        acked.extend(versions.map(|version| (version, now)));
    }
}

/// Many agents in this process.
pub(crate) struct Crowd {
    pub(crate) tally: Arc<Tally>,
    pub(crate) agents: Vec<Arc<Light>>,
    cut: watch::Sender<u64>,
    running: JoinSet<()>,
}

/// One of them.
pub(crate) struct Light {
    pub(crate) place: Place,
    hub: String,
    tls: Arc<ClientConfig>,
    times: Times,
    tally: Arc<Tally>,
    session: AtomicU64,
    features: u64,
}

/// Whether it is noted when each change was acked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    Nothing,
    Acks,
}

impl Crowd {
    /// So many agents, each with a store of its own, not yet connected.
    pub(crate) fn new(
        ground: &Ground,
        hub: std::net::SocketAddr,
        note: Note,
        places: impl IntoIterator<Item = Place>,
    ) -> Self {
        let tally = Arc::new(Tally {
            connected: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            acked: (note == Note::Acks).then(Default::default),
        });
        let times = Times::new(Clock::machine());
        let agent = |(number, place)| {
            let credential = ground.credential(&node(number));
            let own = (vec![credential.certificate], credential.key.into());
            let party = Party {
                servers: vec![ground.authority().certificate().clone()],
                own: Some(own),
                protocols: vec![HTTP1.to_vec()],
            };
            Arc::new(Light {
                place,
                hub: hub.to_string(),
                tls: tls::client_of(party, times.clock()).expect("a certificate for TLS"),
                times: times.clone(),
                tally: tally.clone(),
                session: AtomicU64::new(0),
                features: features(),
            })
        };
        Self {
            agents: places.into_iter().enumerate().map(agent).collect(),
            tally,
            cut: watch::Sender::new(0),
            running: JoinSet::new(),
        }
    }

    /// Connects all of them, as many at once as agents that were never there would.
    pub(crate) async fn connect(&mut self, at_once: usize) {
        let mut wanted = 0;
        for some in self.agents.chunks(at_once) {
            for agent in some {
                let cut = self.cut.subscribe();
                self.running.spawn(agent.clone().run(cut));
            }
            wanted += some.len() as u64;
            crate::ground::eventually(async || self.connected() >= wanted).await;
        }
    }

    /// Breaks all connections at once. Each agent comes back when it would.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    pub(crate) fn connected(&self) -> u64 {
        self.tally.connected.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.tally.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn objects(&self) -> u64 {
        self.tally.objects.load(Ordering::Relaxed)
    }
}

/// The name of a node by its number.
pub(crate) fn node(number: usize) -> String {
    format!("light-{number:05}")
}

/// How a session ended.
enum Over {
    Cut,
    Lost(String),
}

impl Light {
    async fn run(self: Arc<Self>, mut cut: watch::Receiver<u64>) {
        let mut reconnect = Reconnect::new(1, chance());
        loop {
            let began = self.times.now();
            let over = Box::pin(self.session(&mut cut)).await;
            if let Over::Lost(why) = &over {
                eprintln!("a session of {} was lost: {why}", self.hub);
                self.tally.lost.fetch_add(1, Ordering::Relaxed);
            }
            let lasted = Lasted {
                greeted: Some(self.times.now().saturating_sub(began)),
                brought: false,
            };
            let wait = reconnect.after(Attempt::Lost(lasted), chance());
            tokio::time::sleep(wait).await;
        }
    }

    async fn session(&self, cut: &mut watch::Receiver<u64>) -> Over {
        cut.borrow_and_update();
        let name: ServerName<'static> = std::net::Ipv4Addr::LOCALHOST.into();
        let opened = dial::secure(&self.hub, name, self.tls.clone(), CONNECT_TIME).await;
        let socket = match opened {
            Ok(stream) => websocket::connect(stream, &self.hub).await,
            Err(error) => return Over::Lost(error.to_string()),
        };
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => return Over::Lost(error.to_string()),
        };
        let hello = Hello {
            oldest: PROTOCOL_OLDEST,
            newest: PROTOCOL_NEWEST,
            session: self.session.fetch_add(1, Ordering::Relaxed) + 1,
            features: self.features,
            program: "bench".into(),
            holdings: self.place.holdings(),
            machine: Machine::default(),
            staged: Vec::new(),
            documents: Vec::new(),
            aside: Asides::default(),
        };
        let (reader, writer) = socket.split();
        let talk = Talk {
            light: self,
            receiver: Receiver::new(hello, self.times.now()),
            begun: Begun::default(),
            stored: Vec::new(),
        };
        let welcomed = Welcomed(&self.tally, false);
        Box::pin(talk.run((reader, Pump::new(writer)), cut, welcomed)).await
    }
}

/// Counts a session from its welcome to its end.
struct Welcomed<'a>(&'a Tally, bool);

impl Welcomed<'_> {
    fn now(&mut self) {
        self.1 = true;
        self.0.connected.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Welcomed<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A session that goes on.
struct Talk<'a> {
    light: &'a Light,
    receiver: Receiver,
    begun: Begun,
    /// Versions that are stored and not acked.
    stored: Vec<Version>,
}

type Ends<S> = (
    websocket::Reader<tokio::io::ReadHalf<S>>,
    Pump<tokio::io::WriteHalf<S>>,
);

impl Talk<'_> {
    async fn run<S>(
        mut self,
        (mut reader, mut pump): Ends<S>,
        cut: &mut watch::Receiver<u64>,
        mut welcomed: Welcomed<'_>,
    ) -> Over
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let times = &self.light.times;
        loop {
            if pump.is_free() {
                match self.words() {
                    Ok(words) if !words.is_empty() => pump.start(words, None),
                    Ok(_) => {}
                    Err(why) => return Over::Lost(why),
                }
            }
            let wakes = times.moment(self.receiver.wakes_at());
            tokio::select! {
                received = reader.read(MESSAGE_BYTES_MAX) => match received {
                    Ok(Received::Message(message)) => {
                        if let Err(why) = self.take(&message, &mut welcomed).await {
                            return Over::Lost(why);
                        }
                    }
                    Ok(other) => return Over::Lost(format!("{other:?}")),
                    Err(error) => return Over::Lost(error.to_string()),
                },
                wrote = pump.wrote() => match wrote {
                    Ok(_) => self.light.tally.note(std::mem::take(&mut self.stored)),
                    Err(error) => return Over::Lost(error.to_string()),
                },
                () = times.clock().sleep_until(wakes) => {}
                _ = cut.changed() => return Over::Cut,
            }
        }
    }

    /// What is to be said.
    fn words(&mut self) -> Result<Vec<u8>, String> {
        let now = self.light.times.now();
        let mut words = Vec::new();
        while words.len() < WORDS_MAX {
            let next = self.receiver.next(&self.light.place, || None, now);
            match next.map_err(|ended| ended.to_string())? {
                Some(frame) => frame.encode(&mut words),
                None => break,
            }
        }
        Ok(words)
    }

    /// Takes a message, and stores what is in it.
    async fn take(&mut self, message: &[u8], welcomed: &mut Welcomed<'_>) -> Result<(), String> {
        let now = self.light.times.now();
        let all = frames(message, MESSAGE_BYTES_MAX).map_err(|error| error.to_string())?;
        let objects = all.iter().filter(|frame| is_object(frame)).count();
        self.light
            .tally
            .objects
            .fetch_add(objects as u64, Ordering::Relaxed);
        for frame in all {
            let tasks = self.receiver.take(frame, &self.light.place, now);
            for task in tasks.map_err(|ended| ended.to_string())? {
                match task {
                    Task::Store(piece) => self.store(piece).await,
                    Task::Welcome(_) => welcomed.now(),
                    Task::Document { number, .. } => self.receiver.stored(number),
                    Task::Reported(_) | Task::Stream { .. } => {}
                }
            }
        }
        if let Some(Task::Store(piece)) = self.receiver.flush() {
            self.store(piece).await;
        }
        Ok(())
    }

    async fn store(&mut self, piece: Piece) {
        if self.light.tally.acked.is_some() {
            let changes = piece.changes.iter();
            self.stored
                .extend(changes.filter_map(|change| match change {
                    Change::Put(object) => Some(object.header.version.clone()),
                    Change::Delete { .. } => None,
                }));
        }
        let number = self.light.place.store_piece(piece, &mut self.begun).await;
        self.receiver.stored(number);
    }
}

fn is_object(frame: &Frame) -> bool {
    let Frame::Deliver { delivery, .. } = frame else {
        return false;
    };
    matches!(delivery, Delivery::Put { .. } | Delivery::Delete { .. })
}

/// With `HOLDFAST_LEASES` the hub registers each node in the cluster and keeps its lease alive.
fn features() -> u64 {
    match leases_are_on() {
        true => REGISTER_NODE,
        false => 0,
    }
}

/// Whether nodes are registered in the cluster.
pub(crate) fn leases_are_on() -> bool {
    std::env::var_os("HOLDFAST_LEASES").is_some()
}

fn chance() -> u64 {
    u64::from_le_bytes(secret::random().unwrap_or_default())
}

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Bytes of one message.
const WORDS_MAX: usize = 32 * 1024;
