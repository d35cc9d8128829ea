//! The two servers of a run: started for it, or running already.

use std::path::Path;
use std::time::Duration;

use cluster::{Holdfast, Kubernetes, Setup, Site};

/// Both servers. Those that were started for the run end with it.
pub(crate) struct Servers {
    pub(crate) real: Site,
    pub(crate) ours: Site,
    /// Added to the names of namespaces, so that a run does not meet the rest of an earlier one.
    pub(crate) suffix: String,
    _started: (Option<Kubernetes>, Vec<Holdfast>),
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
        let (real, kubernetes) = match running("DIFFERENTIAL_REAL") {
            Some(site) => (site, None),
            None => {
                let setup = Setup {
                    history,
                    ..Setup::default()
                };
                let started = Kubernetes::start_with(setup);
                let started = started.unwrap_or_else(|error| panic!("{error}"));
                (started.site().clone(), Some(started))
            }
        };
        let (ours, holdfast) = match running("DIFFERENTIAL_OURS") {
            Some(site) => (site, None),
            None => {
                let started = start_ours(history);
                (started.site().clone(), Some(started))
            }
        };
        let suffix = match (&kubernetes, &holdfast) {
            (Some(_), Some(_)) => String::new(),
            _ => format!("-{:06x}", run & 0xff_ffff),
        };
        Self {
            real,
            ours,
            suffix,
            _started: (kubernetes, holdfast.into_iter().collect()),
        }
    }

    /// Our own program twice: what differs then is by chance.
    pub(crate) fn ours_twice(history: Duration) -> Self {
        let started = vec![start_ours(history), start_ours(history)];
        Self {
            real: started[0].site().clone(),
            ours: started[1].site().clone(),
            suffix: String::new(),
            _started: (None, started),
        }
    }
}

fn start_ours(history: Duration) -> Holdfast {
    let history = format!("{}s", history.as_secs());
    let built = std::env::var_os("E2E_HOLDFAST");
    let program = built.unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into());
    let started = Holdfast::start(Path::new(&program), &["--history", &history]);
    started.unwrap_or_else(|error| panic!("{error}"))
}
