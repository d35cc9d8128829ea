//! A kubelet on a node, as it is, with containers: pods of the cluster run through the node's API,
//! go on and are started again without a link, and are told of once it is back.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
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
/// How long a kubelet's lease lasts.
const LASTS: Duration = Duration::from_secs(40);
const NODE: &str = "/api/v1/nodes/node-1";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
/// Where a container finds its token, and whom it may trust with it.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A kubelet beside an agent, and its containers.
pub(crate) struct Kubelet {
    /// Ends before what it runs on.
    program: Beside,
    machine: Machine,
    /// Where containers write that they were started, and what they saw.
    seen: PathBuf,
    /// What they must see of the secret, the config map and the token that their pod names, of the
    /// API that they are led to, and of the authorities that they trust: the cluster and the node.
    pub(crate) sees: String,
}

impl Kubelet {
    /// Starts one with the kubeconfig that the program prints for it.
    fn start(world: &World) -> Self {
        let folder = world.path();
        let seen = folder.join("seen");
        fs::create_dir(&seen).unwrap();
        fs::write(folder.join(SETTINGS), settings(world).to_string()).unwrap();
        let address = write_kubeconfig(world);
        let machine = Machine::start(folder, &folder.join("logs"));
        let mut program = beside(world, &machine);
        program.start();
        Self {
            program,
            machine,
            seen,
            sees: format!("secret mapped token {address} 2"),
        }
    }

    /// The machine fails. When it is started again, nothing is left of its containers, nor of what
    /// the kubelet knew.
    fn fail(&mut self, world: &World) {
        self.program.running = None;
        self.machine = Machine::start(world.path(), &world.path().join("logs"));
        self.program = beside(world, &self.machine);
    }

    /// How often the container of a pod was started, and what it saw then.
    fn starts(&self, pod: &str) -> Vec<String> {
        let text = fs::read_to_string(self.seen.join(pod)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Nothing that it read of the API surprised it, from its first start on.
    fn has_no_complaint(&self, world: &World) {
        let log = fs::read_to_string(world.path().join("logs/kubelet.log")).unwrap();
        let complains = |line: &&str| {
            let of_reads = line.contains("reflector") || line.contains("Failed to watch");
            line.starts_with(['E', 'W']) && of_reads
        };
        let complaints: Vec<&str> = log.lines().filter(complains).collect();
        assert_eq!(complaints, [""; 0]);
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

    /// Waits until the container of a pod was started so often. It saw the same each time.
    async fn has_started(&self, pod: &str, times: usize) {
        let what = format!("start {times} of {pod}");
        let look = async || (self.starts(pod).len() == times).then_some(());
        self.until(&what, look).await;
        assert_eq!(self.starts(pod), vec![&*self.sees; times]);
    }

    /// Kills the container of a pod, and waits until there is another.
    async fn is_started_again(&self, pod: &str, times: usize) {
        let before = self.container(pod).await;
        tokio::task::block_in_place(|| self.machine.kill(&before));
        self.has_started(pod, times).await;
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
fn settings(world: &World) -> Value {
    let authority = world.site().folder().join("pki/ca.crt");
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        // The API asks it there for logs and commands. Who asks is known by the cluster's
        // authority, and whether he may is asked of the API, as kubeadm has it.
        "address": own_address().to_string(),
        "port": free_port(),
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": authority}
        },
        "authorization": {"mode": "Webhook"},
        "volumePluginDir": "/var/lib/kubelet/plugins",
        // However full the machine is, nothing is put out.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%",
            "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
    })
}

/// Where this machine is found, and its kubelet says that it is: by its way to elsewhere. Nothing
/// is sent there.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let way = socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9));
    way.expect("a kubelet needs a machine that has an address");
    socket.local_addr().unwrap().ip()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((own_address(), 0)).unwrap();
    listener.local_addr().unwrap().port()
}

const SETTINGS: &str = "kubelet.json";
const KUBECONFIG: &str = "kubelet.kubeconfig";

/// The program on a machine, not started yet.
fn beside(world: &World, machine: &Machine) -> Beside {
    let mut program = Beside::new(world, Program::Kubelet, &machine.inside());
    let path = |name: &str| world.path().join(name).display().to_string();
    program.words.extend([
        format!("--config={}", path(SETTINGS)),
        format!("--kubeconfig={}", path(KUBECONFIG)),
        format!("--hostname-override={}", NODES[0]),
    ]);
    program
}

/// Has `holdfast kubeconfig` write one for the kubelet of a node, and gives the address in it.
fn write_kubeconfig(world: &World) -> String {
    let file = world.path().join(KUBECONFIG);
    let mut command = Command::new(program::path());
    command.args(["kubeconfig", "--for", "kubelet", "--data-dir"]);
    command.arg(&world.nodes[0].data_dir);
    let said = command.arg("--output").arg(&file).output().unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "holdfast kubeconfig: {complaint}");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("server: https://").unwrap();
    rest.lines().next().unwrap().to_owned()
}

/// A pod on the node that has a file, a variable and a token from the cluster, and says of each
/// start what it saw of them.
fn pod(name: &str, kubelet: &Kubelet) -> Value {
    // Without signs that a server may write in two ways.
    let script = format!(
        "if busybox test -s {ACCOUNT}/token; then SEES=token; fi; \
         API=$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT; \
         TRUSTS=$(busybox grep -c BEGIN {ACCOUNT}/ca.crt); \
         echo \"$KEY $(busybox cat /settings/key) $SEES $API $TRUSTS\" \
         | busybox tee -a /seen/{name}; \
         exec busybox sleep 1000000"
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

/// The pod is gone from the cluster, and its container is.
async fn is_gone(kubelet: &Kubelet, world: &World, pod: &str) {
    let what = format!("the end of {pod}");
    let look = async || {
        let there = world.driver.ask("GET", &place("pods", pod), None).await;
        let running = tokio::task::block_in_place(|| kubelet.machine.containers(pod));
        (there.unwrap().0 == 404 && running.is_empty()).then_some(())
    };
    kubelet.until(&what, look).await;
}

/// A node that its kubelet registers, with these pods, which run.
pub(crate) async fn running(names: &[&str]) -> (World, Kubelet) {
    let mut world = World::new(Plan::default()).await;
    let node = &mut world.nodes[0];
    node.extra = ["--register-node=false", "--api-for-pods"]
        .map(str::to_owned)
        .into();
    node.start();
    node.connected(CONVERGED).await;
    Local::of(node, "kubelet").client().await;
    let kubelet = Kubelet::start(&world);
    is_registered(&kubelet, &world).await;
    let driver = &world.driver;
    let map = config_map("one", "mapped");
    driver.create("configmaps", &map).await;
    driver.create("secrets", &secret("one", "c2VjcmV0")).await;
    for name in names {
        driver.create("pods", &pod(name, &kubelet)).await;
    }
    for name in names {
        kubelet.is_told(&world, name, 0).await;
        kubelet.has_started(name, 1).await;
    }
    (world, kubelet)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, containerd and a Go toolchain: just e2e"]
async fn a_kubelet_runs_pods_starts_them_again_without_a_link_and_tells_of_it_afterwards() {
    let (mut world, mut kubelet) = running(&["one", "two", "three", "four"]).await;
    let driver = world.driver.another();
    let two = kubelet.container("two").await;
    // Without a link a container that dies is started again, also by a kubelet that has just been
    // started itself, and with an agent that has.
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    kubelet.is_started_again("one", 2).await;
    driver.must("DELETE", &place("pods", "three"), None).await;
    driver.delete("pods", "four").await;
    driver.create("pods", &pod("five", &kubelet)).await;
    kubelet.program.running = None;
    world.nodes[0].restart();
    Local::of(&world.nodes[0], "kubelet").client().await;
    kubelet.program.start();
    kubelet.is_started_again("one", 3).await;
    // Of the others none was touched, also not those that were deleted elsewhere.
    assert_eq!(kubelet.container("two").await, two);
    for name in ["two", "three", "four"] {
        kubelet.container(name).await;
        assert_eq!(kubelet.starts(name).len(), 1, "{name}");
    }
    // With the link back all of it is told, and what was deleted ends.
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    kubelet.is_told(&world, "one", 2).await;
    kubelet.is_told(&world, "two", 0).await;
    kubelet.is_told(&world, "five", 0).await;
    is_gone(&kubelet, &world, "three").await;
    is_gone(&kubelet, &world, "four").await;
    is_renewed(&kubelet, &world).await;
    assert_eq!(kubelet.container("two").await, two);
    world.settled(SOON).await;
    kubelet.has_no_complaint(&world);
}

/// The hub lets the lease of a kubelet run out that has stopped, so that the cluster takes the node
/// for lost though its agent is there; and renews it again for one that is back.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, containerd and a Go toolchain: just e2e"]
async fn a_kubelet_that_stops_is_reported_as_stopped_and_one_that_is_back_as_alive() {
    let (world, mut kubelet) = running(&["one"]).await;
    let one = kubelet.container("one").await;
    kubelet.program.running = None;
    let stopped = Instant::now();
    let renewed = async || {
        let lease = world.driver.must("GET", LEASE, None).await;
        lease["spec"]["renewTime"].clone()
    };
    let (mut last, mut since, mut times) = (renewed().await, Instant::now(), 0);
    while since.elapsed() < LASTS {
        assert!(stopped.elapsed() < CONVERGED, "it is renewed for nobody");
        sleep(Duration::from_millis(500)).await;
        let now = renewed().await;
        if now != last {
            (last, since, times) = (now, Instant::now(), times + 1);
        }
    }
    // It was not given up at once: a kubelet that is restarted must not be missed.
    assert!(
        times > 0,
        "nothing was renewed for a kubelet that was just there"
    );
    world.nodes[0].connected(SOON).await;
    kubelet.program.start();
    is_renewed(&kubelet, &world).await;
    assert_eq!(kubelet.container("one").await, one);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, containerd and a Go toolchain: just e2e"]
async fn a_machine_that_failed_runs_its_pods_again_without_a_link() {
    let (mut world, mut kubelet) = running(&["one", "two"]).await;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    world.nodes[0].program.kill();
    kubelet.fail(&world);
    world.nodes[0].start();
    kubelet.program.start();
    for name in ["one", "two"] {
        kubelet.has_started(name, 2).await;
    }
    let local = Local::of(&world.nodes[0], "kubelet");
    let path = place("pods", "one");
    let before = world.driver.must("GET", &path, None).await;
    let id = |pod: &Value| pod["status"]["containerStatuses"][0]["containerID"].clone();
    kubelet
        .until("the node shows its new container", async || {
            (id(&local.get(&path).await) != id(&before)).then_some(())
        })
        .await;
    let shown = id(&local.get(&path).await);
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    kubelet
        .until("the cluster is told of the new container", async || {
            let told = world.driver.must("GET", &path, None).await;
            (id(&told) == shown).then_some(())
        })
        .await;
}
