//! An accepted stream -> requests. HTTP/1.1 or HTTP/2 as the two ends agreed; a client that takes
//! nothing is cut, never skipped.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use host::listen::socket::Local;
use host::listen::{Accepted, Protocol};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

use super::gather::Gathered;
use super::limits::{HEAD_BYTES_MAX, RESETS_PENDING_MAX, SEND_BUFFER_BYTES, STREAMS_MAX};
use super::line::Line;
use super::patience::Patience;
use super::payload::Flow;
use super::{Api, route};
use crate::who::{User, certificate};

/// What is known of a connection.
pub(super) struct Peer {
    /// The user that its certificate names, or that it is without one.
    pub(super) user: Option<Arc<User>>,
    /// Whether a token says more than that.
    pub(super) token: Token,
    /// Its open watches and long lists.
    streams: Mutex<Vec<Watched>>,
}

/// What a token says on a connection whose user is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Nothing: who showed a certificate is who it names.
    Nothing,
    /// Who asks: without one it is who the connection belongs to.
    Everything,
}

/// An open stream of ours, seen from outside.
struct Watched {
    /// Gone when the stream is.
    flow: Weak<Flow>,
    /// What had been taken at the last look, if more was waiting: the same at the next look means
    /// that nothing moves.
    taken: Option<u64>,
}

impl Peer {
    fn new(user: Option<Arc<User>>, token: Token) -> Arc<Self> {
        let streams = Mutex::default();
        Arc::new(Self {
            user,
            token,
            streams,
        })
    }

    /// Keeps an eye on a stream as long as it lives.
    pub(super) fn look_after(&self, flow: &Arc<Flow>) {
        let mut streams = self.streams.lock();
        if streams.len() == streams.capacity() {
            streams.retain(|watched| watched.flow.strong_count() > 0);
        }
        let flow = Arc::downgrade(flow);
        streams.push(Watched { flow, taken: None });
    }

    /// Whether a stream stood still between two looks although something waited for it.
    fn is_stuck(&self) -> bool {
        let mut stuck = false;
        self.streams.lock().retain_mut(|watched| {
            let Some(flow) = watched.flow.upgrade() else {
                return false;
            };
            let (taken, waits) = (flow.taken(), flow.waits());
            stuck |= waits && watched.taken == Some(taken);
            watched.taken = waits.then_some(taken);
            true
        });
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
    let peer = Peer::new(user, Token::Nothing);
    converse(api, peer, (accepted.stream, accepted.protocol)).await;
}

/// Serves one connection of the machine's own socket until it ends. Whoever shows no token is this
/// user.
pub async fn serve_local(api: Arc<Api>, user: User, local: Local) {
    let peer = Peer::new(Some(Arc::new(user)), Token::Everything);
    converse(api, peer, (local.stream, local.protocol)).await;
}

/// What a connection can be made of.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

async fn converse(api: Arc<Api>, peer: Arc<Peer>, (stream, protocol): (impl Stream, Protocol)) {
    let ended = match protocol {
        Protocol::Http1 => http1(api, peer, stream).await,
        Protocol::Http2 => http2(api, peer, stream).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn http1(api: Arc<Api>, peer: Arc<Peer>, stream: impl Stream) -> Result<(), hyper::Error> {
    let (shutdown, stall_time) = (api.shutdown.clone(), api.limits.stall_time_max);
    let looked_at = peer.clone();
    let patience = Patience::new(api.clock.clone());
    let stream = Line::new(stream, patience.clone());
    let line = stream.clone();
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
        .serve_connection(TokioIo::new(stream), service)
        // What is passed on may become another protocol.
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = line.hung_up() => return Ok(()),
        () = stuck(&looked_at, stall_time) => return Ok(()),
        () = patience.exhausted() => {}
        () = shutdown.triggered() => {}
    }
    connection.as_mut().graceful_shutdown();
    // Half a head would keep it open for ever, and so would a client that takes nothing.
    tokio::select! {
        biased;
        ended = connection => ended,
        () = line.hung_up() => Ok(()),
        () = stuck(&looked_at, stall_time) => Ok(()),
        () = patience.exhausted() => Ok(()),
    }
}

async fn http2(api: Arc<Api>, peer: Arc<Peer>, stream: impl Stream) -> Result<(), hyper::Error> {
    let (shutdown, stall_time) = (api.shutdown.clone(), api.limits.stall_time_max);
    let looked_at = peer.clone();
    let stream = Gathered::new(stream);
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
        .keep_alive_interval(stall_time)
        .keep_alive_timeout(stall_time)
        .serve_connection(TokioIo::new(stream.clone()), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = stream.run(connection.as_mut()) => return ended,
        () = stuck(&looked_at, stall_time) => return Ok(()),
        () = shutdown.triggered() => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = stream.run(connection) => ended,
        () = stuck(&looked_at, stall_time) => Ok(()),
    }
}

/// Comes back when a stream of this connection is stuck: its client takes nothing although
/// something waits for it.
async fn stuck(peer: &Peer, stall_time: Duration) {
    loop {
        tokio::time::sleep(stall_time).await;
        if peer.is_stuck() {
            tracing::info!("a client that takes nothing was cut");
            return;
        }
    }
}
