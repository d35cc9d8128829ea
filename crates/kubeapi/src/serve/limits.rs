//! How much of everything one client, and all clients together, may send or hold open. Past a limit
//! a client is told so, and when to come back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::Status;

/// Bytes of a request's body: what a kube-apiserver reads.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A body that stops coming for this long is given up.
pub const BODY_IDLE_MAX: Duration = Duration::from_secs(30);
/// An HTTP/1 connection that a client keeps for later is closed after this long without a request.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(180);
/// A head that is not complete by then is given up.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of all headers of a request.
pub const HEAD_BYTES_MAX: u32 = 64 * 1024;
/// Streams that one HTTP/2 connection may have open. A client with many watches opens more
/// connections.
pub const STREAMS_MAX: u32 = 250;
/// Streams that a client may reset before we looked at them; more is an attack, and ends the
/// connection.
pub const RESETS_PENDING_MAX: usize = 50;
/// Bytes that are buffered for one HTTP/2 stream before its source has to wait.
pub const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Limits that an operator may set.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests under way that are no watches, for all clients.
    pub requests_max: usize,
    /// Of these, for one user.
    pub requests_per_user_max: usize,
    /// Watches, for all clients.
    pub watches_max: usize,
    /// Of these, for one user.
    pub watches_per_user_max: usize,
    /// A peer that takes nothing for this long, although something waits for it, is cut.
    pub stall_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_max: 400,
            requests_per_user_max: 200,
            watches_max: 8192,
            watches_per_user_max: 4096,
            stall_time_max: Duration::from_secs(30),
        }
    }
}

/// What is in use.
pub struct Gate {
    requests: Arc<Counts>,
    watches: Arc<Counts>,
}

struct Counts {
    most: usize,
    most_per_user: usize,
    in_use: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    all: usize,
    by_user: HashMap<Arc<str>, usize>,
}

/// A place among those that a limit counts; given back when dropped.
pub struct Pass {
    counts: Arc<Counts>,
    user: Arc<str>,
}

impl Gate {
    /// Nothing in use yet.
    pub fn new(limits: &Limits) -> Self {
        let counts = |most, most_per_user| {
            Arc::new(Counts {
                most,
                most_per_user,
                in_use: Mutex::default(),
            })
        };
        Self {
            requests: counts(limits.requests_max, limits.requests_per_user_max),
            watches: counts(limits.watches_max, limits.watches_per_user_max),
        }
    }

    /// A place for a request.
    pub fn request(&self, user: &str) -> Result<Pass, Status> {
        Counts::enter(&self.requests, user)
    }

    /// A place for a watch.
    pub fn watch(&self, user: &str) -> Result<Pass, Status> {
        Counts::enter(&self.watches, user)
    }

    /// Watches that are open.
    pub fn watches(&self) -> usize {
        self.watches.in_use.lock().all
    }
}

impl Counts {
    fn enter(counts: &Arc<Self>, user: &str) -> Result<Pass, Status> {
        let mut in_use = counts.in_use.lock();
        let of_user = in_use.by_user.get(user).copied().unwrap_or(0);
        if in_use.all >= counts.most || of_user >= counts.most_per_user {
            let message = "too many requests, please try again later";
            return Err(Status::try_again(429, "TooManyRequests", message, 1));
        }
        let user: Arc<str> = user.into();
        in_use.all += 1;
        *in_use.by_user.entry(user.clone()).or_default() += 1;
        Ok(Pass {
            counts: counts.clone(),
            user,
        })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut in_use = self.counts.in_use.lock();
        in_use.all -= 1;
        if let Some(count) = in_use.by_user.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                in_use.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_all_places() {
        let limits = Limits {
            requests_max: 3,
            requests_per_user_max: 2,
            ..Limits::default()
        };
        let gate = Gate::new(&limits);
        let first = gate.request("a").unwrap();
        let _second = gate.request("a").unwrap();
        let refused = gate.request("a").err().unwrap();
        assert_eq!(
            (refused.code, refused.retry_after_seconds()),
            (429, Some(1))
        );
        let _third = gate.request("b").unwrap();
        assert_eq!(gate.request("b").err().unwrap().code, 429);
        drop(first);
        assert!(gate.request("b").is_ok());
    }
}
