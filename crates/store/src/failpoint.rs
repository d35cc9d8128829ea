//! Named places where a test can stop the process dead, to see what a crash just there leaves
//! behind.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Whether any place is armed: one relaxed load is all that production pays.
static ARMED: AtomicBool = AtomicBool::new(false);
static PLACE: Mutex<Option<String>> = Mutex::new(None);
static PASSES: AtomicU64 = AtomicU64::new(0);

/// Every place, so that a test can visit each and fail if one is never reached.
pub const PLACES: [&str; 9] = [
    "store.before_txn",
    "store.after_write_before_fsync",
    "store.after_fsync_before_ack",
    "store.rotate_mid",
    "compact.mid",
    "compact.before_rename",
    "compact.after_rename",
    "compact.mid_remove",
    "watch.before_fanout",
];

/// The process dies, as by kill -9, when `place` is passed for the `passes`-th time. For tests
/// only.
pub fn arm(place: &str, passes: u64) {
    *PLACE.lock() = Some(place.to_owned());
    PASSES.store(passes, Ordering::SeqCst);
    ARMED.store(true, Ordering::SeqCst);
}

type Visitor = Box<dyn FnMut(&'static str)>;

thread_local! {
    static VISITOR: RefCell<Option<Visitor>> = const { RefCell::new(None) };
}

/// Whoever passes a place on this thread is told to `visitor` from now on, who may have the disk
/// die there: for the simulator, in which a process is no process. Nothing ends it.
pub fn visit(visitor: Option<Visitor>) {
    if visitor.is_some() {
        ARMED.store(true, Ordering::SeqCst);
    }
    VISITOR.set(visitor);
}

/// Passes a named place.
pub(crate) fn pass(place: &'static str) {
    debug_assert!(
        PLACES.contains(&place),
        "a place must be listed to be visited"
    );
    if !ARMED.load(Ordering::Relaxed) {
        return;
    }
    VISITOR.with_borrow_mut(|visitor| visitor.iter_mut().for_each(|visit| visit(place)));
    if PLACE.lock().as_deref() != Some(place) {
        return;
    }
    if PASSES.fetch_sub(1, Ordering::SeqCst) == 1 {
        let own = rustix::process::getpid();
        // Nothing runs after this, no destructor and no flush: that is the point.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    }
}
