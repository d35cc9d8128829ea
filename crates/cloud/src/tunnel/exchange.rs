//! One request from a stream to the cluster, and its answer back.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use host::Clock;
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{self, OnUpgrade, Upgraded};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tracing::debug;
use tunnel::pieces::{Base, Pieces};
use tunnel::{Tube, hops};

use super::head::{self, Who};
use super::lanes::Taken;
use super::patient::Patient;
use super::refusal::Refusal;
use super::shares::Share;
use super::{Outcome, Tunnels};
use crate::cluster::Error;

/// How long a request's head may take.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes that are read ahead of a request, its head included: a longer head is refused.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a node may take nothing of an answer. Then the request to the cluster is given up.
const STUCK_TIME_MAX: Duration = Duration::from_secs(300);
/// How long a node may go on to say something to a cluster that has said everything.
const LAST_WORDS: Duration = Duration::from_secs(60);
/// Whom a node is in the cluster, before its name.
const NODE_USER: &str = "system:node:";
/// The group of all nodes.
const NODES: &str = "system:nodes";

/// What goes back: the cluster's answer, or our own.
type Answer = Response<Either<Passing, Full<Bytes>>>;

/// Serves one request, and what its connection changes to. If there is a base, both go in pieces,
/// and the answer is compared with what that is set to.
pub(super) async fn run(
    tunnels: Tunnels,
    (node, share): (Arc<str>, Share),
    tube: Tube,
    base: Option<Base>,
) {
    let patient = Patient::new(tube, tunnels.0.clock.clone(), STUCK_TIME_MAX);
    match base {
        None => serve(tunnels, (node, &share), patient, Base::default()).await,
        Some(base) => {
            let pieces = Pieces::answering(patient, base.clone());
            serve(tunnels, (node, &share), pieces, base).await;
        }
    }
}

async fn serve<S>(tunnels: Tunnels, (node, share): (Arc<str>, &Share), stream: S, base: Base)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let changed: Arc<Mutex<Changed>> = Arc::default();
    let service = service_fn(|request| {
        let (tunnels, node) = (tunnels.clone(), Arc::clone(&node));
        let changed = Arc::clone(&changed);
        // What the node has is looked for before its request changes it.
        compare(&tunnels, &request, &base);
        async move {
            let answer = answer(&tunnels, (&node, share), request, &changed).await;
            Ok::<Answer, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false);
    let served = http.serve_connection(TokioIo::new(stream), service);
    // Serving needs memory that what follows does not.
    let served = Box::pin(served.with_upgrades()).await;
    if let Err(error) = served {
        debug!(%node, %error, "a tunnelled request ended early");
    }
    let changed = std::mem::take(&mut *changed.lock());
    changed.go_on(&node, &tunnels.0.clock).await;
}

/// Sets what the answer is compared with to what the node says it has, if the hub has the same.
fn compare(tunnels: &Tunnels, request: &Request<Incoming>, base: &Base) {
    if let Some(held) = tunnels.held(request) {
        base.set(held);
    }
}

async fn answer(
    tunnels: &Tunnels,
    from: (&str, &Share),
    request: Request<Incoming>,
    changed: &Mutex<Changed>,
) -> Answer {
    let passed = pass(tunnels, from, request, changed).await;
    let (outcome, answer) = match passed {
        Ok((who, answer)) => (of(who), answer.map(Either::Left)),
        Err((outcome, refusal)) => (outcome, refusal.answer().map(Either::Right)),
    };
    tunnels.count(outcome);
    answer
}

/// Passes a request on, and gives the head of the answer.
async fn pass(
    tunnels: &Tunnels,
    (node, share): (&str, &Share),
    request: Request<Incoming>,
    changed: &Mutex<Changed>,
) -> Result<(Who, Response<Passing>), (Outcome, Refusal)> {
    let mut request = request;
    changed.lock().near = Some(upgrade::on(&mut request));
    let (mut head, body) = request.into_parts();
    let passed = head::pass(&mut head);
    let passed = passed.map_err(|refused| (Outcome::Refused, refused.into()))?;
    if !share.is_for(passed.who) {
        return Err((Outcome::Busy, Refusal::busy()));
    }
    let method = head.method.clone();
    let failed = |error: Error| (Outcome::Failed, Refusal::of(&error, &method));
    let taken = taken(tunnels, node, passed.who).map_err(failed)?;
    let mut request = Request::from_parts(head, body);
    let answer = match passed.upgrade {
        None => taken.client.pass(request).await.map_err(failed)?,
        Some(protocol) => {
            hops::say_upgrade(request.headers_mut(), protocol);
            let mut answer = taken.client.pass_alone(request).await.map_err(failed)?;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                changed.lock().far = Some(upgrade::on(&mut answer));
            }
            answer
        }
    };
    Ok((passed.who, back(answer, taken)))
}

/// A connection to the cluster on which a request in this name may go.
fn taken(tunnels: &Tunnels, node: &str, who: Who) -> Result<Taken, Error> {
    match who {
        Who::Bearer => Ok(tunnels.0.bare.take()),
        Who::Node => {
            let mut taken = tunnels.0.own.take();
            let user = format!("{NODE_USER}{node}");
            taken.client = taken.client.acting_as(&user, &[NODES])?;
            Ok(taken)
        }
    }
}

/// The cluster's answer, as it goes back.
fn back(answer: Response<Incoming>, taken: Taken) -> Response<Passing> {
    let (mut head, body) = answer.into_parts();
    let changes = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let protocol = hops::strip(&mut head.headers).filter(|_| changes);
    if let Some(protocol) = protocol {
        hops::say_upgrade(&mut head.headers, protocol);
    }
    // What the two ends speak between them is their own affair.
    head.version = http::Version::HTTP_11;
    head.extensions.clear();
    let taken = Some(taken);
    Response::from_parts(head, Passing { body, taken })
}

fn of(who: Who) -> Outcome {
    match who {
        Who::Bearer => Outcome::Bearer,
        Who::Node => Outcome::Node,
    }
}

/// What becomes of a connection after its request: it may speak another protocol from then on.
#[derive(Default)]
struct Changed {
    /// The stream, if a change was asked for.
    near: Option<OnUpgrade>,
    /// The connection to the cluster, if it agreed.
    far: Option<OnUpgrade>,
}

impl Changed {
    /// Carries bytes both ways until both are done.
    async fn go_on(self, node: &str, clock: &Clock) {
        let spliced = async {
            // Without a change that was asked for there is no stream left.
            let Some(Ok(near)) = wait(self.near).await else {
                return Ok(());
            };
            let mut near = TokioIo::new(near);
            let Some(far) = wait(self.far).await else {
                // It was answered in the old protocol, and that is all.
                return near.shutdown().await.map_err(Into::into);
            };
            let patience = async { clock.sleep_until(clock.now() + LAST_WORDS).await };
            tunnel::splice(near, TokioIo::new(far?), patience).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        };
        if let Err(error) = Box::pin(spliced).await {
            debug!(%node, %error, "a tunnelled connection broke");
        }
    }
}

async fn wait(upgrade: Option<OnUpgrade>) -> Option<Result<Upgraded, hyper::Error>> {
    match upgrade {
        Some(upgrade) => Some(upgrade.await),
        None => None,
    }
}

/// The body of an answer, and the place that it needs on the connection to the cluster.
struct Passing {
    body: Incoming,
    taken: Option<Taken>,
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None) = polled {
            self.taken = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
