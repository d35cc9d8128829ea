//! Deployments and their kin, jobs and cron jobs.

use serde_json::json;

use super::*;

fn told(kind: &Kind, body: Value) -> Vec<String> {
    faults(made(kind, body).unwrap_err())
}

#[test]
fn a_selector_must_find_the_pods_of_its_template() {
    let mut body = deployment();
    body["spec"]["selector"]["matchLabels"]["app"] = json!("db");
    assert_eq!(
        told(&deployments(), body.clone()),
        [
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does \
             not match template `labels`"
        ]
    );
    body["spec"]["selector"] = json!({});
    assert_eq!(
        told(&deployments(), body.clone()),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
    );
    body["spec"].as_object_mut().unwrap().remove("selector");
    assert_eq!(
        told(&deployments(), body),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does \
             not match template `labels`"
        ]
    );
}

#[test]
fn a_selector_does_not_change() {
    let kind = deployments();
    let current = stored(&kind, deployment());
    let status = changed(&kind, &current, |body| {
        body["spec"]["selector"]["matchLabels"] = json!({"app": "web", "v": "2"});
        body["spec"]["template"]["metadata"]["labels"] = json!({"app": "web", "v": "2"});
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"web\",\"v\":\"2\"}}: \
             field is immutable"
        ]
    );
}

#[test]
fn a_rollout_must_be_able_to_move() {
    let mut body = deployment();
    body["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}});
    assert_eq!(
        told(&deployments(), body.clone()),
        [
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 \
             when `maxSurge` is 0"
        ]
    );
    body["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": "half"});
    assert!(told(&deployments(), body.clone())[0].contains("a valid percent string must be"));
    body["spec"]["strategy"] = json!({"type": "Recreate", "rollingUpdate": {}});
    assert_eq!(
        told(&deployments(), body),
        [
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` \
             is 'Recreate'"
        ]
    );
}

#[test]
fn pods_of_a_deployment_always_restart() {
    let mut body = deployment();
    body["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    body["spec"]["replicas"] = json!(-1);
    assert_eq!(
        told(&deployments(), body),
        [
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
             \"Always\""
        ]
    );
}

#[test]
fn a_stateful_set_mounts_its_claims_and_changes_little() {
    let kind = testing::kind("apps/v1", "StatefulSet", "statefulsets");
    let mut body = deployment();
    body["apiVersion"] = json!("apps/v1");
    body["kind"] = json!("StatefulSet");
    body["spec"]["serviceName"] = json!("web");
    body["spec"]["volumeClaimTemplates"] =
        json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]);
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/d"}]);
    let current = stored(&kind, body);
    assert!(changed(&kind, &current, |body| body["spec"]["replicas"] = json!(3)).is_ok());
    let status = changed(&kind, &current, |body| {
        body["spec"]["serviceName"] = json!("other")
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', \
             'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ]
    );
}

fn jobs() -> Kind {
    testing::kind("batch/v1", "Job", "jobs")
}

fn job() -> Value {
    json!({
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]
        }}}
    })
}

#[test]
fn a_job_gets_labels_and_a_selector_of_its_own() {
    let object = made(&jobs(), job()).unwrap();
    let uid = testing::stamp().uid;
    assert_eq!(
        object["spec"]["template"]["metadata"]["labels"],
        json!({
            "job-name": "j", "batch.kubernetes.io/job-name": "j", "controller-uid": uid,
            "batch.kubernetes.io/controller-uid": uid
        })
    );
    assert_eq!(
        object["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    );
    for (key, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("manualSelector", json!(false)),
    ] {
        assert_eq!(object["spec"][key], value, "{key}");
    }
}

#[test]
fn a_job_must_say_how_it_restarts_and_keeps_its_template() {
    let mut body = job();
    body["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(
        told(&jobs(), body),
        [
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
             \"Never\""
        ]
    );
    let current = stored(&jobs(), job());
    let status = changed(&jobs(), &current, |body| {
        body["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    });
    let told = faults(status.unwrap_err());
    assert!(told[0].starts_with("spec.template: Invalid value: {"));
    assert!(told[0].ends_with("field is immutable"));
    assert!(
        changed(&jobs(), &current, |body| body["spec"]["suspend"] =
            json!(true))
        .is_ok()
    );
}

#[test]
fn a_cron_job_needs_times_that_can_be_read() {
    let kind = testing::kind("batch/v1", "CronJob", "cronjobs");
    let cron = |schedule: &str| {
        json!({
            "metadata": {"name": "c"},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": job()["spec"]}}
        })
    };
    let object = made(&kind, cron("*/5 * * * *")).unwrap();
    assert_eq!(object["spec"]["concurrencyPolicy"], "Allow");
    assert_eq!(object["spec"]["successfulJobsHistoryLimit"], 3);
    assert_eq!(
        told(&kind, cron("often")),
        ["spec.schedule: Invalid value: \"often\": expected exactly 5 fields, found 1: [often]"]
    );
    assert_eq!(told(&kind, cron("")), ["spec.schedule: Required value"]);
    let mut long = cron("@hourly");
    long["metadata"]["name"] = json!("c".repeat(53));
    assert!(told(&kind, long)[0].ends_with("must be no more than 52 characters"));
}
