//! Pods in every state that they are found in.

use super::*;

/// A pod with two containers, and what is given of its status.
fn pod(status: Value) -> Value {
    object(
        "web",
        json!({"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}]}),
        status,
    )
}

fn running(ready: bool) -> Value {
    json!({"name": "a", "ready": ready, "restartCount": 0, "state": {"running": {}}})
}

/// READY, STATUS and RESTARTS of a pod.
fn summary(pod: &Value) -> String {
    cells("", "Pod", pod)[1..4].join(" ")
}

#[test]
fn a_running_pod_shows_all_there_is_to_know() {
    let pod = object(
        "web-1",
        json!({
            "nodeName": "n1",
            "containers": [{"name": "a"}],
            "readinessGates": [{"conditionType": "x/up"}, {"conditionType": "x/warm"}],
        }),
        json!({
            "phase": "Running",
            "podIP": "10.0.0.7",
            "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
            "nominatedNodeName": "n2",
            "conditions": [
                {"type": "x/up", "status": "True"}, {"type": "x/warm", "status": "False"},
            ],
            "containerStatuses": [running(true)],
        }),
    );
    assert_eq!(
        cells("", "Pod", &pod),
        [
            "web-1", "1/1", "Running", "0", "3d", "10.0.0.7", "n1", "n2", "1/2"
        ]
    );
}

#[test]
fn a_pod_that_waits_to_be_scheduled_has_no_place_yet() {
    let pod = object(
        "web",
        json!({"containers": [{"name": "a"}]}),
        json!({"phase": "Pending"}),
    );
    assert_eq!(
        cells("", "Pod", &pod),
        [
            "web", "0/1", "Pending", "0", "3d", "<none>", "<none>", "<none>", "<none>"
        ]
    );
}

#[test]
fn restarts_tell_when_the_last_one_was() {
    let ended = |at: &str| json!({"terminated": {"exitCode": 1, "finishedAt": at}});
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "restartCount": 3, "lastState": ended(FIVE_MINUTES_AGO),
         "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"name": "b", "restartCount": 1, "lastState": ended(THREE_DAYS_AGO), "ready": true,
         "state": {"running": {}}},
    ]});
    assert_eq!(summary(&pod(status)), "1/2 CrashLoopBackOff 4 (5m ago)");
}

#[test]
fn restarts_without_a_date_are_a_bare_number() {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "restartCount": 2, "state": {"running": {}}},
    ]});
    assert_eq!(summary(&pod(status)), "0/2 Running 2");
}

#[test]
fn the_word_for_a_pod_comes_from_its_containers() {
    let state = |state: Value| json!({"name": "a", "state": state});
    let ended = |ended: Value| state(json!({"terminated": ended}));
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let done = ended(json!({"exitCode": 0, "reason": "Completed"}));
    let cases = [
        (
            json!({"phase": "Pending", "reason": "Evicted"}),
            "0/2 Evicted 0",
        ),
        (
            json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/2 SchedulingGated 0",
        ),
        (
            json!({"phase": "Pending", "containerStatuses": [
            state(json!({"waiting": {"reason": "ContainerCreating"}}))]}),
            "0/2 ContainerCreating 0",
        ),
        (
            json!({"phase": "Pending", "containerStatuses": [
            state(json!({"waiting": {"reason": "ImagePullBackOff"}})), running(true)]}),
            "1/2 ImagePullBackOff 0",
        ),
        (
            json!({"phase": "Succeeded", "containerStatuses": [done]}),
            "0/2 Completed 0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [
            ended(json!({"exitCode": 1, "reason": "Error"}))]}),
            "0/2 Error 0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [ended(json!({"exitCode": 137}))]}),
            "0/2 ExitCode:137 0",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [ended(json!({"exitCode": 137,
                "signal": 9}))]}),
            "0/2 Signal:9 0",
        ),
        (
            json!({"phase": "Running", "conditions": ready, "containerStatuses": [done,
                running(true)]}),
            "1/2 Running 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done, running(true)]}),
            "1/2 NotReady 0",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [
            done, ended(json!({"exitCode": 2, "reason": "Error"}))]}),
            "0/2 Error 0",
        ),
    ];
    for (status, expected) in cases {
        assert_eq!(summary(&pod(status.clone())), expected, "{status}");
    }
}

#[test]
fn a_pod_that_is_being_deleted_is_terminating_unless_it_has_ended() {
    let deleted = |status: Value| {
        let mut pod = pod(status);
        pod["metadata"]["deletionTimestamp"] = json!(FIVE_MINUTES_AGO);
        cells("", "Pod", &pod).remove(2)
    };
    assert_eq!(
        deleted(json!({"phase": "Running", "containerStatuses": [running(true)]})),
        "Terminating"
    );
    assert_eq!(
        deleted(json!({"phase": "Running", "reason": "NodeLost"})),
        "Unknown"
    );
    assert_eq!(deleted(json!({"phase": "Succeeded"})), "Succeeded");
    assert_eq!(deleted(json!({"phase": "Failed"})), "Failed");
}

#[test]
fn init_containers_are_counted_until_they_are_done() {
    let spec = json!({
        "initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}],
    });
    let done = json!({"name": "i1", "restartCount": 2, "state": {"terminated": {"exitCode": 0}}});
    let status_of = |second: Value| {
        let status = json!({"phase": "Pending", "initContainerStatuses": [done, second]});
        summary(&object("web", spec.clone(), status))
    };
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"running": {}}})),
        "0/1 Init:1/2 2"
    );
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"waiting": {"reason": "PodInitializing"}}})),
        "0/1 Init:1/2 2"
    );
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"waiting": {"reason": "ErrImagePull"}}})),
        "0/1 Init:ErrImagePull 2"
    );
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"terminated": {"exitCode": 3}}})),
        "0/1 Init:ExitCode:3 2"
    );
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"terminated": {"exitCode": 1, "signal": 11}}})),
        "0/1 Init:Signal:11 2"
    );
    assert_eq!(
        status_of(
            json!({"name": "i2", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}})
        ),
        "0/1 Init:Error 2"
    );
    assert_eq!(
        status_of(json!({"name": "i2", "state": {"terminated": {"exitCode": 0}}})),
        "0/1 Pending 0",
        "restarts of containers that are done do not count"
    );
}

#[test]
fn an_init_container_that_keeps_running_counts_as_one_of_the_pods() {
    let spec = json!({
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
        "containers": [{"name": "a"}],
    });
    let status = json!({
        "phase": "Running",
        "conditions": [{"type": "Initialized", "status": "True"}],
        "initContainerStatuses": [
            {"name": "side", "started": true, "ready": true, "restartCount": 1,
             "lastState": {"terminated": {"finishedAt": FIVE_MINUTES_AGO}},
             "state": {"running": {}}},
            {"name": "init", "restartCount": 7, "state": {"terminated": {"exitCode": 0}}},
        ],
        "containerStatuses": [running(true)],
    });
    assert_eq!(
        summary(&object("web", spec, status)),
        "2/2 Running 1 (5m ago)"
    );
}

#[test]
fn a_pod_template_shows_what_pods_it_makes() {
    let template = json!({"metadata": meta("t"), "template": {
        "metadata": {"labels": {"b": "2", "a": "1"}},
        "spec": {"containers": [{"name": "x", "image": "i:1"}, {"name": "y", "image": "j:2"}]},
    }});
    assert_eq!(
        cells("", "PodTemplate", &template),
        ["t", "x,y", "i:1,j:2", "a=1,b=2"]
    );
}
