//! Namespaces and field selectors: upstream's `RunTestNamespaceScopedList`, case by case.

use crate::stage::{self, Body, pod};

struct Case {
    /// The namespace that is asked for, empty for all.
    namespace: &'static str,
    fields: &'static str,
    given: &'static [Pod],
    expected: &'static [(&'static str, &'static str)],
}

/// Name, namespace, node.
type Pod = (&'static str, &'static str, &'static str);

/// `{n}` stands for what keeps the namespaces of the cases apart.
#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { namespace: "", fields: "metadata.namespace={n}ns1",
        given: &[("foo1", "ns1", ""), ("foo1", "ns2", "")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "", fields: "spec.nodeName={n}bar1",
        given: &[("foo1", "ns1", "bar1"), ("foo2", "ns2", "bar2")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "ns1", fields: "",
        given: &[("foo1", "ns1", ""), ("foo1", "ns2", ""), ("foo2", "ns1", "")],
        expected: &[("ns1", "foo1"), ("ns1", "foo2")] },
    Case { namespace: "ns1", fields: "metadata.namespace={n}ns1",
        given: &[("foo1", "ns1", ""), ("foo1", "ns2", "")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "ns1", fields: "metadata.namespace={n}ns2",
        given: &[("foo1", "ns1", ""), ("foo1", "ns2", ""), ("foo2", "ns1", "")],
        expected: &[] },
    Case { namespace: "ns1", fields: "spec.nodeName={n}bar2",
        given: &[("foo1", "ns1", "bar1"), ("foo1", "ns2", "bar2"), ("foo2", "ns1", "bar2")],
        expected: &[("ns1", "foo2")] },
    Case { namespace: "ns2", fields: "spec.nodeName!={n}bar1",
        given: &[("foo1", "ns1", ""), ("foo1", "ns2", ""), ("foo3", "ns2", "bar1"),
            ("foo2", "ns2", "bar2")],
        expected: &[("ns2", "foo1"), ("ns2", "foo2")] },
    Case { namespace: "", fields: "metadata.name={n}foo1",
        given: &[("{n}foo1", "ns1", ""), ("{n}foo1", "ns2", ""), ("foo2", "ns1", "")],
        expected: &[("ns1", "{n}foo1"), ("ns2", "{n}foo1")] },
    Case { namespace: "", fields: "metadata.name=foo1,metadata.namespace={n}ns1",
        given: &[("foo1", "ns1", ""), ("foo2", "ns1", ""), ("foo1", "ns2", "")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "", fields: "metadata.name=foo1,spec.nodeName={n}bar1",
        given: &[("foo1", "ns1", "bar1")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "", fields: "spec.nodeName!={n}bar1,metadata.name={n}foo1",
        given: &[("{n}foo1", "ns1", ""), ("foo2", "ns1", ""), ("{n}foo1", "ns2", "bar1"),
            ("foo2", "ns2", "bar1"), ("{n}foo1", "ns3", "bar2"), ("foo2", "ns3", "bar2")],
        expected: &[("ns1", "{n}foo1"), ("ns3", "{n}foo1")] },
    Case { namespace: "ns1", fields: "metadata.name=foo1",
        given: &[("foo1", "ns1", ""), ("foo2", "ns1", ""), ("foo1", "ns2", "")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "ns1", fields: "metadata.name=foo1,metadata.namespace={n}ns1",
        given: &[("foo1", "ns1", ""), ("foo2", "ns1", ""), ("foo1", "ns2", "")],
        expected: &[("ns1", "foo1")] },
    Case { namespace: "ns2",
        fields: "metadata.name=foo2,metadata.namespace={n}ns2,spec.nodeName={n}bar1",
        given: &[("foo1", "ns1", ""), ("foo2", "ns1", ""), ("foo1", "ns2", ""),
            ("foo2", "ns2", "bar1"), ("foo2", "ns3", "bar1")],
        expected: &[("ns2", "foo2")] },
    Case { namespace: "ns2",
        fields: "spec.nodeName!={n}bar2,metadata.name=foo1,metadata.namespace={n}ns2",
        given: &[("foo1", "ns1", ""), ("foo2", "ns1", ""), ("foo1", "ns2", "bar1"),
            ("foo2", "ns2", "bar2"), ("foo1", "ns3", "bar2")],
        expected: &[("ns2", "foo1")] },
];

fn body(given: &Pod, own: &str) -> Body {
    let (name, namespace, node) = given;
    let made = pod(&format!("{own}{namespace}"), &name.replace("{n}", own));
    match *node {
        "" => made,
        node => made.assigned(&format!("{own}{node}")),
    }
}

#[tokio::test]
async fn every_place_and_field_selects_what_it_names() {
    stage::both(async |stage| {
        for (number, case) in CASES.iter().enumerate() {
            let own = format!("t{number}-");
            for given in case.given {
                stage.put(&body(given, &own)).await;
            }
            let fields = case.fields.replace("{n}", &own).replace('=', "%3D");
            let path = match case.namespace {
                "" => format!("/api/v1/pods?fieldSelector={fields}"),
                name => format!("/api/v1/namespaces/{own}{name}/pods?fieldSelector={fields}"),
            };
            let list = stage.client.json(&path).await;
            let items = list["items"].as_array().unwrap().iter();
            let found: Vec<(String, String)> = items
                .map(|item| &item["metadata"])
                .map(|meta| (meta["namespace"].as_str(), meta["name"].as_str()))
                .map(|(namespace, name)| (namespace.unwrap().into(), name.unwrap().into()))
                .collect();
            let expected: Vec<(String, String)> = case
                .expected
                .iter()
                .map(|(namespace, name)| (format!("{own}{namespace}"), name.replace("{n}", &own)))
                .collect();
            assert_eq!(found, expected, "{path}");
        }
    })
    .await;
}

/// The first two of upstream's cases, which look at everything there is.
#[tokio::test]
async fn without_a_namespace_all_are_listed_and_inequality_filters_out() {
    stage::both(async |stage| {
        stage.put(&pod("ns1", "foo1").assigned("bar1")).await;
        stage.put(&pod("ns2", "foo2").assigned("bar2")).await;
        let all = stage.client.json("/api/v1/pods").await;
        assert_eq!(all["items"].as_array().unwrap().len(), 2);
        let path = "/api/v1/pods?fieldSelector=spec.nodeName!%3Dbar1";
        let rest = stage.client.json(path).await;
        assert_eq!(rest["items"].as_array().unwrap().len(), 1);
        assert_eq!(rest["items"][0]["metadata"]["name"], "foo2");
    })
    .await;
}

#[tokio::test]
async fn label_selectors_select_as_kubernetes_says() {
    stage::both(async |stage| {
        stage
            .put(&pod("a", "one").label("tier", "web").label("env", "prod"))
            .await;
        stage.put(&pod("a", "two").label("tier", "db")).await;
        stage.put(&pod("a", "three")).await;
        let cases: &[(&str, &[&str])] = &[
            ("tier=web", &["one"]),
            ("tier==web", &["one"]),
            ("tier!=web", &["three", "two"]),
            ("tier", &["one", "two"]),
            ("!tier", &["three"]),
            ("tier in (web,db)", &["one", "two"]),
            ("tier notin (web)", &["three", "two"]),
            ("tier=web,env=prod", &["one"]),
            ("tier=web,env=test", &[]),
        ];
        for (selector, expected) in cases {
            let text = selector.replace('=', "%3D").replace(' ', "+");
            let list = stage
                .client
                .json(&format!("/api/v1/pods?labelSelector={text}"))
                .await;
            let items = list["items"].as_array().unwrap().iter();
            let names: Vec<&str> = items
                .map(|item| item["metadata"]["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, *expected, "{selector}");
        }
    })
    .await;
}
