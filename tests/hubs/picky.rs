//! A node that does not take one of the objects that it is sent, and all others.

use std::sync::Arc;
use std::time::Duration;

use edge::keep::{Begun, Keep, Stored};
use host::websocket::{self, Received, Socket};
use host::{Clock, Times, dial};
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use wire::frame::{Asides, Delivery, Fault, Frame, Hello, MESSAGE_BYTES_MAX, Machine, frames};
use wire::session::{FEATURES, PROTOCOL_NEWEST, PROTOCOL_OLDEST, Receiver, Task};

use crate::stage::{Hub, Stage};

/// How long to reach a hub.
const WITHIN: Duration = Duration::from_secs(10);

/// A node that has joined.
pub(crate) struct Picky {
    socket: Socket<dial::Secure>,
    keep: Keep,
    /// The name of the object that it does not take.
    refuses: &'static str,
}

impl Picky {
    /// A node that joins at a hub and opens a link.
    pub(crate) async fn join(stage: &Stage, name: &str, hub: &Hub, refuses: &'static str) -> Self {
        let clock = Clock::machine();
        let address = hub.address.clone();
        let rotation = stage
            .join(name, std::slice::from_ref(&address), &clock)
            .await;
        let identity = rotation.current().borrow().clone();
        let tls = identity.tls(&clock).unwrap();
        let tcp = dial::dial(address.address(), WITHIN).await.unwrap();
        let opened = dial::encrypted(tcp, address.name().clone(), tls, WITHIN).await;
        let socket = websocket::connect(opened.unwrap(), address.address()).await;
        let disk = Arc::new(MemoryDisk::default());
        let options = Options::new(format!("node {name}"));
        let replica = Replica::open(disk, options, clock).unwrap();
        Self {
            socket: socket.unwrap(),
            keep: Keep::new(replica),
            refuses,
        }
    }

    /// Keeps its session for as long as it is asked to.
    pub(crate) async fn run(self) {
        let times = Times::new(Clock::machine());
        let (mut reader, mut writer) = self.socket.split();
        let mut receiver = Receiver::new(hello(&self.keep).await, times.now());
        let mut begun = Begun::default();
        loop {
            let mut message = Vec::new();
            while let Some(frame) = receiver.next(&self.keep, || None, times.now()).unwrap() {
                frame.encode(&mut message);
            }
            if !message.is_empty() {
                writer.write_message(&message).await.unwrap();
            }
            let wakes_at = times.moment(receiver.wakes_at());
            let received = tokio::select! {
                received = reader.read(MESSAGE_BYTES_MAX) => received.unwrap(),
                () = times.clock().sleep_until(wakes_at) => continue,
            };
            let Received::Message(message) = received else {
                panic!("the hub ends it: {received:?}");
            };
            for frame in frames(&message, MESSAGE_BYTES_MAX).unwrap() {
                if let Some(reject) = refused(&frame, self.refuses) {
                    writer.write_message(&reject).await.unwrap();
                    continue;
                }
                for task in receiver.take(frame, &self.keep, times.now()).unwrap() {
                    store(&self.keep, &mut begun, &mut receiver, task).await;
                }
                let rest = receiver.flush();
                if let Some(task) = rest {
                    store(&self.keep, &mut begun, &mut receiver, task).await;
                }
            }
        }
    }
}

/// The word that a delivery is not taken, if it is the one that is not.
fn refused(frame: &Frame, name: &str) -> Option<Vec<u8>> {
    let Frame::Deliver {
        number,
        delivery: Delivery::Put { name: object, .. },
    } = frame
    else {
        return None;
    };
    let mut message = Vec::new();
    let reject = Frame::Reject {
        number: *number,
        fault: Fault::NoObject,
        words: "it is not for me".into(),
    };
    reject.encode(&mut message);
    (object.name() == name).then_some(message)
}

async fn store(keep: &Keep, begun: &mut Begun, receiver: &mut Receiver, task: Task) {
    let stored = match task {
        Task::Store(piece) => Stored::Piece(piece),
        Task::Document {
            number,
            name,
            bytes,
        } => Stored::Document {
            number,
            name,
            bytes,
        },
        Task::Welcome(_) | Task::Reported(_) | Task::Stream { .. } => return,
    };
    let number = keep.store(stored, begun).await.unwrap();
    receiver.stored(number);
}

async fn hello(keep: &Keep) -> Hello {
    Hello {
        oldest: PROTOCOL_OLDEST,
        newest: PROTOCOL_NEWEST,
        session: keep.next_session().await.unwrap(),
        features: FEATURES,
        program: "picky".into(),
        holdings: keep.holdings(),
        machine: Machine {
            host: "shop".into(),
            os: "linux".into(),
            arch: "arm64".into(),
        },
        staged: Vec::new(),
        documents: Vec::new(),
        aside: Asides::default(),
    }
}
