//! What a continue token is: the same thing to this server as to any other of the cluster.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::stage::{self, Stage, pod};

/// A token as a Kubernetes API server makes it.
pub fn made(start: &str, version: &str) -> String {
    let start = Value::from(start);
    URL_SAFE_NO_PAD.encode(format!(
        r#"{{"v":"meta.k8s.io/v1","rv":{version},"start":{start}}}"#
    ))
}

/// Start and version of a token, as a Kubernetes API server reads it.
pub fn read(token: &str) -> (String, String) {
    let text = URL_SAFE_NO_PAD.decode(token).unwrap();
    let text = String::from_utf8(text).unwrap();
    let wire: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(wire["v"], "meta.k8s.io/v1");
    // Taken from the text: a version may be larger than a JSON number that is read as one.
    let digits = text.split("\"rv\":").nth(1).unwrap();
    let digits = digits.split(',').next().unwrap();
    (
        wire["start"].as_str().unwrap().to_owned(),
        digits.to_owned(),
    )
}

#[tokio::test]
async fn a_token_that_makes_no_sense_is_refused() {
    stage::both(async |stage| {
        stage.put(&pod("a", "x")).await;
        let now = stage.pods_version().await;
        let long = "A".repeat(4000);
        let tokens = [
            "garbage".to_owned(),
            "%00".to_owned(),
            long,
            made("../secrets/x", &now),
            made("a/../b", &now),
            made("a//b", &now),
            made("a/x\u{1}", &now),
            made("a/x", "0"),
            made("a/x", "1.5"),
            URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v9","rv":1,"start":"a"}"#),
            URL_SAFE_NO_PAD.encode("null"),
        ];
        for token in tokens {
            let path = format!("/api/v1/pods?continue={token}");
            let reply = stage.client.get(&path).await;
            let body = reply.json();
            assert_eq!(
                (reply.status, &body["reason"]),
                (400, &"BadRequest".into()),
                "{body}"
            );
        }
    })
    .await;
}

/// A token of one list used with another shows nothing that the other would not show.
#[tokio::test]
async fn a_token_of_another_list_leads_out_of_no_namespace() {
    stage::both(async |stage| {
        for (namespace, name) in [("a", "x"), ("b", "y"), ("c", "z")] {
            stage.put(&pod(namespace, name)).await;
        }
        let now = stage.pods_version().await;
        for start in ["a/x\0", "0", "y", "zzz\0"] {
            let token = made(start, &now);
            let path = format!("/api/v1/namespaces/b/pods?continue={token}");
            let list = stage.client.json(&path).await;
            for item in list["items"].as_array().unwrap() {
                assert_eq!(item["metadata"]["namespace"], "b", "{start:?}");
            }
        }
    })
    .await;
}

/// Versions are decimal numbers of any size: a list goes on at one that no machine word holds.
#[tokio::test]
async fn a_list_goes_on_at_a_version_beyond_machine_words() {
    stage::on_replica(async |stage: &Stage, source| {
        source.jump("184467440737095516150");
        for name in ["one", "two"] {
            stage.put(&pod("a", name)).await;
        }
        let first = stage.client.json("/api/v1/pods?limit=1").await;
        let token = first["metadata"]["continue"].as_str().unwrap();
        let at = first["metadata"]["resourceVersion"].as_str().unwrap();
        assert_eq!(read(token), ("a/one\0".to_owned(), at.to_owned()));
        let path = format!("/api/v1/pods?limit=1&continue={token}");
        let second = stage.client.json(&path).await;
        assert_eq!(second["items"][0]["metadata"]["name"], "two");
        assert_eq!(second["metadata"]["resourceVersion"], at);
    })
    .await;
}
