//! Who asks, as the cluster sees it.

use cloud::cluster::Config;
use cloud::tunnel::Tunnels;
use host::{Clock, Shutdown, Tasks};
use serde_json::{Value, json};

use crate::link::{Link, request};
use crate::mirror::Mirror;
use crate::stage::Stage;

#[tokio::test]
async fn a_bearer_token_goes_on_a_connection_that_has_no_credential_of_the_hub() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let bearer = ("authorization", "Bearer abc");
    let other = ("impersonate-user", "somebody");
    let told = link.get("/api", &[bearer, other]).await.json();
    assert_eq!(told["certificate"], false);
    let headers = told["headers"].as_array().unwrap();
    assert!(headers.contains(&"authorization: Bearer abc".into()));
    assert!(headers.contains(&"impersonate-user: somebody".into()));
    let system = |it: &&Value| it.as_str().unwrap().contains("system:");
    assert_eq!(headers.iter().find(system), None);

    let told = link.get("/api", &[other]).await.json();
    assert_eq!(told["certificate"], true);
    let headers = told["headers"].as_array().unwrap();
    assert!(headers.contains(&"impersonate-user: system:node:n1".into()));
    assert!(!headers.contains(&"impersonate-user: somebody".into()));
    // The same for connections that change their protocol.
    let upgrade = [("connection", "Upgrade"), ("upgrade", "x")];
    let told = link.get("/api", &[upgrade[0], upgrade[1], bearer]).await;
    assert_eq!(told.json()["certificate"], false);
    let told = link.get("/api", &[upgrade[0], upgrade[1], other]).await;
    assert_eq!(told.json()["certificate"], true);
    let outcomes = mirror.tunnels.outcomes();
    assert_eq!((outcomes["bearer"], outcomes["node"]), (2, 2));
}

/// Who the embedded cluster says that asks.
async fn user(link: &Link, headers: &[(&str, &str)]) -> (u16, Value) {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    let read = link
        .ask(request("POST", path, &all, &review.to_string()))
        .await;
    let said = read.json();
    let user = said.pointer("/status/userInfo").cloned();
    (read.status.as_u16(), user.unwrap_or_default())
}

async fn token(stage: &Stage) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {},
    });
    let made = stage.client.create(path, asked.to_string().into()).await;
    let made: Value = serde_json::from_slice(&made.unwrap()).unwrap();
    made["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_cluster_sees_the_node_or_the_owner_of_the_token_and_nobody_else() {
    let stage = Stage::open().await;
    let mut tasks = Tasks::new(Shutdown::new());
    let config = Config::from_kubeconfig(&stage.kubeconfig()).unwrap();
    let tunnels = Tunnels::new(&config, Clock::machine(), &mut tasks);
    let link = Link::open(&tunnels, "n1");
    let masters = ("impersonate-group", "system:masters");
    let admin = ("impersonate-user", "admin");
    let claims = [masters, admin, ("x-remote-user", "admin")];
    for headers in [&claims[..], &[]] {
        let (code, user) = user(&link, headers).await;
        assert_eq!(code, 201);
        assert_eq!(user["username"], "system:node:n1");
        let groups = json!(["system:nodes", "system:authenticated"]);
        assert_eq!(user["groups"], groups);
    }
    let bearer = format!("Bearer {}", token(&stage).await);
    let bearer = ("authorization", bearer.as_str());
    let (_, owner) = user(&link, &[bearer]).await;
    assert_eq!(owner["username"], "system:serviceaccount:default:default");
    // Whether its owner may be somebody else is for the cluster to say.
    let (code, _) = user(&link, &[bearer, masters, admin]).await;
    assert_eq!(code, 403);
    let (code, _) = user(&link, &[("authorization", "Bearer nonsense")]).await;
    assert_eq!(code, 401);
    // A node may do what nodes may do.
    let secrets = link.get("/api/v1/secrets", &[]).await;
    assert_eq!(secrets.status, 403);
    assert_eq!(secrets.json()["reason"], "Forbidden");
}
