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

const SETTLED_WITHIN: Duration = Duration::from_secs(20);
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Returns when a node has what was written at this path, if it holds that. A kind that it does not
/// hold it asks its cluster for, which is the same list at once.
///
/// Without this, two changes that follow each other closely may be one event of a watch on the
/// node: it is sent what an object is, and not all that it was.
pub(super) async fn settled(entrance: &Entrance, path: &str) -> Result<(), String> {
    let Entrance::Token {
        door,
        token,
        behind: Some(behind),
    } = entrance
    else {
        return Ok(());
    };
    let Some(list) = collection(path) else {
        return Ok(());
    };
    let alike = async {
        loop {
            let there = versions(behind, token, &list).await?;
            if there.is_none() || versions(door, token, &list).await? == there {
                return Ok::<(), String>(());
            }
            sleep(AGAIN_AFTER).await;
        }
    };
    let waited = timeout(SETTLED_WITHIN, alike).await;
    waited.map_err(|_| format!("the node lacks {list} after {SETTLED_WITHIN:?}"))?
}

/// The list that has what is at a path, if the path is of a resource.
fn collection(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let version_parts = match parts.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        _ => return None,
    };
    let inside = parts.get(version_parts..)?;
    // What is in a namespace is not the namespace, and neither are its own subresources.
    let of_namespace = |plural: &&str| matches!(*plural, "finalize" | "status");
    let list_parts = match inside {
        ["namespaces", _, plural, ..] if !of_namespace(plural) => 3,
        [_, ..] => 1,
        [] => return None,
    };
    Some(format!(
        "/{}",
        parts[..version_parts + list_parts].join("/")
    ))
}

/// Which objects there are, and in which versions; nothing of what cannot be listed.
async fn versions(
    door: &Door,
    token: &str,
    list: &str,
) -> Result<Option<BTreeSet<String>>, String> {
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
    if matches!(answer.status, 404 | 405) {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let items = value["items"].as_array();
    let items = items.ok_or_else(|| format!("{list}: no list but {}", answer.status))?;
    let version = |item: &Value| {
        let metadata = &item["metadata"];
        format!("{} {}", metadata["uid"], metadata["resourceVersion"])
    };
    Ok(Some(items.iter().map(version).collect()))
}

#[test]
fn what_is_written_is_in_the_list_of_its_kind() {
    let found = |path: &str| collection(path).expect("a list");
    let services = "/api/v1/namespaces/a/services";
    assert_eq!(found("/api/v1/namespaces/a/services/b/status"), services);
    assert_eq!(found(services), services);
    for path in ["/api/v1/namespaces", "/api/v1/namespaces/a/finalize"] {
        assert_eq!(found(path), "/api/v1/namespaces", "{path}");
    }
    let scale = "/apis/apps/v1/namespaces/a/deployments/b/scale";
    assert_eq!(found(scale), "/apis/apps/v1/namespaces/a/deployments");
    let class = "/apis/node.k8s.io/v1/runtimeclasses/c";
    assert_eq!(found(class), "/apis/node.k8s.io/v1/runtimeclasses");
    for path in ["/version", "/api/v1", "/apis/apps/v1", "/apis"] {
        assert_eq!(collection(path), None, "{path}");
    }
}
