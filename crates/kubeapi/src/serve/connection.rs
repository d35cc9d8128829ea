//! An accepted stream -> requests. HTTP/1.1 or HTTP/2 as the two ends agreed; a client that takes
//! nothing is cut, never skipped.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host::listen::{Accepted, Protocol};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use store::Gauge;

use super::limits::{
    HEAD_BYTES_MAX, RESETS_PENDING_MAX, SEND_BUFFER_BYTES, STALL_TIME_MAX, STREAMS_MAX,
};
use super::patience::{Noticed, Patience};
use super::{Api, route};
use crate::who::{User, certificate};

/// What is known of a connection.
pub(super) struct Peer {
    /// The user that its certificate names.
    pub(super) user: Option<Arc<User>>,
    /// Its open watches and long lists.
    pub(super) streams: Mutex<Vec<Watched>>,
}

/// An open stream of ours, seen from outside.
pub(super) struct Watched {
    source: Source,
    /// Gone when the stream is.
    alive: std::sync::Weak<()>,
    /// What had been taken at the last look, if more was waiting: the same at the next look means
    /// that nothing moves.
    taken: Option<u64>,
}

/// What feeds a stream.
pub(super) enum Source {
    /// A watch: something waits when history went on.
    Watch(Gauge),
    /// A list: something waits until it is all taken. The pieces taken so far.
    List(Arc<AtomicU64>),
}

impl Peer {
    /// Keeps an eye on a stream as long as `alive` lives.
    pub(super) fn look_after(&self, source: Source, alive: &Arc<()>) {
        let watched = Watched {
            source,
            alive: Arc::downgrade(alive),
            taken: None,
        };
        self.streams.lock().push(watched);
    }

    /// Whether a stream stood still between two looks although something waited for it.
    fn is_stuck(&self) -> bool {
        let mut streams = self.streams.lock();
        streams.retain(|watched| watched.alive.strong_count() > 0);
        let mut stuck = false;
        for watched in streams.iter_mut() {
            let (taken, waits) = match &watched.source {
                Source::Watch(gauge) => (gauge.taken(), gauge.behind() > 0),
                Source::List(pieces) => (pieces.load(Ordering::Relaxed), true),
            };
            stuck |= waits && watched.taken == Some(taken);
            watched.taken = waits.then_some(taken);
        }
        stuck
    }
}

/// Serves one connection until it ends.
pub async fn serve(api: Arc<Api>, accepted: Accepted) {
    let user = match accepted.peer.as_deref().map(certificate::user).transpose() {
        Ok(user) => user.map(|user| Arc::new(user.authenticated())),
        Err(error) => {
            tracing::debug!(remote = %accepted.remote, %error, "a certificate names nobody");
            return;
        }
    };
    let peer = Arc::new(Peer {
        user,
        streams: Mutex::default(),
    });
    let ended = match accepted.protocol {
        Protocol::Http1 => http1(api, peer, accepted).await,
        Protocol::Http2 => http2(api, peer, accepted).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn http1(api: Arc<Api>, peer: Arc<Peer>, accepted: Accepted) -> Result<(), hyper::Error> {
    let shutdown = api.shutdown.clone();
    let looked_at = peer.clone();
    let patience = Patience::new(api.clock.clone());
    let stream = Noticed {
        stream: accepted.stream,
        patience: patience.clone(),
    };
    let requests = patience.clone();
    let service = service_fn(move |request| {
        let (api, peer, busy) = (api.clone(), peer.clone(), requests.request());
        async move {
            let mut response = route::answer(api, peer, request).await;
            response.body_mut().hold(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX as usize)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stuck(&looked_at) => return Ok(()),
        () = patience.exhausted() => {}
        () = shutdown.triggered() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

async fn http2(api: Arc<Api>, peer: Arc<Peer>, accepted: Accepted) -> Result<(), hyper::Error> {
    let shutdown = api.shutdown.clone();
    let looked_at = peer.clone();
    let service = service_fn(move |request| {
        let (api, peer) = (api.clone(), peer.clone());
        async move { Ok::<_, Infallible>(route::answer(api, peer, request).await) }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_pending_accept_reset_streams(RESETS_PENDING_MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(STALL_TIME_MAX)
        .keep_alive_timeout(STALL_TIME_MAX)
        .serve_connection(TokioIo::new(accepted.stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stuck(&looked_at) => return Ok(()),
        () = shutdown.triggered() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Comes back when a stream of this connection is stuck: its client takes nothing although
/// something waits for it.
async fn stuck(peer: &Peer) {
    loop {
        tokio::time::sleep(STALL_TIME_MAX).await;
        if peer.is_stuck() {
            tracing::info!("a client that takes nothing was cut");
            return;
        }
    }
}
