//! What was just written through an API that passes writes on: until it has come back, a client
//! that asks for the object by name is not shown what was there before.
//!
//! Lists and watches are not touched by it: an object at a version that what is held has not
//! reached would hide from a client what came in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
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
use crate::Status;
use crate::catalog::Kind;
use crate::read::get;
use crate::request::{Query, ResourcePath, Target};

/// Objects of which it is remembered that they were written. The one of longest ago makes room.
const OBJECTS_MAX: usize = 256;
/// Bytes of answers that are remembered; of a longer one the cluster is asked.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Bytes of all of them. Those of longest ago are let go, and the cluster is asked.
const BYTES_MAX: usize = 1024 * 1024;
/// How long it is remembered. What is written comes back within a second or so, and if the link
/// breaks before, what is held is shown again.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);

/// What was written and may not have come back.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    resource: Resource,
    name: ObjectName,
    state: State,
    at: Instant,
}

/// What is known of an object that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It is this, from this version on.
    Is(Version, Bytes),
    /// It is something else than it was at this version, or is gone.
    Differs(Option<Version>),
}

/// What a read of an object by name is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Newest {
    /// What is held.
    Held,
    /// This, which was written.
    This(Bytes),
    /// What the cluster says, if it can be asked.
    Elsewhere,
}

impl Written {
    /// What is newest of an object. `reached` is the version that its resource has reached here,
    /// `held` the object's own.
    fn newest(
        &self,
        (resource, name): (&Resource, &ObjectName),
        (reached, held): (Option<&Version>, Option<&Version>),
        now: Instant,
    ) -> Newest {
        let mut entries = self.0.lock();
        let its = |entry: &Entry| entry.resource == *resource && entry.name == *name;
        let Some(place) = entries.iter().position(its) else {
            return Newest::Held;
        };
        let entry = &entries[place];
        let came = match &entry.state {
            State::Is(version, _) => reached >= Some(version),
            // What is not held may not have come yet, or may be gone already.
            State::Differs(before) => reached >= before.as_ref() && held != before.as_ref(),
        };
        if came || now.saturating_duration_since(entry.at) >= REMEMBERED_FOR {
            entries.remove(place);
            return Newest::Held;
        }
        match &entry.state {
            State::Is(_, bytes) => Newest::This(bytes.clone()),
            State::Differs(_) => Newest::Elsewhere,
        }
    }

    /// An object is not what it was any more: what was written last, or is held.
    fn differs(&self, place: (Resource, ObjectName), held: Option<Version>, at: Instant) {
        let its = |entry: &&Entry| entry.resource == place.0 && entry.name == place.1;
        let last = match self.0.lock().iter().find(its).map(|entry| &entry.state) {
            Some(State::Is(version, _) | State::Differs(Some(version))) => Some(version.clone()),
            _ => None,
        };
        self.note(place, State::Differs(last.max(held)), at);
    }

    fn note(&self, (resource, name): (Resource, ObjectName), state: State, at: Instant) {
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.resource != resource || entry.name != name);
        entries.push_back(Entry {
            resource,
            name,
            state,
            at,
        });
        let mut bytes: usize = entries.iter().map(Entry::bytes).sum();
        while entries.len() > OBJECTS_MAX || bytes > BYTES_MAX {
            let gone = entries.pop_front();
            bytes -= gone.as_ref().map_or(0, Entry::bytes);
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        match &self.state {
            State::Is(_, bytes) => bytes.len(),
            State::Differs(_) => 0,
        }
    }
}

/// What a read of the object that a path names is answered with.
pub(super) fn newest(api: &Api, kind: &Kind, path: &ResourcePath) -> Newest {
    if api.written.0.lock().is_empty() {
        return Newest::Held;
    }
    let (resource, name) = (kind.stored_as(), get::name(kind, path));
    let reached = api.reader.version(&resource);
    let held = version(&api.reader, &resource, &name);
    let known = (reached.as_ref(), held.as_ref());
    let newest = api
        .written
        .newest((&resource, &name), known, api.clock.now());
    match newest {
        // In another version than it was written in, only the cluster can show it.
        Newest::This(bytes) if !kind.is_version_of(&bytes) => Newest::Elsewhere,
        newest => newest,
    }
}

/// A write of something that is held here.
pub(super) struct Writing {
    kind: Arc<Kind>,
    path: ResourcePath,
    before: Option<Version>,
    deletes: bool,
}

impl Writing {
    /// The write that a request is, if it is one of something that is held here.
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
        if dry || kind.is_held_otherwise() || (!named && (deletes || !path.subresource.is_empty()))
        {
            return None;
        }
        if named && !get::is_held(&api.reader, &kind, &path) {
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
        let named = !self.path.name.is_empty();
        if named {
            let place = (self.kind.stored_as(), get::name(&self.kind, &self.path));
            let held = self.before.clone();
            api.written.differs(place, held, api.clock.now());
        }
        let whole = matches!(self.path.subresource.as_str(), "" | "status") && !self.deletes;
        if !whole || !is_short_json(&head, &body) {
            return Ok(Response::from_parts(head, Payload::passed(body)));
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| broke_off(&*error))?.to_bytes();
        if let Some((name, version, bytes)) = object(&self.kind, &body)
            && get::is_name_held(&api.reader, &self.kind, &name)
        {
            let place = (self.kind.stored_as(), name);
            let state = State::Is(version, bytes);
            api.written.note(place, state, api.clock.now());
        }
        Ok(Response::from_parts(head, Payload::full(body)))
    }
}

/// The name, version and bytes of an object as they would be held.
fn object(kind: &Kind, body: &Bytes) -> Option<(ObjectName, Version, Bytes)> {
    let bytes = splice::canonical(body).ok()?;
    let Header { name, version, .. } = Header::parse(&kind.stored_as(), &bytes, &[]).ok()?;
    kind.is_version_of(&bytes).then_some((name, version, bytes))
}

fn is_short_json(head: &Parts, body: &Incoming) -> bool {
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let media = text(CONTENT_TYPE).and_then(|value| value.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case(JSON))
        && text(CONTENT_ENCODING).is_none_or(|coding| coding.eq_ignore_ascii_case("identity"))
        && body
            .size_hint()
            .exact()
            .is_some_and(|length| length <= ANSWER_BYTES_MAX as u64)
}

fn version(reader: &Reader, resource: &Resource, name: &ObjectName) -> Option<Version> {
    let row = reader.row(resource, name)?;
    Some(row.header.version.clone())
}

fn broke_off(error: &(dyn std::error::Error + Send + Sync)) -> Status {
    let message = format!("it was written, and the link broke while the answer came: {error}");
    Status::try_again(503, "ServiceUnavailable", message, 1)
}

#[cfg(test)]
mod tests {
    use host::Clock;

    use super::*;

    fn version(number: u64) -> Version {
        number.to_string().parse().unwrap()
    }

    fn maps(name: &str) -> (Resource, ObjectName) {
        (
            Resource::new("", "configmaps"),
            ObjectName::new("default", name),
        )
    }

    /// What is newest of an object, where its resource and the object are at these versions.
    fn newest(written: &Written, name: &str, at: (u64, Option<u64>), now: Instant) -> Newest {
        let (resource, name) = maps(name);
        let (reached, held) = (version(at.0), at.1.map(version));
        written.newest((&resource, &name), (Some(&reached), held.as_ref()), now)
    }

    #[test]
    fn what_was_written_is_shown_until_it_has_come() {
        let (written, now) = (Written::default(), Clock::machine().now());
        let bytes = Bytes::from_static(b"new");
        written.note(maps("a"), State::Is(version(9), bytes.clone()), now);
        assert_eq!(newest(&written, "b", (7, Some(5)), now), Newest::Held);
        for reached in [7, 8] {
            let shown = newest(&written, "a", (reached, Some(5)), now);
            assert_eq!(shown, Newest::This(bytes.clone()));
        }
        assert_eq!(newest(&written, "a", (9, Some(9)), now), Newest::Held);
        assert!(written.0.lock().is_empty());
    }

    #[test]
    fn of_what_was_changed_in_another_way_the_cluster_is_asked_until_something_comes() {
        let (written, now) = (Written::default(), Clock::machine().now());
        written.differs(maps("a"), Some(version(5)), now);
        assert_eq!(newest(&written, "a", (8, Some(5)), now), Newest::Elsewhere);
        assert_eq!(newest(&written, "a", (9, None), now), Newest::Held);
        written.differs(maps("a"), Some(version(5)), now);
        let later = now + REMEMBERED_FOR;
        assert_eq!(newest(&written, "a", (8, Some(5)), later), Newest::Held);
        assert!(written.0.lock().is_empty());
    }

    #[test]
    fn what_was_made_and_deleted_is_not_taken_for_what_is_still_to_come() {
        let (written, now) = (Written::default(), Clock::machine().now());
        written.note(maps("a"), State::Is(version(9), Bytes::new()), now);
        written.differs(maps("a"), None, now);
        for (reached, held) in [(8, None), (9, Some(9)), (10, Some(9))] {
            let shown = newest(&written, "a", (reached, held), now);
            assert_eq!(shown, Newest::Elsewhere, "{reached}");
        }
        assert_eq!(newest(&written, "a", (11, None), now), Newest::Held);
    }

    #[test]
    fn the_last_write_counts_and_there_is_room_for_so_many() {
        let (written, now) = (Written::default(), Clock::machine().now());
        written.note(maps("a"), State::Differs(None), now);
        let is = |number, length| State::Is(version(number), vec![b'x'; length].into());
        written.note(maps("a"), is(7, 3), now);
        let shown = newest(&written, "a", (1, None), now);
        assert_eq!(shown, Newest::This(Bytes::from_static(b"xxx")));
        for number in 0..OBJECTS_MAX {
            written.note(maps(&number.to_string()), is(7, 3), now);
        }
        assert_eq!(written.0.lock().len(), OBJECTS_MAX);
        assert_eq!(newest(&written, "a", (1, None), now), Newest::Held);
        written.note(maps("large"), is(7, BYTES_MAX - 2), now);
        assert_eq!(written.0.lock().len(), 1);
    }
}
