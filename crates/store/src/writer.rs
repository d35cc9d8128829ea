//! The writer's thread: takes what callers want stored, lets the feeder decide, and makes many of
//! them durable with one sync.

use std::sync::Arc;
use std::time::Duration;

use host::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::disk::Disk;
use crate::log::{Counting, Durable, Failed, Log, Options};
use crate::reader::Reader;
use crate::recover::OpenError;

/// Requests that wait for the writer. Past this callers wait for room: nothing is dropped.
const REQUESTS_MAX: usize = 1024;
/// Bytes that one sync makes durable at most; what comes later waits for the next.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often old history is dropped although nothing is written, if it is kept that long.
const TRIM_EVERY: Duration = Duration::from_secs(30);
/// However short history is, it is not looked after more often than this.
const TRIM_EVERY_MIN: Duration = Duration::from_secs(1);

/// Decides what a request does to the log. Two lives: the authority, and the replica.
pub(crate) trait Feeder: Send + 'static {
    /// What callers ask for.
    type Request: Send + 'static;
    /// What they get when it is on disk.
    type Answer: Send + 'static;
    /// Why nothing was staged.
    type Refusal: From<Failed> + Send + 'static;

    /// Stages what the request asks for, all or nothing.
    fn decide(
        &mut self,
        request: Self::Request,
        log: &mut Log,
    ) -> Result<Self::Answer, Self::Refusal>;
}

/// A request on its way, with the place for its answer.
type Envelope<F> = (
    <F as Feeder>::Request,
    oneshot::Sender<Result<(<F as Feeder>::Answer, Durable), <F as Feeder>::Refusal>>,
);

/// Hands requests to the writer's thread. Dropping the last handle ends the thread after what was
/// handed in is done.
pub(crate) struct Writer<F: Feeder> {
    hand: Hand<F>,
    reader: Reader,
}

/// Who does what is asked for.
enum Hand<F: Feeder> {
    /// A thread of its own.
    Thread {
        requests: mpsc::Sender<Envelope<F>>,
        thread: Arc<Joined>,
    },
    /// Whoever asks, at once: nothing happens beside, so that everything can happen again.
    Caller(Arc<Mutex<Option<(F, Log)>>>),
}

/// The thread, joined when the last handle goes: when the store is dropped, its files are closed
/// and its lock is free.
struct Joined {
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    /// Tells the thread to take nothing new.
    closing: Arc<Notify>,
}

impl Joined {
    fn join(&self) {
        self.closing.notify_one();
        // The lock is held meanwhile, so that whoever closes second waits as well.
        let mut thread = self.thread.lock();
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's writer panicked");
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.join();
    }
}

impl<F: Feeder> Clone for Writer<F> {
    fn clone(&self) -> Self {
        let hand = match &self.hand {
            Hand::Thread { requests, thread } => Hand::Thread {
                requests: requests.clone(),
                thread: thread.clone(),
            },
            Hand::Caller(own) => Hand::Caller(own.clone()),
        };
        let reader = self.reader.clone();
        Self { hand, reader }
    }
}

impl<F: Feeder> Writer<F> {
    /// Opens the store and starts its thread.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        options: Options,
        counting: Counting,
        clock: Clock,
        feeder: impl FnOnce(&mut Log) -> F,
    ) -> Result<Self, OpenError> {
        let mut log = Log::open(disk, options, counting, clock)?;
        let reader = Reader::new(log.shared.clone());
        let feeder = feeder(&mut log);
        let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
        let closing = Arc::new(Notify::new());
        let told = closing.clone();
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || run(inbox, feeder, log, &told))?;
        let thread = Arc::new(Joined {
            thread: Mutex::new(Some(thread)),
            closing,
        });
        let hand = Hand::Thread { requests, thread };
        Ok(Self { hand, reader })
    }

    /// Opens the store without a thread: whoever asks for something does it.
    pub(crate) fn start_here(
        disk: Arc<dyn Disk>,
        options: Options,
        counting: Counting,
        clock: Clock,
        feeder: impl FnOnce(&mut Log) -> F,
    ) -> Result<Self, OpenError> {
        let mut log = Log::open(disk, options, counting, clock)?;
        log.compact_here();
        let reader = Reader::new(log.shared.clone());
        let feeder = feeder(&mut log);
        let hand = Hand::Caller(Arc::new(Mutex::new(Some((feeder, log)))));
        Ok(Self { hand, reader })
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Comes back when the request is on disk, or refused.
    pub(crate) async fn ask(
        &self,
        request: F::Request,
    ) -> Result<(F::Answer, Durable), F::Refusal> {
        let requests = match &self.hand {
            Hand::Thread { requests, .. } => requests,
            Hand::Caller(own) => return perform(own, request),
        };
        let (answer, answered) = oneshot::channel();
        if requests.send((request, answer)).await.is_err() {
            return Err(Failed::Closed.into());
        }
        answered
            .await
            .unwrap_or_else(|_| Err(Failed::Closed.into()))
    }

    /// The same from a thread that may block.
    pub(crate) fn ask_blocking(
        &self,
        request: F::Request,
    ) -> Result<(F::Answer, Durable), F::Refusal> {
        let requests = match &self.hand {
            Hand::Thread { requests, .. } => requests,
            Hand::Caller(own) => return perform(own, request),
        };
        let (answer, answered) = oneshot::channel();
        if requests.blocking_send((request, answer)).is_err() {
            return Err(Failed::Closed.into());
        }
        answered
            .blocking_recv()
            .unwrap_or_else(|_| Err(Failed::Closed.into()))
    }

    /// Waits until all that was handed in is done and the files are closed. Other handles get
    /// `Closed` afterwards.
    pub(crate) fn close(self) {
        match self.hand {
            Hand::Thread { thread, .. } => thread.join(),
            Hand::Caller(own) => {
                if let Some((_, mut log)) = own.lock().take() {
                    log.close();
                }
            }
        }
    }
}

/// Does what is asked for, on the caller's thread.
fn perform<F: Feeder>(
    own: &Mutex<Option<(F, Log)>>,
    request: F::Request,
) -> Result<(F::Answer, Durable), F::Refusal> {
    let mut own = own.lock();
    let Some((feeder, log)) = own.as_mut() else {
        return Err(Failed::Closed.into());
    };
    let decided = feeder.decide(request, log);
    let durable = log.sync()?;
    Ok((decided?, durable))
}

fn run<F: Feeder>(
    mut inbox: mpsc::Receiver<Envelope<F>>,
    mut feeder: F,
    mut log: Log,
    closing: &Notify,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime that only keeps time needs nothing of the system");
    let trim_every = log.history_age_max().clamp(TRIM_EVERY_MIN, TRIM_EVERY);
    let mut trims = runtime.block_on(async {
        let first = tokio::time::Instant::now() + trim_every;
        tokio::time::interval_at(first, trim_every)
    });
    trims.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut quiet = true;
    loop {
        let woken = runtime.block_on(async {
            tokio::select! {
                biased;
                () = closing.notified() => Woken::<F>::Closing,
                _ = trims.tick() => Woken::Trim,
                first = inbox.recv() => Woken::Asked(first),
            }
        });
        match woken {
            // What was handed in before is still taken out and done.
            Woken::Closing => inbox.close(),
            Woken::Trim => {
                log.trim();
                if std::mem::replace(&mut quiet, true) {
                    log.rest();
                }
            }
            Woken::Asked(Some(first)) => {
                quiet = false;
                serve(first, &mut inbox, &mut feeder, &mut log);
            }
            Woken::Asked(None) => break,
        }
    }
    log.close();
}

/// Why the thread woke up.
enum Woken<F: Feeder> {
    Closing,
    Trim,
    Asked(Option<Envelope<F>>),
}

/// Takes in what waits, makes it durable together, and answers.
fn serve<F: Feeder>(
    first: Envelope<F>,
    inbox: &mut mpsc::Receiver<Envelope<F>>,
    feeder: &mut F,
    log: &mut Log,
) {
    let mut waiting = Vec::new();
    let mut next = Some(first);
    let mut taken = 0;
    while let Some((request, answer)) = next {
        taken += 1;
        waiting.push((answer, feeder.decide(request, log)));
        // Requests that are refused add no bytes: a flood of them must not hold up the others.
        let full = log.staged_bytes() >= GROUP_BYTES_MAX || taken >= REQUESTS_MAX;
        next = if full { None } else { inbox.try_recv().ok() };
    }
    let synced = log.sync();
    for (answer, decided) in waiting {
        let result = match (decided, &synced) {
            (Ok(decided), Ok(durable)) => Ok((decided, *durable)),
            // What was decided may rest on what was only staged then, also where it is a refusal:
            // one that is told before that can be read would be met again at once, and one that
            // rests on what was not stored is not true.
            (Err(refusal), Ok(_)) => Err(refusal),
            (_, Err(failed)) => Err(failed.clone().into()),
        };
        // Nobody is told less because the caller left.
        drop(answer.send(result));
    }
}
