//! A kubelet on a node, as it is, with containers: pods of the cluster run through the node's API,
//! go on and are started again without a link, and are told of once it is back.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ::cluster::programs::Program;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::components::Beside;
use crate::driver::{config_map, place, secret};
use crate::local::Local;
use crate::machine::{IMAGE, Machine};
use crate::program;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(60);
const NODE: &str = "/api/v1/nodes/node-1";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// A kubelet beside an agent, and its containers.
struct Kubelet {
    /// Ends before what it runs on.
    program: Beside,
    machine: Machine,
    /// Where containers write that they were started, and what they saw.
    seen: PathBuf,
}

impl Kubelet {
    /// Starts one with the kubeconfig that the program prints for it.
    fn start(world: &World) -> Self {
        let (folder, logs) = (world.path(), world.path().join("logs"));
        let machine = Machine::start(folder, &logs);
        let seen = folder.join("seen");
        fs::create_dir(&seen).unwrap();
        let settings = folder.join("kubelet.json");
        fs::write(&settings, settings_of(&machine).to_string()).unwrap();
        let mut program = Beside::new(world, Program::Kubelet, &machine.inside());
        program.words.extend([
            format!("--config={}", settings.display()),
            format!("--kubeconfig={}", kubeconfig(world).display()),
            format!("--hostname-override={}", NODES[0]),
        ]);
        program.start();
        Self {
            program,
            machine,
            seen,
        }
    }

    /// How often the container of a pod was started, and what it saw then.
    fn starts(&self, pod: &str) -> Vec<String> {
        let text = fs::read_to_string(self.seen.join(pod)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until something is so.
    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            let late = began.elapsed() > CONVERGED;
            assert!(!late, "{what} does not happen\n{}", self.program.log());
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// The container of a pod, which runs.
    async fn container(&self, pod: &str) -> String {
        let what = format!("the container of {pod}");
        let look = async || {
            let running = tokio::task::block_in_place(|| self.machine.containers(pod));
            running.into_iter().next()
        };
        self.until(&what, look).await
    }

    /// Kills the container of a pod, and waits until there is another.
    async fn is_started_again(&self, pod: &str, times: usize) {
        let before = self.container(pod).await;
        tokio::task::block_in_place(|| self.machine.kill(&before));
        let what = format!("start {times} of {pod}");
        let look = async || (self.starts(pod).len() == times).then_some(());
        self.until(&what, look).await;
        assert_ne!(self.container(pod).await, before);
    }

    /// Waits until a pod runs, by the word of the cluster, after so many new starts.
    async fn is_told(&self, world: &World, pod: &str, starts: u64) -> Value {
        let what = format!("the word that {pod} was started {starts} times anew");
        let look = async || {
            let told = world.driver.must("GET", &place("pods", pod), None).await;
            let main = &told["status"]["containerStatuses"][0];
            let is_so = told["status"]["phase"] == "Running"
                && main["ready"] == true
                && main["restartCount"] == starts;
            is_so.then_some(told)
        };
        self.until(&what, look).await
    }
}

/// What a kubelet needs to be told on any machine, and what it may not have on a small one.
fn settings_of(machine: &Machine) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupRoot": machine.groups,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // Nobody asks it anything, and no port is taken.
        "enableServer": false,
        "healthzPort": 0,
        "volumePluginDir": "/var/lib/kubelet/plugins",
        // However full the machine is, nothing is put out.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%",
            "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    })
}

/// What `holdfast kubeconfig` prints for the kubelet of a node.
fn kubeconfig(world: &World) -> PathBuf {
    let node = &world.nodes[0];
    let mut command = Command::new(program::path());
    command.args(["kubeconfig", "--for", "kubelet", "--data-dir"]);
    let said = command.arg(&node.data_dir).output().unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "holdfast kubeconfig: {complaint}");
    let path = world.path().join("kubelet.kubeconfig");
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    io::Write::write_all(&mut options.open(&path).unwrap(), &said.stdout).unwrap();
    path
}

/// A pod on the node that has a file, a variable and a token from the cluster, and says of each
/// start what it saw of them.
fn pod(name: &str, kubelet: &Kubelet) -> Value {
    let script = format!(
        "echo \"$KEY $(busybox cat /settings/key) $(busybox test -s {TOKEN} && echo token)\" \
         >> /seen/{name}; exec busybox sleep 1000000"
    );
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODES[0],
            "hostNetwork": true,
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                "command": ["busybox", "sh", "-c", script],
                "env": [{"name": "KEY",
                    "valueFrom": {"secretKeyRef": {"name": "one", "key": "key"}}}],
                "volumeMounts": [{"name": "settings", "mountPath": "/settings"},
                    {"name": "seen", "mountPath": "/seen"}]
            }],
            "volumes": [{"name": "settings", "configMap": {"name": "one"}},
                {"name": "seen", "hostPath": {"path": kubelet.seen}}]
        }
    })
}

/// The node has registered, and what it says of itself is in the cluster.
async fn is_registered(kubelet: &Kubelet, world: &World) {
    let node = kubelet
        .until("the node registers", async || {
            let asked = world.driver.ask("GET", NODE, None).await.unwrap();
            let node: Value = serde_json::from_slice(&asked.1).unwrap();
            let said = node["status"]["conditions"].as_array()?;
            said.iter()
                .any(|it| it["reason"] == "KubeletHasSufficientMemory")
                .then_some(node)
        })
        .await;
    let version = &node["status"]["nodeInfo"]["kubeletVersion"];
    assert_eq!(*version, "v1.36.4", "{node}");
    is_renewed(kubelet, world).await;
}

/// The lease is renewed in the cluster.
async fn is_renewed(kubelet: &Kubelet, world: &World) {
    let renewed = async || {
        let (code, body) = world.driver.ask("GET", LEASE, None).await.unwrap();
        let lease: Value = serde_json::from_slice(&body).unwrap();
        (code == 200).then(|| lease["spec"]["renewTime"].clone())
    };
    let before = kubelet.until("there is a lease", renewed).await;
    kubelet
        .until("the lease is renewed", async || {
            renewed().await.filter(|now| *now != before)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, containerd and a Go toolchain: just e2e"]
async fn a_kubelet_runs_pods_starts_them_again_without_a_link_and_tells_of_it_afterwards() {
    let mut world = World::new(Plan::default()).await;
    world.nodes[0].extra = vec!["--register-node=false".to_owned()];
    world.nodes[0].start();
    world.nodes[0].connected(CONVERGED).await;
    Local::of(&world.nodes[0], "kubelet").client().await;
    let mut kubelet = Kubelet::start(&world);
    is_registered(&kubelet, &world).await;
    let driver = world.driver.another();
    driver
        .create("configmaps", &config_map("one", "mapped"))
        .await;
    driver.create("secrets", &secret("one", "c2VjcmV0")).await;
    for name in ["one", "two", "three"] {
        driver.create("pods", &pod(name, &kubelet)).await;
    }
    for name in ["one", "two", "three"] {
        kubelet.is_told(&world, name, 0).await;
        assert_eq!(kubelet.starts(name), ["secret mapped token"]);
    }
    let two = kubelet.container("two").await;
    // Without a link a container that dies is started again, also by a kubelet that has just been
    // started itself, and by an agent that has.
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    kubelet.is_started_again("one", 2).await;
    let path = format!("{}?propagationPolicy=Background", place("pods", "three"));
    driver.must("DELETE", &path, None).await;
    kubelet.program.running = None;
    world.nodes[0].restart();
    kubelet.program.start();
    kubelet.is_started_again("one", 3).await;
    assert_eq!(kubelet.starts("one")[2], "secret mapped token");
    // Of the others none was touched, also not the one that was deleted elsewhere.
    assert_eq!(kubelet.container("two").await, two);
    for name in ["two", "three"] {
        assert_eq!(kubelet.starts(name).len(), 1, "{name}");
        kubelet.container(name).await;
    }
    // With the link back all of it is told, and what was deleted ends.
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    kubelet.is_told(&world, "one", 2).await;
    kubelet.is_told(&world, "two", 0).await;
    kubelet
        .until("the deleted pod is gone", async || {
            let path = place("pods", "three");
            let (code, _) = driver.ask("GET", &path, None).await.unwrap();
            (code == 404).then_some(())
        })
        .await;
    assert_eq!(kubelet.machine.containers("three"), Vec::<String>::new());
    is_renewed(&kubelet, &world).await;
    assert_eq!(kubelet.container("two").await, two);
}
