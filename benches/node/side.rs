//! A node as its API sees it: a kubelet, a kube-proxy and a CoreDNS that list and watch, and the
//! link whose bytes are counted.

use std::sync::Arc;
use std::time::Duration;

use ::cluster::client::Door;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::component::{Informer, Line, Orders, Seen};
use crate::message::Message;
use crate::proxy::{Bytes, Proxy, Way};
use crate::shop::{APPLICATIONS, application, shop};

/// A pod that is bound to the node.
#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// A node.
pub(crate) struct Side {
    pub(crate) node: &'static str,
    pub(crate) kubelet: Arc<Line>,
    pub(crate) pods: Vec<Pod>,
    /// The lease as it was last told.
    pub(crate) lease: Option<Message>,
    link: Proxy,
    informers: Vec<(String, watch::Receiver<Seen>)>,
    orders: watch::Sender<Orders>,
    tasks: JoinSet<()>,
}

/// Ways in, for the three programs.
pub(crate) struct Doors {
    pub(crate) kubelet: Door,
    pub(crate) kube_proxy: Door,
    pub(crate) coredns: Door,
}

impl Side {
    /// Starts the programs, and waits until they have listed everything and watch it.
    pub(crate) async fn open(
        node: &'static str,
        doors: Doors,
        link: Proxy,
        pods: Vec<Pod>,
    ) -> Self {
        let orders = watch::Sender::new(Orders {
            bookmarks: true,
            turn: 0,
        });
        let kubelet = Line::new(doors.kubelet, "kubelet");
        let kube_proxy = Line::new(doors.kube_proxy, "kube-proxy");
        let coredns = Line::new(doors.coredns, "coredns");
        let mut side = Self {
            node,
            kubelet: kubelet.clone(),
            pods,
            lease: None,
            link,
            informers: Vec::new(),
            orders,
            tasks: JoinSet::new(),
        };
        for (what, path, selector) in of_kubelet(node) {
            side.inform(&kubelet, what, (path, selector));
        }
        for (what, path) in [("services", SERVICES), ("slices", SLICES)] {
            let proxied = (path.to_owned(), NOT_HEADLESS.to_owned());
            side.inform(&kube_proxy, what.to_owned(), proxied);
        }
        for (what, path) in [
            ("services", SERVICES),
            ("slices", SLICES),
            ("namespaces", "/api/v1/namespaces"),
        ] {
            side.inform(&coredns, what.to_owned(), (path.to_owned(), String::new()));
        }
        side.all(|seen| seen.watches > 0).await;
        side
    }

    fn inform(&mut self, line: &Arc<Line>, what: String, (path, selector): (String, String)) {
        let (seen, sees) = watch::channel(Seen::default());
        let informer = Informer {
            line: line.clone(),
            path,
            selector,
            orders: self.orders.subscribe(),
            seen,
        };
        self.tasks.spawn(informer.run());
        self.informers.push((what, sees));
    }

    /// What has passed the link.
    pub(crate) fn bytes(&self) -> Bytes {
        self.link.bytes()
    }

    /// The link is like this from now on.
    pub(crate) fn turn(&self, way: Way) {
        self.link.turn(way);
    }

    /// How many watches and how many lists there were.
    pub(crate) fn watches_and_lists(&self) -> (u64, u64) {
        let all = self.informers.iter().map(|(_, sees)| *sees.borrow());
        all.fold((0, 0), |(watches, lists), seen| {
            (watches + seen.watches, lists + seen.lists)
        })
    }

    /// Waits until everybody who watches this is at a version.
    pub(crate) async fn has(&self, what: &str, version: u64) {
        let all = self.informers.iter().filter(|(it, _)| it == what);
        let mut count = 0;
        for (_, sees) in all {
            count += 1;
            wait(sees, what, |seen| seen.version >= version).await;
        }
        assert!(count > 0, "nobody watches {what}");
    }

    /// How many changes of this were told.
    pub(crate) fn changes(&self, what: &str) -> u64 {
        let mut all = self.informers.iter().filter(|(it, _)| it == what);
        let (_, sees) = all.next().expect("somebody who watches it");
        sees.borrow().changes
    }

    /// Waits until more changes than these were told.
    pub(crate) async fn changed(&self, what: &str, before: u64) {
        for (_, sees) in self.informers.iter().filter(|(it, _)| it == what) {
            wait(sees, what, |seen| seen.changes > before).await;
        }
    }

    /// Has all watches opened anew, with bookmarks or without, and waits for that.
    pub(crate) async fn watch_anew(&self, bookmarks: bool) {
        let before = self.watches();
        self.orders.send_modify(|orders| {
            orders.bookmarks = bookmarks;
            orders.turn += 1;
        });
        self.watches_again(&before).await;
    }

    /// How often each watch was opened.
    pub(crate) fn watches(&self) -> Vec<u64> {
        let all = self.informers.iter();
        all.map(|(_, sees)| sees.borrow().watches).collect()
    }

    /// Waits until each was opened once more.
    pub(crate) async fn watches_again(&self, before: &[u64]) {
        for ((what, sees), before) in self.informers.iter().zip(before) {
            wait(sees, what, |seen| seen.watches > *before).await;
        }
    }

    async fn all(&self, so: impl Fn(&Seen) -> bool) {
        for (what, sees) in &self.informers {
            wait(sees, what, &so).await;
        }
    }
}

async fn wait(sees: &watch::Receiver<Seen>, what: &str, so: impl Fn(&Seen) -> bool) {
    let mut sees = sees.clone();
    let waited = timeout(PATIENCE, sees.wait_for(|seen| so(seen))).await;
    let seen = waited.map(|seen| seen.expect("an informer that runs").version);
    assert!(seen.is_ok(), "{what}: nothing comes");
}

/// What a kubelet lists and watches: a name, a path, and what it is limited to.
fn of_kubelet(node: &str) -> Vec<(String, String, String)> {
    let mut all = vec![
        (
            "pods".to_owned(),
            "/api/v1/pods".to_owned(),
            format!("&fieldSelector=spec.nodeName%3D{node}"),
        ),
        (
            "node".to_owned(),
            "/api/v1/nodes".to_owned(),
            format!("&fieldSelector=metadata.name%3D{node}"),
        ),
    ];
    for (what, path) in [
        ("services", SERVICES),
        ("drivers", "/apis/storage.k8s.io/v1/csidrivers"),
        ("classes", "/apis/node.k8s.io/v1/runtimeclasses"),
    ] {
        all.push((what.to_owned(), path.to_owned(), String::new()));
    }
    let named: Vec<String> = (0..APPLICATIONS).map(application).collect();
    let root = "kube-root-ca.crt".to_owned();
    let maps = named.iter().chain([&root]).map(|name| ("configmaps", name));
    for (resource, name) in maps.chain(named.iter().map(|name| ("secrets", name))) {
        let selector = format!("&fieldSelector=metadata.name%3D{name}");
        all.push((format!("{resource}/{name}"), shop(resource), selector));
    }
    all
}

const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";
/// What kube-proxy asks for.
const NOT_HEADLESS: &str = "&labelSelector=%21service.kubernetes.io%2Fheadless%2C\
                            %21service.kubernetes.io%2Fservice-proxy-name";
/// How long anything may take. Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
