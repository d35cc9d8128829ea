//! Two boards with a link between them, and tasks that use its streams.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tunnel::{Arrived, Board, Caller, Closed, NotOpened, Opener, Tube, closed};
use wire::frame::{Cause, Frame, Said};
use wire::stream::{Limits, STREAMS_MAX, Side};

const KIB: usize = 1024;
/// Whatever takes longer stands still.
const STUCK: Duration = Duration::from_secs(60);

/// One end of a link: its board, and what wakes its loop.
struct End {
    board: Mutex<Option<Board>>,
    woken: Arc<Notify>,
}

impl End {
    fn new(side: Side) -> Self {
        let woken = Arc::new(Notify::new());
        let wake = Arc::clone(&woken);
        let board = Board::new(side, Limits::default(), move || wake.notify_one());
        let board = Mutex::new(Some(board));
        Self { board, woken }
    }

    fn with<T>(&self, look: impl FnOnce(&Board) -> T) -> T {
        look(self.board.lock().as_ref().unwrap())
    }

    fn opener(&self) -> Opener {
        self.with(Board::opener)
    }

    fn bytes(&self) -> usize {
        self.with(Board::bytes)
    }
}

/// Both ends, and what arrived at each and nobody took yet.
struct Link {
    ends: [End; 2],
    arrived: Mutex<Vec<Arrived>>,
    came: Notify,
}

impl Link {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            ends: [Side::Agent, Side::Hub].map(End::new),
            arrived: Mutex::default(),
            came: Notify::new(),
        })
    }

    fn agent(&self) -> &End {
        &self.ends[0]
    }

    fn hub(&self) -> &End {
        &self.ends[1]
    }

    /// Carries what one end says to the other, a chunk at a time, for ever.
    async fn carry(&self, from: usize) {
        loop {
            self.ends[from].woken.notified().await;
            while let Some(frame) = self.next(from) {
                let Frame::Stream { id, said } = frame else {
                    panic!("only streams are carried");
                };
                self.arrive(1 - from, id, said);
                tokio::task::yield_now().await;
            }
        }
    }

    fn arrive(&self, to: usize, id: u64, said: Said) {
        let to = &self.ends[to];
        let board = to.board.lock();
        let Some(board) = &*board else { return };
        if let Some(arrived) = board.take(id, said).unwrap() {
            self.arrived.lock().push(arrived);
            self.came.notify_one();
        }
        // A loop asks what is to be said after everything that came.
        to.woken.notify_one();
    }

    fn next(&self, from: usize) -> Option<Frame> {
        self.ends[from].board.lock().as_ref()?.next(16 * KIB)
    }

    /// A stream that is open at both ends.
    async fn pair(&self) -> (Tube, Tube) {
        let ours = self.agent().opener().open("test", Caller::Waits).unwrap();
        (ours, self.take().await.tube)
    }

    async fn take(&self) -> Arrived {
        loop {
            if let Some(arrived) = self.arrived.lock().pop() {
                return arrived;
            }
            self.came.notified().await;
        }
    }
}

/// Runs something over a link. What stands still fails.
fn over_a_link<F: Future<Output = ()>>(act: impl FnOnce(Arc<Link>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let link = Link::new();
        let carry = async { tokio::join!(link.carry(0), link.carry(1)) };
        tokio::select! {
            _ = carry => unreachable!("it goes on for ever"),
            done = timeout(STUCK, act(Arc::clone(&link))) => done.expect("it stands still"),
        }
    });
}

/// Lets everything happen that can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let byte = |at: u64| (at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    (0..count as u64).map(|at| byte(at) as u8).collect()
}

/// Writes in pieces of a size, and says that it is all.
async fn write(tube: &mut (impl AsyncWriteExt + Unpin), all: &[u8], piece: usize) {
    for piece in all.chunks(piece) {
        tube.write_all(piece).await.unwrap();
    }
    tube.shutdown().await.unwrap();
}

/// Reads to the end, in pieces of a size, with a pause now and then.
async fn read(tube: &mut (impl AsyncReadExt + Unpin), piece: usize, pause: u64) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0; piece];
    loop {
        let count = tube.read(&mut buffer).await.unwrap();
        if count == 0 {
            return all;
        }
        all.extend_from_slice(&buffer[..count]);
        if pause > 0 {
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
    }
}

fn cause(error: &std::io::Error) -> Closed {
    closed(error).expect("a tube said why").clone()
}

/// What one stream carries: bytes there and back, in pieces, read slowly or not.
#[derive(Debug, Clone)]
struct Exchange {
    there: usize,
    back: usize,
    piece: usize,
    pause: u64,
    /// After so many bytes whoever opened it goes away.
    leaves: Option<usize>,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let sizes = (0..300 * KIB, 0..300 * KIB, 1..40 * KIB);
    let leaves = proptest::option::weighted(0.3, 1..200 * KIB);
    (sizes, 0..50_u64, leaves).prop_map(|((there, back, piece), pause, leaves)| Exchange {
        there,
        back,
        // Single bytes are read and written too, as long as they are few.
        piece: if there + back < 2000 {
            1
        } else {
            piece.max(64)
        },
        pause,
        leaves,
    })
}

async fn plays(link: Arc<Link>, exchange: Exchange, seed: u64) {
    let opener = link.agent().opener();
    let tube = opener.open(&seed.to_string(), Caller::Waits).unwrap();
    let (mut reader, mut writer) = tokio::io::split(tube);
    let request = bytes(seed, exchange.there);
    if let Some(most) = exchange.leaves {
        // Who goes away before anything is sent is never heard of.
        settle().await;
        let some = async {
            let mut buffer = vec![0; exchange.piece];
            let mut got = 0;
            while got < most {
                match reader.read(&mut buffer).await.unwrap() {
                    0 => break,
                    count => got += count,
                }
            }
        };
        tokio::select! {
            () = some => {}
            () = write(&mut writer, &request, exchange.piece) => {}
        }
        return;
    }
    let (answer, ()) = tokio::join!(
        read(&mut reader, exchange.piece, exchange.pause),
        write(&mut writer, &request, exchange.piece)
    );
    assert_eq!(answer, bytes(!seed, exchange.back), "whole and in order");
}

/// The other end: it reads and answers at once, and may be left alone at any time.
async fn serves(tube: Tube, exchange: Exchange, seed: u64) {
    let (mut reader, mut writer) = tokio::io::split(tube);
    let answer = bytes(!seed, exchange.back);
    let reads = async {
        let mut all = Vec::new();
        let ended = reader.read_to_end(&mut all).await;
        if exchange.leaves.is_none() {
            ended.unwrap();
            assert_eq!(all, bytes(seed, exchange.there), "whole and in order");
        }
    };
    let writes = async {
        let wrote = async {
            for piece in answer.chunks(exchange.piece) {
                writer.write_all(piece).await?;
            }
            writer.shutdown().await
        };
        let wrote = wrote.await;
        assert!(wrote.is_ok() || exchange.leaves.is_some(), "{wrote:?}");
    };
    tokio::join!(reads, writes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_arrives_in_order_and_whole_and_nothing_stands_still(
        exchanges in prop::collection::vec(exchange(), 1..8),
    ) {
        over_a_link(async |link| {
            let mut tasks = JoinSet::new();
            let count = exchanges.len();
            for (seed, exchange) in exchanges.iter().cloned().enumerate() {
                tasks.spawn(plays(Arc::clone(&link), exchange, seed as u64));
            }
            for _ in 0..count {
                let Arrived { purpose, tube } = link.take().await;
                let seed: u64 = purpose.parse().unwrap();
                let exchange = exchanges[usize::try_from(seed).unwrap()].clone();
                tasks.spawn(serves(tube, exchange, seed));
            }
            while let Some(joined) = tasks.join_next().await {
                joined.unwrap();
            }
            settle().await;
            for end in &link.ends {
                assert_eq!((end.with(Board::len), end.bytes()), (0, 0), "nothing is left");
            }
        });
    }
}

#[test]
fn a_reader_that_stands_still_stops_its_own_stream_and_no_other() {
    over_a_link(async |link| {
        let (mut stuck, mut far) = link.pair().await;
        let mut wrote = 0;
        while timeout(Duration::from_secs(1), far.write_all(&[7; KIB]))
            .await
            .is_ok()
        {
            wrote += KIB;
        }
        assert!((64 * KIB..=128 * KIB).contains(&wrote), "{wrote}");
        assert!(link.agent().bytes() <= 64 * KIB && link.hub().bytes() <= 64 * KIB);
        let (mut other, mut far_other) = link.pair().await;
        let all = bytes(1, 500 * KIB);
        let ((), got) = tokio::join!(
            write(&mut far_other, &all, 10 * KIB),
            read(&mut other, 4 * KIB, 0)
        );
        assert_eq!(got, all);
        // It goes on as soon as it reads.
        let mut some = vec![0; 60 * KIB];
        stuck.read_exact(&mut some).await.unwrap();
        far.write_all(&[7; KIB]).await.unwrap();
    });
}

#[test]
fn what_was_written_before_the_end_arrives_though_nobody_holds_the_tube() {
    over_a_link(async |link| {
        let (mut ours, mut theirs) = link.pair().await;
        ours.write_all(b"question").await.unwrap();
        let all = bytes(3, 60 * KIB);
        write(&mut theirs, &all, KIB).await;
        // The question was never read, and whoever asked has not said that it was all.
        drop(theirs);
        assert_eq!(read(&mut ours, KIB, 10).await, all);
        // The rest of the question is not needed: writing it does no harm.
        ours.write_all(&[0; 200 * KIB]).await.unwrap();
        drop(ours);
        settle().await;
        assert!(link.agent().with(Board::is_empty) && link.hub().with(Board::is_empty));
    });
}

#[test]
fn who_goes_away_before_the_end_is_noticed_at_the_other_end() {
    over_a_link(async |link| {
        let (ours, mut theirs) = link.pair().await;
        drop(ours);
        let gone = theirs.read_u8().await.unwrap_err();
        assert_eq!(cause(&gone).cause, Cause::Cancelled);
        assert!(theirs.write_all(b"x").await.is_err());

        let (mut ours, mut theirs) = link.pair().await;
        theirs.write_all(b"half of").await.unwrap();
        drop(theirs);
        let mut all = Vec::new();
        let broken = ours.read_to_end(&mut all).await.unwrap_err();
        assert_eq!(
            cause(&broken).cause,
            Cause::Broken,
            "never taken for the end"
        );
    });
}

#[test]
fn a_stream_that_nobody_takes_is_closed_with_the_reason() {
    over_a_link(async |link| {
        let opener = link.agent().opener();
        let mut ours = opener.open("strange", Caller::Waits).unwrap();
        let arrived = link.take().await;
        assert_eq!(&*arrived.purpose, "strange");
        arrived
            .tube
            .close(Cause::NotServed, "no strange things here");
        let refused = ours.read_u8().await.unwrap_err();
        let refused = cause(&refused);
        assert_eq!(refused.cause, Cause::NotServed);
        assert!(refused.to_string().contains("no strange things here"));
    });
}

#[test]
fn when_the_session_ends_every_stream_fails_and_none_is_opened() {
    over_a_link(async |link| {
        let (mut ours, mut theirs) = link.pair().await;
        let (mut done, mut answered) = link.pair().await;
        write(&mut answered, b"all of it", KIB).await;
        settle().await;
        let opener = link.agent().opener();
        let waits = async {
            let failed = ours.read_u8().await.unwrap_err();
            assert!(cause(&failed).to_string().contains("cut"), "{failed}");
        };
        let ends = async {
            settle().await;
            link.agent().with(|board| board.end("the link was cut"));
        };
        tokio::join!(waits, ends);
        assert!(ours.write_all(b"x").await.is_err());
        // What had come as a whole can be read.
        assert_eq!(read(&mut done, KIB, 0).await, b"all of it");
        assert_eq!(
            opener.open("x", Caller::Waits).unwrap_err(),
            NotOpened::Over
        );
        assert!(opener.is_over());
        // A loop that is dropped ends everything as well.
        drop(link.hub().board.lock().take());
        assert!(theirs.read_u8().await.is_err());
        drop((ours, theirs, done, answered));
        assert!(link.agent().with(Board::is_empty));
    });
}

#[test]
fn as_many_streams_are_opened_as_may_be_and_no_more() {
    over_a_link(async |link| {
        let opener = link.agent().opener();
        let open = || opener.open("x", Caller::Waits);
        let mut all: Vec<Tube> = (0..STREAMS_MAX).map(|_| open().unwrap()).collect();
        assert!(matches!(open(), Err(NotOpened::Streams(_))));
        all.pop();
        assert!(open().is_ok());
    });
}

#[test]
fn a_link_is_watched_closely_while_a_caller_waits_and_not_while_one_listens() {
    over_a_link(async |link| {
        let awaited = || link.agent().with(Board::is_awaited);
        assert!(!awaited());
        let (mut ours, mut theirs) = link.pair().await;
        assert!(awaited() && !link.hub().with(Board::is_awaited));
        theirs.write_all(b"head").await.unwrap();
        settle().await;
        assert!(awaited(), "it waits for everything");
        theirs.shutdown().await.unwrap();
        settle().await;
        assert!(!awaited());
        ours.shutdown().await.unwrap();

        let opener = link.agent().opener();
        let mut ours = opener.open("watch", Caller::Listens).unwrap();
        let mut theirs = link.take().await.tube;
        ours.write_all(b"request").await.unwrap();
        assert!(awaited());
        theirs.write_all(b"head").await.unwrap();
        settle().await;
        assert!(!awaited(), "what else comes may take hours");
        ours.write_all(b"more").await.unwrap();
        assert!(awaited());
        drop(ours);
        assert!(!awaited());
    });
}
