//! A link of datagrams that can be slow, swallow, repeat, lose, and come from elsewhere: a UDP
//! proxy between agents and a hub, beside a TCP one by which they join.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::load::Dice;
use crate::proxy::Proxy;

/// How datagrams fare, each way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sky {
    /// Of a hundred, so many never arrive.
    pub(crate) lost: u64,
    /// Of a hundred, so many arrive twice.
    pub(crate) twice: u64,
    /// How long each is on its way.
    pub(crate) delay: Duration,
    /// Of a hundred, so many take twice as long, and others overtake them.
    pub(crate) late: u64,
}

/// A proxy before a hub.
pub(crate) struct Datagrams {
    /// Where agents find the hub: the same port for both.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    _joining: Proxy,
}

struct Shared {
    hub: SocketAddr,
    outside: UdpSocket,
    sky: watch::Sender<Sky>,
    /// The socket towards the hub, for each agent.
    ways: Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>,
    dice: Mutex<Dice>,
}

impl Datagrams {
    /// Stands before a hub that listens to both on one port.
    pub(crate) async fn before(hub: SocketAddr) -> Self {
        let joining = Proxy::before(hub).await;
        let outside = UdpSocket::bind(joining.address).await.unwrap();
        let shared = Arc::new(Shared {
            hub,
            outside,
            sky: watch::Sender::new(Sky::default()),
            ways: Mutex::default(),
            dice: Mutex::new(Dice(7)),
        });
        tokio::spawn(up(Arc::clone(&shared)));
        Self {
            address: joining.address,
            shared,
            _joining: joining,
        }
    }

    /// From now on it is like this.
    pub(crate) fn sky(&self, sky: Sky) {
        self.shared.sky.send_replace(sky);
    }

    /// What comes from agents reaches the hub from another port from now on, as it does when a NAT
    /// forgets and maps anew.
    pub(crate) fn rebind(&self) {
        self.shared.ways.lock().clear();
    }

    /// Waits until an agent has said something since.
    pub(crate) async fn heard(&self, within: Duration) {
        let looking = async {
            while self.shared.ways.lock().is_empty() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let heard = tokio::time::timeout(within, looking).await;
        assert!(heard.is_ok(), "nothing comes within {within:?}");
    }
}

async fn up(shared: Arc<Shared>) {
    let mut datagram = vec![0; 65_536];
    while let Ok((count, agent)) = shared.outside.recv_from(&mut datagram).await {
        let way = way(&shared, agent).await;
        let bytes = datagram[..count].to_vec();
        for delay in fate(&shared) {
            let (way, bytes, hub) = (Arc::clone(&way), bytes.clone(), shared.hub);
            tokio::spawn(async move {
                sleep(delay).await;
                drop(way.send_to(&bytes, hub).await);
            });
        }
    }
}

/// The socket by which an agent's datagrams go on; made for the first of them.
async fn way(shared: &Arc<Shared>, agent: SocketAddr) -> Arc<UdpSocket> {
    let known = shared.ways.lock().get(&agent).cloned();
    if let Some(way) = known {
        return way;
    }
    let way = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    shared.ways.lock().insert(agent, Arc::clone(&way));
    tokio::spawn(down(Arc::clone(shared), Arc::clone(&way), agent));
    way
}

async fn down(shared: Arc<Shared>, way: Arc<UdpSocket>, agent: SocketAddr) {
    let mut datagram = vec![0; 65_536];
    while let Ok((count, _)) = way.recv_from(&mut datagram).await {
        let current = shared.ways.lock().get(&agent).cloned();
        if !current.is_some_and(|current| Arc::ptr_eq(&current, &way)) {
            // The NAT has forgotten this one: nothing comes back through it.
            return;
        }
        let bytes = datagram[..count].to_vec();
        for delay in fate(&shared) {
            let (shared, bytes) = (Arc::clone(&shared), bytes.clone());
            tokio::spawn(async move {
                sleep(delay).await;
                drop(shared.outside.send_to(&bytes, agent).await);
            });
        }
    }
}

/// When a datagram arrives: once, twice or never.
fn fate(shared: &Shared) -> Vec<Duration> {
    let sky = *shared.sky.borrow();
    let mut dice = shared.dice.lock();
    if dice.below(100) < sky.lost {
        return Vec::new();
    }
    let copies = 1 + usize::from(dice.below(100) < sky.twice);
    (0..copies)
        .map(|_| match dice.below(100) < sky.late {
            true => sky.delay * 2,
            false => sky.delay,
        })
        .collect()
}
