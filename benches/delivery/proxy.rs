//! A link that is far away: each direction is late by the same time, and can be cut and healed.
//!
//! It delays and does not throttle. Bytes are counted when they have passed the link, TLS included:
//! what is counted is the payload of TCP. While nothing passes, what was sent waits at its end, as
//! it does in the queues of TCP, and is gone if that end resets the connection.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// A proxy that runs until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    link: Arc<Link>,
    accepting: JoinHandle<()>,
}

/// How the link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Connections are broken, and new ones refused at once.
    Broken,
    /// Nothing arrives and nobody is told. What is sent stands still until the link is back, as it
    /// would in the queues of TCP.
    Silent,
}

/// Bytes that have passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) down: u64,
    pub(crate) up: u64,
}

impl Bytes {
    pub(crate) fn both(self) -> u64 {
        self.down + self.up
    }

    /// What has passed since.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            down: self.down - before.down,
            up: self.up - before.up,
        }
    }
}

struct Link {
    target: Mutex<SocketAddr>,
    /// How late each direction is.
    delay: Duration,
    way: watch::Sender<Way>,
    /// How often it broke.
    breaks: watch::Sender<u64>,
    down: AtomicU64,
    up: AtomicU64,
}

#[derive(Clone, Copy)]
enum Direction {
    Down,
    Up,
}

impl Proxy {
    /// A link to this address with so long a round trip.
    pub(crate) async fn to(target: SocketAddr, round_trip: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let link = Arc::new(Link {
            target: Mutex::new(target),
            delay: round_trip / 2,
            way: watch::Sender::new(Way::Open),
            breaks: watch::Sender::new(0),
            down: AtomicU64::new(0),
            up: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, link.clone()));
        Self {
            address,
            link,
            accepting,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that are opened from now on lead there.
    pub(crate) fn lead_to(&self, target: SocketAddr) {
        *self.link.target() = target;
    }

    /// The link is like this from now on.
    pub(crate) fn turn(&self, way: Way) {
        self.link.way.send_replace(way);
        if way == Way::Broken {
            self.link.breaks.send_modify(|count| *count += 1);
        }
    }

    /// Breaks all connections, and lets new ones through at once.
    pub(crate) fn interrupt(&self) {
        self.turn(Way::Broken);
        self.turn(Way::Open);
    }

    /// What has passed so far.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes {
            down: self.link.down.load(Ordering::Relaxed),
            up: self.link.up.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.turn(Way::Broken);
    }
}

async fn accept(listener: TcpListener, link: Arc<Link>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        if *link.way.borrow() != Way::Broken {
            tokio::spawn(carry(client, link.clone()));
        }
    }
}

/// Carries a connection until one side ends it, or the link breaks.
async fn carry(client: TcpStream, link: Arc<Link>) {
    let mut breaks = link.breaks.subscribe();
    let carried = async {
        link.is_open().await;
        // The handshake of TCP, of which the client on this machine sees nothing.
        sleep(link.delay * 2).await;
        let target = *link.target();
        let Ok(server) = TcpStream::connect(target).await else {
            return;
        };
        client.set_nodelay(true).ok();
        server.set_nodelay(true).ok();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::join!(
            pass(from_client, to_server, (&link, Direction::Up)),
            pass(from_server, to_client, (&link, Direction::Down)),
        );
    };
    tokio::select! {
        () = carried => {}
        _ = breaks.changed() => {}
    }
}

/// Passes on one direction, each piece when it is due.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (link, direction): (&Link, Direction),
) {
    let (due, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let reads = async move {
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            match from.read_buf(&mut piece).await {
                Ok(0) => return End::Closed,
                Err(_) => return End::Reset,
                Ok(_) => {}
            }
            let due_at = Instant::now() + link.delay;
            if due.send((due_at, piece)).await.is_err() {
                return End::Closed;
            }
        }
    };
    let mut writes = pin!(async {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            link.is_open().await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
            link.count(direction, piece.len());
        }
        link.is_open().await;
        to.shutdown().await.ok();
    });
    let end = tokio::select! {
        end = reads => end,
        () = &mut writes => return,
    };
    match end {
        End::Closed => writes.await,
        // Nothing more is sent, and the other end hears of it when the link is there.
        End::Reset => link.is_open().await,
    }
}

/// How one end finished.
enum End {
    Closed,
    Reset,
}

impl Link {
    fn target(&self) -> MutexGuard<'_, SocketAddr> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn is_open(&self) {
        let mut way = self.way.subscribe();
        way.wait_for(|way| *way == Way::Open).await.ok();
    }

    fn count(&self, direction: Direction, count: usize) {
        let counted = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        counted.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces on their way. With the delays here it is never reached.
const PIECES_MAX: usize = 16 * 1024;
