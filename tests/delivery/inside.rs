//! Logs, commands and ports of pods, asked for on their node: through the node, its hub and the
//! cluster to the kubelet, and back. The embedded API has none of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::accounts::{bind, token_of_nobody};
use crate::components::kubeconfig;
use crate::kubectl::Kubectl;
use crate::kubelet::running;
use crate::world::{CONVERGED, World};

const SOON: Duration = Duration::from_secs(60);
/// More than any of the windows on the way holds.
const MUCH: usize = 4 << 20;

/// A process that ends when nobody needs it any more.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Somebody who may look into pods, with a token of the cluster that no pod of the node has.
async fn person(world: &World) -> Kubectl {
    let rules = json!([
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]},
        {
            "apiGroups": [""],
            "resources": ["pods/exec", "pods/attach", "pods/portforward"],
            "verbs": ["create", "get"]
        }
    ]);
    bind(world, &rules).await;
    let token = token_of_nobody(world).await;
    let mut kubectl = Kubectl::of(world);
    kubectl.kubeconfig = kubeconfig(world, "person.kubeconfig", &token);
    kubectl
}

/// Runs kubectl with something to read.
fn fed(kubectl: &Kubectl, line: &str, bytes: Vec<u8>) -> Output {
    let mut command = kubectl.command(line);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let said = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    said
}

/// Bytes that do not repeat.
pub(crate) fn made_up(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn logs_come(kubectl: &Kubectl, sees: &str) {
    assert_eq!(kubectl.ok("logs one").trim_end(), sees);
    let mut command = kubectl.command("logs -f one");
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut following = Owned(child);
    let mut lines = BufReader::new(following.0.stdout.take().unwrap()).lines();
    let mut next = || lines.next().expect("a line").unwrap();
    assert_eq!(next(), sees);
    // What is written now comes now, while the request is under way.
    for word in ["first", "second"] {
        let line = format!("{word}\n").into_bytes();
        let said = fed(kubectl, "exec -i one -- busybox tee /proc/1/fd/1", line);
        assert!(said.status.success(), "{said:?}");
        assert_eq!(next(), word);
    }
}

fn commands_run(kubectl: &Kubectl) {
    let said = kubectl.ok("exec one -- busybox cat /settings/key");
    assert_eq!(said, "mapped");
    // Both directions at once, with more than any window on the way holds.
    let bytes = made_up(MUCH);
    let said = fed(kubectl, "exec -i one -- busybox cat", bytes.clone());
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{complaint}");
    assert!(said.stdout == bytes, "{} bytes came", said.stdout.len());
    let said = kubectl.command("exec one -- busybox false").output();
    assert_eq!(said.unwrap().status.code(), Some(1));
}

fn ports_are_forwarded(kubectl: &Kubectl) {
    // The pod has the network of its machine: what listens there is in the pod.
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = inside.local_addr().unwrap().port();
    let mut command = kubectl.command(&format!("port-forward pod/one :{port}"));
    let mut child = Owned(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = String::new();
    let mut out = BufReader::new(child.0.stdout.take().unwrap());
    out.read_line(&mut said).unwrap();
    let address = said.split(' ').find(|word| word.starts_with("127.0.0.1:"));
    let address = address.unwrap_or_else(|| panic!("{said}")).to_owned();
    // What comes is sent back, until the other end goes.
    let answering = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = inside.accept().unwrap();
            let mut back = stream.try_clone().unwrap();
            std::io::copy(&mut stream, &mut back).unwrap();
        }
    });
    let bytes = made_up(MUCH);
    for _ in 0..2 {
        let mut stream = TcpStream::connect(&address).unwrap();
        let (mut sending, sent) = (stream.try_clone().unwrap(), bytes.clone());
        let writer = std::thread::spawn(move || sending.write_all(&sent));
        let mut back = vec![0; MUCH];
        stream.read_exact(&mut back).unwrap();
        assert!(back == bytes, "other bytes came back");
        writer.join().unwrap().unwrap();
    }
    answering.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, containerd and a Go toolchain: just e2e"]
async fn logs_commands_and_ports_of_a_pod_are_reached_through_its_node() {
    let (mut world, kubelet) = running(&["one"]).await;
    let kubectl = person(&world).await;
    let node = Kubectl::of(&world);
    tokio::task::block_in_place(|| {
        logs_come(&kubectl, &kubelet.sees);
        commands_run(&kubectl);
        ports_are_forwarded(&kubectl);
        // The node itself may not, and is told so by the cluster.
        let said = node.fails("exec one -- busybox true");
        assert!(said.contains("system:node:node-1"), "{said}");
    });
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    tokio::task::block_in_place(|| {
        for line in ["logs one", "exec one -- busybox true"] {
            let said = kubectl.fails(line);
            assert!(said.contains("cannot be reached since"), "{line}: {said}");
        }
    });
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    tokio::task::block_in_place(|| commands_run(&kubectl));
}
