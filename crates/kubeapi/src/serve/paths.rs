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
use crate::discovery::{self, Edition, Part};
use crate::openapi;
use crate::request::accept::{MediaRange, ranges};
use crate::who::token;

/// The version of Kubernetes whose API this is.
const KUBERNETES: (&str, &str) = ("1", "36");

/// Answers a request for a path.
pub(super) fn answer(api: &Api, asked: &Asked, segments: &[String]) -> Result<Answer, Status> {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return Err(Status::method_not_allowed());
    }
    let snapshot = api.catalog.snapshot();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => Ok(Answer::json(200, &root(&snapshot))),
        ["healthz" | "livez" | "readyz"] => Ok(health(api, asked, words[0])),
        ["healthz" | "livez" | "readyz", "ping"] => Ok(Answer::full(200, TEXT, "ok")),
        ["version"] => Ok(Answer::json(200, &version(api))),
        ["api"] => discover(api, asked, &snapshot, Part::Core),
        ["apis"] => discover(api, asked, &snapshot, Part::Named),
        ["api", version] => found(discovery::api_resources(&snapshot, "", version)),
        ["apis", group] => found(discovery::api_group(&snapshot, group)),
        ["apis", group, version] => found(discovery::api_resources(&snapshot, group, version)),
        ["openapi", "v2"] => Ok(openapi_v2(asked, &snapshot)),
        ["openapi", "v3"] => Ok(Answer::json(200, &openapi::v3_index(&snapshot))),
        ["openapi", "v3", "api", version] => openapi_v3(asked, &snapshot, "", version),
        ["openapi", "v3", "apis", group, version] => openapi_v3(asked, &snapshot, group, version),
        ["openid", "v1", "jwks"] => Ok(Answer::json(200, &token::key_set(&api.verifier.keys))),
        [".well-known", "openid-configuration"] => {
            let url = format!("https://{}/openid/v1/jwks", api.about.address);
            let keys = &api.verifier.keys;
            let document = token::discovery_document(&api.about.issuer, &url, keys);
            Ok(Answer::json(200, &document))
        }
        _ => Err(Status::no_such_path()),
    }
}

fn found(document: Option<Value>) -> Result<Answer, Status> {
    match document {
        Some(document) => Ok(Answer::json(200, &document)),
        None => Err(Status::no_such_path()),
    }
}

fn root(snapshot: &Snapshot) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for group in snapshot.groups() {
        for version in &group.versions {
            paths.push(match group.name.is_empty() {
                true => format!("/api/{}", version.version),
                false => format!("/apis/{}/{}", group.name, version.version),
            });
        }
    }
    let others = [
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
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
        return Answer::full(code, TEXT, "ok");
    }
    let mut text = String::new();
    for (name, well) in checks {
        text += &match well {
            true => format!("[+]{name} ok\n"),
            false => format!("[-]{name} failed\n"),
        };
    }
    text += &format!("{which} check {}\n", if well { "passed" } else { "failed" });
    Answer::full(code, TEXT, text)
}

fn version(api: &Api) -> Value {
    let (major, minor) = KUBERNETES;
    json!({
        "major": major,
        "minor": minor,
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
    let accept = accept(&asked.headers);
    for range in ranges(&accept).into_iter().filter(MediaRange::takes_json) {
        let aggregated = range.parameter("as") == "APIGroupDiscoveryList"
            && range.parameter("g") == "apidiscovery.k8s.io";
        let edition = match range.parameter("v") {
            "v2" if aggregated => Some(Edition::V2),
            "v2beta1" if aggregated => Some(Edition::V2Beta1),
            _ => None,
        };
        match edition {
            Some(edition) => {
                let document = discovery::aggregated(snapshot, part, edition);
                return Ok(Answer::full(
                    200,
                    edition.content_type(),
                    document.to_string(),
                ));
            }
            None if range.parameter("as").is_empty() => break,
            None => {}
        }
    }
    let document = match part {
        Part::Core => discovery::api_versions(snapshot, &api.about.address),
        Part::Named => discovery::api_groups(snapshot),
    };
    Ok(Answer::json(200, &document))
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

fn openapi_v3(
    asked: &Asked,
    snapshot: &Snapshot,
    group: &str,
    version: &str,
) -> Result<Answer, Status> {
    let hash = openapi::v3_hash(snapshot, group, version).ok_or_else(Status::no_such_path)?;
    let etag = format!("\"{hash}\"");
    if unchanged(&asked.headers, &etag) {
        return Ok(not_modified(etag));
    }
    let document = openapi::v3_document(snapshot, group, version);
    let mut answer = Answer::full(200, JSON, document.ok_or_else(Status::no_such_path)?);
    answer.etag = Some(etag);
    Ok(answer)
}

fn unchanged(headers: &HeaderMap, etag: &str) -> bool {
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
