//! Requests about objects: reads are answered here, writes are handed to the place where they are
//! done.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use hyper::body::Incoming;
use object::Version;
use store::Extent;

use super::answer::{Answer, JSON};
use super::connection::Peer;
use super::limits::BODY_BYTES_MAX;
use super::paths::{self, Root};
use super::payload::Payload;
use super::route::{Asked, accept, is_watch, write_verb};
use super::shape::{self, Misfit};
use super::{Api, coming, intake, reviews};
use crate::Status;
use crate::catalog::Kind;
use crate::custom::scale::ScalePaths;
use crate::protobuf::{self, Expected};
use crate::read::encode::Encoder;
use crate::read::options::{Freshness, ListOptions, WatchOptions, get_freshness};
use crate::read::watch::{Begun, Signal, Surroundings};
use crate::read::{Overlay, get, list, question, watch};
use crate::request::{Form, Query, ResourcePath, Shape};
use crate::table::Include;
use crate::write::order::{Order, Verb, WrittenBody};

/// What a read is about.
pub(super) struct Subject {
    /// The kind, in the version of the URL.
    pub(super) kind: Arc<Kind>,
    /// Whether all of it must be here.
    pub(super) extent: Extent,
    /// The object as it was written at a version that is not held yet.
    pub(super) instead: Option<(Version, Bytes)>,
}

impl Subject {
    /// What is held of a kind.
    pub(super) fn held(kind: Arc<Kind>, extent: Extent) -> Self {
        Self {
            kind,
            extent,
            instead: None,
        }
    }

    /// What people are told of an answer that may not have everything.
    fn warning(&self) -> Option<String> {
        (self.extent == Extent::Held).then(|| {
            let plural = &self.kind.plural;
            format!("these are the {plural} that this node holds; the cluster may have others")
        })
    }
}

/// Answers a request about objects.
pub(super) async fn answer(
    api: &Arc<Api>,
    peer: &Peer,
    asked: Asked,
    path: ResourcePath,
    body: Incoming,
) -> Result<Answer, Status> {
    let found = api.catalog.find(&path.group, &path.version, &path.resource);
    let Some(kind) = found else {
        return paths::nowhere(api, Root::of(&path.group));
    };
    match shape::check(&kind, &path, &asked.method) {
        Ok(()) => {}
        Err(Misfit::Nowhere) => return paths::nowhere(api, Root::of(&path.group)),
        Err(Misfit::Refused(status)) => return Err(status),
    }
    let deprecation = kind.deprecation();
    let answered = match asked.method {
        Method::GET | Method::HEAD => {
            let subject = Subject::held(kind, Extent::Whole);
            read(api, peer, &asked, subject, &path).await
        }
        _ => write(api, asked, kind, path, body).await,
    };
    let Some(deprecation) = deprecation else {
        return answered;
    };
    // Who is refused is told as well, unless he is to come back anyway.
    let mut answer = match answered {
        Err(status) if status.retry_after_seconds().is_none() => Answer::from(status),
        answered => answered?,
    };
    answer.warnings.push(deprecation);
    Ok(answer)
}

pub(super) async fn read(
    api: &Arc<Api>,
    peer: &Peer,
    asked: &Asked,
    subject: Subject,
    path: &ResourcePath,
) -> Result<Answer, Status> {
    let query = &asked.query;
    let kind = subject.kind.clone();
    let encoder = encoder(asked, kind.clone())?.seen_through(api.lens(&asked.user, &kind));
    if is_watch(path, query) {
        return watching(api, peer, asked, (encoder, subject.extent), path).await;
    }
    let pass = api.gate.request(&asked.user.name)?;
    let now = api.clock.wall();
    if let Some(bytes) = instead(api, &subject, path, query) {
        let bytes = encoder.object(&bytes, now)?;
        return Ok(Answer::full(200, JSON, bytes));
    }
    if !path.subresource.is_empty() {
        return part(api, &encoder, path, query).await;
    }
    if !path.name.is_empty() {
        let bytes = one(api, &encoder, path, query).await?;
        return Ok(Answer::full(200, JSON, bytes));
    }
    encoder.check_list()?;
    let options = ListOptions::parse(query)?;
    let mut want = question::want(&kind, path, query)?;
    want.extent = subject.extent;
    let listing = list::list(&api.reader, encoder, &want, &options, now).await?;
    let listing = listing.over(api.overlay());
    let payload = Payload::list(listing)?.holding(pass);
    peer.look_after(payload.flow());
    let mut answer = Answer::streamed(200, JSON, payload);
    answer.warnings.extend(subject.warning());
    Ok(answer)
}

/// A part of an object. The status is read with the whole; a scale is made from it.
async fn part(
    api: &Api,
    encoder: &Encoder,
    path: &ResourcePath,
    query: &Query,
) -> Result<Answer, Status> {
    match path.subresource.as_str() {
        "scale" => {
            let bytes = get::stored(&api.reader, &encoder.kind, path, query).await?;
            let value = serde_json::from_slice(&bytes)
                .map_err(|error| Status::internal(format!("an object cannot be read: {error}")))?;
            let paths = ScalePaths::of_kind(&encoder.kind).ok_or_else(Status::no_such_path)?;
            Ok(Answer::json(200, &paths.read(&value)?))
        }
        _ => {
            let bytes = one(api, encoder, path, query).await?;
            Ok(Answer::full(200, JSON, bytes))
        }
    }
}

/// An object as it was written and is not held yet, if it is as new as it is to be.
pub(super) fn instead(
    api: &Api,
    subject: &Subject,
    path: &ResourcePath,
    query: &Query,
) -> Option<Bytes> {
    as_written(api.overlay().as_deref(), subject, path, query)
}

/// The same. What was written here without the cluster comes after that; once the cluster has it,
/// what was written there since is newer, though what lies here is shown until it comes.
fn as_written(
    overlay: Option<&dyn Overlay>,
    subject: &Subject,
    path: &ResourcePath,
    query: &Query,
) -> Option<Bytes> {
    let (version, bytes) = subject.instead.clone()?;
    let name = get::name(&subject.kind, path);
    let resource = subject.kind.stored_as();
    let over = overlay.is_some_and(|overlay| overlay.waits(&resource, &name, &bytes));
    (is_as_new(&version, query) && !over).then_some(bytes)
}

/// Whether an object at this version is as new as it is to be.
fn is_as_new(version: &Version, query: &Query) -> bool {
    match get_freshness(query) {
        Ok(Freshness::AtLeast(asked) | Freshness::Exactly(asked)) => asked <= *version,
        Ok(Freshness::Newest | Freshness::Any) => true,
        // What is wrong with it is said where it is read.
        Err(_) => false,
    }
}

/// One object, as it is shown.
async fn one(
    api: &Api,
    encoder: &Encoder,
    path: &ResourcePath,
    query: &Query,
) -> Result<Bytes, Status> {
    let (reader, kind) = (&api.reader, &encoder.kind);
    let bytes = match api.overlay() {
        Some(overlay) => get::shown(reader, kind, path, query, &*overlay).await?,
        None => get::stored(reader, kind, path, query).await?,
    };
    encoder.object(&bytes, api.clock.wall())
}

async fn watching(
    api: &Arc<Api>,
    peer: &Peer,
    asked: &Asked,
    (encoder, extent): (Encoder, Extent),
    path: &ResourcePath,
) -> Result<Answer, Status> {
    let kind = encoder.kind.clone();
    if !kind.allows("watch") {
        return Err(Status::method_not_allowed());
    }
    let options = WatchOptions::parse(&asked.query)?;
    let mut want = question::want(&kind, path, &asked.query)?;
    want.extent = extent;
    let pass = api.gate.watch(&asked.user.name)?;
    let beyond = api.beyond.as_ref();
    let uses = beyond.and_then(|it| it.watches(&want.resource, &coming::narrowed(&want)));
    let around = Surroundings {
        clock: api.clock.clone(),
        shutdown: api.shutdown.clone(),
        spread: api.spread(),
        overlay: api.overlay(),
        gone: gone(api, &kind),
    };
    let payload = match watch::watch(&api.reader, encoder, want, &options, around).await? {
        Begun::Ended(event) => Payload::full(event),
        Begun::Watching(watching) => Payload::watch(watching),
    };
    peer.look_after(payload.flow());
    Ok(Answer::streamed(
        200,
        JSON,
        payload.holding(pass).using(uses),
    ))
}

/// Says when a kind has gone of which only the cluster knows. Others end their watches themselves.
fn gone(api: &Arc<Api>, kind: &Arc<Kind>) -> Option<Signal> {
    if !kind.told || kind.custom.is_none() {
        return None;
    }
    let (api, kind) = (api.clone(), kind.clone());
    Some(Box::pin(async move {
        let mut ticks = api.reader.ticks();
        let is_there = || api.catalog.find(&kind.group, &kind.version, &kind.plural);
        while is_there().is_some() {
            if ticks.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }))
}

async fn write(
    api: &Arc<Api>,
    asked: Asked,
    kind: Arc<Kind>,
    path: ResourcePath,
    body: Incoming,
) -> Result<Answer, Status> {
    let _pass = api.gate.request(&asked.user.name)?;
    let mut content_type = media_type(&asked.headers)?;
    let verb = write_verb(&asked.method, &path)?;
    // Kubernetes takes the kind of a patch by the letter, everything else in any case.
    if verb != Verb::Patch {
        content_type.make_ascii_lowercase();
    }
    let encoder = encoder(&asked, kind.clone())?;
    let mut body = intake::body(body).await?;
    if content_type == protobuf::MEDIA_TYPE && verb != Verb::Patch {
        let expected = Expected::of(verb, &kind, &path.subresource);
        body = protobuf::to_json(&body, &expected, BODY_BYTES_MAX)?.into();
        content_type = JSON.to_owned();
    }
    let (query, user) = (asked.query, asked.user);
    let order = Order {
        verb,
        kind,
        path,
        query,
        body,
        content_type,
        user,
    };
    if reviews::is_review(&order.kind) {
        return reviews::answer(api, &order);
    }
    let Some(writes) = &api.writes else {
        return Err(Status::method_not_allowed());
    };
    let written = writes.write(order).await?;
    let bytes = match written.body {
        WrittenBody::Object(bytes) => encoder.shown(bytes, api.clock.wall())?,
        WrittenBody::List(found) => {
            encoder.list(&found.version, found.objects, api.clock.wall())?
        }
        WrittenBody::Verbatim(bytes) => bytes,
    };
    let mut answer = Answer::full(written.code, JSON, bytes);
    answer.warnings = written.warnings;
    Ok(answer)
}

/// What the body is said to be; empty where nothing is said.
pub(super) fn media_type(headers: &HeaderMap) -> Result<String, Status> {
    let Some(value) = headers.get(CONTENT_TYPE).filter(|value| !value.is_empty()) else {
        return Ok(String::new());
    };
    let media = value.to_str().unwrap_or("").split(';').next().unwrap_or("");
    match media.trim() {
        "" => Err(Status::unsupported_media_type(JSON)),
        media => Ok(media.to_owned()),
    }
}

pub(super) fn encoder(asked: &Asked, kind: Arc<Kind>) -> Result<Encoder, Status> {
    let (accept, pretty) = (
        accept(&asked.headers),
        asked.query.truth("pretty") == Some(true),
    );
    // A question has no metadata: there is nothing to make another shape of.
    let form = match reviews::is_review(&kind) {
        true => Form::negotiate_whole(&accept, pretty)?,
        false => Form::negotiate(&accept, pretty)?,
    };
    let include = match form.shape {
        Shape::Table(_) => Include::parse(asked.query.text("includeObject"))?,
        Shape::Whole | Shape::Metadata(_) | Shape::MetadataList(_) => Include::default(),
    };
    Ok(Encoder::new(kind, form, include))
}

#[cfg(test)]
mod tests {
    use object::{ObjectName, Resource};
    use tokio::sync::watch::Receiver;

    use super::*;
    use crate::catalog::Catalog;

    /// Something lies over every object, and the cluster has it or not.
    struct Lies {
        waits: bool,
    }

    impl Overlay for Lies {
        fn shown(&self, _: &Resource, _: &ObjectName, at: (&Bytes, &Version)) -> Option<Bytes> {
            Some(at.0.clone())
        }

        fn covers(&self, _: &Resource, _: &ObjectName) -> bool {
            true
        }

        fn waits(&self, _: &Resource, _: &ObjectName, _: &Bytes) -> bool {
            self.waits
        }

        fn changed(&self, _: &Resource, _: u64) -> Vec<ObjectName> {
            Vec::new()
        }

        fn turns(&self) -> Receiver<u64> {
            tokio::sync::watch::channel(0).1
        }
    }

    #[test]
    fn what_the_cluster_has_hides_nothing_that_was_written_there_since() {
        let kind = Catalog::new().find("", "v1", "pods").unwrap();
        let bytes = Bytes::from_static(b"{}");
        let subject = Subject {
            instead: Some(("130".parse().unwrap(), bytes.clone())),
            ..Subject::held(kind, Extent::Whole)
        };
        let uri = "/api/v1/namespaces/default/pods/p";
        let Ok(crate::request::Target::Resource(path)) = crate::request::Target::parse(uri) else {
            panic!("{uri}");
        };
        let query = Query::parse("").unwrap();
        let given = |waits| as_written(Some(&Lies { waits }), &subject, &path, &query);
        assert_eq!(given(false), Some(bytes));
        assert_eq!(given(true), None);
    }

    #[test]
    fn what_was_written_serves_whoever_knows_nothing_newer() {
        let version = "10".parse().unwrap();
        for (asked, serves) in [
            ("", true),
            ("resourceVersion=0", true),
            ("resourceVersion=9", true),
            ("resourceVersion=10", true),
            ("resourceVersion=11", false),
            ("resourceVersion=x", false),
        ] {
            let query = Query::parse(asked).unwrap();
            assert_eq!(is_as_new(&version, &query), serves, "{asked}");
        }
    }
}
