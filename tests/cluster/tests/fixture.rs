//! The real control plane comes up, is one, and leaves nothing behind, however its owner ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use cluster::programs::Program;
use cluster::{Kubernetes, detached};

const NEEDS: &str = "a Go toolchain";

#[test]
fn without_a_go_toolchain_one_line_says_what_to_install() {
    let cache = tempfile::tempdir().unwrap();
    let said = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .args(["build", "etcd"])
        .env("PATH", cache.path())
        .env("HOLDFAST_CACHE", cache.path())
        .output()
        .unwrap();
    assert!(!said.status.success());
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("install Go 1.26 or later"), "{said}");
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn a_control_plane_is_gone_with_its_owner() {
    let real = Kubernetes::start().expect(NEEDS);
    let processes: Vec<(&str, u32)> = real.processes().collect();
    let names: Vec<&str> = processes.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["etcd", "kube-apiserver", "kube-controller-manager"]);
    assert!(processes.iter().all(|(_, id)| runs(*id)));
    let folder = real.site().folder().to_owned();
    for secret in ["kubeconfig", "pki/ca.key", "pki/service-account.key"] {
        let mode =
            std::os::unix::fs::MetadataExt::mode(&fs::metadata(folder.join(secret)).unwrap());
        assert_eq!(mode & 0o077, 0, "{secret} can be read by others");
    }
    drop(real);
    assert!(!processes.iter().any(|(_, id)| runs(*id)));
    assert!(!folder.exists());
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn the_version_is_stamped_and_kubectl_agrees() {
    let real = Kubernetes::start().expect(NEEDS);
    let kubectl = Program::Kubectl.built().expect(NEEDS);
    let said = Command::new(kubectl)
        .args(["version", "--output", "json", "--kubeconfig"])
        .arg(real.site().kubeconfig())
        .output()
        .expect("kubectl runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(
        said.matches("\"gitVersion\": \"v1.36.").count(),
        2,
        "{said}"
    );
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn a_failing_test_keeps_the_logs_and_still_ends_the_programs() {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let failed = std::thread::spawn(move || {
        let real = Kubernetes::start().expect(NEEDS);
        let processes: Vec<u32> = real.processes().map(|(_, id)| id).collect();
        sender
            .send((real.site().folder().to_owned(), processes))
            .unwrap();
        panic!("as a test that fails");
    });
    assert!(failed.join().is_err());
    let (folder, processes) = receiver.recv().unwrap();
    assert!(folder.join("logs/kube-apiserver.log").is_file());
    assert!(!processes.iter().any(|id| runs(*id)));
    fs::remove_dir_all(folder).unwrap();
}

/// Not a test of its own: what the next one starts and kills.
#[test]
#[ignore = "is started by the_programs_do_not_outlive_a_test_that_is_killed"]
fn an_owner_that_waits_to_be_killed() {
    let real = Kubernetes::start().expect(NEEDS);
    for (_, id) in real.processes() {
        println!("process {id}");
    }
    println!("folder {}", real.site().folder().display());
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn the_programs_do_not_outlive_a_test_that_is_killed() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "an_owner_that_waits_to_be_killed",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut processes = Vec::new();
    let mut folder = None;
    for line in BufReader::new(owner.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(id) = line.strip_prefix("process ") {
            processes.push(id.parse().unwrap());
        } else if let Some(path) = line.strip_prefix("folder ") {
            folder = Some(path.to_owned());
            break;
        }
    }
    assert_eq!(processes.len(), 3, "it started");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the programs end", || !processes.iter().any(|id| runs(*id)));
    fs::remove_dir_all(folder.unwrap()).unwrap();
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn what_is_brought_up_is_found_again_and_taken_down() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cluster");
    let first = detached::up(&folder, cluster::Setup::default()).expect(NEEDS);
    let detached::Up::Started(first) = first else {
        panic!("nothing ran yet")
    };
    let again = detached::up(&folder, cluster::Setup::default()).expect(NEEDS);
    let detached::Up::Running(again) = again else {
        panic!("it runs")
    };
    assert_eq!(first.server(), again.server());
    let written = fs::read_to_string(folder.join("processes")).unwrap();
    let processes: Vec<u32> = written
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(detached::down(&folder).unwrap(), 3);
    assert!(!processes.iter().any(|id| runs(*id)));
    assert!(!folder.exists());
}

/// Whether a process is there and not only waits to be asked how it ended.
fn runs(id: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    stat.is_ok_and(|text| !text.contains(") Z "))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within ten seconds: {what}");
}
