//! Paths that lead to no objects: health, version, discovery, schemas, and the keys that tokens are
//! verified with.

use http::Method;
use http::header::{HeaderMap, IF_NONE_MATCH};
use serde_json::{Value, json};

use super::Api;
use super::answer::{Answer, JSON, TEXT};
use super::route::{Asked, accept};
use crate::Status;
use crate::catalog::Snapshot;
use crate::discovery::{self, Part};
use crate::openapi;
use crate::request::Form;
use crate::request::accept::{MediaRange, must_take, ranges};
use crate::who::token;

/// The version of Kubernetes whose API this is.
const KUBERNETES: (&str, &str) = ("1", "36");
/// The oldest minor version whose behaviour a client may still count on.
const COMPATIBLE_FROM: &str = "35";

/// Where a path begins; that says how it is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Root<'a> {
    /// `/api`.
    Core,
    /// `/apis/GROUP`.
    Group(&'a str),
    /// Anywhere else.
    Other,
}

impl<'a> Root<'a> {
    /// Where a group's kinds are.
    pub(super) fn of(group: &'a str) -> Self {
        match group {
            "" => Self::Core,
            group => Self::Group(group),
        }
    }

    /// Where a path is that was not taken apart.
    pub(super) fn of_path(path: &'a str) -> Self {
        let mut words = path.split('/').skip(1);
        match (words.next(), words.next()) {
            (Some("api"), _) => Self::Core,
            (Some("apis"), Some(group)) => Self::Group(group),
            _ => Self::Other,
        }
    }
}

/// What is said where nothing is: the groups that are built in answer for themselves, everywhere
/// else there is no such page.
pub(super) fn nowhere(api: &Api, root: Root<'_>) -> Result<Answer, Status> {
    let ours = match root {
        Root::Core => true,
        Root::Group(group) => api.catalog.is_built_in(group),
        Root::Other => false,
    };
    match ours {
        true => Err(Status::no_such_path()),
        false => Ok(Answer::no_page()),
    }
}

/// Answers a request for a path.
pub(super) fn answer(api: &Api, asked: &Asked, segments: &[String]) -> Result<Answer, Status> {
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    // Health, the list of groups and the schemas are told to whoever may ask in any way.
    let only_read = matches!(
        words.as_slice(),
        ["version" | "api" | "openid" | ".well-known", ..] | ["apis", _, ..]
    );
    if only_read && !matches!(asked.method, Method::GET | Method::HEAD) {
        return Err(Status::method_not_allowed());
    }
    let snapshot = api.catalog.snapshot();
    match words.as_slice() {
        [] => Ok(Answer::json(200, &root(&snapshot))),
        ["healthz" | "livez" | "readyz"] => Ok(health(api, asked, words[0])),
        ["healthz" | "livez" | "readyz", "ping"] => Ok(Answer::full(200, TEXT, "ok")),
        ["version"] => Ok(Answer::json(200, &version(api))),
        ["api"] => discover(api, asked, &snapshot, Part::Core),
        ["apis"] => discover(api, asked, &snapshot, Part::Named),
        ["api", version] => {
            let document = discovery::api_resources(&snapshot, "", version);
            found(api, Root::Core, document)
        }
        ["apis", group] => {
            let document = discovery::api_group(&snapshot, group);
            found(api, Root::Group(group), document)
        }
        ["apis", group, version] => {
            let document = discovery::api_resources(&snapshot, group, version);
            found(api, Root::Group(group), document)
        }
        ["openapi", rest @ ..] => Ok(schema(asked, &snapshot, rest)),
        ["openid", "v1", "jwks"] => {
            must_take(&accept(&asked.headers), "jwk-set+json")?;
            let keys = token::key_set(&api.verifier.now().keys).to_string();
            Ok(public(Answer::full(200, "application/jwk-set+json", keys)))
        }
        [".well-known", "openid-configuration"] => {
            let url = format!("https://{}/openid/v1/jwks", api.about.address);
            let verifier = api.verifier.now();
            let document = token::discovery_document(&api.about.issuer, &url, &verifier.keys);
            Ok(public(Answer::json(200, &document)))
        }
        _ => Ok(Answer::no_page()),
    }
}

fn found(api: &Api, root: Root<'_>, document: Option<Value>) -> Result<Answer, Status> {
    match document {
        Some(document) => Ok(Answer::json(200, &document)),
        None => nowhere(api, root),
    }
}

/// What everybody may keep for an hour: the key of a cluster changes less often.
fn public(mut answer: Answer) -> Answer {
    answer.cache = "public, max-age=3600";
    answer
}

/// `/openapi/…`.
fn schema(asked: &Asked, snapshot: &Snapshot, rest: &[&str]) -> Answer {
    match rest {
        ["v2"] => openapi_v2(asked, snapshot),
        ["v3"] => Answer::json(200, &openapi::v3_index(snapshot)),
        ["v3", "api", version] => openapi_v3(asked, snapshot, "", version),
        ["v3", "apis", group, version] => openapi_v3(asked, snapshot, group, version),
        _ => Answer::no_page(),
    }
}

fn root(snapshot: &Snapshot) -> Value {
    let others = [
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/apis/",
        "/healthz",
        "/healthz/ping",
        "/livez",
        "/livez/ping",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/readyz/ping",
        "/version",
    ];
    let mut paths: Vec<String> = others.map(str::to_owned).into();
    for group in snapshot.groups() {
        let (root, named) = match &*group.name {
            "" => ("/api".to_owned(), false),
            name => (format!("/apis/{name}"), true),
        };
        let versions = group.versions.iter();
        paths.extend(versions.map(|version| format!("{root}/{}", version.version)));
        paths.extend(named.then_some(root));
    }
    paths.sort();
    json!({ "paths": paths })
}

/// Healthy means that the process answers and its disk can be trusted; ready means that nothing
/// stored is damaged and we are not leaving.
fn health(api: &Api, asked: &Asked, which: &str) -> Answer {
    let ready = which == "readyz";
    let checks = [
        ("ping", true),
        // A new start is what helps: the one who watches over us must see it.
        ("store-writable", api.reader.is_writable()),
        ("store-whole", !ready || api.reader.damaged().is_empty()),
        ("shutdown", !ready || !api.shutdown.is_triggered()),
    ];
    let well = checks.iter().all(|(_, well)| *well);
    let code = if well { 200 } else { 500 };
    if well && asked.query.value("verbose").is_none() {
        return Answer::full(code, TEXT, "ok").guarded();
    }
    let mut text = String::new();
    for (name, well) in checks {
        text += &match well {
            true => format!("[+]{name} ok\n"),
            false => format!("[-]{name} failed: reason withheld\n"),
        };
    }
    text += &format!("{which} check {}\n", if well { "passed" } else { "failed" });
    Answer::full(code, TEXT, text).guarded()
}

fn version(api: &Api) -> Value {
    let (major, minor) = KUBERNETES;
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": COMPATIBLE_FROM,
        "gitVersion": format!("v{major}.{minor}.0+holdfast-{}", api.about.version),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The machine's architecture as Go spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn discover(api: &Api, asked: &Asked, snapshot: &Snapshot, part: Part) -> Result<Answer, Status> {
    if wants_aggregated(asked) {
        let document = discovery::aggregated(snapshot, part).to_string();
        return Ok(aggregated(asked, document));
    }
    Form::negotiate_whole(&accept(&asked.headers), false)?;
    Ok(Answer::json(200, &older(api, snapshot, part)))
}

/// A client that knows the newer form of discovery at all is given it, whatever stands before it.
pub(super) fn wants_aggregated(asked: &Asked) -> bool {
    let accept = accept(&asked.headers);
    let knows = |range: &MediaRange<'_>| range.takes_json() && discovery::is_aggregated(range);
    ranges(&accept).iter().any(knows)
}

/// The newer form of discovery, or that the client has it already.
pub(super) fn aggregated(asked: &Asked, document: String) -> Answer {
    let etag = discovery::etag(&document);
    let mut answer = match unchanged(&asked.headers, &etag) {
        true => Answer::full(304, discovery::AGGREGATED, ""),
        false => Answer::full(200, discovery::AGGREGATED, document),
    };
    (answer.cache, answer.varies) = ("public", Some("Accept"));
    answer.etag = Some(etag);
    answer
}

pub(super) fn older(api: &Api, snapshot: &Snapshot, part: Part) -> Value {
    match part {
        Part::Core => discovery::api_versions(snapshot, &api.about.address),
        Part::Named => discovery::api_groups(snapshot),
    }
}

fn openapi_v2(asked: &Asked, snapshot: &Snapshot) -> Answer {
    let etag = openapi::v2_etag(snapshot);
    if unchanged(&asked.headers, &etag) {
        return not_modified(etag);
    }
    let accept = accept(&asked.headers);
    let protobuf = |range: &MediaRange<'_>| {
        let asked = openapi::V2_PROTOBUF_ASKED
            .iter()
            .filter_map(|name| name.split_once('/'));
        asked
            .into_iter()
            .any(|(kind, subkind)| (kind, subkind) == (range.kind, range.subkind))
    };
    let first = ranges(&accept)
        .into_iter()
        .find(|range| range.takes_json() || protobuf(range));
    let mut answer = match first {
        Some(range) if !range.takes_json() => {
            Answer::full(200, openapi::V2_PROTOBUF, openapi::v2_protobuf(snapshot))
        }
        _ => Answer::full(200, JSON, openapi::v2_json(snapshot)),
    };
    answer.etag = Some(etag);
    answer
}

fn openapi_v3(asked: &Asked, snapshot: &Snapshot, group: &str, version: &str) -> Answer {
    let Some(hash) = openapi::v3_hash(snapshot, group, version) else {
        return Answer::no_page();
    };
    let etag = format!("\"{hash}\"");
    if unchanged(&asked.headers, &etag) {
        return not_modified(etag);
    }
    let Some(document) = openapi::v3_document(snapshot, group, version) else {
        return Answer::no_page();
    };
    let mut answer = Answer::full(200, JSON, document);
    answer.etag = Some(etag);
    answer
}

pub(super) fn unchanged(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    known.split(',').any(|candidate| candidate.trim() == etag)
}

fn not_modified(etag: String) -> Answer {
    let mut answer = Answer::full(304, JSON, "");
    answer.etag = Some(etag);
    answer
}
