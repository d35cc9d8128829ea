//! An embedded cluster with two doors: one for the hub, which can be closed, and one for the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cloud::cluster::{Client, Config, Served};
use host::files::{self, Audience};
use host::listen::Listener;
use host::pki::{Authority, Credential, Wanted};
use host::tls::Shown;
use host::{Clock, Shutdown, Tasks};
use kubeapi::catalog::Catalog;
use kubeapi::serve::{About, Api, Feeds, Limits, Parts};
use kubeapi::who::token::{Bound, SigningKey, Verifier, Verifying};
use kubeapi::write::Writes;
use kubeapi::write::caretaker::Caretaker;
use kubeapi::write::desk::Desk;
use kubeapi::write::kinds::service::AddressRange;
use kubeapi::write::token_request::TokenMaker;
use object::Resource;
use rustls::ServerConfig;
use store::disk::memory::MemoryDisk;
use store::{Options, Retention};
use tempfile::TempDir;

/// How long anything may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// A cluster, and where it is reached.
pub(crate) struct Stage {
    folder: TempDir,
    pki: Pki,
    api: Arc<Api>,
    /// What runs the cluster, and the test's own door.
    tasks: Tasks,
    /// The hub's door, if it is open.
    front: Option<Tasks>,
    front_address: SocketAddr,
    /// What the test asks with.
    pub(crate) client: Client,
    clients: Vec<Tasks>,
}

struct Pki {
    authority: Authority,
    tls: Arc<ServerConfig>,
    admin: Credential,
    signing: Vec<u8>,
}

impl Stage {
    /// A cluster that remembers its history for as long as any does.
    pub(crate) async fn open() -> Self {
        Self::open_with(Retention::default()).await
    }

    pub(crate) async fn open_with(retention: Retention) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::make(&folder);
        let mut tasks = Tasks::new(Shutdown::new());
        let api = start(&pki, retention, &mut tasks).await;
        let back = door(&mut tasks, &api, pki.tls.clone(), 0).await;
        let mut front = Tasks::new(Shutdown::new());
        let front_address = door(&mut front, &api, pki.tls.clone(), 0).await;
        let mut stage = Self {
            client: client(&folder, &pki, back).0,
            clients: Vec::new(),
            folder,
            pki,
            api,
            tasks,
            front: Some(front),
            front_address,
        };
        let (own, tasks) = client(&stage.folder, &stage.pki, back);
        stage.client = own;
        stage.clients.push(tasks);
        stage
    }

    /// A client at the hub's door.
    pub(crate) fn hub(&mut self) -> Client {
        let (client, tasks) = client(&self.folder, &self.pki, self.front_address);
        self.clients.push(tasks);
        client
    }

    /// The hub's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        kubeconfig(&self.folder, &self.pki, self.front_address)
    }

    /// The kubeconfig of a user who may do nothing, unless somebody gives it a right.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let user = Wanted::Client {
            user: user.to_owned(),
            groups: Vec::new(),
        };
        let now = Clock::machine().wall();
        let credential = self.pki.authority.issue(&user, now).unwrap();
        write_kubeconfig(&self.folder, &self.pki, &credential, self.front_address)
    }

    /// Closes the hub's door, and cuts off who came in by it.
    pub(crate) async fn cut(&mut self) {
        let front = self.front.take().unwrap();
        front.shutdown().trigger();
        // Connections end where they stand.
        drop(front.join(Duration::ZERO).await);
    }

    /// Opens the hub's door again.
    pub(crate) async fn heal(&mut self) {
        self.heal_with(self.pki.tls.clone()).await;
    }

    /// Opens the hub's door to those who speak HTTP/1.1 only.
    pub(crate) async fn heal_with_http1(&mut self) {
        let mut tls = ServerConfig::clone(&self.pki.tls);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        self.heal_with(tls.into()).await;
    }

    async fn heal_with(&mut self, tls: Arc<ServerConfig>) {
        let mut front = Tasks::new(Shutdown::new());
        let port = self.front_address.port();
        door(&mut front, &self.api, tls, port).await;
        self.front = Some(front);
    }

    /// The cluster is another one from now on: as if it had been restored from a backup that has
    /// nothing in it. Both doors lead to it.
    pub(crate) async fn restore_empty(&mut self) {
        if self.front.is_some() {
            self.cut().await;
        }
        self.api = start(&self.pki, Retention::default(), &mut self.tasks).await;
        let back = door(&mut self.tasks, &self.api, self.pki.tls.clone(), 0).await;
        let (own, tasks) = client(&self.folder, &self.pki, back);
        self.client = own;
        self.clients.push(tasks);
        self.heal().await;
    }

    /// Creates a config map with some text.
    pub(crate) async fn create(&self, name: &str, text: &str) {
        let path = config_maps().namespace_path("default");
        self.client
            .create(&path, config_map(name, text))
            .await
            .unwrap();
    }

    /// Changes a config map's text.
    pub(crate) async fn change(&self, name: &str, text: &str) {
        let path = format!("{}/{name}", config_maps().namespace_path("default"));
        let patch = format!(r#"{{"data":{{"text":"{text}"}}}}"#);
        self.client.patch(&path, patch.into()).await.unwrap();
    }

    /// Deletes a config map.
    pub(crate) async fn delete(&self, name: &str) {
        let path = format!("{}/{name}", config_maps().namespace_path("default"));
        self.client.delete(&path, None).await.unwrap();
    }
}

pub(crate) fn config_maps() -> Served {
    Served::new(Resource::new("", "configmaps"), "v1", "ConfigMap")
}

pub(crate) fn config_map(name: &str, text: &str) -> Bytes {
    let object = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": text},
    });
    object.to_string().into()
}

impl Pki {
    fn make(folder: &TempDir) -> Self {
        let clock = Clock::machine();
        let now = clock.wall();
        let authority = Authority::create("test-ca", now).unwrap();
        let server = Wanted::Server {
            name: "test".to_owned(),
            dns: vec!["localhost".to_owned()],
            ips: vec![Ipv4Addr::LOCALHOST.into()],
        };
        let admin = Wanted::Client {
            user: "admin".to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        let shown = Shown::new(&authority.issue(&server, now).unwrap()).unwrap();
        let tls = host::tls::server(shown, authority.certificate(), &clock).unwrap();
        let keys = host::pki::Folder::open(&folder.path().join("pki"), clock).unwrap();
        let signing = keys.signing_key("service-account").unwrap();
        Self {
            admin: authority.issue(&admin, now).unwrap(),
            signing: signing.secret_pkcs8_der().to_vec(),
            tls,
            authority,
        }
    }
}

/// Opens a door to a cluster. A port of 0 is any.
async fn door(tasks: &mut Tasks, api: &Arc<Api>, tls: Arc<ServerConfig>, port: u16) -> SocketAddr {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, port).into())
        .await
        .unwrap();
    let address = listener.address();
    let crowd = tasks.crowd("connections", 100);
    let (api, shutdown) = (api.clone(), tasks.shutdown().clone());
    let serve = move |accepted| kubeapi::serve::serve(api.clone(), accepted);
    tasks.add("api", listener.run(tls, crowd, shutdown, serve));
    address
}

fn client(folder: &TempDir, pki: &Pki, address: SocketAddr) -> (Client, Tasks) {
    let config = Config::from_kubeconfig(&kubeconfig(folder, pki, address)).unwrap();
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("requests", 100);
    (Client::new(config, crowd, Clock::machine()), tasks)
}

fn kubeconfig(folder: &TempDir, pki: &Pki, address: SocketAddr) -> PathBuf {
    write_kubeconfig(folder, pki, &pki.admin, address)
}

fn write_kubeconfig(folder: &TempDir, pki: &Pki, own: &Credential, address: SocketAddr) -> PathBuf {
    let encoded = |pem: String| BASE64_STANDARD.encode(pem);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {}\nusers:\n- name: admin\n  user:\n    \
         client-certificate-data: {}\n    client-key-data: {}\n\
         contexts:\n- name: test\n  context:\n    cluster: test\n    user: admin\n",
        encoded(pki.authority.certificate_pem()),
        encoded(own.certificate_pem()),
        encoded(own.key_pem()),
    );
    let path = folder.path().join(format!("kubeconfig-{}", address.port()));
    files::write(&path, text.as_bytes(), Audience::Owner).unwrap();
    path
}

/// Starts a cluster with nothing in it but what every cluster has.
async fn start(pki: &Pki, retention: Retention, tasks: &mut Tasks) -> Arc<Api> {
    let clock = Clock::machine();
    let mut options = Options::new("cluster");
    options.retention = retention;
    let disk = Arc::new(MemoryDisk::default());
    let authority = store::Authority::open(disk, options, clock.clone()).unwrap();
    let catalog = Arc::new(Catalog::new());
    let kinds = catalog.snapshot();
    let resources = kinds.kinds().map(|kind| kind.stored_as()).collect();
    authority.open_tables(resources).await.unwrap();
    let reader = authority.reader().clone();
    let range: AddressRange = "10.96.0.0/12".parse().unwrap();
    let writes = Writes::new(authority, clock.clone(), vec![range], 30000..=32767);
    let writes = Arc::new(writes);
    let shutdown = tasks.shutdown().clone();
    let caretaker = Caretaker {
        writes: writes.clone(),
        catalog: catalog.clone(),
        root_certificates: pki.authority.certificate_pem(),
        shutdown: shutdown.clone(),
    };
    caretaker.furnish().await.unwrap();
    let (verifier, tokens) = tokens(pki, &clock);
    let authorizer = Arc::default();
    let desk = Desk {
        writes,
        authorizer: Arc::clone(&authorizer),
        tokens,
    };
    let about = About {
        version: "test".to_owned(),
        address: "localhost".to_owned(),
        issuer: ISSUER.to_owned(),
    };
    let api = Api::new(Parts {
        reader,
        writes: Some(Arc::new(desk)),
        beyond: None,
        catalog,
        authorizer,
        verifier: Arc::new(Verifying::new(verifier)),
        about,
        clock,
        shutdown,
        limits: Limits::default(),
    });
    tasks.add("feeds", Feeds::start(api.clone()).unwrap().run());
    tasks.add("upkeep", caretaker.run());
    api
}

fn tokens(pki: &Pki, clock: &Clock) -> (Verifier, TokenMaker) {
    let key = SigningKey::from_pkcs8(&pki.signing).unwrap();
    let audiences = vec![ISSUER.to_owned()];
    let verifier = Verifier {
        keys: vec![key.public().clone()],
        issuers: audiences.clone(),
        audiences: audiences.clone(),
        bound: Bound::Any,
    };
    let maker = TokenMaker {
        key,
        issuer: ISSUER.to_owned(),
        audiences,
        clock: clock.clone(),
    };
    (verifier, maker)
}
