//! A node of a cluster, for tests: a hub, an agent, and an account that may do everything, one of
//! whose pods is on the node. Whoever has the token of that pod is known there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use host::files::{self, Audience};
use host::glass;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::client::{Door, Protocol};
use crate::roster;
use crate::running::Running;
use crate::{Error, Site};

/// A hub and an agent that run, and where the node's API is. Dropping it ends both.
pub struct Node {
    /// The agent goes first: it would look for another hub.
    pub(crate) programs: Vec<Running>,
    folder: PathBuf,
    token: String,
}

impl Node {
    /// Starts this build of the program twice, as a hub of the cluster and as an agent, with their
    /// files in this folder; makes the account; and waits until the node knows it.
    pub fn start(program: &Path, cluster: &Site, folder: &Path) -> Result<Self, Error> {
        let logs = folder.join("logs");
        for folder in [folder, &logs] {
            files::create_dir(folder).map_err(host::pki::Error::from)?;
        }
        let runtime = Runtime::new().map_err(Error::file(folder))?;
        let making = Making {
            program,
            cluster,
            folder,
            runtime,
        };
        let hub = making.hub()?;
        let agent = making.agent()?;
        let token = making.account()?;
        let node = Self {
            programs: vec![agent, hub],
            folder: folder.to_owned(),
            token,
        };
        node.write_kubeconfig()?;
        making.node_knows(&node)?;
        Ok(node)
    }

    /// A kubeconfig with the account's token, readable by its owner alone.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join(KUBECONFIG)
    }

    /// The account's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The door of the node's API for one who has nothing but a token.
    pub fn door(&self) -> Result<Door, Error> {
        Ok(Door::of_kubeconfig(&own(&self.folder))?.as_nobody())
    }

    fn write_kubeconfig(&self) -> Result<(), Error> {
        let path = own(&self.folder);
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        let line = |key: &str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.trim().strip_prefix(key));
            found.ok_or_else(|| unfit(&path, &format!("it has no {key}")))
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "node", "cluster": {
                "server": line("server: ")?,
                "certificate-authority-data": line("certificate-authority-data: ")?,
            }}],
            "users": [{"name": "pod", "user": {"token": self.token}}],
            "contexts": [{"name": "pod", "context": {"cluster": "node", "user": "pod"}}],
            "current-context": "pod",
        });
        let text = config.to_string();
        let written = files::write(&self.kubeconfig(), text.as_bytes(), Audience::Owner);
        Ok(written.map_err(host::pki::Error::from)?)
    }
}

/// A node while it is made.
struct Making<'a> {
    program: &'a Path,
    cluster: &'a Site,
    folder: &'a Path,
    runtime: Runtime,
}

impl Making<'_> {
    fn hub(&self) -> Result<Running, Error> {
        let mut command = self.command();
        command
            .arg("cloud")
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig())
            .args(["--listen", "127.0.0.1:0", "--hub-name", HUB, "--run-dir"])
            .arg(self.folder);
        let mut hub = self.start("hub", command)?;
        hub.wait_until(LOOK_EVERY, || {
            self.look(&self.hub_socket(), "/address").is_some()
        })?;
        Ok(hub)
    }

    /// Joins the node as an administrator does.
    fn agent(&self) -> Result<Running, Error> {
        let token = self.folder.join("token");
        let mut invite = self.command();
        invite
            .args([
                "token",
                "create",
                "--node",
                NODE,
                "-o",
                "json",
                "--token-file",
            ])
            .arg(&token)
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig());
        let said = invite.output().map_err(Error::file(self.program))?;
        let made: Option<Value> = serde_json::from_slice(&said.stdout).ok();
        let pin = made.as_ref().and_then(|made| made["caHash"].as_str());
        let pin = pin.ok_or_else(|| unfit(&token, &String::from_utf8_lossy(&said.stderr)))?;
        let address = self.look(&self.hub_socket(), "/address");
        let address = address.ok_or_else(|| unfit(self.folder, "the hub does not answer"))?;
        let mut command = self.command();
        command
            .args([
                "edge",
                "--node",
                NODE,
                "--hub",
                address.trim(),
                "--ca-hash",
                pin,
            ])
            .arg("--token-file")
            .arg(&token)
            .arg("--data-dir")
            .arg(self.folder.join(NODE))
            .args(["--api", "127.0.0.1:0"]);
        let mut agent = self.start("agent", command)?;
        let status = self.folder.join(NODE).join("status.sock");
        agent.wait_until(LOOK_EVERY, || {
            let said = self.look(&status, "/status");
            let said: Option<Value> = said.and_then(|said| serde_json::from_str(&said).ok());
            said.is_some_and(|said| said["connected"] == true) && own(self.folder).exists()
        })?;
        Ok(agent)
    }

    /// Makes the account and its pod, and asks for a token that is bound to it.
    fn account(&self) -> Result<String, Error> {
        let name = json!({"name": ACCOUNT});
        let subject = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"});
        let role = json!({
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"
        });
        let binding = json!({"metadata": name, "roleRef": role, "subjects": [subject]});
        let pod = json!({"metadata": name, "spec": {
            "nodeName": NODE,
            "serviceAccountName": ACCOUNT,
            "containers": [{"name": "main", "image": "example.test/main:1"}],
        }});
        let core = "/api/v1/namespaces/default";
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.make(
            &format!("{core}/serviceaccounts"),
            &json!({"metadata": name}),
        )?;
        self.make(bindings, &binding)?;
        let pod = self.make(&format!("{core}/pods"), &pod)?;
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200, "boundObjectRef": {
                "apiVersion": "v1", "kind": "Pod", "name": ACCOUNT, "uid": pod["metadata"]["uid"]
            }}
        });
        let given = self.make(&format!("{core}/serviceaccounts/{ACCOUNT}/token"), &asked)?;
        let token = given["status"]["token"].as_str();
        let token = token.ok_or_else(|| unfit(self.folder, "no token was given"))?;
        Ok(token.to_owned())
    }

    fn make(&self, path: &str, object: &Value) -> Result<Value, Error> {
        let door = Door::for_admin(self.cluster)?;
        let (status, body) = self.ask(&door, ("POST", path), Some(object), None)?;
        match status {
            200..300 => serde_json::from_slice(&body).map_err(|_| unfit(self.folder, path)),
            _ => Err(unfit(self.folder, &String::from_utf8_lossy(&body))),
        }
    }

    /// What is told to hubs takes a moment to be on a node: waits until the account is answered
    /// there, which is when nothing is asked of the cluster for it any more.
    fn node_knows(&self, node: &Node) -> Result<(), Error> {
        let status = self.folder.join(NODE).join("status.sock");
        let passed_on = || {
            let said: Value = serde_json::from_str(&self.look(&status, "/status")?).ok()?;
            Some(said["tunnelled"].clone())
        };
        let path = ("GET", "/api/v1/services");
        let door = node.door()?;
        let mut tries = 0;
        loop {
            let before = passed_on();
            let asked = self.ask(&door, path, None, Some(node.token()));
            let answered = asked.is_ok_and(|(status, _)| status == 200);
            if answered && before.is_some() && before == passed_on() {
                return Ok(());
            }
            tries += 1;
            if tries > KNOWN_WITHIN_TRIES {
                return Err(unfit(self.folder, "the node does not know the account"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn ask(
        &self,
        door: &Door,
        (method, path): (&str, &str),
        body: Option<&Value>,
        token: Option<&str>,
    ) -> Result<(u16, Bytes), Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", "application/json")
            .header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = body.map_or(Bytes::new(), |body| body.to_string().into());
        let request = request.body(Full::new(bytes));
        let request = request.map_err(|error| unfit(self.folder, &error.to_string()))?;
        let asked = self.runtime.block_on(async {
            let mut client = door.connect(Protocol::Http2).await?;
            client.exchange(request).await
        });
        let answer = asked.map_err(|error| unfit(self.folder, &format!("{path}: {error}")))?;
        Ok((answer.status, answer.body))
    }

    fn look(&self, socket: &Path, path: &str) -> Option<String> {
        let said = self.runtime.block_on(glass::look(socket, path)).ok()?;
        String::from_utf8(said).ok()
    }

    fn hub_socket(&self) -> PathBuf {
        self.folder.join(format!("{HUB}.sock"))
    }

    /// The program must not see settings of the person who runs the tests.
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        command.env_remove("KUBECONFIG");
        command
    }

    /// Starts a program that can be found again by what the cluster's folder says.
    fn start(&self, name: &'static str, command: Command) -> Result<Running, Error> {
        let running = Running::start(name, command, &self.folder.join("logs"))?;
        roster::enter(self.cluster.folder(), &running)?;
        Ok(running)
    }
}

/// The kubeconfig that the agent writes for whoever looks after the node.
fn own(folder: &Path) -> PathBuf {
    folder.join(NODE).join("local/admin.kubeconfig")
}

fn unfit(path: &Path, why: &str) -> Error {
    let error = std::io::Error::other(why.to_owned());
    let path = path.to_owned();
    Error::File { path, error }
}

const NODE: &str = "node-1";
const HUB: &str = "hub-a";
/// The account, its pod, and what gives it its rights.
const ACCOUNT: &str = "clients";
const KUBECONFIG: &str = "kubeconfig";
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A minute.
const KNOWN_WITHIN_TRIES: u32 = 600;
