//! What leads to no object: discovery, version, health. The conformance cases of upstream's
//! `discovery.go`, `aggregated_discovery.go` and `server_version.go`.

use serde_json::Value;

use crate::stage;

/// "should validate PreferredVersion for each APIGroup" and "should locate the groupVersion and a
/// resource within each APIGroup".
#[tokio::test]
async fn every_group_says_its_versions_and_every_version_its_resources() {
    stage::everywhere(async |stage| {
        let groups = stage.client.json("/apis").await;
        let groups = groups["groups"].as_array().unwrap();
        assert!(groups.iter().any(|group| group["name"] == "apps"));
        for group in groups {
            let name = group["name"].as_str().unwrap();
            let one = stage.client.json(&format!("/apis/{name}")).await;
            assert_eq!(one["preferredVersion"], group["preferredVersion"], "{name}");
            let versions = group["versions"].as_array().unwrap();
            assert!(versions.contains(&group["preferredVersion"]), "{name}");
            for version in versions {
                let version = version["groupVersion"].as_str().unwrap();
                let list = stage.client.json(&format!("/apis/{version}")).await;
                assert_eq!(list["groupVersion"], version);
                assert!(
                    !list["resources"].as_array().unwrap().is_empty(),
                    "{version}"
                );
            }
        }
        let core = stage.client.json("/api/v1").await;
        let resources = core["resources"].as_array().unwrap();
        let pods = resources
            .iter()
            .find(|resource| resource["name"] == "pods")
            .unwrap();
        assert_eq!(
            (&pods["kind"], &pods["namespaced"]),
            (&"Pod".into(), &true.into())
        );
        assert_eq!(stage.client.get("/api/v2").await.status, 404);
    })
    .await;
}

/// "should support raw aggregated discovery endpoint Accept headers".
#[tokio::test]
async fn aggregated_discovery_is_one_answer_for_all_groups() {
    stage::both(async |stage| {
        let form = |version: &str| {
            format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
        };
        for path in ["/api", "/apis"] {
            let accept = format!("application/json,{}", form("v2"));
            let reply = stage.client.get_as(path, &accept).await;
            let media = reply.header("content-type").to_owned();
            assert!(media.contains("as=APIGroupDiscoveryList"), "{media}");
            assert_eq!(reply.header("vary"), "Accept");
            let document = reply.json();
            assert_eq!(document["kind"], "APIGroupDiscoveryList");
            assert_eq!(document["apiVersion"], "apidiscovery.k8s.io/v2");
            assert!(!document["items"].as_array().unwrap().is_empty());
        }
        let older = stage.client.get_as("/apis", &form("v2beta1")).await;
        assert_eq!(older.status, 406);
        let legacy = stage
            .client
            .get_as("/apis", "application/json")
            .await
            .json();
        assert_eq!(legacy["kind"], "APIGroupList");
    })
    .await;
}

/// "should find the server version".
#[tokio::test]
async fn the_version_can_be_parsed() {
    stage::both(async |stage| {
        let version = stage.client.json("/version").await;
        let number = |key: &str| {
            version[key]
                .as_str()
                .and_then(|text| text.parse::<u32>().ok())
        };
        assert_eq!(number("major"), Some(1));
        assert!(number("minor").is_some_and(|minor| minor >= 34));
        assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."));
    })
    .await;
}

#[tokio::test]
async fn health_tells_and_readiness_ends_with_the_shutdown() {
    stage::both(async |stage| {
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
            assert_eq!(stage.client.get(path).await.text(), "ok", "{path}");
        }
        let verbose = stage.client.get("/readyz?verbose").await.text();
        assert!(verbose.contains("[+]ping ok") && verbose.contains("readyz check passed"));
        let kinds: Value = stage.client.json("/").await;
        assert!(
            kinds["paths"]
                .as_array()
                .unwrap()
                .contains(&"/readyz".into())
        );
    })
    .await;
}
