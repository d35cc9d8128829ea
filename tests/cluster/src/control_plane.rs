//! The control plane: which programs it has, with which flags, in which order.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use host::files::{self, Audience};
use host::pki::Wanted;
use rcgen::KeyPair;

use crate::Error;
use crate::programs::Program;
use crate::roster;
use crate::running::Running;
use crate::site::Site;

/// Which controllers work beside the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// Those whose work our embedded cluster does by itself (it fills and empties namespaces),
    /// and the garbage collector.
    #[default]
    Upkeep,
    /// None: namespaces stay empty and are never gone.
    None,
}

/// How a control plane is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which controllers work.
    pub controllers: Controllers,
    /// How much history of changes is kept at least; at most twice this much. Tests of what is
    /// too old wait for as long.
    pub history: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        // As an API server without flags.
        let history = Duration::from_secs(300);
        Self {
            controllers: Controllers::default(),
            history,
        }
    }
}

/// The programs of a control plane that is ready.
pub(crate) struct ControlPlane {
    pub(crate) site: Site,
    /// etcd first, then the API server.
    pub(crate) programs: Vec<Running>,
    rooms: Rooms,
    setup: Setup,
}

impl ControlPlane {
    /// Builds what is not built yet, starts everything in this folder, and waits until it is ready.
    pub(crate) fn start(folder: &Path, setup: Setup) -> Result<Self, Error> {
        let etcd = Program::Etcd.built()?;
        let api = Program::KubeApiserver.built()?;
        let controllers = match setup.controllers {
            Controllers::Upkeep => Some(Program::KubeControllerManager.built()?),
            Controllers::None => None,
        };
        let folder = Rooms::make(folder)?;
        let mut programs = vec![folder.start_etcd(&etcd)?];
        let (site, api) = folder.start_api(&api, setup)?;
        programs.push(api);
        if let Some(path) = controllers {
            programs.push(folder.start_controllers(&path, &site)?);
        }
        Ok(Self {
            site,
            programs,
            rooms: folder,
            setup,
        })
    }

    /// Kills the API server. The others stay.
    pub(crate) fn kill_api(&mut self) {
        self.programs[API].kill();
    }

    /// Starts it again where it was, and waits until it is ready.
    pub(crate) fn start_api(&mut self) -> Result<(), Error> {
        let program = Program::KubeApiserver.built()?;
        self.programs[API] = self.rooms.run_api(&program, self.setup, &self.site)?;
        Ok(())
    }
}

/// Where the API server stands among the programs.
const API: usize = 1;

/// Writes into a new etcd what nobody reads. An API server remembers changes since its start: now
/// version 1 is before that, as in every cluster that has lived, and not sometimes its start.
fn age(socket: &Path) -> std::io::Result<()> {
    let body = r#"{"key": "YWdl", "value": ""}"#;
    let length = body.len();
    for _ in 0..3 {
        let mut stream = UnixStream::connect(socket)?;
        write!(
            stream,
            "POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200 ") {
            return Err(std::io::Error::other(answer));
        }
    }
    Ok(())
}

/// The folder of a control plane, and what is where in it.
struct Rooms(PathBuf);

impl Rooms {
    fn make(folder: &Path) -> Result<Self, Error> {
        let rooms = Self(folder.to_owned());
        for folder in [folder, &rooms.logs()] {
            files::create_dir(folder).map_err(host::pki::Error::from)?;
        }
        Ok(rooms)
    }

    fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// etcd listens on a socket in the folder, which only its owner can enter.
    fn socket(&self) -> String {
        format!("unix://{}", self.0.join("etcd.sock").display())
    }

    fn start_etcd(&self, program: &Path) -> Result<Running, Error> {
        let socket = self.socket();
        let peers = format!("unix://{}", self.0.join("peer.sock").display());
        let mut command = Command::new(program);
        command
            .arg("--data-dir")
            .arg(self.0.join("etcd"))
            .args(["--name", "test", "--logger", "zap", "--log-level", "warn"])
            .args(["--listen-client-urls", &socket])
            .args(["--listen-peer-urls", &peers])
            // It has no peers and nobody asks it for addresses, but it wants to be told ports.
            .args(["--advertise-client-urls", "http://127.0.0.1:2379"])
            .args(["--initial-advertise-peer-urls", "http://127.0.0.1:2380"])
            .args(["--initial-cluster", "test=http://127.0.0.1:2380"]);
        let mut etcd = self.start("etcd", command)?;
        let socket = self.0.join("etcd.sock");
        etcd.wait_until(LOOK_EVERY, || UnixStream::connect(&socket).is_ok())?;
        age(&socket).map_err(Error::file(&socket))?;
        Ok(etcd)
    }

    fn start_api(&self, program: &Path, setup: Setup) -> Result<(Site, Running), Error> {
        let mut tries = 1;
        loop {
            let started = self.try_start_api(program, setup);
            match started {
                // Somebody may have taken the port since we looked.
                Err(Error::NotReady { tail, .. })
                    if tail.contains("address already in use") && tries < PORT_TRIES_MAX =>
                {
                    tries += 1;
                }
                started => return started,
            }
        }
    }

    fn try_start_api(&self, program: &Path, setup: Setup) -> Result<(Site, Running), Error> {
        let port = free_port().map_err(Error::file(&self.0))?;
        let site = Site::make(&self.0, port)?;
        self.make_keys(&site)?;
        let api = self.run_api(program, setup, &site)?;
        Ok((site, api))
    }

    fn run_api(&self, program: &Path, setup: Setup, site: &Site) -> Result<Running, Error> {
        let tls = Arc::new(site.tls(Some(&site.admin()?))?);
        let port = site.address().trim_start_matches("127.0.0.1:");
        let mut command = Command::new(program);
        command
            .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
            .arg(format!("--etcd-servers={}", self.socket()))
            .arg(format!(
                "--etcd-compaction-interval={}s",
                setup.history.as_secs()
            ))
            .arg(self.file_flag("client-ca-file", "ca.crt"))
            .arg(self.file_flag("tls-cert-file", "serving.crt"))
            .arg(self.file_flag("tls-private-key-file", "serving.key"))
            .arg(self.file_flag("kubelet-client-certificate", "kubelet-client.crt"))
            .arg(self.file_flag("kubelet-client-key", "kubelet-client.key"))
            .arg(self.file_flag("service-account-key-file", "service-account.pub"))
            .arg(self.file_flag("service-account-signing-key-file", "service-account.key"))
            .args(API_FLAGS);
        let mut api = self.start("kube-apiserver", command)?;
        api.wait_until(LOOK_EVERY, || site.serves(&tls, "/readyz"))?;
        Ok(api)
    }

    fn start_controllers(&self, program: &Path, site: &Site) -> Result<Running, Error> {
        let user = "system:kube-controller-manager";
        let kubeconfig = site.write_kubeconfig("controllers", &site.client(user, &[])?)?;
        let mut command = Command::new(program);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(self.file_flag("root-ca-file", "ca.crt"))
            .arg(self.file_flag("service-account-private-key-file", "service-account.key"))
            .arg(format!("--controllers={CONTROLLERS}"))
            .args([
                "--leader-elect=false",
                "--use-service-account-credentials=true",
            ])
            // Its own address is asked by nobody; zero is none.
            .arg("--secure-port=0");
        let mut controllers = self.start("kube-controller-manager", command)?;
        // It says of itself nothing that one could wait for; its work is what tests rely on.
        let tls = Arc::new(site.tls(Some(&site.admin()?))?);
        controllers.wait_until(LOOK_EVERY, || {
            FURNITURE.iter().all(|path| site.serves(&tls, path))
        })?;
        Ok(controllers)
    }

    /// Starts a program that can be found again by what the folder says.
    fn start(&self, name: &'static str, command: Command) -> Result<Running, Error> {
        let program = Running::start(name, command, &self.logs())?;
        roster::enter(&self.0, &program)?;
        Ok(program)
    }

    fn make_keys(&self, site: &Site) -> Result<(), Error> {
        let pki = site.pki()?;
        let wanted = Wanted::Server {
            name: "kube-apiserver".to_owned(),
            dns: vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()],
            ips: vec![Ipv4Addr::LOCALHOST.into()],
        };
        pki.credential("serving", &site.authority()?, &wanted)?;
        // As kubeadm makes it: whom kubelets see when the API asks them.
        let wanted = Wanted::Client {
            user: "kube-apiserver-kubelet-client".to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        pki.credential("kubelet-client", &site.authority()?, &wanted)?;
        let key = pki.signing_key("service-account")?;
        let key = KeyPair::try_from(key.secret_pkcs8_der()).map_err(host::pki::Error::Make)?;
        let path = self.0.join("pki/service-account.pub");
        let written = files::write(&path, key.public_key_pem().as_bytes(), Audience::Everyone);
        Ok(written.map_err(host::pki::Error::from)?)
    }

    fn file_flag(&self, flag: &str, file: &str) -> String {
        format!("--{flag}={}", self.0.join("pki").join(file).display())
    }
}

/// A port of loopback that nobody has now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// How often another port is tried.
const PORT_TRIES_MAX: u32 = 3;

/// What a usual cluster has, and the ranges that `holdfast up` has by default. The endpoints of the
/// API itself are left out: a loopback address may not be one.
const API_FLAGS: [&str; 9] = [
    "--authorization-mode=Node,RBAC",
    "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
    "--enable-admission-plugins=NodeRestriction",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    "--service-cluster-ip-range=10.96.0.0/12,fd00:10:96::/112",
    "--endpoint-reconciler-type=none",
    "--allow-privileged=true",
    "--shutdown-delay-duration=0s",
    "--v=1",
];

/// What controllers put into each namespace, and so into this one.
const FURNITURE: [&str; 2] = [
    "/api/v1/namespaces/default/serviceaccounts/default",
    "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
];

const LOOK_EVERY: Duration = Duration::from_millis(10);

const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,\
                           root-ca-certificate-publisher-controller,garbage-collector-controller";
