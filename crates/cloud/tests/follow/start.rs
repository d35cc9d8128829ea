//! A hub begins when its cluster answers and lets it, and waits until then.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cloud::cluster::Config;
use cloud::nodes::Leases;
use cloud::record::Mode;
use cloud::run::{self, Error, Ports};
use cloud::view::Policy;
use cloud::waiting::Waiting;
use host::listen::Reserved;
use host::pki::Wanted;
use host::{Clock, Shutdown, Tasks, dial};
use serde_json::json;

use crate::stage::{DEADLINE, Stage};

fn config(kubeconfig: &Path) -> run::Config {
    run::Config {
        cluster: Config::from_kubeconfig(kubeconfig).unwrap(),
        name: "hub".to_owned(),
        wanted: Wanted::Server {
            name: "hub".to_owned(),
            dns: vec!["localhost".to_owned()],
            ips: Vec::new(),
        },
        policy: Policy::default(),
        certificate_life: cloud::join::signer::LIFE,
        limits: wire::window::Limits::default(),
        cache: cloud::cache::Limits::default(),
        sessions_max: 100,
        drain: Duration::ZERO,
        leases: Leases::Off,
        records: Mode::Off,
        peers: cloud::owners::Waits::default(),
        frozen_long: cloud::clerk::FROZEN_LONG,
    }
}

fn ports() -> (Ports, SocketAddr) {
    let tcp = Reserved::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = tcp.address();
    (Ports { tcp, quic: None }, address)
}

async fn until_it_says(waiting: &Waiting, part: &str) -> String {
    let says = async {
        loop {
            match waiting.what() {
                Some(words) if words.contains(part) => return words,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let said = tokio::time::timeout(DEADLINE, says).await;
    said.unwrap_or_else(|_| panic!("not {part:?}, but {:?}", waiting.what()))
}

async fn is_open(address: SocketAddr) -> bool {
    let dialled = dial::dial(&address.to_string(), DEADLINE).await;
    dialled.is_ok()
}

#[tokio::test]
async fn a_hub_that_comes_before_its_cluster_waits_for_it_and_lets_nobody_wait_meanwhile() {
    let mut stage = Stage::open().await;
    let config = config(&stage.kubeconfig());
    stage.cut().await;
    let (waiting, mut tasks) = (Waiting::default(), Tasks::new(Shutdown::new()));
    let (ports, address) = ports();
    let starting = run::start(config, ports, &waiting, Clock::machine(), &mut tasks);
    let healing = async {
        let words = until_it_says(&waiting, "cannot be reached").await;
        assert!(words.starts_with("the authority of links"), "{words}");
        assert!(!is_open(address).await, "agents go elsewhere");
        stage.heal().await;
    };
    let (hub, ()) = tokio::join!(starting, healing);
    hub.unwrap();
    assert_eq!(waiting.what(), None);
    assert!(is_open(address).await);
}

#[tokio::test]
async fn a_right_that_is_missing_is_named_and_waited_for() {
    let mut stage = Stage::open().await;
    let config = config(&stage.kubeconfig_of("hub"));
    let admin = stage.hub();
    let create = async |path: &str, object: serde_json::Value| {
        admin.create(path, object.to_string().into()).await.unwrap();
    };
    let namespace = json!({"metadata": {"name": "holdfast-system"}});
    create("/api/v1/namespaces", namespace).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let give = async |resource: &str| {
        let role = json!({"metadata": {"name": resource}, "rules": [
            {"apiGroups": [""], "resources": [resource], "verbs": ["create", "get"]},
        ]});
        create(&format!("{rbac}/clusterroles"), role).await;
        let group = "rbac.authorization.k8s.io";
        let bound = json!({"metadata": {"name": resource},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": resource},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "hub"}],
        });
        create(&format!("{rbac}/clusterrolebindings"), bound).await;
    };
    let (waiting, mut tasks) = (Waiting::default(), Tasks::new(Shutdown::new()));
    let starting = run::start(config, ports().0, &waiting, Clock::machine(), &mut tasks);
    let giving = async {
        let part = "may not get secrets in namespace holdfast-system";
        let words = until_it_says(&waiting, part).await;
        assert!(words.contains("deploy/hub-rbac.yaml"), "{words}");
        give("secrets").await;
        until_it_says(
            &waiting,
            "may not get configmaps in namespace holdfast-system",
        )
        .await;
        give("configmaps").await;
    };
    let (hub, ()) = tokio::join!(starting, giving);
    hub.unwrap();
}

#[tokio::test]
async fn a_hub_that_waits_can_be_stopped() {
    let mut stage = Stage::open().await;
    let config = config(&stage.kubeconfig());
    stage.cut().await;
    let shutdown = Shutdown::new();
    let (waiting, mut tasks) = (Waiting::default(), Tasks::new(shutdown.clone()));
    let starting = run::start(config, ports().0, &waiting, Clock::machine(), &mut tasks);
    let stopping = async {
        until_it_says(&waiting, "cannot be reached").await;
        shutdown.trigger();
    };
    let (hub, ()) = tokio::join!(starting, stopping);
    assert!(matches!(hub, Err(Error::Stopped)));
}
