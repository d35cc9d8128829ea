//! An API that does not have everything: what it has it answers, and the rest it passes on, whole.
//!
//! A node's API is one. It answers a read if what is held covers it and the caller may; every
//! other request goes to the cluster, which decides for itself. So nobody gets less than the
//! cluster would give, and without the cluster nobody gets more.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use object::Resource;
use store::{Extent, Range};

use super::answer::Answer;
use super::caller::{Caller, comes_as_itself, good_for_reads, unknown_token};
use super::connection::Peer;
use super::entrusted::{self, Entrusted, Seeing};
use super::objects::Subject;
use super::payload::Payload;
use super::route::{self, Asked, accept, is_watch};
use super::written::{self, Newest, Writing};
use super::{Api, coming, objects, papers, paths, schemas, shape};
use crate::Status;
use crate::catalog::Kind;
use crate::read::{Lens, Overlay, get, list, question};
use crate::request::{BadPath, Form, Query, ResourcePath, Shape, Target};
use crate::who::User;
use crate::who::impersonate::Wanted;
use crate::who::user::LOCAL_ADMINS;

/// A request on its way to where it is answered.
pub type Passing<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, Status>> + Send + 'a>>;

/// Something is in use until this is dropped.
pub type InUse = Box<dyn Send + Sync>;

/// Where requests go that are not answered here.
pub trait Beyond: Send + Sync + 'static {
    /// Whether somebody can be reached there at this moment.
    fn is_open(&self) -> bool;
    /// Whether this user, whom a certificate names, may go there without a token. Who has a token
    /// always may: it is looked at there.
    fn lends_itself_to(&self, user: &User) -> bool;
    /// Passes a request on, and gives the answer as it comes, without what concerned only the
    /// connection that it came on. An answer of 101 leaves the client's connection to whoever gave
    /// it. `by` is who asks, if that is known here: one caller must not take the way of all.
    fn pass(&self, request: Request<Incoming>, name: Name, by: Option<&User>) -> Passing<'_>;
    /// Keeps what was answered there under a name, in place of what it kept under it before. It may
    /// as well forget it.
    fn keep(&self, name: &str, bytes: Bytes);
    /// What was kept under a name, if it is still there.
    fn kept(&self, name: &str) -> Option<Bytes>;
    /// Whether a request in the lent name is seen to by [`Beyond::see_to`]: here or there, as it
    /// must be. Whoever says so takes its body whole.
    fn sees_to(&self, _: &Method, _: &ResourcePath) -> bool {
        false
    }
    /// Sees to a request.
    fn see_to(&self, _: Entrusted) -> Seeing<'_> {
        Box::pin(async { Err(Status::method_not_allowed()) })
    }
    /// Somebody who may have it watches something that is not here. Says whether it comes here.
    fn brings(&self, _: &Resource, _: &Range) -> bool {
        false
    }
    /// Somebody was answered with something that is here.
    fn uses(&self, _: &Resource, _: &Range) {}
    /// Somebody watches something that is here, for as long as he has what is returned.
    fn watches(&self, _: &Resource, _: &Range) -> Option<InUse> {
        None
    }
    /// What is shown otherwise than it is stored, if anything ever is.
    fn overlay(&self) -> Option<Arc<dyn Overlay>> {
        None
    }
    /// Whether a list or a watch with these fields waits until it can be answered here, since the
    /// caller would see it otherwise there.
    fn awaits(&self, _: &User, _: &ResourcePath, _fields: &str) -> bool {
        false
    }
    /// What a caller sees objects of a kind through, if anything.
    fn lens(&self, _: &User, _: &Kind) -> Option<Arc<dyn Lens>> {
        None
    }
}

/// In whose name a request is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Whoever its token says. Without that token it must not go at all.
    Token,
    /// The one that is lent to callers who are known here.
    Lent,
}

/// What came of a request.
pub(super) enum Reply {
    /// It was answered here.
    Here(Answer),
    /// It was passed on, and this came back.
    Passed(Response<Payload>),
}

/// What there is of an answer here.
enum Found {
    /// The answer.
    Answer(Box<Answer>),
    /// The answer as it came from there some other time.
    Kept(Box<Response<Payload>>),
    /// A read that can be answered; whoever has the kind's definition does it better.
    Poorer(Box<Reading>),
    /// Nothing.
    Nothing,
}

/// A read that is answered here.
struct Reading {
    asked: Asked,
    subject: Subject,
    path: ResourcePath,
}

impl Reading {
    async fn answer(self, api: &Arc<Api>, peer: &Peer) -> Result<Answer, Status> {
        let deprecation = self.subject.kind.deprecation();
        let time = route::time_max(&self.path, &self.asked.query)?;
        let read = objects::read(api, peer, &self.asked, self.subject, &self.path);
        let mut answer = route::in_time(time, read).await?;
        answer.warnings.extend(deprecation);
        Ok(answer)
    }
}

impl From<Option<Answer>> for Found {
    fn from(answer: Option<Answer>) -> Self {
        answer.map_or(Self::Nothing, |answer| Self::Answer(Box::new(answer)))
    }
}

/// Answers a request, or passes it on.
pub(super) async fn answer(
    api: &Arc<Api>,
    beyond: &Arc<dyn Beyond>,
    peer: &Peer,
    request: Request<Incoming>,
) -> Result<Reply, Status> {
    let caller = Caller::of(api, peer, &request);
    let poorer = match here(api, &**beyond, peer, (&caller, &request)).await? {
        Found::Answer(answer) => return Ok(Reply::Here(*answer)),
        Found::Kept(answer) => return Ok(Reply::Passed(*answer)),
        Found::Poorer(reading) => Some(reading),
        Found::Nothing => None,
    };
    if let Caller::Known(_) = &caller {
        comes_as_itself(&request)?;
    }
    if let (Caller::Known(user), None) = (&caller, &poorer)
        && let Some(matter) = entrusted::matter(api, &**beyond, (user, &request))?
    {
        return entrusted::answer(api, &**beyond, matter, request).await;
    }
    let schemas = schemas::Question::of(&request);
    let writing = Writing::of(api, &request);
    let watches = watches(&request);
    let mut request = request;
    if let Some(writing) = &writing {
        writing.wants_json(api, request.headers_mut());
    }
    // Who asks in his own name is told by the cluster what he may; the lent one may less than here.
    let lent = !request.headers().contains_key(AUTHORIZATION);
    let passed = pass(api, &**beyond, &caller, request).await;
    match (passed, poorer) {
        (Ok(passed), Some(poorer)) if lent && passed.status() == StatusCode::FORBIDDEN => {
            poorer.answer(api, peer).await.map(Reply::Here)
        }
        (Ok(passed), _) => Ok(Reply::Passed(match (schemas, writing) {
            (Some(question), _) => question.copied(passed, beyond),
            (None, Some(writing)) => writing.noted(api, passed).await?,
            (None, None) if watches => passed.map(Payload::passed_watch),
            (None, None) => passed.map(Payload::passed),
        })),
        (Err(_), Some(poorer)) => poorer.answer(api, peer).await.map(Reply::Here),
        (Err(status), None) => Err(status),
    }
}

/// Whether a request watches objects.
fn watches(request: &Request<Incoming>) -> bool {
    let query = Query::parse(request.uri().query().unwrap_or(""));
    let target = Target::parse(request.uri().path());
    matches!((query, target), (Ok(query), Ok(Target::Resource(path))) if is_watch(&path, &query))
}

/// Passes a request on in the name of whoever asks.
async fn pass(
    api: &Api,
    beyond: &dyn Beyond,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Status> {
    let goes_as = match caller {
        _ if request.headers().contains_key(AUTHORIZATION) => Name::Token,
        Caller::Known(user) if beyond.lends_itself_to(user) => Name::Lent,
        Caller::Known(user) => return Err(good_for_reads(user)),
        Caller::Stranger | Caller::Nobody => return Err(Status::unauthorized()),
    };
    let by = match caller {
        Caller::Known(user) => Some(&**user),
        Caller::Stranger | Caller::Nobody => None,
    };
    // What is passed on is bounded where it goes; here it takes the place of a request.
    let _pass = api.gate.request(by.map_or("", |user| &user.name))?;
    beyond.pass(request, goes_as, by).await
}

/// The answer, if there is one here. A request that makes no sense anywhere is refused here; one
/// that makes none here is passed on.
async fn here(
    api: &Arc<Api>,
    beyond: &dyn Beyond,
    peer: &Peer,
    (caller, request): (&Caller, &Request<Incoming>),
) -> Result<Found, Status> {
    let target = match Target::parse(request.uri().path()) {
        Ok(target) => target,
        Err(BadPath::Foreign) => return Ok(Found::Nothing),
        Err(bad) => {
            let answer = route::bad_path(api, bad, request.uri().path())?;
            return Ok(Some(answer).into());
        }
    };
    let query = match Query::parse(request.uri().query().unwrap_or("")) {
        Ok(query) => query,
        Err(_) if is_of_others(request.method(), &target) => return Ok(Found::Nothing),
        Err(status) => return Err(status),
    };
    let asked = |user: &Arc<User>, query: Query| Asked {
        user: user.clone(),
        method: request.method().clone(),
        headers: request.headers().clone(),
        query,
    };
    let path = match target {
        Target::Resource(path) => path,
        Target::Other(segments) => {
            let anyone = Arc::new(User::anonymous());
            let asked = asked(&anyone, query);
            let knows = matches!(caller, Caller::Known(_)) && !beyond.is_open();
            let kept = knows.then(|| schemas::kept(beyond, &asked, request.uri().path()));
            if let Some(kept) = kept.flatten() {
                return Ok(Found::Kept(Box::new(kept)));
            }
            return path(api, beyond, (caller, &asked), &segments).map(Found::from);
        }
    };
    let Caller::Known(user) = caller else {
        return Ok(Found::Nothing);
    };
    let asked = asked(user, query);
    let awaited = is_awaited(beyond, &asked, &path);
    // The cluster speaks more forms than we do.
    let spoken = Form::negotiate(&accept(&asked.headers), false).is_ok();
    if beyond.is_open() && !spoken && !awaited {
        return Ok(Found::Nothing);
    }
    match of_objects(api, beyond, peer, (asked, path, awaited)).await? {
        Found::Nothing if awaited && beyond.is_open() => {
            let message = "this is on its way to the node, and is answered there";
            Err(Status::try_again(429, "TooManyRequests", message, 1))
        }
        found => Ok(found),
    }
}

/// Whether a list or a watch is answered here or not yet.
fn is_awaited(beyond: &dyn Beyond, asked: &Asked, path: &ResourcePath) -> bool {
    let lists = path.name.is_empty() || is_watch(path, &asked.query);
    let fields = asked.query.text("fieldSelector");
    asked.method == Method::GET && lists && beyond.awaits(&asked.user, path, fields)
}

/// The same about objects, for somebody who is known here. Who stands at a version from before what
/// is awaited came is told to begin anew, and nobody is sent to the cluster for it.
async fn of_objects(
    api: &Arc<Api>,
    beyond: &dyn Beyond,
    peer: &Peer,
    (asked, path, awaited): (Asked, ResourcePath, bool),
) -> Result<Found, Status> {
    if !coming::has_come(api, beyond, &asked, &path).await? && !awaited {
        return Ok(Found::Nothing);
    }
    let Some(subject) = subject(api, beyond, &asked, &path)? else {
        return Ok(Found::Nothing);
    };
    if beyond.is_open() && !coming::is_new_enough(api, &asked, (&subject, &path)).await? {
        return Ok(Found::Nothing);
    }
    let poorer = beyond.is_open() && is_table_of_unknown(&asked, &subject);
    let resource = subject.kind.stored_as();
    let reading = Reading {
        asked,
        subject,
        path,
    };
    match poorer {
        true => Ok(Found::Poorer(Box::new(reading))),
        false => match reading.answer(api, peer).await {
            // That it is damaged may have been found by this very read.
            Err(_) if beyond.is_open() && api.reader.is_damaged(&resource) => Ok(Found::Nothing),
            answered => answered.map(Some).map(Found::from),
        },
    }
}

/// Whether a request is about objects and is never answered here, whatever is held: what is wrong
/// with it is not known here either.
fn is_of_others(method: &Method, target: &Target) -> bool {
    matches!(target, Target::Resource(path) if !reads(method, path))
}

/// Whether a request reads objects, or one whole.
fn reads(method: &Method, path: &ResourcePath) -> bool {
    let whole = matches!(path.subresource.as_str(), "" | "status");
    whole && matches!(*method, Method::GET | Method::HEAD)
}

/// Whether rows for people are wanted of a kind whose columns only the cluster knows.
fn is_table_of_unknown(asked: &Asked, subject: &Subject) -> bool {
    let form = Form::negotiate(&accept(&asked.headers), false);
    let table = form.is_ok_and(|form| matches!(form.shape, Shape::Table(_)));
    table && subject.kind.told && subject.kind.custom.is_some()
}

/// The answer to a path that leads to no objects, if it is given here. It is given to those who are
/// known, as an API server gives it to those who are somebody; who has a token that says nothing
/// here is asked about elsewhere.
fn path(
    api: &Api,
    beyond: &dyn Beyond,
    (caller, asked): (&Caller, &Asked),
    segments: &[String],
) -> Result<Option<Answer>, Status> {
    let open = beyond.is_open();
    match caller {
        _ if is_health(segments) => paths::answer(api, asked, segments).map(Some),
        Caller::Nobody => Ok(None),
        Caller::Stranger if open => Ok(None),
        Caller::Stranger => Err(unknown_token()),
        Caller::Known(_) => match papers::answer(api, asked, segments)? {
            None if !open => unless_nowhere(paths::answer(api, asked, segments), segments),
            answer => Ok(answer),
        },
    }
}

/// An answer, unless it says that nothing is there: that only the cluster knows. Of schemas there
/// are no more than we have.
fn unless_nowhere(
    answered: Result<Answer, Status>,
    segments: &[String],
) -> Result<Option<Answer>, Status> {
    let code = match &answered {
        Ok(answer) => answer.code,
        Err(status) => status.code,
    };
    match segments.first().map(String::as_str) {
        Some("openapi") => answered.map(Some),
        _ if code == 404 => Ok(None),
        _ => answered.map(Some),
    }
}

/// What a read is about, if it is answered here: the kind is known, what is held covers it, and the
/// caller may.
fn subject(
    api: &Api,
    beyond: &dyn Beyond,
    asked: &Asked,
    path: &ResourcePath,
) -> Result<Option<Subject>, Status> {
    if !reads(&asked.method, path) {
        return Ok(None);
    }
    let found = api.catalog.find(&path.group, &path.version, &path.resource);
    let Some(kind) = found else { return Ok(None) };
    let misfit = shape::check(&kind, path, &asked.method).is_err();
    if misfit || kind.is_held_otherwise() || !may(api, asked, path)? {
        return Ok(None);
    }
    let reader = &api.reader;
    if !path.name.is_empty() && !is_watch(path, &asked.query) {
        let extent = Extent::Whole;
        let held = get::is_held(reader, &kind, path) && get::is_in_version(reader, &kind, path);
        let newest = match held {
            true => {
                let name = Range::Name(get::name(&kind, path));
                beyond.uses(&kind.stored_as(), &name);
                written::newest(api, &kind, path)
            }
            false => Newest::Held,
        };
        let instead = match newest {
            Newest::Elsewhere if beyond.is_open() => return Ok(None),
            Newest::This(version, bytes) => Some((version, bytes)),
            Newest::Held | Newest::Elsewhere => None,
        };
        return Ok(held.then_some(Subject {
            kind,
            extent,
            instead,
        }));
    }
    let mut want = match question::want(&kind, path, &asked.query) {
        Ok(want) => want,
        // Which fields it can be selected on, only the cluster knows.
        Err(_) if kind.told && kind.custom.is_some() => return Ok(None),
        Err(_) if !refuses(api, beyond, asked, &kind) => return Ok(None),
        Err(status) => return Err(status),
    };
    if reader.covers(&want) {
        beyond.uses(&want.resource, &coming::narrowed(&want));
        if beyond.is_open() && coming::is_page_of_elsewhere(api, &want, &asked.query) {
            return Ok(None);
        }
    } else {
        want.extent = Extent::Held;
        if !asked.user.belongs_to(LOCAL_ADMINS) || !reader.covers(&want) {
            return Ok(None);
        }
    }
    let extent = want.extent;
    let held = list::is_in_version(reader, &kind, &want);
    Ok(held.then_some(Subject::held(kind, extent)))
}

/// Whether a question that makes no sense here is refused here: a newer cluster may see some in it,
/// and is asked if it can be. Who looks after the node asks what the node has.
fn refuses(api: &Api, beyond: &dyn Beyond, asked: &Asked, kind: &Kind) -> bool {
    let held = !api.reader.scopes(&kind.stored_as()).is_empty();
    held && (!beyond.is_open() || asked.user.belongs_to(LOCAL_ADMINS))
}

/// Whether the caller may read this here. Who asks in another's name asks the cluster.
pub(super) fn may(api: &Api, asked: &Asked, path: &ResourcePath) -> Result<bool, Status> {
    if Wanted::from_headers(&asked.headers)?.is_some() {
        return Ok(false);
    }
    let target = Target::Resource(path.clone());
    let question = route::question(asked, &target)?;
    let decision = api.authorizer.read().decide(&question);
    Ok(decision.is_allowed())
}

/// How the API itself is doing, nobody else can say.
fn is_health(segments: &[String]) -> bool {
    let first = segments.first().map(String::as_str);
    matches!(first, Some("healthz" | "livez" | "readyz"))
}
