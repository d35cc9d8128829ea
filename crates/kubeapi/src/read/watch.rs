//! Watches: what is there, if it was asked for; then every change once and in order; bookmarks in
//! between; an honest end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::{Clock, Shutdown};
use object::{Version, splice};
use store::{Ahead, At, Ended, Event, Page, Part, Reader, Refused, Row, Step, Want, Watch, What};

use super::encode::{Bookmark, Encoder, EventKind, error_event};
use super::options::{Start, WatchOptions};
use super::overlay::Over;
use super::{Overlay, PASSED_OVER, refused, too_old, unreadable, wait_for};
use crate::Status;
use crate::table::Headings;

/// How often a client that understands bookmarks gets one.
pub const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts at least where the client names no time; at most twice as long, so that
/// not all end at once.
pub const LASTING_MIN: Duration = Duration::from_secs(1800);
/// How long it is waited, once a kind is not held any more, for the word that there is none. Both
/// come from one hub, which learns of them in different ways; without that word it is 410.
const GOES_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of events that are put together at once.
const PIECE_BYTES: usize = 32 * 1024;

/// A watch on its way to a client.
pub struct Watching {
    reader: Reader,
    watch: Watch,
    want: Want,
    encoder: Encoder,
    clock: Clock,
    shutdown: Shutdown,
    initial: Option<Initial>,
    queue: VecDeque<Arc<Event>>,
    /// The version of the newest bookmark or event that was sent.
    sent: Version,
    bookmarks: bool,
    bookmark_at: Instant,
    end_at: Instant,
    headings: Headings,
    done: bool,
    /// Set once and kept: to set a timer for each event would cost more than the event.
    alarm: Option<(Instant, Signal)>,
    stop: Option<Signal>,
    /// Says that the kind has gone; nothing once it has said so, or for a kind that stays.
    gone: Option<Signal>,
    has_gone: bool,
    /// Until when it is waited whether the kind has gone.
    goes_until: Option<Instant>,
    over: Option<Over>,
}

/// Something that will be said once.
pub type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What was there when the watch started, as far as it is not sent yet.
struct Initial {
    page: Page,
    sent: usize,
}

/// How a watch begins: with a stream, or with a stream that only says why there is none.
pub enum Begun {
    /// Events follow.
    Watching(Box<Watching>),
    /// One error event, as Kubernetes sends it, and the end; only the end, if the time is over.
    Ended(Bytes),
}

/// What a watch runs with.
pub struct Surroundings {
    /// The time.
    pub clock: Clock,
    /// Ends all watches.
    pub shutdown: Shutdown,
    /// A number from 0 to 1 that spreads ends and bookmarks in time.
    pub spread: f64,
    /// What is shown otherwise than it is stored.
    pub overlay: Option<Arc<dyn Overlay>>,
    /// Says that the kind has gone, for one that may without a word of the store.
    pub gone: Option<Signal>,
}

/// Starts a watch.
pub async fn watch(
    reader: &Reader,
    encoder: Encoder,
    want: Want,
    options: &WatchOptions,
    around: Surroundings,
) -> Result<Begun, Status> {
    if options.time == Some(Duration::ZERO) {
        return Ok(Begun::Ended(Bytes::new()));
    }
    if let Start::State(Some(version)) = &options.start
        && let Err(status) = wait_for(reader, &want, version).await
    {
        return match status.code {
            504 => Ok(Begun::Ended(error_event(&status))),
            _ => Err(status),
        };
    }
    let (from, initial) = match &options.start {
        Start::After(version) => (version.clone(), None),
        Start::State(_) => {
            let page = reader
                .page(&want, &At::Now, &Part::default())
                .map_err(refused)?;
            let (version, sent) = (page.version.clone(), 0);
            (version, Some(Initial { page, sent }))
        }
        Start::Now => {
            reader.floor(&want).map_err(refused)?;
            let now = reader.version(&want.resource);
            (now.ok_or_else(|| refused(Refused::NotCovered))?, None)
        }
    };
    let over = around.overlay.map(|it| Over::new(it, &options.start));
    let watch = match reader.watch(&want, &from) {
        Ok(watch) => watch,
        Err(why) => return Ok(Begun::Ended(error_event(&too_old(why)?))),
    };
    let now = around.clock.now();
    let lasting = match options.time {
        Some(time) => time.min(LASTING_MAX),
        None => LASTING_MIN.mul_f64(1.0 + around.spread),
    };
    Ok(Begun::Watching(Box::new(Watching {
        reader: reader.clone(),
        watch,
        want,
        encoder,
        clock: around.clock,
        shutdown: around.shutdown,
        initial,
        queue: VecDeque::new(),
        sent: from,
        bookmarks: options.bookmarks,
        bookmark_at: now + BOOKMARK_EVERY.mul_f64(0.9 + 0.1 * around.spread),
        end_at: now + lasting,
        headings: Headings::Shown,
        done: false,
        alarm: None,
        stop: None,
        gone: around.gone,
        has_gone: false,
        goes_until: None,
        over,
    })))
}

/// Waits for a signal; for ever if there is none.
async fn said(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => signal.await,
        None => std::future::pending().await,
    }
}

/// A day: a client may not hold a watch for ever, and arithmetic on time stays small.
const LASTING_MAX: Duration = Duration::from_secs(24 * 3600);

impl Watching {
    /// What to do next, without waiting.
    pub fn turn(&mut self) -> Turn {
        if self.done {
            return Turn::End;
        }
        match self.step() {
            Ok(Turn::End) => {
                self.done = true;
                Turn::End
            }
            Ok(turn) => turn,
            Err(status) => {
                self.done = true;
                Turn::Send(error_event(&status))
            }
        }
    }

    fn step(&mut self) -> Result<Turn, Status> {
        if let Some(bytes) = self.initial_piece()? {
            return Ok(Turn::Send(bytes));
        }
        let progress = loop {
            if let Some(bytes) = self.queued()? {
                return Ok(Turn::Send(bytes));
            }
            match self.watch.step() {
                Ok(Step::Events(events)) => self.queue.extend(events),
                Ok(Step::Progress(version)) => break version,
                Err(Ended::Replaced) => return self.replaced(),
                Err(why) => return Err(ended(why)),
            }
        };
        if let Some(bytes) = self.overlaid(&progress)? {
            return Ok(Turn::Send(bytes));
        }
        let now = self.clock.now();
        let over = now >= self.end_at;
        if self.bookmarks && (over || now >= self.bookmark_at) {
            // The last bookmark lets the client come back without a gap and without a list.
            self.bookmarks = !over;
            self.bookmark_at = now + BOOKMARK_EVERY;
            // A watch that started in the future has nothing to say before that comes.
            let reached = self.reader.version(&self.want.resource);
            if reached.is_some_and(|reached| progress <= reached) {
                return self.bookmark(&progress, Bookmark::Progress).map(Turn::Send);
            }
        }
        Ok(if over || self.has_gone || self.shutdown.is_triggered() {
            Turn::End
        } else {
            Turn::Wait
        })
    }

    /// What is watched was replaced. A custom kind that went with its definition ends its watches
    /// without a word: whoever asks again is told what is so. Of a kind that stays, 410 is said:
    /// who came back with his version would wait for changes that he was never told of.
    fn replaced(&mut self) -> Result<Turn, Status> {
        let kind = &self.encoder.kind;
        // A table of our own starts afresh with its definition and for no other reason.
        let is_ours = kind.custom.is_some() && !kind.told;
        if is_ours || self.is_gone() {
            return Ok(Turn::End);
        }
        // What is held of it no more may have gone; what is held has not.
        if self.gone.is_some() && !self.reader.covers(&self.want) {
            let now = self.clock.now();
            let until = *self.goes_until.get_or_insert(now + GOES_WITHIN);
            if now < until && !self.shutdown.is_triggered() {
                return Ok(Turn::Wait);
            }
        }
        Err(ended(Ended::Replaced))
    }

    /// Whether the kind has gone by now.
    fn is_gone(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let said = |gone: &mut Signal| gone.as_mut().poll(&mut context).is_ready();
        if self.gone.as_mut().is_some_and(said) {
            (self.gone, self.has_gone) = (None, true);
        }
        self.has_gone
    }

    /// Comes back when there may be something to do.
    pub async fn wait(&mut self) {
        let until = match self.goes_until {
            Some(until) => until,
            None if self.bookmarks => self.bookmark_at.min(self.end_at),
            None => self.end_at,
        };
        // Both are kept from one wait to the next: to set them anew for each event costs more than
        // the event.
        if self.alarm.as_ref().is_none_or(|(at, _)| *at != until) {
            let clock = self.clock.clone();
            self.alarm = Some((
                until,
                Box::pin(async move { clock.sleep_until(until).await }),
            ));
        }
        let shutdown = &self.shutdown;
        let stop = self.stop.get_or_insert_with(|| {
            let shutdown = shutdown.clone();
            Box::pin(async move { shutdown.triggered().await })
        });
        let (_, alarm) = self.alarm.as_mut().expect("it was set above");
        tokio::select! {
            () = self.watch.changed() => {}
            () = alarm => self.alarm = None,
            () = stop => self.stop = None,
            () = said(self.gone.as_mut()) => (self.gone, self.has_gone) = (None, true),
            () = Over::turned(self.over.as_mut()) => {}
        }
    }

    /// Objects that came to be shown otherwise since it was last said, as MODIFIED at the version
    /// that the watch has reached: the one exception to versions that only increase.
    ///
    /// What is shown as it is stored again is shown at its own version: nothing else may be written
    /// back to the cluster, and nothing may ever come that would set another one right. A bookmark
    /// follows at once, so that a client which takes its place from every event does not go back.
    /// To one that takes no bookmarks its place is worth more than the version.
    fn overlaid(&mut self, at: &Version) -> Result<Option<Bytes>, Status> {
        let Some(over) = &mut self.over else {
            return Ok(None);
        };
        let turn = *over.turns.borrow_and_update();
        if turn == over.sent {
            return Ok(None);
        }
        let resource = &self.want.resource;
        let names = over.overlay.changed(resource, over.sent);
        over.sent = turn;
        let overlay = Arc::clone(&over.overlay);
        let reached = self.reader.version(resource);
        let follows = self.bookmarks && reached.is_some_and(|reached| *at <= reached);
        let (mut out, mut goes_back) = (Vec::new(), false);
        for name in names {
            let Some(row) = self.reader.row(resource, &name) else {
                continue;
            };
            let selected =
                self.want.range.contains(&row.header) && self.want.selector.matches(&row.header);
            // What is newer than the watch comes as an event, with what lies over it.
            if !selected || row.header.version > *at {
                continue;
            }
            let object = self.reader.object(resource, &name).map_err(unreadable)?;
            let Some(object) = object.filter(|it| it.header.version == row.header.version) else {
                continue;
            };
            let shown = overlay.shown(resource, &name, (&object.bytes, at));
            let bytes = match shown {
                Some(shown) => shown,
                None if follows => {
                    goes_back = true;
                    object.bytes
                }
                None => splice::with_version(&object.bytes, at)
                    .map_err(|error| Status::internal(error.to_string()))?,
            };
            let headings = std::mem::replace(&mut self.headings, Headings::Omitted);
            let now = self.clock.wall();
            out.extend(
                self.encoder
                    .event(EventKind::Modified, &bytes, headings, now)?,
            );
        }
        if goes_back {
            out.extend(self.bookmark(at, Bookmark::Progress)?);
        }
        Ok(Some(out.into()).filter(|out: &Bytes| !out.is_empty()))
    }

    /// What lies over an object, if anything does.
    fn over(&self, row: &Row) -> Option<Arc<dyn Overlay>> {
        let over = &self.over.as_ref()?.overlay;
        let covers = over.covers(&self.want.resource, &row.header.name);
        covers.then(|| Arc::clone(over))
    }

    /// ADDED for what was there, then the bookmark that ends it.
    fn initial_piece(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(initial) = &mut self.initial else {
            return Ok(None);
        };
        let now = self.clock.wall();
        let mut out = Vec::new();
        let mut ahead = Ahead::default();
        while out.len() < PIECE_BYTES && initial.sent < initial.page.rows.len() {
            let bytes = initial.page.read(initial.sent, &mut ahead);
            let mut bytes = bytes.map_err(|why| unreadable(why.into()))?;
            if let Some(over) = &self.over {
                let name = &initial.page.rows[initial.sent].header.name;
                let at = (&bytes, &initial.page.version);
                let shown = over.overlay.shown(&self.want.resource, name, at);
                bytes = shown.unwrap_or(bytes);
            }
            initial.sent += 1;
            let headings = std::mem::replace(&mut self.headings, Headings::Omitted);
            out.extend(
                self.encoder
                    .event(EventKind::Added, &bytes, headings, now)?,
            );
        }
        if initial.sent == initial.page.rows.len() {
            let version = initial.page.version.clone();
            self.initial = None;
            if self.bookmarks {
                out.extend(self.bookmark(&version, Bookmark::InitialEnd)?);
            }
        }
        Ok(Some(out.into()).filter(|out: &Bytes| !out.is_empty()))
    }

    /// What waits, up to a piece. One event alone goes out as the bytes that all watchers share;
    /// for a watcher that is behind several are put together, so that it catches up at little
    /// cost.
    fn queued(&mut self) -> Result<Option<Bytes>, Status> {
        let mut alone: Option<Bytes> = None;
        let mut together = Vec::new();
        while together.len() + alone.as_ref().map_or(0, Bytes::len) < PIECE_BYTES {
            let Some(event) = self.queue.pop_front() else {
                break;
            };
            let Some(bytes) = self.event(&event)? else {
                continue;
            };
            match alone.take() {
                None if together.is_empty() => alone = Some(bytes),
                before => {
                    together.extend_from_slice(&before.unwrap_or_default());
                    together.extend_from_slice(&bytes);
                }
            }
        }
        Ok(alone.or_else(|| (!together.is_empty()).then(|| together.into())))
    }

    /// What a change is to this watcher: nothing, if the object was not selected before and is not
    /// now.
    fn event(&mut self, event: &Event) -> Result<Option<Bytes>, Status> {
        let What::Changed { before, after } = &event.what else {
            return Ok(None);
        };
        let selected = |row: &&Arc<Row>| {
            self.want.range.contains(&row.header) && self.want.selector.matches(&row.header)
        };
        let (kind, row) = match (
            before.as_ref().filter(selected),
            after.as_ref().filter(selected),
        ) {
            (None, None) => return Ok(None),
            (None, Some(after)) => (EventKind::Added, after),
            (Some(_), Some(after)) => (EventKind::Modified, after),
            (Some(before), None) => (EventKind::Deleted, before),
        };
        self.sent.clone_from(&event.version);
        let headings = std::mem::replace(&mut self.headings, Headings::Omitted);
        let over = self.over(row);
        let make = || {
            let resource = &self.want.resource;
            let bytes = self
                .reader
                .event_bytes(resource, event, row)
                .map_err(unreadable)?;
            let bytes = match (kind, &over) {
                // What went is shown as it was, at the version at which it went.
                (EventKind::Deleted, _) => splice::with_version(&bytes, &event.version)
                    .map_err(|error| Status::internal(error.to_string()))?,
                (_, None) => bytes,
                (_, Some(over)) => over
                    .shown(resource, &row.header.name, (&bytes, &event.version))
                    .unwrap_or(bytes),
            };
            self.encoder
                .event(kind, &bytes, headings, self.clock.wall())
        };
        match self.encoder.is_plain() && over.is_none() {
            true => event.encoded(kind as usize, make).map(Some),
            false => make().map(Some),
        }
    }

    fn bookmark(&mut self, version: &Version, which: Bookmark) -> Result<Bytes, Status> {
        assert!(*version >= self.sent, "a bookmark never goes back");
        self.sent.clone_from(version);
        let headings = std::mem::replace(&mut self.headings, Headings::Omitted);
        self.encoder
            .bookmark(version, which, headings, self.clock.wall())
    }
}

/// What a watch does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// These bytes go to the client.
    Send(Bytes),
    /// Nothing is left to send now.
    Wait,
    /// It is over.
    End,
}

/// Why a watch that had begun cannot go on. The client lists again.
fn ended(why: Ended) -> Status {
    match why {
        Ended::Lagged => Status::expired("too old resource version: the watch was too slow"),
        Ended::Replaced => {
            Status::expired("too old resource version: what is watched was replaced")
        }
        Ended::PassedOver => Status::expired(PASSED_OVER),
        Ended::Damaged => Status::internal("what is watched is damaged in the store"),
    }
}
