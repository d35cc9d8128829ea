//! What was just written through an API that passes writes on: until it has come back, a client
//! that asks for the object by name is not shown what was there before.
//!
//! Lists and watches are not touched by it: an object at a version that what is held has not
//! reached would hide from a client what came in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::response::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use object::{Header, ObjectName, Resource, Version, splice};
use parking_lot::Mutex;
use store::Reader;

use super::Api;
use super::answer::JSON;
use super::payload::Payload;
use super::route::accept;
use crate::Status;
use crate::catalog::Kind;
use crate::protobuf::{MEDIA_TYPE, stamp};
use crate::read::get;
use crate::request::accept::takes_json_too;
use crate::request::{Query, ResourcePath, Target};

/// Objects of which it is remembered that they were written. The one of longest ago makes room.
const OBJECTS_MAX: usize = 256;
/// Bytes of answers that are remembered; of a longer one the cluster is asked.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Bytes of all of them. Those of longest ago are let go, and the cluster is asked.
const BYTES_MAX: usize = 1024 * 1024;
/// How long an answer is shown. What is written comes back within a second or so; if it does not,
/// the cluster is asked, and while there is no link what is held is shown again.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// How long the cluster is asked about an object of which nothing but a difference is known. What
/// was written may have come before its answer, or may have changed nothing.
const DOUBTED_FOR: Duration = Duration::from_secs(600);

/// What was written and may not have come back.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    resource: Resource,
    name: ObjectName,
    state: State,
    at: Instant,
    place: Place,
}

/// Where an object was when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Held,
    /// Not here. It may come, as it was before: then it must be known that it was written since.
    Elsewhere,
}

/// What is known of an object that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It is this, from this version on.
    Is(Version, Bytes),
    /// It is something that is not known here, from this version on.
    From(Version),
    /// It is something else than it was at this version, or is gone.
    Differs(Option<Version>),
}

/// What a read of an object by name is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Newest {
    /// What is held.
    Held,
    /// This, which was written at this version.
    This(Version, Bytes),
    /// What the cluster says, if it can be asked.
    Elsewhere,
}

impl Written {
    /// What is newest of an object. `whole` is the version up to which everything of its resource
    /// is here, `held` the object's own.
    fn newest(
        &self,
        (resource, name): (&Resource, &ObjectName),
        (whole, held): (Option<&Version>, Option<&Version>),
        now: Instant,
    ) -> Newest {
        let mut entries = self.0.lock();
        let its = |entry: &Entry| entry.resource == *resource && entry.name == *name;
        let Some(place) = entries.iter().position(its) else {
            return Newest::Held;
        };
        let entry = &mut entries[place];
        let age = now.saturating_duration_since(entry.at);
        let came = match &entry.state {
            State::Is(version, _) | State::From(version) => whole.max(held) >= Some(version),
            // What is not held may not have come yet, or may be gone already.
            State::Differs(before) => {
                let other = whole >= before.as_ref() && held != before.as_ref();
                other || age >= DOUBTED_FOR
            }
        };
        if came {
            entries.remove(place);
            return Newest::Held;
        }
        if age >= REMEMBERED_FOR {
            entry.state.let_go();
        }
        match &entry.state {
            State::Is(version, bytes) => Newest::This(version.clone(), bytes.clone()),
            State::From(_) | State::Differs(_) => Newest::Elsewhere,
        }
    }

    /// An object is not what it was any more: what was written last, or is held.
    fn differs(&self, place: (Resource, ObjectName), held: Option<Version>, at: Instant) {
        let its = |entry: &&Entry| entry.resource == place.0 && entry.name == place.1;
        let last = match self.0.lock().iter().find(its).map(|entry| &entry.state) {
            Some(state) => state.version().cloned(),
            None => None,
        };
        self.note(place, State::Differs(last.max(held)), (at, Place::Held));
    }

    fn note(
        &self,
        (resource, name): (Resource, ObjectName),
        state: State,
        (at, place): (Instant, Place),
    ) {
        let mut state = state;
        if place == Place::Elsewhere {
            state.let_go();
        }
        let mut entries = self.0.lock();
        let its = |entry: &Entry| entry.resource == resource && entry.name == name;
        if let Some(place) = entries.iter().position(its) {
            if entries[place].state.is_newer_than(&state) {
                return;
            }
            entries.remove(place);
        }
        entries.push_back(Entry {
            resource,
            name,
            state,
            at,
            place,
        });
        if entries.len() > OBJECTS_MAX {
            // What is not here makes room first.
            let elsewhere = |entry: &Entry| entry.place == Place::Elsewhere;
            let first = entries.iter().position(elsewhere).unwrap_or_default();
            entries.remove(first);
        }
        let mut bytes: usize = entries.iter().map(Entry::bytes).sum();
        for entry in entries.iter_mut() {
            if bytes <= BYTES_MAX {
                break;
            }
            bytes -= entry.bytes();
            entry.state.let_go();
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        match &self.state {
            State::Is(_, bytes) => bytes.len(),
            State::From(_) | State::Differs(_) => 0,
        }
    }
}

impl State {
    /// Lets go of what an object is. Since when it is that is still known.
    fn let_go(&mut self) {
        if let Self::Is(version, _) = self {
            *self = Self::From(version.clone());
        }
    }

    fn version(&self) -> Option<&Version> {
        match self {
            Self::Is(version, _) | Self::From(version) => Some(version),
            Self::Differs(before) => before.as_ref(),
        }
    }

    /// Whether another state tells less. Answers come in any order: which write was the last, their
    /// versions say.
    fn is_newer_than(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Differs(_)) => false,
            (Self::Is(..), Self::From(_)) | (Self::Differs(_), _) => {
                self.version() >= other.version()
            }
            (Self::Is(..) | Self::From(_), _) => self.version() > other.version(),
        }
    }
}

/// What a read of the object that a path names is answered with.
pub(super) fn newest(api: &Api, kind: &Kind, path: &ResourcePath) -> Newest {
    if api.written.0.lock().is_empty() {
        return Newest::Held;
    }
    let (resource, name) = (kind.stored_as(), get::name(kind, path));
    let whole = api.reader.progress(&resource);
    let held = version(&api.reader, &resource, &name);
    let known = (whole.as_ref(), held.as_ref());
    let newest = api
        .written
        .newest((&resource, &name), known, api.clock.now());
    match newest {
        // In another version than it was written in, only the cluster can show it.
        Newest::This(_, bytes) if !kind.is_version_of(&bytes) => Newest::Elsewhere,
        newest => newest,
    }
}

/// A write of something that is held here, or may come.
pub(super) struct Writing {
    kind: Arc<Kind>,
    path: ResourcePath,
    before: Option<Version>,
    deletes: bool,
}

impl Writing {
    /// The write that a request is, if it is one of an object.
    pub(super) fn of<B>(api: &Api, request: &Request<B>) -> Option<Self> {
        let deletes = match *request.method() {
            Method::POST | Method::PUT | Method::PATCH => false,
            Method::DELETE => true,
            _ => return None,
        };
        let Ok(Target::Resource(path)) = Target::parse(request.uri().path()) else {
            return None;
        };
        let query = Query::parse(request.uri().query().unwrap_or("")).ok()?;
        let kind = api
            .catalog
            .find(&path.group, &path.version, &path.resource)?;
        let dry = !query.text("dryRun").is_empty();
        let named = !path.name.is_empty();
        // Of what is deleted together, nothing is known by name.
        if dry || (!named && (deletes || !path.subresource.is_empty())) {
            return None;
        }
        let (resource, name) = (kind.stored_as(), get::name(&kind, &path));
        let before = version(&api.reader, &resource, &name);
        Some(Self {
            kind,
            path,
            before,
            deletes,
        })
    }

    /// Has the cluster answer in JSON where the client takes that as well: it is what is held here,
    /// so the answer can be compared with it on its way, and shown until it has come back.
    pub(super) fn wants_json(&self, api: &Api, headers: &mut HeaderMap) {
        // A table has a version though nothing is held of its kind any more.
        let held = !api.reader.scopes(&self.kind.stored_as()).is_empty();
        if held && takes_json_too(&accept(headers)) {
            headers.insert(ACCEPT, HeaderValue::from_static(JSON));
        }
    }

    /// The answer as it passes on, once what it says is noted.
    pub(super) async fn noted(
        self,
        api: &Api,
        answer: Response<Incoming>,
    ) -> Result<Response<Payload>, Status> {
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            return Ok(Response::from_parts(head, Payload::passed(body)));
        }
        let whole = matches!(self.path.subresource.as_str(), "" | "status") && !self.deletes;
        let Some(form) = form(&head, &body).filter(|_| whole) else {
            self.note_difference(api);
            return Ok(Response::from_parts(head, Payload::passed(body)));
        };
        let body = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.note_difference(api);
                return Err(broke_off(&*error));
            }
        };
        let told = match form {
            Form::Json => object(&self.kind, &body),
            Form::Protobuf => stamp(&body).map(|it| (it.name, State::From(it.version))),
        };
        match told {
            Some((name, state)) => {
                let place = match get::is_name_held(&api.reader, &self.kind, &name) {
                    true => Place::Held,
                    false => Place::Elsewhere,
                };
                let of = (self.kind.stored_as(), name);
                api.written.note(of, state, (api.clock.now(), place));
            }
            None => self.note_difference(api),
        }
        Ok(Response::from_parts(head, Payload::full(body)))
    }

    /// Notes that the object is not what is held. What came while it was written may be from before
    /// that; if it went, it is gone.
    fn note_difference(&self, api: &Api) {
        if self.path.name.is_empty() || !get::is_held(&api.reader, &self.kind, &self.path) {
            return;
        }
        let place = (self.kind.stored_as(), get::name(&self.kind, &self.path));
        let held = version(&api.reader, &place.0, &place.1);
        if held.is_some() || self.before.is_none() {
            api.written.differs(place, held, api.clock.now());
        }
    }
}

/// A form of answers that can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

/// The name of an object, and what it is, as it would be held.
fn object(kind: &Kind, body: &Bytes) -> Option<(ObjectName, State)> {
    let bytes = splice::canonical(body).ok()?;
    let Header { name, version, .. } = Header::parse(&kind.stored_as(), &bytes, &[]).ok()?;
    let is_its = kind.is_version_of(&bytes);
    is_its.then_some((name, State::Is(version, bytes)))
}

/// The form of a short answer.
fn form(head: &Parts, body: &Incoming) -> Option<Form> {
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let media = text(CONTENT_TYPE).and_then(|value| value.split(';').next())?;
    let is = |form: &str| media.trim().eq_ignore_ascii_case(form);
    let plain = text(CONTENT_ENCODING).is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
    let length = body.size_hint().exact()?;
    match plain && length <= ANSWER_BYTES_MAX as u64 {
        true if is(JSON) => Some(Form::Json),
        true if is(MEDIA_TYPE) => Some(Form::Protobuf),
        _ => None,
    }
}

fn version(reader: &Reader, resource: &Resource, name: &ObjectName) -> Option<Version> {
    let row = reader.row(resource, name)?;
    Some(row.header.version.clone())
}

/// What a client is told whose write was done, and who must not send it again.
fn broke_off(error: &(dyn std::error::Error + Send + Sync)) -> Status {
    let message = format!("it was written, and the link broke while the answer came: {error}");
    Status::new(504, "Timeout", message)
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
