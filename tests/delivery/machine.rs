//! A machine for a kubelet, inside this one: namespaces of mounts and processes in which Debian's
//! containerd runs with an image that is made here. With its first process everything of it ends,
//! and its mounts are gone. It takes root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use ::cluster::Running;
use host::secret::{hex, sha256};
use serde_json::json;

/// The image of every container: busybox, and nothing else.
pub(crate) const IMAGE: &str = "example.test/box:1";

/// What the first process does: it makes the places that programs write to its own, lets go of
/// disks of other tests, and stays.
const FIRST: &str = "mount -t tmpfs none /run && mount -t tmpfs none /var/lib && \
    mount -t tmpfs none /var/log && mkdir /var/lib/kubelet || exit; \
    while read -r _ place _; do case $place in */holdfast-test-*) umount \"$place\";; esac; done \
    </proc/mounts; touch \"$0\"; exec sleep infinity";

const CONTAINERD: &str = r#"version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "example.test/box:1"
  # Not every root may lower what the kernel kills first.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  conf_dir = "/run/cni"
"#;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the kernel may take to end what was in a namespace.
const LOOKS_MAX: u32 = 500;

/// The machine. Dropping it ends everything in it.
pub(crate) struct Machine {
    first: Running,
    /// The first process as this machine counts.
    id: u32,
    containerd: Running,
}

impl Machine {
    /// Starts one with these files and logs.
    pub(crate) fn start(folder: &Path, logs: &Path) -> Self {
        let ready = folder.join("machine-is-ready");
        drop(fs::remove_file(&ready));
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["--propagation", "private", "sh", "-c", FIRST])
            .arg(&ready);
        let first = Running::start("machine", command, logs);
        let mut first = first.unwrap_or_else(|error| panic!("{error}"));
        let waited = first.wait_until(LOOK_EVERY, || ready.exists());
        waited.unwrap_or_else(|error| panic!("{error}"));
        let number = first.id();
        let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        let id = children.unwrap().trim().parse().unwrap();
        let config = folder.join("containerd.toml");
        fs::write(&config, CONTAINERD).unwrap();
        let before = inside(id);
        let mut command = Command::new(&before[0]);
        command.args(&before[1..]).args(["containerd", "--config"]);
        command.arg(config);
        let containerd = Running::start("containerd", command, logs);
        let mut machine = Self {
            first,
            id,
            containerd: containerd.unwrap_or_else(|error| panic!("{error}")),
        };
        machine.load(&image(folder));
        machine
    }

    fn load(&mut self, image: &Path) {
        let before = inside(self.id);
        let waited = self
            .containerd
            .wait_until(LOOK_EVERY, || ctr(&before, &["version"]).status.success());
        waited.unwrap_or_else(|error| panic!("{error}"));
        self.ctr(&["images", "import", image.to_str().unwrap()]);
    }

    /// What stands before a command that is to run in it, and to end when it is killed.
    pub(crate) fn inside(&self) -> Vec<String> {
        inside(self.id)
    }

    /// The containers that run of a pod, by their names in the runtime.
    pub(crate) fn containers(&self, pod: &str) -> Vec<String> {
        let filter = format!(
            "labels.\"io.kubernetes.pod.name\"=={pod},\
             labels.\"io.kubernetes.container.name\"==main"
        );
        let of_pod = self.ctr(&["containers", "list", "--quiet", &filter]);
        let tasks = self.ctr(&["tasks", "list"]);
        let runs = |id: &str| {
            let mut lines = tasks.lines();
            lines.any(|line| line.starts_with(id) && line.contains("RUNNING"))
        };
        of_pod
            .lines()
            .filter(|id| runs(id))
            .map(str::to_owned)
            .collect()
    }

    /// Kills a container, as the kernel does when memory is short.
    pub(crate) fn kill(&self, container: &str) {
        self.ctr(&["tasks", "kill", "--signal", "SIGKILL", container]);
    }

    fn ctr(&self, words: &[&str]) -> String {
        let said = ctr(&inside(self.id), words);
        let complaint = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "ctr {words:?}: {complaint}");
        String::from_utf8(said.stdout).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let said = ctr(&self.inside(), &["containers", "list", "--quiet"]);
        let text = String::from_utf8_lossy(&said.stdout);
        self.first.kill();
        let gone = PathBuf::from(format!("/proc/{}", self.id));
        for _ in 0..LOOKS_MAX {
            let mut groups = text.lines().flat_map(groups);
            if !gone.exists() && groups.all(|group| fs::remove_dir(group).is_ok()) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        eprintln!("the kernel still has something of containers:\n{text}");
    }
}

fn inside(id: u32) -> Vec<String> {
    let target = format!("--target={id}");
    let words = ["nsenter", &target, "--mount", "--pid"];
    let words = [&words[..], &["setpriv", "--pdeathsig=KILL"]].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn ctr(before: &[String], words: &[&str]) -> Output {
    let mut command = Command::new(&before[0]);
    command.args(&before[1..]).args(["ctr", "-n", "k8s.io"]);
    let said = command.args(words).output();
    said.unwrap_or_else(|error| panic!("nsenter (util-linux) is needed: {error}"))
}

/// The kernel's groups of processes of a container, one for each of its controllers. They are all
/// that is left when the container and its runtime are killed.
fn groups(container: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_dir(root).into_iter().flatten().flatten();
    let all = controllers.map(|entry| entry.path()).chain([root.into()]);
    all.map(|path| path.join("k8s.io").join(container))
        .filter(|path| path.is_dir())
        .collect()
}

/// Makes the image, as an archive.
fn image(folder: &Path) -> PathBuf {
    let room = folder.join("image");
    let bin = room.join("root/bin");
    fs::create_dir_all(&bin).unwrap();
    let busybox = ["/usr/bin/busybox", "/bin/busybox"];
    let busybox = busybox.iter().find(|path| Path::new(path).exists());
    let busybox = busybox.expect("busybox (busybox-static) is needed");
    fs::copy(busybox, bin.join("busybox")).unwrap();
    tar(&room, &["-cf", "layer.tar", "-C", "root", "bin"]);
    let layer = sha256(&fs::read(room.join("layer.tar")).unwrap());
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": {"Cmd": ["/bin/busybox", "sleep", "1000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(&layer))]},
    });
    fs::write(room.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
    fs::write(room.join("manifest.json"), manifest.to_string()).unwrap();
    let files = ["config.json", "layer.tar", "manifest.json"];
    tar(&room, &[&["-cf", "image.tar"][..], &files].concat());
    room.join("image.tar")
}

fn tar(folder: &Path, words: &[&str]) {
    let mut command = Command::new("tar");
    let done = command.current_dir(folder).args(words).status().unwrap();
    assert!(done.success(), "tar {words:?}");
}
