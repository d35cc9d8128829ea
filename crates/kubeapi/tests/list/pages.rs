//! Lists in parts: one state from the first page to the last, or an honest end.

use serde_json::Value;

use crate::stage::{self, Stage, item, pod, version};

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

fn next(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or("")
}

/// Upstream: chunking.go, "should return chunks of results for list calls".
#[tokio::test]
async fn pages_add_up_to_the_list_at_one_version() {
    stage::everywhere(async |stage| {
        const TOTAL: usize = 40;
        for number in 0..TOTAL {
            stage
                .put(&pod("chunks", &format!("template-{number:04}")))
                .await;
        }
        let at = stage.pods_version().await;
        for limit in [1, 3, 17, TOTAL - 1, TOTAL, TOTAL + 1] {
            let (mut found, mut token) = (0, String::new());
            loop {
                let path = format!("/api/v1/namespaces/chunks/pods?limit={limit}&continue={token}");
                let list = stage.client.json(&path).await;
                for name in names(&list) {
                    assert_eq!(name, format!("template-{found:04}"));
                    found += 1;
                }
                assert_eq!(version(&list), at);
                let remaining = list["metadata"]["remainingItemCount"].as_u64();
                match next(&list) {
                    "" => break assert_eq!(remaining, None),
                    _ => assert_eq!(remaining, Some((TOTAL - found) as u64)),
                }
                token = next(&list).to_owned();
            }
            assert_eq!(found, TOTAL, "pages of {limit}");
        }
    })
    .await;
}

/// Upstream: `RunTestListPaging`, and what chunking is for: changes between the pages.
#[tokio::test]
async fn what_happens_between_pages_is_not_in_them() {
    stage::everywhere(async |stage| {
        for number in 0..4 {
            stage
                .put(&pod("paging", &format!("test-{number}")).note("before"))
                .await;
        }
        let mut seen = Vec::new();
        let mut token = String::new();
        for call in 1.. {
            let path = format!("/api/v1/pods?limit=1&continue={token}");
            let list = stage.client.json(&path).await;
            assert_eq!(
                list["items"][0]["metadata"]["annotations"]["note"],
                "before"
            );
            seen.extend(names(&list).into_iter().map(str::to_owned));
            token = next(&list).to_owned();
            if token.is_empty() {
                assert_eq!(call, 4);
                break;
            }
            if call == 2 {
                stage.put(&pod("paging", "test-5")).await;
                stage.put(&pod("paging", "test-2").note("after")).await;
                stage.put(&pod("paging", "test-1a")).await;
                stage.delete(&pod("paging", "test-3")).await;
            }
        }
        assert_eq!(seen, ["test-0", "test-1", "test-2", "test-3"]);
    })
    .await;
}

/// Upstream: `RunTestListContinuation`.
#[tokio::test]
async fn a_list_goes_on_with_or_without_a_limit() {
    stage::both(async |stage| {
        for (namespace, name) in [("first", "bar"), ("second", "bar"), ("second", "foo")] {
            stage.put(&pod(namespace, name)).await;
        }
        let first = stage.client.json("/api/v1/pods?limit=1").await;
        assert_eq!(names(&first), ["bar"]);
        let path = format!("/api/v1/pods?continue={}", next(&first));
        let rest = stage.client.json(&path).await;
        assert_eq!((names(&rest), next(&rest)), (vec!["bar", "foo"], ""));
        let second = stage.client.json(&format!("{path}&limit=1")).await;
        assert_eq!(names(&second), ["bar"]);
        let path = format!("/api/v1/pods?limit=1&continue={}", next(&second));
        let third = stage.client.json(&path).await;
        assert_eq!((names(&third), next(&third)), (vec!["foo"], ""));
        for list in [&rest, &second, &third] {
            assert_eq!(version(list), version(&first));
        }
    })
    .await;
}

/// Upstream: `RunTestListContinuationWithFilter`.
#[tokio::test]
async fn a_filtered_list_goes_on_after_its_last_object() {
    stage::both(async |stage| {
        for (namespace, name) in [("1", "foo"), ("2", "bar"), ("3", "foo"), ("4", "foo")] {
            stage.put(&pod(namespace, name)).await;
        }
        let filter = "fieldSelector=metadata.name!%3Dbar&limit=2";
        let first = stage.client.json(&format!("/api/v1/pods?{filter}")).await;
        let namespaces = |list: &Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            items
                .map(|item| item["metadata"]["namespace"].to_string())
                .collect()
        };
        assert_eq!(namespaces(&first), ["\"1\"", "\"3\""]);
        // Of a filtered list nobody knows how much remains.
        assert_eq!(first["metadata"]["remainingItemCount"], Value::Null);
        let path = format!("/api/v1/pods?{filter}&continue={}", next(&first));
        let second = stage.client.json(&path).await;
        assert_eq!(
            (namespaces(&second), next(&second)),
            (vec!["\"4\"".to_owned()], "")
        );
        assert_eq!(version(&second), version(&first));
    })
    .await;
}

/// Upstream: `RunTestListInconsistentContinuation`; chunking.go, "should support continue listing
/// from the last key even if the original version has been compacted away".
#[tokio::test]
async fn a_token_too_old_comes_with_one_for_the_rest_at_another_moment() {
    stage::everywhere(async |stage| {
        for (namespace, name) in [("first", "bar"), ("second", "bar"), ("second", "foo")] {
            stage.put(&pod(namespace, name)).await;
        }
        let first = stage.client.json("/api/v1/pods?limit=1").await;
        let changed = stage.put(&pod("second", "foo").label("state", "new")).await;
        stage.age_history();
        let newest = stage.put(&pod("second", "later")).await;
        let path = format!("/api/v1/pods?continue={}&limit=1", next(&first));
        let reply = stage.client.get(&path).await;
        let gone = reply.json();
        assert_eq!((reply.status, &gone["reason"]), (410, &"Expired".into()));
        let message = gone["message"].as_str().unwrap();
        assert!(message.starts_with("The provided continue parameter is too old "));
        let path = format!("/api/v1/pods?continue={}&limit=1", next(&gone));
        let second = stage.client.json(&path).await;
        assert_eq!(names(&second), ["bar"]);
        assert_eq!(version(&second), version(&newest), "the rest is of now");
        let path = format!("/api/v1/pods?continue={}&limit=5", next(&second));
        let third = stage.client.json(&path).await;
        assert_eq!((names(&third), next(&third)), (vec!["foo", "later"], ""));
        assert_eq!(third["items"][0], item(&changed));
        assert_eq!(version(&third), version(&second));
    })
    .await;
}

/// Upstream: `RunTestListPaginationRareObject`.
#[tokio::test]
async fn a_rare_object_is_on_the_first_page() {
    stage::both(async |stage: &Stage| {
        for number in 0..1000 {
            stage.put(&pod("rare", &format!("pod-{number}"))).await;
        }
        let path = "/api/v1/pods?limit=1&fieldSelector=metadata.name%3Dpod-999";
        let list = stage.client.json(path).await;
        assert_eq!((names(&list), next(&list)), (vec!["pod-999"], ""));
    })
    .await;
}
