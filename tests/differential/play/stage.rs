//! The namespace that a conversation has for itself.

use std::time::Duration;

use cluster::client::Answer;
use http_body_util::Full;
use hyper::Request;
use tokio::time::{sleep, timeout};

use super::identity::Doors;
use crate::conversation::Who;
use crate::values::Known;

/// How long a namespace may take to be furnished, and one request about it.
const READY_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Makes the namespace and waits until it has what every namespace has.
pub(super) async fn set(doors: &mut Doors<'_>, known: &Known) -> Result<(), String> {
    let namespace = &known.namespace;
    let body = format!(
        r#"{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{namespace}"}}}}"#
    );
    match ask((doors, known), "POST", "/api/v1/namespaces", body).await? {
        201 => {}
        status => {
            return Err(format!(
                "the namespace {namespace} could not be made: {status}"
            ));
        }
    }
    for furniture in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let path = format!("/api/v1/namespaces/{namespace}/{furniture}");
        let waiting = async {
            while ask((doors, known), "GET", &path, String::new()).await? != 200 {
                sleep(AGAIN_AFTER).await;
            }
            Ok::<(), String>(())
        };
        let waited = timeout(READY_WITHIN, waiting).await;
        waited.map_err(|_| format!("{path} is not there after {READY_WITHIN:?}"))??;
    }
    Ok(())
}

/// Has the namespace deleted; that it goes is not waited for.
pub(super) async fn strike(doors: &mut Doors<'_>, known: &Known) -> Result<(), String> {
    let namespace = &known.namespace;
    let path = format!("/api/v1/namespaces/{namespace}");
    match ask((doors, known), "DELETE", &path, String::new()).await? {
        200..=299 => Ok(()),
        // The conversation may have had it deleted itself.
        404 | 409 => Ok(()),
        status => Err(format!(
            "the namespace {namespace} could not be deleted: {status}"
        )),
    }
}

async fn ask(
    (doors, known): (&mut Doors<'_>, &Known),
    method: &str,
    path: &str,
    body: String,
) -> Result<u16, String> {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://127.0.0.1{path}"))
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .map_err(|error| error.to_string())?;
    let asking = async {
        let answer = doors.ask(&Who::Admin, known, request).await?;
        let answer = Answer::whole(answer).await;
        Ok(answer.map_err(|error| error.to_string())?.status)
    };
    let asked = timeout(ANSWER_WITHIN, asking).await;
    asked.unwrap_or_else(|_| Err(format!("{method} {path}: no answer in {ANSWER_WITHIN:?}")))
}
