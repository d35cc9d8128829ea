//! A request -> who asks, whether he may, and which part answers. The order is the same for every
//! request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;

use super::answer::{Answer, refusal};
use super::beyond::{self, Reply};
use super::connection::Peer;
use super::paths::Root;
use super::payload::Payload;
use super::{Api, identity, objects, paths};
use crate::Status;
use crate::request::deadline::{REQUEST_TIME_MAX, deadline};
use crate::request::{BadPath, Query, ResourcePath, Target};
use crate::who::impersonate::Wanted;
use crate::who::question::field_requirements;
use crate::who::{Attributes, Place, User};
use crate::write::order::Verb;

/// A request that was decoded, and whose sender is known.
pub(super) struct Asked {
    pub(super) user: Arc<User>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) query: Query,
}

/// Answers one request.
pub(super) async fn answer(
    api: Arc<Api>,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Response<Payload> {
    let number = api.counter.fetch_add(1, Ordering::Relaxed) + 1;
    let gzip = takes_gzip(request.headers());
    let head = *request.method() == Method::HEAD;
    let answered = match api.beyond.clone() {
        Some(beyond) => match beyond::answer(&api, &beyond, &peer, request).await {
            Ok(Reply::Passed(response)) => {
                peer.look_after(response.body().flow());
                return response;
            }
            Ok(Reply::Here(answer)) => Ok(answer),
            Err(status) => Err(status),
        },
        None => everything(&api, &peer, request).await,
    };
    let mut response = match answered {
        Ok(answer) => answer.into_response(number, gzip && !head),
        Err(status) => refusal(status, number),
    };
    if head {
        // Nor may a refusal have a body then: over HTTP/2 it would break the stream.
        *response.body_mut() = Payload::empty();
    }
    response
}

/// Answers a request where everything is.
async fn everything(
    api: &Arc<Api>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> Result<Answer, Status> {
    let (parts, body) = request.into_parts();
    let target = match Target::parse(parts.uri.path()) {
        Ok(target) => target,
        Err(bad) => return bad_path(api, bad, parts.uri.path()),
    };
    let query = Query::parse(parts.uri.query().unwrap_or(""))?;
    let user = identity::user(api, peer, &parts.headers)?;
    let (method, headers) = (parts.method, parts.headers);
    let mut asked = Asked {
        user,
        method,
        headers,
        query,
    };
    let question = question(&asked, &target)?;
    if let Err(status) = authorize(api, &mut asked, question) {
        return Ok(Answer::from(status).guarded());
    }
    match target {
        Target::Other(segments) => paths::answer(api, &asked, &segments),
        Target::Resource(path) => {
            let time = time_max(&path, &asked.query)?;
            in_time(time, objects::answer(api, peer, asked, path, body)).await
        }
    }
}

/// How long a request about objects may take. A watch has begun by then; how long it lasts is its
/// own affair.
pub(super) fn time_max(path: &ResourcePath, query: &Query) -> Result<Duration, Status> {
    match is_watch(path, query) {
        true => Ok(REQUEST_TIME_MAX),
        false => deadline(query.text("timeout")),
    }
}

/// An answer, if it comes within this time.
pub(super) async fn in_time(
    time: Duration,
    answer: impl Future<Output = Result<Answer, Status>>,
) -> Result<Answer, Status> {
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(too_late()),
    }
}

/// What is said of a path that is not read.
pub(super) fn bad_path(api: &Api, bad: BadPath, path: &str) -> Result<Answer, Status> {
    match bad {
        BadPath::TooLong => Err(too_long()),
        BadPath::Unclear | BadPath::Foreign => paths::nowhere(api, Root::of_path(path)),
    }
}

fn too_long() -> Status {
    Status::new(414, "RequestURITooLong", "the URL is too long")
}

/// The client said how long it waits, and it was not long enough. A write may still happen.
fn too_late() -> Status {
    let message = "Timeout: request did not complete within the requested timeout";
    Status::new(504, "Timeout", message)
}

/// Lets the request through as the user it may be, or refuses it.
fn authorize(api: &Api, asked: &mut Asked, question: Attributes) -> Result<(), Status> {
    let authorizer = api.authorizer.read();
    let Some(wanted) = Wanted::from_headers(&asked.headers)? else {
        return authorizer.check(&question);
    };
    let user = wanted.allowed_user(&question, &|question| authorizer.decide(question))?;
    asked.user = Arc::new(user);
    let question = Attributes {
        user: asked.user.clone(),
        ..question
    };
    authorizer.check(&question)
}

pub(super) fn question(asked: &Asked, target: &Target) -> Result<Attributes, Status> {
    let path = match target {
        Target::Other(segments) => {
            let verb = asked.method.as_str().to_ascii_lowercase();
            return Ok(Attributes::path(
                &asked.user,
                &verb,
                &format!("/{}", segments.join("/")),
            ));
        }
        Target::Resource(path) => path,
    };
    let verb = verb(&asked.method, path, &asked.query)?;
    let mut place = Place::new(&path.group, &path.resource, &path.namespace);
    place.version.clone_from(&path.version);
    place.subresource.clone_from(&path.subresource);
    place.name.clone_from(&path.name);
    if matches!(verb, "list" | "watch" | "deletecollection") {
        place.fields = field_requirements(asked.query.text("fieldSelector")).unwrap_or_default();
    }
    // A read of one object by its field is a read of that object. A delete of a collection is not.
    if matches!(verb, "list" | "watch")
        && place.name.is_empty()
        && let Some(name) = place.selected_name()
    {
        place.name = name.to_owned();
    }
    Ok(Attributes::resource(&asked.user, verb, place))
}

/// The verb as rules spell it.
fn verb(method: &Method, path: &ResourcePath, query: &Query) -> Result<&'static str, Status> {
    Ok(match (method.as_str(), path.name.is_empty()) {
        ("GET" | "HEAD", _) if is_watch(path, query) => "watch",
        ("GET" | "HEAD", true) => "list",
        ("GET" | "HEAD", false) => "get",
        _ => write_verb(method, path)?.word(),
    })
}

/// Whether a read is a watch. A path that names an object asks for that object, unless it is one of
/// the old paths that ask for nothing but watches.
pub(super) fn is_watch(path: &ResourcePath, query: &Query) -> bool {
    path.watch || (query.switch("watch") && path.name.is_empty())
}

/// Which write a method means.
pub(super) fn write_verb(method: &Method, path: &ResourcePath) -> Result<Verb, Status> {
    match (method.as_str(), path.name.is_empty()) {
        ("POST", _) => Ok(Verb::Create),
        ("PUT", _) => Ok(Verb::Update),
        ("PATCH", _) => Ok(Verb::Patch),
        ("DELETE", true) => Ok(Verb::DeleteCollection),
        ("DELETE", false) => Ok(Verb::Delete),
        _ => Err(Status::method_not_allowed()),
    }
}

/// The Accept header, all of its lines as one.
pub(super) fn accept(headers: &HeaderMap) -> String {
    let lines = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// Only the plain word counts, as on a kube-apiserver: without a coding, nothing is lost but bytes.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut codings = lines.flat_map(|line| line.split(','));
    codings.any(|coding| coding.trim() == "gzip")
}
