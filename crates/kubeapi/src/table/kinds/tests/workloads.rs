//! What makes pods, and what scales it.

use super::*;

fn template() -> Value {
    json!({"spec": {
        "containers": [{"name": "web", "image": "nginx:1"}, {"name": "log", "image": "fluent:2"}],
        "nodeSelector": {"zone": "a"},
    }})
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "web"}})
}

#[test]
fn deployments_and_sets_show_how_many_are_ready() {
    let spec = json!({"replicas": 3, "selector": selector(), "template": template()});
    let status =
        json!({"replicas": 3, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1});
    let object = object("web", spec, status);
    assert_eq!(
        cells("apps", "Deployment", &object),
        [
            "web",
            "2/3",
            "3",
            "1",
            "3d",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]
    );
    assert_eq!(
        cells("apps", "ReplicaSet", &object),
        [
            "web",
            "3",
            "3",
            "2",
            "3d",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]
    );
    assert_eq!(
        cells("apps", "StatefulSet", &object),
        ["web", "2/3", "3d", "web,log", "nginx:1,fluent:2"]
    );
}

#[test]
fn replicas_that_are_not_said_are_none() {
    let plain = object("web", json!({}), json!({}));
    assert_eq!(cells("apps", "Deployment", &plain)[1], "0/0");
    assert_eq!(cells("", "ReplicationController", &plain)[1], "0");
}

#[test]
fn a_replication_controller_selects_by_plain_labels() {
    let spec = json!({"replicas": 0, "selector": {"app": "old"}, "template": template()});
    assert_eq!(
        cells(
            "",
            "ReplicationController",
            &object("rc", spec, json!({"replicas": 2}))
        ),
        [
            "rc",
            "0",
            "2",
            "0",
            "3d",
            "web,log",
            "nginx:1,fluent:2",
            "app=old"
        ]
    );
}

#[test]
fn a_deployment_with_a_wrong_selector_says_so() {
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let object = object("web", json!({"selector": wrong}), json!({}));
    assert_eq!(cells("apps", "Deployment", &object)[7], "<invalid>");
    assert_eq!(cells("apps", "ReplicaSet", &object)[7], "<error>");
}

#[test]
fn a_daemon_set_counts_nodes() {
    let status = json!({
        "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
        "updatedNumberScheduled": 2, "numberAvailable": 1,
    });
    let object = object(
        "ds",
        json!({"selector": selector(), "template": template()}),
        status,
    );
    assert_eq!(
        cells("apps", "DaemonSet", &object),
        [
            "ds",
            "5",
            "4",
            "3",
            "2",
            "1",
            "zone=a",
            "3d",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]
    );
}

#[test]
fn a_revision_names_its_controller() {
    let mut revision = json!({"metadata": meta("web-1"), "revision": 4});
    assert_eq!(
        cells("apps", "ControllerRevision", &revision),
        ["web-1", "<none>", "4", "3d"]
    );
    revision["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "Pod", "name": "p"},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": true},
    ]);
    assert_eq!(
        cells("apps", "ControllerRevision", &revision)[1],
        "statefulset.apps/web"
    );
}

#[test]
fn a_job_shows_how_far_it_is_and_how_long_it_took() {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let job = |spec: Value, status: Value| {
        cells("batch", "Job", &object("j", spec, status))[..5].join(" ")
    };
    let spec = json!({"completions": 4, "parallelism": 2, "template": template()});
    let done = json!({
        "succeeded": 4, "startTime": THREE_DAYS_AGO, "completionTime": "2026-02-26T12:01:30Z",
        "conditions": [condition("Complete")],
    });
    assert_eq!(job(spec, done), "j Complete 4/4 90s 3d");
    let running = json!({"startTime": FIVE_MINUTES_AGO});
    assert_eq!(
        job(json!({"parallelism": 3}), running),
        "j Running 0/1 of 3 5m 3d"
    );
    assert_eq!(job(json!({}), json!({})), "j Running 0/1  3d");
    for (kind, word) in [
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
        ("Unheard", "Running"),
    ] {
        let status = json!({"conditions": [condition(kind)]});
        assert_eq!(job(json!({}), status), format!("j {word} 0/1  3d"));
    }
    let mut deleted = object(
        "j",
        json!({}),
        json!({"conditions": [condition("Suspended")]}),
    );
    deleted["metadata"]["deletionTimestamp"] = json!(NOW);
    assert_eq!(cells("batch", "Job", &deleted)[1], "Terminating");
}

#[test]
fn a_cron_job_shows_its_schedule_and_its_last_run() {
    let spec = json!({
        "schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "suspend": false,
        "jobTemplate": {"spec": {"template": template(), "selector": selector()}},
    });
    let status = json!({"active": [{}, {}], "lastScheduleTime": FIVE_MINUTES_AGO});
    assert_eq!(
        cells("batch", "CronJob", &object("c", spec, status)),
        [
            "c",
            "*/5 * * * *",
            "Europe/Berlin",
            "False",
            "2",
            "5m",
            "3d",
            "web,log",
            "nginx:1,fluent:2",
            "app=web"
        ]
    );
    let bare = object("c", json!({"schedule": "@daily"}), json!({}));
    assert_eq!(
        cells("batch", "CronJob", &bare)[..7].join(" "),
        "c @daily <none> <unset> 0 <none> 3d"
    );
}

#[test]
fn a_disruption_budget_shows_numbers_and_percentages() {
    let budget = |spec: Value| {
        cells(
            "policy",
            "PodDisruptionBudget",
            &object("b", spec, json!({"disruptionsAllowed": 1})),
        )
    };
    assert_eq!(
        budget(json!({"minAvailable": 2})),
        ["b", "2", "N/A", "1", "3d"]
    );
    assert_eq!(
        budget(json!({"maxUnavailable": "25%"})),
        ["b", "N/A", "25%", "1", "3d"]
    );
}

#[test]
fn an_autoscaler_shows_what_it_measures_against_what_it_wants() {
    let targets = |metrics: Value, current: Value| {
        let spec = json!({
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "minReplicas": 2, "maxReplicas": 9, "metrics": metrics,
        });
        let status = json!({"currentReplicas": 3, "currentMetrics": current});
        let cells = cells(
            "autoscaling",
            "HorizontalPodAutoscaler",
            &object("h", spec, status),
        );
        assert_eq!(
            [&cells[1], &cells[3], &cells[4], &cells[5]],
            ["Deployment/web", "2", "9", "3"]
        );
        cells[2].clone()
    };
    let cpu =
        |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    let used = |current: Value| {
        json!({"type": "Resource", "resource": {"name": "cpu",
        "current": current}})
    };
    let half = || cpu(json!({"averageUtilization": 50}));
    assert_eq!(targets(json!([]), json!([])), "<none>");
    assert_eq!(targets(json!([half()]), json!([])), "cpu: <unknown>/50%");
    assert_eq!(
        targets(
            json!([half()]),
            json!([used(json!({"averageUtilization": 12}))])
        ),
        "cpu: 12%/50%"
    );
    assert_eq!(
        targets(json!([cpu(json!({}))]), json!([])),
        "cpu: <unknown>/<auto>"
    );
    assert_eq!(
        targets(
            json!([cpu(json!({"averageValue": "1000m"}))]),
            json!([used(json!({"averageValue": "0.25"}))])
        ),
        "cpu: 250m/1"
    );
    let external = json!({"type": "External", "external": {"target": {"averageValue": "10"}}});
    assert_eq!(targets(json!([external]), json!([])), "<unknown>/10 (avg)");
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "5k"}}});
    let now = json!({"type": "Pods", "pods": {"current": {"averageValue": "3000"}}});
    assert_eq!(targets(json!([pods]), json!([now])), "3k/5k");
    let queue = json!({"type": "Object", "object": {"target": {"value": "7"}}});
    let length = json!({"type": "Object", "object": {"current": {"value": "4"}}});
    assert_eq!(targets(json!([queue]), json!([length])), "4/7");
    assert_eq!(
        targets(json!([{"type": "New"}]), json!([])),
        "<unknown type>"
    );
    assert_eq!(
        targets(json!([half(), half(), half(), half()]), json!([])),
        "cpu: <unknown>/50%, cpu: <unknown>/50% + 2 more..."
    );
}

#[test]
fn the_first_version_of_an_autoscaler_measures_the_processor() {
    let spec = json!({"targetCPUUtilizationPercentage": 80, "maxReplicas": 2});
    let status = json!({"currentCPUUtilizationPercentage": 20});
    let cells = cells(
        "autoscaling",
        "HorizontalPodAutoscaler",
        &object("h", spec, status),
    );
    assert_eq!(cells[2..4], ["cpu: 20%/80%", "<unset>"]);
}

#[test]
fn a_scale_shows_its_two_numbers() {
    let scale = object(
        "web",
        json!({"replicas": 3}),
        json!({"replicas": 2, "selector": "a=b"}),
    );
    assert_eq!(
        cells("autoscaling", "Scale", &scale),
        ["web", "3", "2", "3d"]
    );
}
