//! What was written through a node is on the node a moment later. Who wants to read it there waits
//! for its version; a conversation, which does not, is made to wait.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use cluster::client::{Door, Protocol};
use http_body_util::Full;
use hyper::Request;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::servers::Entrance;

/// What every node holds whole.
const HELD: [(&str, &str); 5] = [
    ("services", "/api/v1/services"),
    ("endpointslices", "/apis/discovery.k8s.io/v1/endpointslices"),
    ("runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses"),
    ("csidrivers", "/apis/storage.k8s.io/v1/csidrivers"),
    ("namespaces", "/api/v1/namespaces"),
];
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Returns when a node has what was written at this path, if it holds that.
pub(super) async fn settled(entrance: &Entrance, path: &str) -> Result<(), String> {
    let Entrance::Token {
        door,
        token,
        behind: Some(behind),
    } = entrance
    else {
        return Ok(());
    };
    let Some(list) = held(path) else {
        return Ok(());
    };
    let alike = async {
        loop {
            let there = versions(behind, token, list).await?;
            if versions(door, token, list).await? == there {
                return Ok::<(), String>(());
            }
            sleep(AGAIN_AFTER).await;
        }
    };
    let waited = timeout(SETTLED_WITHIN, alike).await;
    waited.map_err(|_| format!("the node lacks {list} after {SETTLED_WITHIN:?}"))?
}

/// The list that has what is at a path.
fn held(path: &str) -> Option<&'static str> {
    let named = |plural: &str| path.split('/').any(|part| part == plural);
    let found = HELD.iter().find(|(plural, _)| named(plural));
    let (plural, list) = found?;
    // What is in a namespace is not the namespace.
    let below = path.split('/').count() > NAMESPACE_PARTS_MAX;
    (*plural != "namespaces" || !below).then_some(list)
}

/// Of `/api/v1/namespaces/NAME/finalize`.
const NAMESPACE_PARTS_MAX: usize = 6;

/// Which objects there are, and in which versions.
async fn versions(door: &Door, token: &str, list: &str) -> Result<BTreeSet<String>, String> {
    let request = Request::builder()
        .uri(format!("https://127.0.0.1{list}"))
        .header("accept", "application/json")
        .header("authorization", format!("Bearer {token}"))
        .body(Full::<Bytes>::default());
    let request = request.map_err(|error| error.to_string())?;
    let asked = async {
        let mut client = door.connect(Protocol::Http2).await?;
        client.exchange(request).await
    };
    let answer = asked.await.map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let items = value["items"].as_array();
    let items = items.ok_or_else(|| format!("{list}: no list but {}", answer.status))?;
    let version = |item: &Value| {
        let metadata = &item["metadata"];
        format!("{} {}", metadata["uid"], metadata["resourceVersion"])
    };
    Ok(items.iter().map(version).collect())
}

#[test]
fn what_a_node_holds_is_found_by_its_path() {
    let services = "/api/v1/services";
    assert_eq!(
        held("/api/v1/namespaces/a/services/b/status"),
        Some(services)
    );
    for path in ["/api/v1/namespaces", "/api/v1/namespaces/a/finalize"] {
        assert_eq!(held(path), Some("/api/v1/namespaces"), "{path}");
    }
    assert_eq!(held("/api/v1/namespaces/a/configmaps/b"), None);
}
