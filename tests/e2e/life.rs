//! The life of a cluster: restarts, sudden death, an orderly end, and a cluster that keeps nothing.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ::cluster::Signal;

use crate::access::with_token;
use crate::cluster::{Cluster, program};

#[test]
#[ignore = "needs kubectl: just e2e"]
fn a_second_run_finds_its_data_and_its_clients_again() {
    let mut cluster = Cluster::start();
    cluster.ok("create configmap m --from-literal=a=1");
    cluster.ok("create serviceaccount robot");
    let uid = cluster.value("configmap m", ".metadata.uid");
    let version = cluster.value("configmap m", ".metadata.resourceVersion");
    let authority = cluster
        .ok("config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}'");
    assert_eq!(cluster.end_by(Signal::TERM).code(), Some(0));
    cluster.start_again();
    assert_eq!(cluster.value("configmap m", ".metadata.uid"), uid);
    assert_eq!(
        cluster.value("configmap m", ".metadata.resourceVersion"),
        version
    );
    let again = cluster
        .ok("config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}'");
    assert_eq!(again, authority, "clients that trust it still do");
    cluster.ok("label configmap m after=restart");
    let newer = cluster.value("configmap m", ".metadata.resourceVersion");
    let numbers = [version, newer].map(|version| version.parse::<u64>().expect("a number"));
    assert!(numbers[0] < numbers[1], "versions go on: {numbers:?}");
    let kubernetes = cluster.ok("get services,namespaces -o name");
    assert_eq!(
        kubernetes.matches("service/kubernetes").count(),
        1,
        "{kubernetes}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn kill_9_in_a_burst_of_creates_loses_nothing_acknowledged() {
    let mut cluster = Cluster::start();
    for round in 0..3 {
        let acknowledged = burst_until_killed(&mut cluster, round);
        assert!(!acknowledged.is_empty(), "the burst had begun");
        cluster.start_again();
        let there = cluster.ok("get configmaps -o name");
        let there: BTreeSet<&str> = there.lines().collect();
        let lost: Vec<&String> = acknowledged
            .iter()
            .filter(|name| !there.contains(name.as_str()))
            .collect();
        assert!(
            lost.is_empty(),
            "of {} acknowledged, lost: {lost:?}",
            acknowledged.len()
        );
    }
}

/// Creates configmaps from several kubectls at once, kills the cluster in the middle, and gives
/// the names of those whose creation was acknowledged.
fn burst_until_killed(cluster: &mut Cluster, round: u32) -> BTreeSet<String> {
    let pid = cluster.ours().process();
    let dead = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        let (cluster, dead) = (&*cluster, &dead);
        let write = |writer: u32| {
            move || {
                let maps = maps(&format!("burst-{round}-{writer}"));
                let said = cluster.kubectl("create -f -").stdin(&maps).run();
                let late = dead.load(Ordering::SeqCst);
                assert!(late, "ended before the kill: {}{}", said.out, said.err);
                said.out
            }
        };
        let watch = cluster.running("get configmaps -w -o name");
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(write(writer))).collect();
        watch.wait_for(&format!("configmap/burst-{round}-0-60"));
        dead.store(true, Ordering::SeqCst);
        let killed = Command::new("kill")
            .args(["-s", "KILL", &pid.to_string()])
            .status();
        assert!(killed.expect("kill").success());
        let ended = writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer"));
        ended.collect::<String>()
    });
    cluster.end_by(Signal::KILL);
    let created = said
        .lines()
        .filter_map(|line| line.strip_suffix(" created"));
    created.map(str::to_owned).collect()
}

/// Far more configmaps than kubectl has created when somebody sees the sixtieth: it holds itself
/// back after the first 300.
fn maps(name: &str) -> String {
    let map =
        |n| format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-{n}}}}}\n");
    (0..2000).map(map).collect()
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn ctrl_c_ends_in_order_also_while_watches_are_open() {
    let mut cluster = Cluster::start();
    cluster.ok("create configmap m");
    let watch = cluster.running("get configmaps -w -o name");
    watch.wait_for("configmap/m");
    let status = cluster.end_by(Signal::INT);
    assert_eq!(status.code(), Some(0), "{}", cluster.ours().log());
    let log = cluster.ours().log();
    assert!(log.contains("stopped"), "{log}");
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
    cluster.start_again();
    assert_eq!(cluster.ok("get configmap m -o name"), "configmap/m");
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn an_ephemeral_cluster_keeps_no_objects_but_knows_its_clients() {
    let mut cluster = Cluster::with_flags(&["--ephemeral"]);
    cluster.ok("create configmap m");
    assert_eq!(cluster.ok("get configmap m -o name"), "configmap/m");
    cluster.ok("create serviceaccount robot");
    let token = cluster.ok("create token robot");
    assert_eq!(cluster.end_by(Signal::TERM).code(), Some(0));
    cluster.start_again();
    assert_eq!(cluster.ok("get configmap m --ignore-not-found"), "");
    cluster.ok("get namespace default");
    let robot = with_token(&cluster, &token);
    let refused = cluster.kubectl_as(&robot, "get pods").refused();
    assert!(
        refused.contains("You must be logged in"),
        "its account is gone: {refused}"
    );
}

#[test]
#[ignore = "needs kubectl: just e2e"]
fn two_programs_never_share_a_folder() {
    let cluster = Cluster::start();
    let second = Command::new(program())
        .args([
            "up",
            "--nodes",
            "0",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(cluster.ours().home())
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains("locked by another holdfast process"),
        "{said}"
    );
    cluster.ok("get namespaces");
}
