//! How many of a session's streams each caller may have, and the stream of one that has a place.
//!
//! A token that only the cluster can judge may be nobody's: whoever comes with one must not keep
//! out those who are known, and nobody may keep out the node itself.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::stream::STREAMS_MAX;

/// Streams of all callers together whom only the cluster can judge. Further ones are told to come
/// again.
const STRANGERS_MAX: usize = STREAMS_MAX / 4;
/// Streams of one account. Further ones are told to come again.
const ACCOUNT_MAX: usize = STREAMS_MAX / 2;
/// Streams of everybody but the node: what is left is for the node alone.
const OTHERS_MAX: usize = STREAMS_MAX - STREAMS_MAX / 4;

/// Who asks the cluster something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The node itself.
    Node,
    /// Somebody who is known here, by this name.
    Account(Arc<str>),
    /// Somebody whose token only the cluster can judge.
    Stranger,
}

/// The places that are taken.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Taken>);

/// How many streams each has. Who has none is not in it, so it is as short as there are streams.
#[derive(Debug, Default)]
struct Taken {
    by_caller: HashMap<Whose, usize>,
    others: usize,
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    places: Arc<Places>,
    whose: Whose,
}

impl Places {
    /// A place for a caller, if it may have another.
    pub(super) fn take(self: &Arc<Self>, whose: Whose) -> Option<Share> {
        let mut taken = self.0.lock();
        let most = match whose {
            Whose::Node => usize::MAX,
            Whose::Account(_) => ACCOUNT_MAX,
            Whose::Stranger => STRANGERS_MAX,
        };
        let other = whose != Whose::Node;
        let its = taken.by_caller.get(&whose).copied().unwrap_or(0);
        if its >= most || (other && taken.others >= OTHERS_MAX) {
            return None;
        }
        *taken.by_caller.entry(whose.clone()).or_default() += 1;
        taken.others += usize::from(other);
        let places = Arc::clone(self);
        Some(Share { places, whose })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        taken.others -= usize::from(self.whose != Whose::Node);
        if let Some(its) = taken.by_caller.get_mut(&self.whose) {
            *its -= 1;
            if *its == 0 {
                taken.by_caller.remove(&self.whose);
            }
        }
    }
}

/// A stream that holds a place as long as there is anything of it: also after its connection has
/// changed its protocol.
pub(super) struct Placed<S> {
    stream: S,
    _share: Share,
}

impl<S> Placed<S> {
    pub(super) fn new(stream: S, share: Share) -> Self {
        let _share = share;
        Self { stream, _share }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Placed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Placed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> Whose {
        Whose::Account(name.into())
    }

    fn all(places: &Arc<Places>, whose: &Whose) -> Vec<Share> {
        let more = || places.take(whose.clone());
        std::iter::from_fn(more).take(STREAMS_MAX).collect()
    }

    #[test]
    fn strangers_share_a_quarter_an_account_has_half_and_the_node_what_is_left() {
        let places = Arc::new(Places::default());
        let strangers = all(&places, &Whose::Stranger);
        assert_eq!(strangers.len(), STREAMS_MAX / 4);
        let one = all(&places, &account("one"));
        assert_eq!(one.len(), STREAMS_MAX / 2);
        assert!(places.take(account("two")).is_none());
        assert!(all(&places, &Whose::Node).len() >= STREAMS_MAX / 4);
        drop(strangers);
        assert!(places.take(account("one")).is_none());
        assert_eq!(all(&places, &account("two")).len(), STREAMS_MAX / 4);
        drop(one);
        assert!(places.0.lock().by_caller.is_empty());
    }
}
