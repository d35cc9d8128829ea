//! What a node answers in its cluster's name: the version and the kinds, from the documents that
//! the cluster sent. With a link or without one the answers are the same.

use http::Method;

use super::Api;
use super::answer::{Answer, JSON};
use super::paths;
use super::route::{Asked, accept};
use crate::Status;
use crate::catalog::{Origin, Snapshot, Told};
use crate::discovery::{self, Document, Part};
use crate::request::Form;

/// The answer, if a document has it. What none has may be there all the same.
pub(super) fn answer(
    api: &Api,
    asked: &Asked,
    segments: &[String],
) -> Result<Option<Answer>, Status> {
    let reads = matches!(asked.method, Method::GET | Method::HEAD);
    let Some(told) = api.catalog.told().filter(|_| reads) else {
        return Ok(None);
    };
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    if *words == ["version"] {
        // Of this one no server gives the head alone.
        let version = told.version().filter(|_| asked.method == Method::GET);
        return Ok(version.map(|bytes| Answer::full(200, JSON, bytes)));
    }
    if !matches!(words.first(), Some(&"api" | &"apis")) {
        return Ok(None);
    }
    let snapshot = api.catalog.snapshot();
    if snapshot.origin() != Origin::Cluster || !speaks(asked) {
        return Ok(None);
    }
    let found = match *words {
        ["api"] => return half(api, asked, &snapshot, (told, Part::Core)),
        ["apis"] => return half(api, asked, &snapshot, (told, Part::Named)),
        ["api", version] => discovery::api_resources(&snapshot, "", version),
        ["apis", group] => discovery::api_group(&snapshot, group),
        ["apis", group, version] => discovery::api_resources(&snapshot, group, version),
        _ => None,
    };
    Ok(found.map(|found| Answer::json(200, &found)))
}

/// Whether it is asked for in a form that documents have. The cluster speaks more than we do.
fn speaks(asked: &Asked) -> bool {
    let whole = Form::negotiate_whole(&accept(&asked.headers), false);
    whole.is_ok() || paths::wants_aggregated(asked)
}

/// `/api` or `/apis`, in the form that is asked for.
fn half(
    api: &Api,
    asked: &Asked,
    snapshot: &Snapshot,
    (told, part): (&Told, Part),
) -> Result<Option<Answer>, Status> {
    if !paths::wants_aggregated(asked) {
        let older = paths::older(api, snapshot, part);
        return Ok(Some(Answer::json(200, &older)));
    }
    let document = told.discovery();
    let read = document.as_deref().map(Document::parse);
    // It was whole when its kinds were taken; if it is not any more, somebody else must answer.
    let Some(Ok(read)) = read else {
        return Ok(None);
    };
    let half = read.half(part).to_owned();
    Ok(Some(paths::aggregated(asked, half)))
}
