//! A watcher that checks what it is told: every event must be the one that all others got there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::event::{Events, Kind, Mark};

/// The one order of events. The first watcher to get so far writes it, all others are held to it.
pub(crate) struct Record(Vec<AtomicU64>);

impl Record {
    pub(crate) fn new(events_max: usize) -> Arc<Self> {
        Arc::new(Self((0..events_max).map(|_| AtomicU64::new(0)).collect()))
    }

    /// Everything that watchers were told, in order.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let packed = self.0.iter().map(|cell| cell.load(Ordering::Acquire));
        packed.map_while(unpack).collect()
    }

    fn check(&self, index: usize, mark: Mark) -> Result<(), String> {
        let Some(cell) = self.0.get(index) else {
            return Err(format!("event {index}: more events than writes: {mark:?}"));
        };
        let packed = pack(mark);
        match cell.compare_exchange(0, packed, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(there) if there == packed => Ok(()),
            Err(there) => {
                let other = unpack(there);
                Err(format!(
                    "event {index}: got {mark:?}, another watcher got {other:?}"
                ))
            }
        }
    }
}

/// One open watch.
pub(crate) struct Watcher {
    body: Incoming,
    record: Arc<Record>,
    seen: usize,
    events: Events,
}

impl Watcher {
    pub(crate) fn new(body: Incoming, record: Arc<Record>) -> Self {
        Self {
            body,
            record,
            seen: 0,
            events: Events::default(),
        }
    }

    /// Reads until the event of the change with this number; gives how many events there were.
    pub(crate) async fn read_until(mut self, last: u32) -> Result<usize, String> {
        let seen_last = |mark: &Mark| mark.change == last;
        loop {
            let Some(frame) = self.body.frame().await else {
                return Err(format!("the watch ended after {} events", self.seen));
            };
            let frame = frame.map_err(|error| format!("after {} events: {error}", self.seen))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if self.take(&bytes)?.as_ref().is_some_and(seen_last) {
                return Ok(self.seen);
            }
        }
    }

    /// Takes in the whole events of what came; gives the last of them.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<Mark>, String> {
        let mut last = None;
        let (record, seen) = (&self.record, &mut self.seen);
        self.events.take(bytes, |mark| {
            record.check(*seen, mark)?;
            *seen += 1;
            last = Some(mark);
            Ok::<(), String>(())
        })?;
        Ok(last)
    }
}

/// An event in eight bytes, of which none is zero as a whole.
fn pack(mark: Mark) -> u64 {
    let kind = match mark.kind {
        Kind::Added => 1,
        Kind::Modified => 2,
        Kind::Deleted => 3,
    };
    assert!(
        mark.change < 1 << 30,
        "changes are numbered with thirty bits"
    );
    kind << 62 | u64::from(mark.change) << 32 | u64::from(mark.version)
}

fn unpack(packed: u64) -> Option<Mark> {
    let kind = match packed >> 62 {
        0 => return None,
        1 => Kind::Added,
        2 => Kind::Modified,
        _ => Kind::Deleted,
    };
    let change = (packed >> 32) as u32 & ((1 << 30) - 1);
    Some(Mark {
        kind,
        change,
        version: packed as u32,
    })
}
