//! What the cluster says of itself: kinds, versions, documentation, health.

use serde_json::Value;

use crate::cluster::Cluster;

#[test]
#[ignore = "needs kubectl: just e2e"]
fn api_resources_lists_the_kinds_with_short_names_and_scope() {
    let cluster = Cluster::start();
    let table = cluster.ok("api-resources");
    let row = |name: &str| -> Vec<String> {
        let found = table
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let row = found.unwrap_or_else(|| panic!("no {name} in:\n{table}"));
        row.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("pods"), ["pods", "po", "v1", "true", "Pod"]);
    assert_eq!(row("nodes"), ["nodes", "no", "v1", "false", "Node"]);
    assert_eq!(
        row("deployments"),
        ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    );
    assert_eq!(
        row("cronjobs"),
        ["cronjobs", "cj", "batch/v1", "true", "CronJob"]
    );
    let leases = ["leases", "coordination.k8s.io/v1", "true", "Lease"];
    assert_eq!(row("leases"), leases);
    let only = cluster.ok("api-resources --namespaced=false --api-group='' -o name");
    assert!(only.contains("nodes") && !only.contains("pods"), "{only}");
    let apps = cluster.ok("api-resources --api-group=apps -o name --sort-by=name");
    let expected = "controllerrevisions.apps\ndaemonsets.apps\ndeployments.apps\n\
                    replicasets.apps\nstatefulsets.apps";
    assert_eq!(apps, expected);
    let wide = cluster.ok("api-resources -o wide --api-group=apps");
    assert!(
        wide.contains("create,delete,deletecollection,get,list,patch,update,watch"),
        "{wide}"
    );
    let all = cluster.ok("api-resources --categories=all -o name");
    assert!(all.contains("pods") && !all.contains("configmaps"), "{all}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn api_versions_and_the_version_of_the_server_are_told() {
    let cluster = Cluster::start();
    let versions = cluster.ok("api-versions");
    for version in [
        "v1",
        "apps/v1",
        "batch/v1",
        "rbac.authorization.k8s.io/v1",
        "events.k8s.io/v1",
    ] {
        assert!(
            versions.lines().any(|line| line == version),
            "{version} in {versions}"
        );
    }
    let version: Value = serde_json::from_str(&cluster.ok("version -o json")).expect("JSON");
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.36.4");
    assert_eq!(version["serverVersion"]["major"], "1");
    let minor = version["serverVersion"]["minor"]
        .as_str()
        .expect("a minor version");
    assert!(
        minor.parse::<u32>().is_ok_and(|minor| minor >= 34),
        "{minor}"
    );
    let text = cluster.kubectl("version").run();
    assert!(text.out.contains("Server Version: v1."), "{}", text.out);
    assert!(
        !text
            .err
            .contains("exceeds the supported minor version skew"),
        "{}",
        text.err
    );
    let said = cluster.ok("cluster-info");
    assert!(
        said.contains("is running at") && said.contains(cluster.server()),
        "{said}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn explain_knows_fields_and_their_types() {
    let cluster = Cluster::start();
    let said = cluster.ok("explain pods");
    assert!(
        said.contains("KIND:       Pod") && said.contains("VERSION:    v1"),
        "{said}"
    );
    assert!(said.contains("spec\t<PodSpec>"), "{said}");
    let said = cluster.ok("explain deployments.spec.strategy.rollingUpdate.maxSurge");
    assert!(
        said.contains("GROUP:      apps") && said.contains("<IntOrString>"),
        "{said}"
    );
    let said = cluster.ok("explain pod.spec.containers");
    assert!(said.contains("FIELD: containers <[]Container>"), "{said}");
    assert!(said.contains("name\t<string> -required-"), "{said}");
    let said = cluster.ok("explain cronjobs --api-version=batch/v1 --recursive");
    assert!(said.contains("jobTemplate\t<JobTemplateSpec>"), "{said}");
    assert!(said.contains("concurrencyPolicy\t<string>"), "{said}");
    for kind in [
        "services",
        "ingresses",
        "roles",
        "nodes",
        "secrets",
        "leases",
        "crd",
        "hpa",
    ] {
        let said = cluster.ok(&format!("explain {kind}"));
        assert!(said.contains("metadata\t<ObjectMeta>"), "{kind}: {said}");
    }
    let refused = cluster.refused("explain pods.spec.colour");
    assert!(
        refused.contains("field \"colour\" does not exist"),
        "{refused}"
    );
    let plain = cluster.ok("explain configmaps --output=plaintext-openapiv2");
    assert!(plain.contains("data\t<map[string]string>"), "{plain}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn health_discovery_and_openapi_answer_raw_requests() {
    let cluster = Cluster::start();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(cluster.ok(&format!("get --raw {path}")), "ok", "{path}");
    }
    let verbose = cluster.ok("get --raw /readyz?verbose");
    assert!(
        verbose.contains("[+]ping ok") && verbose.contains("readyz check passed"),
        "{verbose}"
    );
    let json = |path: &str| -> Value {
        serde_json::from_str(&cluster.ok(&format!("get --raw {path}"))).expect(path)
    };
    assert_eq!(json("/api")["kind"], "APIVersions");
    assert_eq!(json("/apis")["kind"], "APIGroupList");
    assert_eq!(json("/apis/apps")["kind"], "APIGroup");
    assert_eq!(json("/apis/apps/v1")["kind"], "APIResourceList");
    assert_eq!(json("/openapi/v2")["swagger"], "2.0");
    let index = json("/openapi/v3");
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .expect("an address");
    assert!(json(address)["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    assert!(json("/.well-known/openid-configuration")["jwks_uri"].is_string());
    assert_eq!(json("/openid/v1/jwks")["keys"][0]["kty"], "EC");
}
