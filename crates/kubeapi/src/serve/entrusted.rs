//! Requests in the name that an API lends, which whoever is beyond it sees to himself: here or
//! there, as it must be. Their bodies are taken whole.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;

use super::answer::{Answer, JSON};
use super::beyond::{Beyond, Reply};
use super::limits::BODY_BYTES_MAX;
use super::payload::Payload;
use super::route::{self, Asked, is_watch};
use super::written::Writing;
use super::{Api, intake, objects};
use crate::Status;
use crate::catalog::Kind;
use crate::protobuf::{self, Expected};
use crate::request::{Query, ResourcePath, Target};
use crate::who::User;
use crate::who::impersonate::Wanted;

/// A request that is being seen to.
pub type Seeing<'a> = Pin<Box<dyn Future<Output = Result<Seen, Status>> + Send + 'a>>;

/// A request of somebody in the lent name, with its body.
pub struct Entrusted {
    /// Its head, as it came.
    pub head: Parts,
    /// What it is about.
    pub path: ResourcePath,
    /// The kind of that.
    pub kind: Arc<Kind>,
    /// Its body, as it came.
    pub body: Bytes,
}

impl Entrusted {
    /// What its body is said to be.
    pub fn content_type(&self) -> Result<String, Status> {
        objects::media_type(&self.head.headers)
    }

    /// Its body in JSON.
    pub fn json(&self) -> Result<Bytes, Status> {
        let verb = route::write_verb(&self.head.method, &self.path)?;
        let media = self.content_type()?;
        if !media.eq_ignore_ascii_case(protobuf::MEDIA_TYPE) {
            return Ok(self.body.clone());
        }
        let expected = Expected::of(verb, &self.kind, &self.path.subresource);
        let json = protobuf::to_json(&self.body, &expected, BODY_BYTES_MAX)?;
        Ok(json.into())
    }
}

/// What came of a request that was seen to.
pub enum Seen {
    /// An object, with this code. It is shown in the form that was asked for.
    Object(u16, Bytes),
    /// An answer of somebody else, with this code, in JSON.
    Verbatim(u16, Bytes),
    /// It was passed on, and this came back.
    Passed(Response<Incoming>),
}

/// What a request is about that is seen to.
pub(super) struct Matter {
    asked: Asked,
    path: ResourcePath,
    kind: Arc<Kind>,
}

/// What a request of a known user is about, if it is seen to.
pub(super) fn matter(
    api: &Api,
    beyond: &dyn Beyond,
    (user, request): (&Arc<User>, &Request<Incoming>),
) -> Result<Option<Matter>, Status> {
    let lent = beyond.lends_itself_to(user) && !request.headers().contains_key(AUTHORIZATION);
    let target = Target::parse(request.uri().path());
    let (true, Ok(Target::Resource(path))) = (lent, target) else {
        return Ok(None);
    };
    // What is wrong with it the cluster says.
    let Ok(query) = Query::parse(request.uri().query().unwrap_or("")) else {
        return Ok(None);
    };
    let plain = query.text("dryRun").is_empty()
        && path.rest.is_empty()
        && !is_watch(&path, &query)
        && Wanted::from_headers(request.headers())?.is_none();
    if !plain || !beyond.sees_to(request.method(), &path) {
        return Ok(None);
    }
    let found = api.catalog.find(&path.group, &path.version, &path.resource);
    Ok(found.map(|kind| Matter {
        asked: Asked {
            user: user.clone(),
            method: request.method().clone(),
            headers: request.headers().clone(),
            query,
        },
        path,
        kind,
    }))
}

/// Has a request seen to.
pub(super) async fn answer(
    api: &Api,
    beyond: &dyn Beyond,
    Matter { asked, path, kind }: Matter,
    request: Request<Incoming>,
) -> Result<Reply, Status> {
    let _pass = api.gate.request(&asked.user.name)?;
    let encoder = objects::encoder(&asked, kind.clone())?;
    let (mut head, body) = request.into_parts();
    let body = intake::body(body).await?;
    let writing = Writing::of(api, &Request::from_parts(head.clone(), ()));
    if let Some(writing) = &writing {
        writing.wants_json(api, &mut head.headers);
    }
    let entrusted = Entrusted {
        head,
        path,
        kind,
        body,
    };
    match beyond.see_to(entrusted).await? {
        Seen::Passed(response) => Ok(Reply::Passed(match writing {
            Some(writing) => writing.noted(api, response).await?,
            None => response.map(Payload::passed),
        })),
        Seen::Object(code, bytes) => {
            let bytes = encoder.shown(bytes, api.clock.wall())?;
            Ok(Reply::Here(Answer::full(code, JSON, bytes)))
        }
        Seen::Verbatim(code, bytes) => Ok(Reply::Here(Answer::full(code, JSON, bytes))),
    }
}
