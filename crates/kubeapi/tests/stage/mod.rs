//! A real server on loopback over one of the two feeders, and clients of it.

mod body; // objects as tests write them
mod client; // requests and watches, over HTTP/1.1 or HTTP/2
mod beyond; // a cluster behind a node that answers nothing
mod feeder; // an authority or a replica, driven the same way
mod source; // what feeds the replica

pub use beyond::{CALLED, Link, Script, TOLD, Used};
pub use body::{Body, event, item, node, pod, version};
pub use client::{Client, Http, Reply, Stream, send};
pub use feeder::Feeder;
pub use source::{Source, UNCOVERED};

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use host::clock::Hands;
use host::listen::Listener;
use host::pki::{Authority, Credential, Wanted};
use host::{Clock, Shutdown, Tasks};
use kubeapi::catalog::{Catalog, Told};
use kubeapi::serve::{About, Api, Beyond, Feeds, Limits, Parts};
use serde_json::Value;
use store::Reader;

/// How long anything may take that has to happen.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// History older than this goes with the next change to its table. More than the minute after which
/// bookmarks come, so that a test can wait for those.
pub const HISTORY_AGE: Duration = Duration::from_secs(150);

/// How long a [`lasting`] watch lasts.
const LASTING: Duration = Duration::from_secs(1500);

/// The path of a watch that [`Stage::finish`] can end.
pub fn lasting(path: &str, query: &str) -> String {
    let seconds = LASTING.as_secs();
    format!("{path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&{query}")
}

/// An object that left a selector: as it was, at the version at which it left.
pub fn left(before: &Value, after: &Value) -> Value {
    let mut gone = before.clone();
    gone["metadata"]["resourceVersion"] = version(after).into();
    gone
}

/// A server and what moves it.
pub struct Stage {
    /// What feeds the log.
    pub feeder: Feeder,
    /// Moves the server's clock.
    pub hands: Hands,
    /// The HTTP version of this run.
    pub http: Http,
    /// The server's parts.
    pub api: Arc<Api>,
    /// An administrator's client.
    pub client: Client,
    /// Whether the cluster behind a node can be reached.
    pub link: Arc<AtomicBool>,
    /// What a node was used for.
    pub used: Used,
    /// What the cluster behind a node answers.
    pub script: Arc<Script>,
    address: SocketAddr,
    clock: Clock,
    /// Ends the server when the stage goes.
    _tasks: Tasks,
}

/// Which feeder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeederKind {
    Authority,
    Replica,
    /// A replica with a cluster behind it, which says which kinds there are.
    Node,
}

/// Runs a test over both feeders and both HTTP versions.
pub async fn everywhere(test: impl AsyncFn(&Stage)) {
    everywhere_with(Limits::default(), test).await;
}

/// The same with limits of its own.
pub async fn everywhere_with(limits: Limits, test: impl AsyncFn(&Stage)) {
    use FeederKind::{Authority, Replica};
    let on = |kind, http| on(kind, http, limits.clone(), &test);
    tokio::join!(
        on(Authority, Http::One),
        on(Authority, Http::Two),
        on(Replica, Http::One),
        on(Replica, Http::Two),
    );
}

/// Runs a test over both feeders, where the HTTP version does not matter.
pub async fn both(test: impl AsyncFn(&Stage)) {
    let on = |kind| on(kind, Http::Two, Limits::default(), &test);
    tokio::join!(on(FeederKind::Authority), on(FeederKind::Replica));
}

/// Runs a test over the replica alone.
pub async fn on_replica(test: impl AsyncFn(&Stage, &Source)) {
    let test = async |stage: &Stage| test(stage, stage.feeder.source()).await;
    on(FeederKind::Replica, Http::Two, Limits::default(), &test).await;
}

/// Runs a test over the API of a node.
pub async fn on_node(test: impl AsyncFn(&Stage, &Source)) {
    on_node_with(Http::Two, Limits::default(), test).await;
}

/// The same over a version of HTTP, with limits of its own.
pub async fn on_node_with(http: Http, limits: Limits, test: impl AsyncFn(&Stage, &Source)) {
    let test = async |stage: &Stage| test(stage, stage.feeder.source()).await;
    on(FeederKind::Node, http, limits, &test).await;
}

/// Runs a test over the authority alone, where it is about the server and not about the feeder.
pub async fn on_server(http: Http, limits: Limits, test: impl AsyncFn(&Stage)) {
    on(FeederKind::Authority, http, limits, &test).await;
}

async fn on(kind: FeederKind, http: Http, limits: Limits, test: &impl AsyncFn(&Stage)) {
    let label = format!("on {kind:?} over {http:?}");
    let played = Box::pin(async move {
        let stage = Stage::open(kind, http, limits).await;
        test(&stage).await;
    });
    let mut played = Box::pin(tokio::time::timeout(3 * DEADLINE, played));
    // Stages run side by side: a test that fails says on which.
    let ended = poll_fn(|cx| {
        let _shown = Shown(&label);
        played.as_mut().poll(cx)
    });
    ended.await.expect("the test took too long");
}

/// Shown if a panic passes.
struct Shown<'a>(&'a str);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

impl Stage {
    async fn open(kind: FeederKind, http: Http, limits: Limits) -> Self {
        let (clock, hands) = Clock::manual("2026-11-15T08:00:00Z".parse().unwrap());
        let catalog = Catalog::new();
        let feeder = Feeder::open(kind, &catalog, clock.clone()).await;
        let link = Arc::new(AtomicBool::new(true));
        let (used, script) = (Used::default(), Arc::<Script>::default());
        let (catalog, beyond) = match kind {
            FeederKind::Authority | FeederKind::Replica => (catalog, None),
            FeederKind::Node => {
                let told = Told::new(feeder.reader().clone(), TOLD);
                let beyond: Arc<dyn Beyond> = Arc::new(Link {
                    open: link.clone(),
                    used: used.clone(),
                    script: script.clone(),
                });
                (Catalog::told_by(told), Some(beyond))
            }
        };
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .unwrap();
        let address = listener.address();
        let api = Api::new(Parts {
            reader: feeder.reader().clone(),
            writes: None,
            beyond,
            catalog: Arc::new(catalog),
            authorizer: Arc::default(),
            verifier: Arc::default(),
            about: About {
                version: "test".to_owned(),
                address: address.to_string(),
                issuer: "https://test".to_owned(),
            },
            clock: clock.clone(),
            shutdown: Shutdown::new(),
            limits,
        });
        let mut tasks = Tasks::new(api.shutdown.clone());
        tasks.add("feeds", Feeds::start(api.clone()).unwrap().run());
        let crowd = tasks.crowd("connections", 500);
        let (served, shutdown) = (api.clone(), api.shutdown.clone());
        let serve = move |accepted| kubeapi::serve::serve(served.clone(), accepted);
        let shown = host::tls::Shown::new(&PKI.server).unwrap();
        let tls = host::tls::server(shown, PKI.authority.certificate(), &clock).unwrap();
        tasks.add("api", listener.run(tls, crowd, shutdown, serve));
        let client = client_of("admin", address, &clock, http);
        Self {
            feeder,
            hands,
            http,
            api,
            client,
            link,
            used,
            script,
            address,
            clock,
            _tasks: tasks,
        }
    }

    /// Another client, with a connection and a name of its own. Everybody is an administrator.
    pub fn client(&self, user: &str) -> Client {
        client_of(user, self.address, &self.clock, self.http)
    }

    /// A client without a certificate.
    pub fn stranger(&self) -> Client {
        Client::new(self.address, tls(None, &self.clock), self.http)
    }

    pub fn reader(&self) -> &Reader {
        self.feeder.reader()
    }

    /// Writes an object, and gives it as clients must see it.
    pub async fn put(&self, body: &Body) -> Value {
        self.feeder.put(body).await
    }

    /// Deletes an object, and gives it as a DELETED event must show it.
    pub async fn delete(&self, body: &Body) -> Value {
        self.feeder.delete(body).await
    }

    /// Something happens that is none of the pods' business; their version rises all the same.
    pub async fn pass_elsewhere(&self) -> String {
        self.feeder.pass_elsewhere().await
    }

    /// What happened so far is too old: the next change to a table drops it from its history.
    pub fn age_history(&self) {
        self.hands.advance(HISTORY_AGE + Duration::from_secs(1));
    }

    /// Lets the time of a [`lasting`] watch run out: it must have nothing left to say but
    /// bookmarks. The version of the last comes back.
    pub async fn finish(&self, mut stream: Stream) -> String {
        self.hands.advance(LASTING + Duration::from_secs(1));
        let mut last = None;
        while let Some(event) = stream.next().await {
            assert_eq!(event.kind, "BOOKMARK", "{}", event.object);
            last = Some(version(&event.object).to_owned());
        }
        last.expect("it ended without a bookmark")
    }

    /// The version that a list of all pods has now.
    pub async fn pods_version(&self) -> String {
        let list = self.client.json("/api/v1/pods").await;
        version(&list).to_owned()
    }
}

fn client_of(user: &str, address: SocketAddr, clock: &Clock, http: Http) -> Client {
    let wanted = Wanted::Client {
        user: user.to_owned(),
        groups: vec!["system:masters".to_owned()],
    };
    let credential = match user {
        "admin" => PKI.admin.clone(),
        _ => PKI.authority.issue(&wanted, clock.wall()).unwrap(),
    };
    Client::new(address, tls(Some(&credential), clock), http)
}

fn tls(credential: Option<&Credential>, clock: &Clock) -> rustls::ClientConfig {
    let config = host::tls::client(PKI.authority.certificate(), credential, clock).unwrap();
    rustls::ClientConfig::clone(&config)
}

/// Keys and certificates: made once, since they take longer than most tests.
static PKI: LazyLock<Pki> = LazyLock::new(|| {
    let now = "2026-11-15T08:00:00Z".parse().unwrap();
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
    Pki {
        server: authority.issue(&server, now).unwrap(),
        admin: authority.issue(&admin, now).unwrap(),
        authority,
    }
});

struct Pki {
    authority: Authority,
    server: Credential,
    admin: Credential,
}
