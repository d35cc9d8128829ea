//! Joining with everything real but the machines: `holdfast up` as the cluster, the commands that
//! people type, two hubs that share nothing but the cluster, and a node.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use ::cluster::Holdfast;
use cloud::cluster::{Client, Config};
use cloud::join::{Revocations, authority, revoked};
use edge::join::{Failed, Home, Identity, Joining, join_until, renew};
use host::pki::Pin;
use host::{Clock, Shutdown, Tasks};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use wire::join::NodeName;

use crate::hub::{Hub, node};

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_holdfast"))
}

/// What a person types, and what the program says to it.
fn type_in(kubeconfig: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(words).arg("--kubeconfig").arg(kubeconfig);
    command.output().expect("the program starts")
}

fn said(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output.status.success(), out, err)
}

/// A hub of the cluster that follows who is revoked.
async fn hub(client: &Client, tasks: &mut Tasks) -> (Hub, mpsc::Receiver<NodeName>) {
    let clock = Clock::machine();
    let shared = authority::shared(client, clock.wall()).await.unwrap();
    let revocations = Revocations::default();
    let (said, cut) = mpsc::channel(16);
    let following = revoked::follow(
        client.clone(),
        revocations.clone(),
        move |nodes| {
            for node in nodes {
                said.try_send(node).expect("room for a few");
            }
        },
        clock.clone(),
        tasks.shutdown().clone(),
    );
    tasks.add("revoked", async move {
        following.await;
        Ok::<_, std::io::Error>(())
    });
    let hub = Hub::start(client.clone(), Arc::new(shared), revocations, &clock).await;
    (hub, cut)
}

/// A cluster with two hubs that share nothing else.
struct Stage {
    kubeconfig: PathBuf,
    folder: TempDir,
    clock: Clock,
    first: Hub,
    second: Hub,
    /// Whom the two hubs were told to cut.
    cuts: [mpsc::Receiver<NodeName>; 2],
    _cluster: Holdfast,
    _tasks: Tasks,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Holdfast::start(program(), &["--ephemeral"]).unwrap();
        let kubeconfig = cluster.site().kubeconfig();
        let (clock, mut tasks) = (Clock::machine(), Tasks::new(Shutdown::new()));
        let crowd = tasks.crowd("requests", 64);
        let config = Config::from_kubeconfig(&kubeconfig).unwrap();
        let client = Client::new(config, crowd, clock.clone());
        let (first, cut) = hub(&client, &mut tasks).await;
        let (second, other) = hub(&client, &mut tasks).await;
        assert_eq!(first.pin, second.pin);
        Self {
            kubeconfig,
            folder: tempfile::tempdir().unwrap(),
            clock,
            first,
            second,
            cuts: [cut, other],
            _cluster: cluster,
            _tasks: tasks,
        }
    }

    /// Makes a token by the command, in a file, and checks that it is nowhere else.
    fn joining(&self) -> Joining {
        let file = self.folder.path().join("n1.token");
        let path = file.to_str().unwrap();
        let words = [
            "token",
            "create",
            "--node",
            "n1",
            "--token-file",
            path,
            "-o",
            "json",
        ];
        let (good, out, err) = said(&type_in(&self.kubeconfig, &words));
        assert!(good, "{err}");
        let token = std::fs::read_to_string(&file).unwrap();
        assert!(!out.contains(token.trim()) && !err.contains(token.trim()));
        let made: Value = serde_json::from_str(&out).unwrap();
        let pin: Pin = made["caHash"].as_str().unwrap().parse().unwrap();
        assert_eq!(pin, self.first.pin);
        let command = made["joinCommand"].as_str().unwrap();
        assert!(command.contains(&pin.to_string()), "{command}");
        Joining {
            hubs: vec![self.first.address.clone()],
            node: node("n1"),
            token: token.trim().parse().unwrap(),
            pin,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_joins_is_revoked_and_comes_back() {
    let mut stage = Stage::new().await;
    let (kubeconfig, clock) = (stage.kubeconfig.clone(), stage.clock.clone());
    let home = Home::open(&stage.folder.path().join("link")).unwrap();
    let joining = stage.joining();
    let hubs = joining.hubs.clone();
    let identity = join_soon(&home, &joining, &clock).await;
    let elsewhere = vec![stage.second.address.clone()];
    let renewed = renew(&home, &identity, &elsewhere, &clock).await.unwrap();
    let (_, out, _) = said(&type_in(&kubeconfig, &["token", "list"]));
    assert!(
        out.contains("node n1") && out.contains("used by n1"),
        "{out}"
    );

    let revoke = ["node", "revoke", "n1", "--reason", "stolen"];
    let (good, out, err) = said(&type_in(&kubeconfig, &revoke));
    assert!(
        good && out.contains("holdfast token create --node n1"),
        "{out} {err}"
    );
    let within = Duration::from_secs(10);
    for cut in &mut stage.cuts {
        let heard = tokio::time::timeout(within, cut.recv()).await;
        assert_eq!(heard.expect("hubs hear of it at once"), Some(node("n1")));
    }
    let refused = renew(&home, &renewed, &hubs, &clock).await;
    assert!(matches!(refused, Err(Failed::Refused { status: 403, .. })));

    let back = join_soon(&home, &stage.joining(), &clock).await;
    renew(&home, &back, &hubs, &clock).await.unwrap();
    let (good, _, err) = said(&type_in(&kubeconfig, &["node", "unrevoke", "n1"]));
    assert!(good, "{err}");
    let (good, _, err) = said(&type_in(&kubeconfig, &["node", "unrevoke", "n1"]));
    assert!(!good && err.contains("not revoked"), "{err}");
}

/// Joins, however often the hub asks to come again: it may not have seen the list of revoked nodes
/// yet, or the second of the revocation may not be over.
async fn join_soon(home: &Home, joining: &Joining, clock: &Clock) -> Identity {
    let never = Shutdown::new();
    let joined = join_until(home, joining, clock, &never, |_| {});
    let within = Duration::from_secs(60);
    let joined = tokio::time::timeout(within, joined).await.expect("in time");
    joined.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_made_listed_and_revoked_by_commands() {
    let cluster = Holdfast::start(program(), &["--ephemeral"]).unwrap();
    let kubeconfig = cluster.site().kubeconfig();
    let (good, out, _) = said(&type_in(&kubeconfig, &["token", "list"]));
    assert!(good && out.contains("There are no tokens"), "{out}");
    let create = [
        "token", "create", "--pool", "shop", "--ttl", "24h", "-o", "json",
    ];
    let (good, out, err) = said(&type_in(&kubeconfig, &create));
    assert!(good, "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    let (id, token) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    assert!(token.starts_with(id));
    assert!(!made["joinCommand"].as_str().unwrap().contains(token));
    let (_, out, _) = said(&type_in(&kubeconfig, &["token", "list", "-o", "json"]));
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["pool"]),
        (&made["id"], &"shop".into())
    );
    assert!(!out.contains(&token[9..]), "the secret is nowhere");
    let (good, _, err) = said(&type_in(&kubeconfig, &["token", "revoke", id]));
    assert!(good, "{err}");
    let (good, _, err) = said(&type_in(&kubeconfig, &["token", "revoke", id]));
    assert!(!good && err.contains("there is no token"), "{err}");
    for (words, expected) in [
        (&["token", "create"][..], "--node"),
        (&["token", "create", "--node", "N1"], "a node's name"),
        (
            &["token", "create", "--node", "n1", "--pool", "p"],
            "cannot be used with",
        ),
        (
            &["token", "create", "--pool", "p", "--ttl", "0s"],
            "1m to 720h",
        ),
        (&["token", "revoke", "../x"], "the id of a token"),
    ] {
        let output = type_in(&kubeconfig, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(said(&output).2.contains(expected), "{:?}", said(&output));
    }
    let missing = Path::new("missing.kubeconfig");
    let (good, _, err) = said(&type_in(missing, &["token", "list"]));
    assert!(!good && err.contains("does not exist"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_replaced_by_command_and_not_too_early() {
    let stage = Stage::new().await;
    let (old, kubeconfig) = (stage.first.pin.to_string(), &stage.kubeconfig);
    let type_in = |words: &[&str]| said(&type_in(kubeconfig, &[&["authority"], words].concat()));
    let (good, out, err) = type_in(&["show"]);
    assert!(
        good && out.contains(&old) && out.contains("prepare"),
        "{out}{err}"
    );
    let (good, _, err) = type_in(&["switch"]);
    assert!(
        !good && err.contains("no other authority is prepared"),
        "{err}"
    );
    let (good, out, err) = type_in(&["prepare"]);
    assert!(good && out.contains("Restart all hubs"), "{out}{err}");
    assert!(out.contains(&format!("issued by {old}")), "{out}");
    let (good, _, err) = type_in(&["switch"]);
    assert!(!good && err.contains("without a hub"), "{err}");
    let (good, out, err) = type_in(&["switch", "--even-now"]);
    assert!(
        good && out.contains(&format!("The old one, {old}")),
        "{out}{err}"
    );
    // Who joins from now on trusts the new one.
    let made = type_in_token(kubeconfig);
    assert!(out.contains(&format!("issued by {made}")), "{out}{made}");
    let (good, out, err) = type_in(&["retire", "--even-now"]);
    assert!(good && !out.contains(&old), "{out}{err}");
}

/// The pin that a new token is printed with.
fn type_in_token(kubeconfig: &Path) -> String {
    let words = ["token", "create", "--node", "n9", "-o", "json"];
    let (good, out, err) = said(&type_in(kubeconfig, &words));
    assert!(good, "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    made["caHash"].as_str().unwrap().to_owned()
}
