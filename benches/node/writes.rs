//! What a pod writes through its node: over the link to the hub, and from there to the cluster.

use ::cluster::client;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};

use crate::client::Protocol;
use crate::generator::numbers::short;
use crate::objects::{collection, config_map, name};
use crate::server::Server;
use crate::sheet::Sheet;
use crate::stage::{MANY, Stage, node_door};

/// A patch of a config map by who has a token of the cluster, straight and through the node.
pub(crate) async fn run(stage: &mut Stage, sheet: &mut Sheet) {
    let token = account(stage).await;
    let site = client::Door::for_admin(stage.ground.site()).expect("a door");
    let direct = Server {
        door: site.as_nobody().into(),
        processes: stage.ground.server.processes.clone(),
    };
    // All who work for it.
    let hub = stage.hub.as_ref().map(|hub| hub.program.id());
    let working = [&stage.local.processes[..], &direct.processes].concat();
    let local = Server {
        door: node_door(&stage.agent).await.as_nobody().into(),
        processes: working.into_iter().chain(hub).collect(),
    };
    for (connections, says) in [(1, "1 connection"), (16, "16 connections")] {
        let token = token.clone();
        let asked = move |turn: usize| patch(&token, turn);
        let what = format!("patch of a config map, tunnelled by the node, {says}");
        let figures = stage
            .compare((&what, connections), (&direct, &local), asked, sheet)
            .await;
        let [(half, most), (own_half, own_most)] = figures.map(|it| it.p50_and_p99());
        let added = format!(
            "+ {} / + {} ms",
            short((own_half - half).max(0.0)),
            short((own_most - most).max(0.0))
        );
        let what = format!("added by the tunnel, {says}, p50 / p99");
        sheet.row(&what, "", &added, "");
    }
}

/// A service account that may patch config maps, some of these, and its token.
async fn account(stage: &Stage) -> String {
    let mut admin = stage.ground.server.door.connect(Protocol::Http1).await;
    let mut make = async |path: &str, object: Value| {
        let body = object.to_string().into();
        let answer = admin.call("POST", path, body).await;
        serde_json::from_slice::<Value>(&answer).expect("JSON")
    };
    let accounts = format!("/api/v1/namespaces/{MANY}/serviceaccounts");
    make(&accounts, json!({"metadata": {"name": "writer"}})).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]);
    let role = json!({"metadata": {"name": "writer"}, "rules": rules});
    make(&format!("{RBAC}/clusterroles"), role).await;
    let binding = json!({
        "metadata": {"name": "writer"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"
        },
        "subjects": [{"kind": "ServiceAccount", "name": "writer", "namespace": MANY}]
    });
    make(&format!("{RBAC}/clusterrolebindings"), binding).await;
    for number in 0..MAPS {
        let body = config_map(&name(number), number, 1024);
        let body = serde_json::from_slice(&body).expect("JSON");
        make(&collection(MANY), body).await;
    }
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let given = make(&format!("{accounts}/writer/token"), asked).await;
    given["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

fn patch(token: &str, turn: usize) -> Request<Full<Bytes>> {
    let path = format!("{}/{}", collection(MANY), name(turn % MAPS));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    // Each is a change: what changes nothing is not written.
    let change = format!("{}-{turn}", now.expect("a clock").as_nanos());
    let body = json!({"data": {"change": change}}).to_string();
    Request::builder()
        .method("PATCH")
        .uri(format!("https://127.0.0.1{path}"))
        .header("accept", "application/json")
        .header("content-type", "application/merge-patch+json")
        .header("authorization", format!("Bearer {token}"))
        .body(Full::new(body.into()))
        .expect("a request that can be said")
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Config maps that are written, so that several writers seldom meet.
const MAPS: usize = 64;
