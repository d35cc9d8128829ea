//! Both servers, measured in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::{Controllers, Holdfast, Kubernetes, Setup};

use crate::Scale;
use crate::client::{Door, Protocol};
use crate::disk::Disk;
use crate::objects::namespace;
use crate::report::{Compared, Sample};
use crate::server::Server;

/// A real control plane and ours, both running.
pub(crate) struct Pair {
    pub(crate) real: Server,
    pub(crate) ours: Server,
    pub(crate) scale: Scale,
    /// The disk that both write to.
    pub(crate) disk: Option<Disk>,
    // They end with this.
    _kubernetes: Kubernetes,
    _holdfast: Holdfast,
}

impl Pair {
    /// Starts both, after building what is not built yet.
    pub(crate) fn start(scale: Scale) -> Result<Self, cluster::Error> {
        let kubernetes = Kubernetes::start_with(Setup {
            controllers: Controllers::None,
            ..Setup::default()
        })?;
        // Another build can be measured with the same client.
        let other = std::env::var_os("HOLDFAST_PROGRAM").map(PathBuf::from);
        let program = other.unwrap_or_else(|| Path::new(env!("CARGO_BIN_EXE_holdfast")).into());
        let holdfast = Holdfast::start(&program, &[])?;
        let [one, other] = [kubernetes.site(), holdfast.site()].map(|site| Disk::of(site.folder()));
        assert_eq!(one, other, "both write to the same disk");
        let real = Server {
            door: Door::of(kubernetes.site().folder()),
            processes: kubernetes.processes().map(|(_, id)| id).collect(),
        };
        let ours = Server {
            door: Door::of(holdfast.site().folder()),
            processes: vec![holdfast.process()],
        };
        Ok(Self {
            real,
            ours,
            scale,
            disk: one,
            _kubernetes: kubernetes,
            _holdfast: holdfast,
        })
    }

    /// Makes a namespace in both.
    pub(crate) async fn make_namespace(&self, name: &str) {
        for server in [&self.real, &self.ours] {
            let mut admin = server.door.connect(Protocol::Http1).await;
            let body = namespace(name);
            admin.call("POST", "/api/v1/namespaces", body).await;
        }
    }

    /// Lets both do what they still have to do.
    pub(crate) async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    /// Measures both in turn, as often as there are rounds.
    pub(crate) async fn compare(
        &self,
        what: &str,
        measure: impl AsyncFn(&Server, usize) -> Sample,
    ) -> Compared {
        let (mut real, mut ours) = (Vec::new(), Vec::new());
        for round in 0..self.scale.rounds {
            for (server, samples) in [(&self.real, &mut real), (&self.ours, &mut ours)] {
                samples.push(measure(server, round).await);
            }
            let [one, other] = [&real, &ours].map(|samples| samples[round].to_string());
            eprintln!("-- {what}, round {}: {one} | {other}", round + 1);
        }
        Compared {
            what: what.to_owned(),
            real: Sample::median(&real),
            ours: Sample::median(&ours),
        }
    }
}
