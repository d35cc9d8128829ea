//! Clusters, namespaces, names and fields: upstream's `RunTestClusterScopedWatch` (6 cases) and
//! `RunTestNamespaceScopedWatch` (16 cases).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stage::{self, Body, Stage, Stream, lasting, left, node, pod};

/// What is written: as created, with a change that nothing selects on, or bound to a node.
#[derive(Clone, Copy)]
enum As {
    Made,
    Updated,
    On(&'static str),
}
use As::{Made, On, Updated};

/// Name, namespace, what is written, and what the watcher is told (nothing: nothing).
type Step = (&'static str, &'static str, As, &'static str);

struct Case {
    /// The namespace that is asked for, empty for all.
    namespace: &'static str,
    fields: &'static str,
    steps: &'static [Step],
}

#[rustfmt::skip]
const NAMESPACED: &[Case] = &[
    Case { namespace: "", fields: "",
        steps: &[("foo1", "t1-ns1", Made, "ADDED"), ("foo2", "t1-ns2", Made, "ADDED"),
            ("foo1", "t1-ns1", Updated, "MODIFIED"), ("foo2", "t1-ns2", Updated, "MODIFIED")] },
    Case { namespace: "", fields: "metadata.namespace=t2-ns1",
        steps: &[("foo1", "t2-ns1", Made, "ADDED"), ("foo1", "t2-ns2", Made, ""),
            ("foo1", "t2-ns1", Updated, "MODIFIED"), ("foo1", "t2-ns2", Updated, "")] },
    Case { namespace: "", fields: "spec.nodeName=t3-bar1",
        steps: &[("foo1", "t3-ns1", Made, ""), ("foo2", "t3-ns2", Made, ""),
            ("foo1", "t3-ns1", On("t3-bar1"), "ADDED"),
            ("foo2", "t3-ns2", On("t3-bar1"), "ADDED")] },
    Case { namespace: "", fields: "spec.nodeName!=t4-bar1",
        steps: &[("foo1", "t4-ns1", Made, "ADDED"), ("foo2", "t4-ns1", Made, "ADDED"),
            ("foo1", "t4-ns1", Updated, "MODIFIED"),
            ("foo1", "t4-ns1", On("t4-bar1"), "DELETED")] },
    Case { namespace: "t5-ns1", fields: "",
        steps: &[("foo1", "t5-ns1", Made, "ADDED"), ("foo1", "t5-ns2", Made, ""),
            ("foo2", "t5-ns1", Made, "ADDED"), ("foo1", "t5-ns1", Updated, "MODIFIED"),
            ("foo1", "t5-ns2", Updated, "")] },
    Case { namespace: "t6-ns1", fields: "metadata.namespace=t6-ns1",
        steps: &[("foo1", "t6-ns1", Made, "ADDED"), ("foo1", "t6-ns2", Made, ""),
            ("foo1", "t6-ns1", Updated, "MODIFIED")] },
    Case { namespace: "t7-ns1", fields: "metadata.namespace=t7-ns2",
        steps: &[("foo1", "t7-ns1", Made, ""), ("foo1", "t7-ns2", Made, ""),
            ("foo1", "t7-ns1", Updated, ""), ("foo1", "t7-ns2", Updated, "")] },
    Case { namespace: "t8-ns1", fields: "spec.nodeName=t8-bar2",
        steps: &[("foo1", "t8-ns1", Made, ""), ("foo1", "t8-ns1", On("t8-bar1"), ""),
            ("foo1", "t8-ns2", On("t8-bar2"), ""),
            ("foo1", "t8-ns1", On("t8-bar2"), "ADDED")] },
    Case { namespace: "t9-ns2", fields: "spec.nodeName!=t9-bar1",
        steps: &[("foo1", "t9-ns1", Made, ""), ("foo1", "t9-ns2", Made, "ADDED"),
            ("foo1", "t9-ns2", On("t9-bar1"), "DELETED"),
            ("foo1", "t9-ns2", On("t9-bar2"), "ADDED")] },
    Case { namespace: "", fields: "metadata.name=t10-foo1",
        steps: &[("t10-foo1", "t10-ns1", Made, "ADDED"), ("t10-foo1", "t10-ns2", Made, "ADDED"),
            ("t10-foo2", "t10-ns1", Made, ""), ("t10-foo1", "t10-ns1", Updated, "MODIFIED"),
            ("t10-foo1", "t10-ns1", On("t10-bar1"), "MODIFIED")] },
    Case { namespace: "", fields: "metadata.name=t11-foo1,metadata.namespace=t11-ns1",
        steps: &[("t11-foo1", "t11-ns1", Made, "ADDED"), ("t11-foo2", "t11-ns1", Made, ""),
            ("t11-foo1", "t11-ns2", Made, ""), ("t11-foo1", "t11-ns1", Updated, "MODIFIED"),
            ("t11-foo1", "t11-ns1", On("t11-bar1"), "MODIFIED")] },
    Case { namespace: "", fields: "metadata.name=t12-foo1,spec.nodeName=t12-bar1",
        steps: &[("t12-foo1", "t12-ns1", Made, ""), ("t12-foo1", "t12-ns1", Updated, ""),
            ("t12-foo1", "t12-ns1", On("t12-bar1"), "ADDED")] },
    Case { namespace: "", fields: "spec.nodeName!=t15-bar1,metadata.name=t15-foo1",
        steps: &[("t15-foo1", "t15-ns1", Made, "ADDED"), ("t15-foo2", "t15-ns1", Made, ""),
            ("t15-foo1", "t15-ns1", Updated, "MODIFIED"),
            ("t15-foo1", "t15-ns1", On("t15-bar1"), "DELETED"),
            ("t15-foo1", "t15-ns1", On("t15-bar2"), "ADDED")] },
    Case { namespace: "t16-ns1", fields: "metadata.name=foo1",
        steps: &[("foo1", "t16-ns1", Made, "ADDED"), ("foo2", "t16-ns1", Made, ""),
            ("foo1", "t16-ns1", Updated, "MODIFIED"),
            ("foo1", "t16-ns1", On("t16-bar1"), "MODIFIED")] },
    Case { namespace: "t17-ns1", fields: "metadata.name=foo2,metadata.namespace=t17-ns1",
        steps: &[("foo1", "t17-ns1", Made, ""), ("foo2", "t17-ns1", Made, "ADDED"),
            ("foo1", "t17-ns1", Updated, ""), ("foo2", "t17-ns1", On("t17-bar1"), "MODIFIED")] },
    Case { namespace: "t18-ns1",
        fields: "metadata.name=foo1,metadata.namespace=t18-ns1,spec.nodeName=t18-bar1",
        steps: &[("foo1", "t18-ns1", Made, ""), ("foo2", "t18-ns1", Made, ""),
            ("foo1", "t18-ns2", Made, ""), ("foo1", "t18-ns1", Updated, ""),
            ("foo1", "t18-ns1", On("t18-bar1"), "ADDED")] },
    Case { namespace: "t19-ns1",
        fields: "spec.nodeName!=t19-bar1,metadata.name=foo2,metadata.namespace=t19-ns1",
        steps: &[("foo1", "t19-ns1", Made, ""), ("foo2", "t19-ns2", Made, ""),
            ("foo2", "t19-ns1", Made, "ADDED"), ("foo2", "t19-ns1", Updated, "MODIFIED"),
            ("foo2", "t19-ns1", On("t19-bar1"), "DELETED")] },
];

/// Nodes stand in for upstream's pods without namespaces; `spec.unschedulable` is their field.
#[rustfmt::skip]
const CLUSTER: &[Case] = &[
    Case { namespace: "", fields: "",
        steps: &[("t1-foo1", "", Made, "ADDED"), ("t1-foo1", "", Updated, "MODIFIED"),
            ("t1-foo2", "", On("true"), "ADDED")] },
    Case { namespace: "", fields: "spec.unschedulable=true",
        steps: &[("t2-foo1", "", Made, ""), ("t2-foo1", "", On("true"), "ADDED")] },
    Case { namespace: "", fields: "spec.unschedulable!=true",
        steps: &[("t3-foo1", "", Made, "ADDED"), ("t3-foo2", "", Made, "ADDED"),
            ("t3-foo1", "", Updated, "MODIFIED"), ("t3-foo1", "", On("true"), "DELETED")] },
    Case { namespace: "", fields: "metadata.name=t4-foo1",
        steps: &[("t4-foo1", "", Made, "ADDED"), ("t4-foo2", "", Made, ""),
            ("t4-foo1", "", Updated, "MODIFIED"), ("t4-foo2", "", Updated, "")] },
    Case { namespace: "", fields: "metadata.name=t5-foo1,spec.unschedulable=true",
        steps: &[("t5-foo1", "", Made, ""), ("t5-foo2", "", Made, ""),
            ("t5-foo1", "", Updated, ""), ("t5-foo2", "", Updated, ""),
            ("t5-foo1", "", On("true"), "ADDED")] },
    Case { namespace: "", fields: "spec.unschedulable!=true,metadata.name=t6-foo1",
        steps: &[("t6-foo1", "", Made, "ADDED"), ("t6-foo2", "", Made, ""),
            ("t6-foo1", "", Updated, "MODIFIED"), ("t6-foo1", "", On("true"), "DELETED"),
            ("t6-foo2", "", On("true"), "")] },
];

fn body(step: &Step) -> Body {
    let (name, namespace, how, _) = *step;
    match (namespace, how) {
        ("", Made) => node(name),
        ("", Updated) => node(name).note("updated"),
        ("", On(_)) => node(name).with("spec", json!({ "unschedulable": true })),
        (namespace, Made) => pod(namespace, name),
        (namespace, Updated) => pod(namespace, name).note("updated"),
        (namespace, On(node)) => pod(namespace, name).assigned(node),
    }
}

async fn play(stage: &Stage, mut stream: Stream, steps: &[Step]) {
    let mut before: BTreeMap<(&str, &str), Value> = BTreeMap::new();
    for step in steps {
        let (name, namespace, _, told) = *step;
        let after = stage.put(&body(step)).await;
        let earlier = before.insert((namespace, name), after.clone());
        match told {
            "" => {}
            "DELETED" => stream.expect(told, &left(&earlier.unwrap(), &after)).await,
            told => stream.expect(told, &after).await,
        }
    }
    stage.finish(stream).await;
}

#[tokio::test]
async fn a_namespaced_watch_sees_what_its_place_and_fields_name() {
    stage::both(async |stage| {
        for case in NAMESPACED {
            let at = stage.pods_version().await;
            let fields = case.fields.replace('=', "%3D");
            let path = match case.namespace {
                "" => "/api/v1/pods".to_owned(),
                name => format!("/api/v1/namespaces/{name}/pods"),
            };
            let query = format!("fieldSelector={fields}&resourceVersion={at}");
            let stream = stage.client.watch(&lasting(&path, &query)).await;
            play(stage, stream, case.steps).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_scoped_watch_sees_what_its_name_and_fields_name() {
    stage::both(async |stage| {
        for case in CLUSTER {
            let list = stage.client.json("/api/v1/nodes").await;
            let at = stage::version(&list);
            let fields = case.fields.replace('=', "%3D");
            let query = format!("fieldSelector={fields}&resourceVersion={at}");
            let stream = stage.client.watch(&lasting("/api/v1/nodes", &query)).await;
            play(stage, stream, case.steps).await;
        }
    })
    .await;
}
