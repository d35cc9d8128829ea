//! The real control plane comes up, is one, and leaves nothing behind, however its owner ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::ValueEnum;
use cluster::programs::Program;
use cluster::{Holdfast, Kubernetes, detached};

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
fn the_log_of_a_program_that_does_not_start_is_still_there() {
    let failed = Holdfast::start(Path::new("/bin/false"), &[]).err().unwrap();
    let cluster::Error::NotReady { log, .. } = failed else {
        panic!("{failed}")
    };
    assert!(log.is_file(), "{}", log.display());
    let folder = log.ancestors().nth(3).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn every_program_is_built_and_knows_its_version() {
    for program in Program::value_variants() {
        let path = program.built().expect(NEEDS);
        let words: &[&str] = match program {
            Program::Kubectl => &["version", "--client"],
            _ => &["--version"],
        };
        let said = Command::new(&path).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        // The cache's folder has the version that go.mod requires.
        let folder = path.parent().unwrap().file_name().unwrap();
        let folder = folder.to_string_lossy();
        let (_, version) = folder.split_once("-v").unwrap();
        let version = version.split('-').next().unwrap();
        assert!(said.contains(version), "{}: {said}", program.name());
    }
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
fn controllers_have_worked_when_a_control_plane_is_ready() {
    let real = Kubernetes::start().expect(NEEDS);
    let kubectl = Program::Kubectl.built().expect(NEEDS);
    let said = Command::new(kubectl)
        .args([
            "get",
            "serviceaccount/default",
            "configmap/kube-root-ca.crt",
        ])
        .arg("--kubeconfig")
        .arg(real.site().kubeconfig())
        .output()
        .expect("kubectl runs");
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{complaint}");
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
    let mut owner = Owner(
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "an_owner_that_waits_to_be_killed",
                "--nocapture",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut processes = Vec::new();
    let mut folder = None;
    for line in BufReader::new(owner.0.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test runner may have begun the line.
        if let Some((_, id)) = line.split_once("process ") {
            processes.push(id.parse().unwrap());
        } else if let Some((_, path)) = line.split_once("folder ") {
            folder = Some(path.to_owned());
            break;
        }
    }
    assert_eq!(processes.len(), 3, "it started");
    drop(owner);
    eventually("the programs end", || !processes.iter().any(|id| runs(*id)));
    fs::remove_dir_all(folder.unwrap()).unwrap();
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn nothing_is_left_of_a_start_that_is_killed() {
    for program in Program::value_variants() {
        program.built().expect(NEEDS);
    }
    // It is killed as soon as the first, the second, the third program is there.
    for started in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("cluster");
        let _down = Down(folder.clone());
        let owner = Command::new(env!("CARGO_BIN_EXE_cluster"))
            .args(["up", "--folder"])
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn();
        let mut owner = Owner(owner.unwrap());
        eventually("the program starts", || written(&folder).len() >= started);
        assert!(owner.0.try_wait().unwrap().is_none(), "it still starts");
        let children = children(owner.0.id());
        // Each program and what guards it.
        assert!(children.len() >= 2 * started, "{children:?}");
        drop(owner);
        eventually("all of them end", || !children.iter().any(|id| runs(*id)));
        assert_eq!(named_in_commands(&folder), [0; 0]);
    }
}

#[test]
#[ignore = "needs a Go toolchain: tests/e2e/run cluster"]
fn what_is_brought_up_is_found_again_and_taken_down() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("cluster");
    let _down = Down(folder.clone());
    let first = detached::up(&folder, cluster::Setup::default()).expect(NEEDS);
    let detached::Up::Started(first) = first else {
        panic!("nothing ran yet")
    };
    let again = detached::up(&folder, cluster::Setup::default()).expect(NEEDS);
    let detached::Up::Running(again) = again else {
        panic!("it runs")
    };
    assert_eq!(first.server(), again.server());
    let processes = written(&folder);
    assert_eq!(detached::down(&folder).unwrap(), 3);
    assert!(!processes.iter().any(|id| runs(*id)));
    assert!(!folder.exists());
}

/// One that owns a control plane, and is killed.
struct Owner(Child);

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Takes down what a test that fails has left.
struct Down(PathBuf);

impl Drop for Down {
    fn drop(&mut self) {
        drop(detached::down(&self.0));
    }
}

/// The processes that are written down in a folder.
fn written(folder: &Path) -> Vec<u32> {
    let text = fs::read_to_string(folder.join("processes")).unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.split(' ').next());
    ids.map(|id| id.parse().expect("a number")).collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What this process has started.
fn children(parent: u32) -> Vec<u32> {
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let mut words = stat.rsplit_once(") ").unwrap_or_default().1.split(' ');
        words.nth(1) == Some(&parent.to_string())
    };
    all_processes().filter(is_child).collect()
}

/// Those whose command has this path in it.
fn named_in_commands(path: &Path) -> Vec<u32> {
    let path = path.to_str().expect("a path in UTF-8");
    let is_named = |id: &u32| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(path)
    };
    all_processes().filter(is_named).collect()
}

/// Whether a process is there and not only waits to be asked how it ended.
fn runs(id: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    stat.is_ok_and(|text| !text.contains(") Z "))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within a minute: {what}");
}
