//! A custom resource from its definition to its end.

use ::cluster::Signal;

use crate::cluster::Cluster;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.home.example}
spec:
  group: home.example
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, shortNames: [lm], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.bulbs, statusReplicasPath: .status.lit}
    additionalPrinterColumns:
    - {name: Colour, type: string, jsonPath: .spec.colour}
    - {name: Bulbs, type: integer, jsonPath: .spec.bulbs}
    - {name: Lit, type: integer, jsonPath: .status.lit, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: Something that gives light.
        required: [spec]
        properties:
          spec:
            type: object
            required: [colour]
            properties:
              colour: {type: string, enum: [red, green], description: What one sees.}
              bulbs: {type: integer, default: 1, minimum: 0, maximum: 10}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties: {lit: {type: integer}}
";

const LAMP: &str = "
apiVersion: home.example/v1
kind: Lamp
metadata: {name: desk}
spec: {colour: red}
";

fn with_lamps() -> Cluster {
    let cluster = Cluster::start();
    let said = cluster.apply(DEFINITION);
    assert_eq!(
        said,
        "customresourcedefinition.apiextensions.k8s.io/lamps.home.example created"
    );
    cluster.ok("wait --for=condition=Established crd/lamps.home.example --timeout=30s");
    cluster
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_definition_brings_its_kind_with_columns_short_names_and_documentation() {
    let cluster = with_lamps();
    let row = cluster.ok("api-resources --api-group=home.example --no-headers");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row, ["lamps", "lm", "home.example/v1", "true", "Lamp"]);
    assert_eq!(cluster.apply(LAMP), "lamp.home.example/desk created");
    let table = cluster.ok("get lm");
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "COLOUR", "BULBS", "AGE"]);
    assert_eq!(lines[1][..3], ["desk", "red", "1"]);
    let wide = cluster.ok("get lamps -o wide");
    assert!(wide.contains("LIT"), "{wide}");
    let all = cluster.ok("get all -o name");
    assert!(all.contains("lamp.home.example/desk"), "{all}");
    let said = cluster.ok("explain lamp.spec");
    assert!(
        said.contains("What one sees.") && said.contains("-required-"),
        "{said}"
    );
    let said = cluster.ok("describe lamp desk");
    assert!(said.contains("Colour:  red"), "{said}");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_custom_object_is_defaulted_pruned_and_checked() {
    let cluster = with_lamps();
    let more = LAMP.replace(
        "colour: red",
        "colour: red, wattage: 60, extra: {any: thing}",
    );
    let refused = cluster.kubectl("apply -f -").stdin(&more).refused();
    assert!(
        refused.contains("unknown field \"spec.wattage\""),
        "{refused}"
    );
    cluster
        .kubectl("apply -f - --validate=false")
        .stdin(&more)
        .ok();
    let spec = cluster.value("lamp desk", ".spec");
    assert_eq!(
        spec,
        r#"{"bulbs":1,"colour":"red","extra":{"any":"thing"}}"#
    );
    for (from, to, words) in [
        (
            "colour: red",
            "colour: blue",
            "spec.colour: Unsupported value: \"blue\"",
        ),
        (
            "colour: red",
            "colour: red, bulbs: 11",
            "spec.bulbs: Invalid value: 11",
        ),
        (
            "colour: red",
            "colour: red, bulbs: many",
            "spec.bulbs: Invalid value: \"string\"",
        ),
        ("colour: red", "bulbs: 2", "spec.colour: Required value"),
        ("spec: {colour: red}", "status: {}", "spec: Required value"),
    ] {
        let bad = LAMP.replace("desk", "bad").replace(from, to);
        let refused = cluster.kubectl("create -f -").stdin(&bad).refused();
        assert!(
            refused.contains("is invalid") && refused.contains(words),
            "{to}: {refused}"
        );
    }
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_custom_object_is_patched_scaled_and_has_a_status_of_its_own() {
    let cluster = with_lamps();
    cluster.apply(LAMP);
    let changed = LAMP.replace("red}", "green}");
    assert_eq!(cluster.apply(&changed), "lamp.home.example/desk configured");
    cluster.ok(r#"patch lamp desk --type=merge -p '{"spec":{"bulbs":3}}'"#);
    let status = r#"{"spec":{"bulbs":9},"status":{"lit":2}}"#;
    cluster.ok(&format!(
        "patch lamp desk --type=merge --subresource=status -p '{status}'"
    ));
    assert_eq!(cluster.value("lamp desk", ".spec.bulbs"), "3");
    assert_eq!(cluster.value("lamp desk", ".status.lit"), "2");
    assert_eq!(cluster.value("lamp desk", ".metadata.generation"), "3");
    assert_eq!(
        cluster.ok("scale lamp desk --replicas=5"),
        "lamp.home.example/desk scaled"
    );
    assert_eq!(cluster.value("lamp desk", ".spec.bulbs"), "5");
    cluster.ok("label lamp desk room=study");
    assert_eq!(
        cluster.ok("get lamps -l room=study -o name"),
        "lamp.home.example/desk"
    );
    let strategic = cluster.refused(r#"patch lamp desk --type=strategic -p '{"spec":{}}'"#);
    assert!(
        strategic.contains("strategic-merge-patch+json is not supported by"),
        "{strategic}"
    );
    let watch = cluster.running("get lamps -w -o name");
    watch.wait_for("desk");
    cluster.apply(&LAMP.replace("desk", "hall"));
    watch.wait_for("lamp.home.example/hall");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_definition_takes_its_objects_along_and_its_kind_is_gone() {
    let cluster = with_lamps();
    cluster.apply(LAMP);
    cluster.ok("delete crd lamps.home.example --timeout=60s");
    let refused = cluster.refused("get lamps");
    let words = "the server doesn't have a resource type \"lamps\"";
    assert!(
        refused.contains(words) || refused.contains("(NotFound)"),
        "{refused}"
    );
    assert!(!cluster.ok("api-versions").contains("home.example"));
    cluster.apply(DEFINITION);
    cluster.ok("wait --for=condition=Established crd/lamps.home.example --timeout=30s");
    assert_eq!(cluster.ok("get lamps -o name"), "", "nothing comes back");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn custom_kinds_and_objects_outlive_a_restart() {
    let mut cluster = with_lamps();
    cluster.apply(LAMP);
    assert_eq!(cluster.end_by(Signal::TERM).code(), Some(0));
    cluster.start_again();
    assert_eq!(cluster.value("lamp desk", ".spec.colour"), "red");
    assert_eq!(
        cluster.apply(&LAMP.replace("red}", "green}")),
        "lamp.home.example/desk configured"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn definitions_that_are_wrong_are_refused() {
    let cluster = Cluster::start();
    for (from, to, words) in [
        (
            "name: lamps.home.example",
            "name: lamps.other.example",
            "must be spec.names.plural",
        ),
        (
            "served: true\n    storage: true",
            "served: true\n    storage: false",
            "storage",
        ),
        (
            "bulbs: {type: integer",
            "bulbs: {type: number-ish",
            "Unsupported value",
        ),
        (
            "scope: Namespaced",
            "scope: Everywhere",
            "Unsupported value: \"Everywhere\"",
        ),
    ] {
        let bad = DEFINITION.replacen(from, to, 1);
        assert_ne!(bad, DEFINITION, "{from}");
        let refused = cluster.kubectl("create -f -").stdin(&bad).refused();
        assert!(
            refused.contains("is invalid") && refused.contains(words),
            "{to}: {refused}"
        );
    }
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn users_of_a_deprecated_version_are_warned() {
    let cluster = with_lamps();
    let old = DEFINITION.replacen(
        "served: true",
        "served: true\n    deprecated: true\n    deprecationWarning: buy candles",
        1,
    );
    assert_ne!(old, DEFINITION);
    cluster.apply(&old);
    cluster.apply(LAMP);
    let said = cluster.kubectl("get lamps").run();
    assert!(said.err.contains("Warning: buy candles"), "{}", said.err);
    assert!(said.out.contains("desk"), "{}", said.out);
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_watch_ends_with_the_definition_of_what_it_watches() {
    let cluster = with_lamps();
    cluster.apply(LAMP);
    // Longer than the test would wait for it: it must end by itself.
    let path = "/apis/home.example/v1/lamps?watch=1&timeoutSeconds=600";
    let watch = cluster.running(&format!("get --raw '{path}&resourceVersion=0'"));
    watch.wait_for("ADDED");
    cluster.ok("delete crd lamps.home.example --timeout=30s");
    let said = watch.finish();
    assert!(said.contains("DELETED"), "{said}");
}
