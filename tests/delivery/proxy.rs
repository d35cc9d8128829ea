//! A link that can be slow, stall, swallow what is sent, break, or say everything twice: a TCP
//! proxy between agents and a hub.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::load::Dice;

/// What becomes of bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They arrive.
    Open,
    /// They are taken and never arrive, and nobody is told. A connection that lost bytes stays so:
    /// only a new one is of use again.
    Hole,
    /// They wait until the way is open again.
    Stall,
}

/// How one direction is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) flow: Flow,
    pub(crate) delay: Duration,
    /// Nothing for as fast as it can.
    pub(crate) bytes_per_second: Option<u64>,
}

/// How a link is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// From the agent to the hub.
    pub(crate) up: Way,
    /// From the hub to the agent.
    pub(crate) down: Way,
    /// Whether everything that an agent says is said to the hub once more, on a second connection.
    pub(crate) twice: bool,
    /// Of so many chunks each way, one has a bit that is not as it was sent.
    pub(crate) flips: Option<u64>,
    /// A connection without a byte for this long is dropped, and nobody is told.
    pub(crate) idle: Option<Duration>,
}

/// A fine day.
const OPEN: Way = Way {
    flow: Flow::Open,
    delay: Duration::ZERO,
    bytes_per_second: None,
};

impl Default for Weather {
    fn default() -> Self {
        Self {
            up: OPEN,
            down: OPEN,
            twice: false,
            flips: None,
            idle: None,
        }
    }
}

impl Weather {
    /// A link with this round trip.
    pub(crate) fn far(round_trip: Duration) -> Self {
        let mut weather = Self::default();
        weather.up.delay = round_trip / 2;
        weather.down.delay = round_trip / 2;
        weather
    }

    /// What both directions do with bytes.
    pub(crate) fn flow(mut self, up: Flow, down: Flow) -> Self {
        self.up.flow = up;
        self.down.flow = down;
        self
    }
}

/// A proxy before a hub.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    weather: watch::Sender<Weather>,
    /// Raised to break every connection that is there.
    breaks: watch::Sender<u64>,
    accepted: AtomicUsize,
    carried_down: AtomicU64,
    dropped: AtomicUsize,
    flipped: AtomicUsize,
}

impl Proxy {
    /// Listens on loopback before this hub.
    pub(crate) async fn before(hub: SocketAddr) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, hub).await
    }

    /// Listens on this address before a hub.
    pub(crate) async fn at(address: Ipv4Addr, hub: SocketAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let shared = Arc::new(Shared {
            weather: watch::Sender::new(Weather::default()),
            breaks: watch::Sender::new(0),
            accepted: AtomicUsize::new(0),
            carried_down: AtomicU64::new(0),
            dropped: AtomicUsize::new(0),
            flipped: AtomicUsize::new(0),
        });
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            shared: Arc::clone(&shared),
        };
        tokio::spawn(async move {
            while let Ok((agent, _)) = listener.accept().await {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(carry(agent, hub, Arc::clone(&shared)));
            }
        });
        proxy
    }

    /// From now on the link is like this.
    pub(crate) fn weather(&self, weather: Weather) {
        self.shared.weather.send_replace(weather);
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        self.shared.breaks.send_modify(|breaks| *breaks += 1);
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Bits that were flipped so far.
    pub(crate) fn flipped(&self) -> usize {
        self.shared.flipped.load(Ordering::Relaxed)
    }

    /// Times that bytes came on a connection which was idle for too long.
    pub(crate) fn dropped(&self) -> usize {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Bytes that were brought to agents so far, TLS included.
    pub(crate) fn carried_down(&self) -> u64 {
        self.shared.carried_down.load(Ordering::Relaxed)
    }
}

/// Carries a connection until it ends or breaks.
async fn carry(agent: TcpStream, hub: SocketAddr, shared: Arc<Shared>) {
    let mut breaks = shared.breaks.subscribe();
    breaks.mark_unchanged();
    let Ok(to_hub) = TcpStream::connect(hub).await else {
        return;
    };
    for stream in [&agent, &to_hub] {
        drop(stream.set_nodelay(true));
    }
    let (agent_in, agent_out) = agent.into_split();
    let (hub_in, hub_out) = to_hub.into_split();
    let twice = shared.weather.borrow().twice;
    let second = match twice {
        true => TcpStream::connect(hub).await.ok(),
        false => None,
    };
    let heard = Arc::new(Mutex::new(Instant::now()));
    let both = || (Arc::clone(&shared), Arc::clone(&heard));
    let up = direction(agent_in, (hub_out, second), both(), |it| it.up);
    let down = direction(hub_in, (agent_out, None), both(), |it| it.down);
    let down = async {
        down.await;
    };
    tokio::select! {
        () = async { tokio::join!(up, down); } => {}
        _ = breaks.changed() => {}
    }
}

/// Chunks that are on their way in one direction of one connection. Beyond it nothing more is read.
const ON_THEIR_WAY_MAX: usize = 1024;

/// Carries one direction.
async fn direction(
    mut from: OwnedReadHalf,
    (mut to, mut second): (OwnedWriteHalf, Option<TcpStream>),
    (shared, heard): (Arc<Shared>, Arc<Mutex<Instant>>),
    way: fn(&Weather) -> Way,
) {
    let (send, mut queue) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THEIR_WAY_MAX);
    let is_down = way(&Weather::default().flow(Flow::Open, Flow::Hole)).flow == Flow::Hole;
    let (taking, giving) = (Arc::clone(&shared), shared);
    let take = async move {
        let mut weather = taking.weather.subscribe();
        let mut free = Instant::now();
        let mut chunk = vec![0; 16 * 1024];
        let mut dice = Dice(taking.accepted.load(Ordering::Relaxed) as u64);
        loop {
            let Ok(count @ 1..) = from.read(&mut chunk).await else {
                return;
            };
            if weather
                .wait_for(|it| way(it).flow != Flow::Stall)
                .await
                .is_err()
            {
                return;
            }
            let forgotten = is_forgotten(&taking, &heard);
            let now = way(&weather.borrow_and_update());
            if now.flow == Flow::Hole || forgotten {
                // Lost for this connection, and everything after it.
                while matches!(from.read(&mut chunk).await, Ok(1..)) {}
                return std::future::pending().await;
            }
            flip(&taking, &mut dice, &mut chunk[..count]);
            // In parts of a tenth of a second, as a slow link would bring them.
            let part = now
                .bytes_per_second
                .map_or(count, |rate| (rate as usize / 10).max(1));
            for bytes in chunk[..count].chunks(part) {
                let take = now.bytes_per_second.map_or(Duration::ZERO, |per_second| {
                    Duration::from_secs_f64(bytes.len() as f64 / per_second as f64)
                });
                free = free.max(Instant::now()) + take;
                let sent = send.send((free + now.delay, bytes.to_vec()));
                if sent.await.is_err() {
                    return;
                }
            }
        }
    };
    let give = async move {
        while let Some((at, bytes)) = queue.recv().await {
            sleep_until(at).await;
            if let Some(stream) = &mut second {
                drop(stream.write_all(&bytes).await);
            }
            if to.write_all(&bytes).await.is_err() {
                return;
            }
            if is_down {
                giving
                    .carried_down
                    .fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
        drop(to.shutdown().await);
    };
    tokio::join!(take, give);
}

/// Now and then a bit is not as it was sent.
fn flip(shared: &Shared, dice: &mut Dice, chunk: &mut [u8]) {
    let flips = shared.weather.borrow().flips;
    if flips.is_some_and(|of| dice.below(of) == 0) {
        let place = dice.below(chunk.len() as u64) as usize;
        chunk[place] ^= 1 << dice.below(8);
        shared.flipped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a connection was idle for too long; from now on it is not.
fn is_forgotten(shared: &Shared, heard: &Mutex<Instant>) -> bool {
    let idle = shared.weather.borrow().idle;
    let before = std::mem::replace(&mut *heard.lock(), Instant::now());
    let forgotten = idle.is_some_and(|idle| before.elapsed() > idle);
    shared
        .dropped
        .fetch_add(usize::from(forgotten), Ordering::Relaxed);
    forgotten
}
