//! The two servers of a run: started for it, or running already.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::client::Door;
use cluster::{Holdfast, Kubernetes, Node, Setup, Site};

use crate::normal::Kind;

/// Both servers. Those that were started for the run end with it.
pub(crate) struct Servers {
    pub(crate) real: Entrance,
    pub(crate) ours: Entrance,
    /// What answers behind ours.
    pub(crate) kind: Kind,
    /// Added to the names of namespaces, so that a run does not meet the rest of an earlier one.
    pub(crate) suffix: String,
    _started: Started,
}

/// How people come in.
pub(crate) enum Entrance {
    /// With certificates of the server's authority.
    Certificates(Site),
    /// With the token of an account that may do everything.
    Token {
        door: Door,
        token: String,
        /// The cluster itself, where the door is a node's.
        behind: Option<Door>,
    },
}

/// What ends with the run. Nodes go before their clusters.
#[derive(Default)]
struct Started {
    _nodes: Vec<Node>,
    _kubernetes: Vec<Kubernetes>,
    _holdfast: Vec<Holdfast>,
}

impl Entrance {
    /// The address to dial.
    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Certificates(site) => site.address(),
            Self::Token { door, .. } => door.address(),
        }
    }
}

impl Servers {
    /// Takes the folders in `DIFFERENTIAL_REAL` and `DIFFERENTIAL_OURS`, and starts what is not
    /// there, with this much history at least. The numbers of runs against the same servers are
    /// different.
    pub(crate) fn find(run: i64, history: Duration) -> Self {
        let running = |name: &str| {
            let folder = std::env::var_os(name)?;
            let site = Site::open(Path::new(&folder));
            Some(site.unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        let mut started = Started::default();
        let real = running("DIFFERENTIAL_REAL").unwrap_or_else(|| {
            started._kubernetes.push(start_real(history));
            started._kubernetes[0].site().clone()
        });
        let ours = running("DIFFERENTIAL_OURS").unwrap_or_else(|| {
            started._holdfast.push(start_ours(history));
            started._holdfast[0].site().clone()
        });
        let suffix = match (started._kubernetes.len(), started._holdfast.len()) {
            (1, 1) => String::new(),
            _ => format!("-{:06x}", run & 0xff_ffff),
        };
        Self {
            real: Entrance::Certificates(real),
            ours: Entrance::Certificates(ours),
            kind: Kind::Ours,
            suffix,
            _started: started,
        }
    }

    /// Our own program twice: what differs then is by chance.
    pub(crate) fn ours_twice(history: Duration) -> Self {
        let started = vec![start_ours(history), start_ours(history)];
        let entrance = |number: usize| Entrance::Certificates(started[number].site().clone());
        Self {
            real: entrance(0),
            ours: entrance(1),
            kind: Kind::Ours,
            suffix: String::new(),
            _started: Started {
                _holdfast: started,
                ..Started::default()
            },
        }
    }

    /// A real server, and a node of another one. Both clusters have such a node, so that they are
    /// alike; one of them is asked itself.
    pub(crate) fn direct_and_through_a_node(history: Duration) -> Self {
        let kubernetes = [start_real(history), start_real(history)];
        let nodes = kubernetes.each_ref().map(|cluster| {
            let site = cluster.site();
            let started = Node::start(&program(), site, &site.folder().join("node"));
            started.unwrap_or_else(|error| panic!("{error}"))
        });
        let sure =
            |door: Result<Door, cluster::Error>| door.unwrap_or_else(|error| panic!("{error}"));
        let [asked, behind] = kubernetes
            .each_ref()
            .map(|cluster| sure(Door::open(cluster.site(), None)));
        Self {
            real: Entrance::Token {
                door: asked,
                token: nodes[0].token().to_owned(),
                behind: None,
            },
            ours: Entrance::Token {
                door: sure(nodes[1].door()),
                token: nodes[1].token().to_owned(),
                behind: Some(behind),
            },
            kind: Kind::Real,
            suffix: String::new(),
            _started: Started {
                _nodes: nodes.into(),
                _kubernetes: kubernetes.into(),
                ..Started::default()
            },
        }
    }
}

fn start_real(history: Duration) -> Kubernetes {
    let setup = Setup {
        history,
        ..Setup::default()
    };
    let started = Kubernetes::start_with(setup);
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn start_ours(history: Duration) -> Holdfast {
    let history = format!("{}s", history.as_secs());
    let started = Holdfast::start(&program(), &["--history", &history]);
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn program() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_holdfast").into();
    std::env::var_os("E2E_HOLDFAST").map_or_else(built, PathBuf::from)
}
