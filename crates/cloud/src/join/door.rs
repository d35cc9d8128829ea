//! A connection -> an answer, or a link: what stands behind the hub's one port.
//!
//! The head of the request is read once. `/join` and `/renew` are answered and the connection ends;
//! `/link` becomes a WebSocket, if the peer is a node and not revoked. Until then nothing is kept
//! for a connection, and it has a few seconds.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use host::curt::Curt;
use host::http::head::Malformed;
use host::http::{self, Opening, Post, Refused, Response};
use host::listen::{Accepted, Stream};
use host::quic;
use host::websocket::{self, AcceptFailed, Role, Socket};
use rustls::pki_types::CertificateDer;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tracing::debug;
use wire::join::{BODY_BYTES_MAX, JOIN_PATH, RENEW_PATH, Refusal};

use super::desk::{Answer, Desk, Question};
use super::records::Records;
use super::signer::Peer;
use super::{Happening, Why};

/// How long a peer has to say what it wants, with everything that belongs to it.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// How long an answer may take on our side: a few requests to the cluster.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// A node that opened a link.
pub struct Linked<S = Curt<Stream>> {
    /// The link.
    pub socket: Socket<S>,
    /// Who it is, by its certificate.
    pub peer: Peer,
    /// From where.
    pub remote: SocketAddr,
}

/// What became of a connection.
pub struct Entered<S = Curt<Stream>> {
    /// The link, if it is one. Whoever takes it asks [`super::Revocations`] again at the hello.
    pub link: Option<Linked<S>>,
    /// What people should see in the cluster.
    pub happened: Option<Happening>,
}

/// Takes a connection that finished its TLS handshake. It never fails: what goes wrong ends the
/// connection.
pub async fn enter<R: Records>(accepted: Accepted, desk: &Desk<R>) -> Entered {
    let mut accepted = accepted;
    let read = timeout(REQUEST_TIME_MAX, http::read_opening(&mut accepted.stream)).await;
    let Ok(Ok(opening)) = read else {
        debug!(remote = %accepted.remote, "a connection ended before it said what it wants");
        return Entered::nothing();
    };
    let path = opening.as_ref().ok().and_then(Opening::path);
    match (path, &opening) {
        (Some(path @ (JOIN_PATH | RENEW_PATH)), Ok(opening)) => {
            let path = path.to_owned();
            let happened = serve(accepted, opening, &path, desk).await;
            Entered {
                link: None,
                happened,
            }
        }
        (Some(websocket::PATH), _) => link(accepted, opening, desk).await,
        // Whatever else it is, it is told so.
        _ => {
            upgrade(accepted.stream, opening).await;
            Entered::nothing()
        }
    }
}

/// Takes a QUIC stream, on which messages go at once: whoever may not have a link is told so by the
/// end of the connection.
pub fn enter_quic<R: Records>(accepted: quic::Accepted, desk: &Desk<R>) -> Entered<quic::Stream> {
    let quic::Accepted {
        stream,
        peer,
        remote,
    } = accepted;
    match judge(peer.as_ref(), desk) {
        Ok(peer) => Entered {
            link: Some(Linked {
                socket: Socket::new(stream, Role::Server, Bytes::new()),
                peer,
                remote,
            }),
            happened: None,
        },
        Err(NotLinked { words, why, .. }) => {
            stream.refuse(words);
            let refused = |why| refused_link(peer.as_ref(), remote, why);
            Entered {
                link: None,
                happened: why.map(refused),
            }
        }
    }
}

/// Why a peer may not have a link.
struct NotLinked {
    status: u16,
    words: &'static str,
    /// Nothing where it is our fault.
    why: Option<Why>,
}

/// Whether a peer may have a link.
fn judge<R: Records>(
    peer: Option<&CertificateDer<'static>>,
    desk: &Desk<R>,
) -> Result<Peer, NotLinked> {
    let not = |status, words, why| {
        Err(NotLinked {
            status,
            words,
            why: Some(why),
        })
    };
    match peer.map(Peer::read) {
        Some(Ok(peer)) if !desk.revocations().refuses(&peer) => Ok(peer),
        Some(Ok(_)) if desk.revocations().known().is_none() => Err(NotLinked {
            status: 503,
            words: NOT_READY,
            why: None,
        }),
        Some(Ok(_)) => not(403, "the node is revoked", Why::Revoked),
        Some(Err(_)) => {
            let words = "the certificate is not one of a node";
            not(403, words, Why::WrongCertificate)
        }
        None => {
            let words = "a link needs a node's certificate";
            not(401, words, Why::WrongCertificate)
        }
    }
}

fn refused_link(peer: Option<&CertificateDer<'static>>, remote: SocketAddr, why: Why) -> Happening {
    debug!(%remote, %why, "a link was refused");
    let node = peer.and_then(|peer| Peer::read(peer).ok());
    let node = node.map(|peer| peer.node);
    Happening::Refused { node, remote, why }
}

impl Entered {
    fn nothing() -> Self {
        Self {
            link: None,
            happened: None,
        }
    }
}

async fn serve<R: Records>(
    mut accepted: Accepted,
    opening: &Opening,
    path: &str,
    desk: &Desk<R>,
) -> Option<Happening> {
    let remote = accepted.remote;
    let answer = match Post::read(&opening.head, BODY_BYTES_MAX) {
        Err(refused) => plain(refused),
        Ok(post) => {
            let body = http::read_body(&mut accepted.stream, &opening.early, post.length);
            let Ok(Ok(body)) = timeout(REQUEST_TIME_MAX, body).await else {
                debug!(%remote, "a request did not arrive whole");
                return None;
            };
            let question = Question {
                path,
                body: &body,
                peer: accepted.peer.as_ref(),
                remote,
            };
            match timeout(ANSWER_TIME_MAX, desk.answer(question)).await {
                Ok(answer) => answer,
                Err(_) => slow(),
            }
        }
    };
    tell(accepted.stream, &answer.response).await;
    answer.happened
}

async fn link<R: Records>(
    accepted: Accepted,
    opening: Result<Opening, Malformed>,
    desk: &Desk<R>,
) -> Entered {
    let remote = accepted.remote;
    let not = match judge(accepted.peer.as_ref(), desk) {
        Ok(peer) => {
            let socket = upgrade(accepted.stream, opening).await;
            let link = socket.map(|socket| Linked {
                socket,
                peer,
                remote,
            });
            return Entered {
                link,
                happened: None,
            };
        }
        Err(not) => not,
    };
    let later = not.why.is_none().then_some(SOON);
    tell(accepted.stream, &refusal(not.status, not.words, later)).await;
    let peer = accepted.peer.as_ref();
    Entered {
        link: None,
        happened: not.why.map(|why| refused_link(peer, remote, why)),
    }
}

/// Opens the WebSocket, or says why not.
async fn upgrade(
    stream: Stream,
    opening: Result<Opening, Malformed>,
) -> Option<Socket<Curt<Stream>>> {
    let opened = async {
        let stream = Curt::new(stream).map_err(AcceptFailed::Lost)?;
        websocket::accept_opening(stream, opening).await
    };
    match timeout(REQUEST_TIME_MAX, opened).await {
        Ok(Ok(socket)) => Some(socket),
        Ok(Err(error)) => {
            debug!(%error, "no link was opened");
            None
        }
        Err(_) => None,
    }
}

/// Writes an answer and waits a moment for the peer to have read it: closing a connection on which
/// something is unread would take the answer back.
async fn tell(mut stream: Stream, response: &Response) {
    let said = timeout(
        REQUEST_TIME_MAX,
        http::write_response(&mut stream, response),
    )
    .await;
    if matches!(said, Ok(Ok(()))) {
        let mut rest = stream.take(UNREAD_BYTES_MAX);
        let mut sink = tokio::io::sink();
        let drained = tokio::io::copy(&mut rest, &mut sink);
        drop(timeout(UNREAD_TIME_MAX, drained).await);
    }
}

fn plain(refused: Refused) -> Answer {
    Answer {
        response: refusal(refused.status(), &refused.to_string(), None),
        happened: None,
    }
}

fn slow() -> Answer {
    Answer {
        response: refusal(503, "the cluster took too long", Some(SOON)),
        happened: None,
    }
}

fn refusal(status: u16, words: &str, retry_after: Option<Duration>) -> Response {
    let error = words.to_owned();
    Response {
        status,
        retry_after,
        body: serde_json::to_vec(&Refusal { error }).expect("texts can be written as JSON"),
    }
}

const NOT_READY: &str = "this hub does not know yet who is revoked";
const SOON: Duration = Duration::from_secs(5);

/// What a refused peer may still send before its connection is closed.
const UNREAD_BYTES_MAX: u64 = 1024 * 1024;
const UNREAD_TIME_MAX: Duration = Duration::from_secs(1);
