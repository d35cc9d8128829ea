//! The two servers of a run: started for it, or running already.

use std::path::Path;
use std::time::Duration;

use cluster::{Holdfast, Kubernetes, Setup, Site};

/// How long both keep history at least: short, so that conversations can wait for its end.
const HISTORY: Duration = Duration::from_secs(20);

/// Both servers. Those that were started for the run end with it.
pub(crate) struct Servers {
    pub(crate) real: Site,
    pub(crate) ours: Site,
    /// Added to the names of namespaces, so that a run does not meet the rest of an earlier one.
    pub(crate) suffix: String,
    _started: (Option<Kubernetes>, Option<Holdfast>),
}

impl Servers {
    /// Takes the folders in `DIFFERENTIAL_REAL` and `DIFFERENTIAL_OURS`, and starts what is not
    /// there. The numbers of runs against the same servers are different.
    pub(crate) fn find(run: i64) -> Self {
        let running = |name: &str| {
            let folder = std::env::var_os(name)?;
            let site = Site::open(Path::new(&folder));
            Some(site.unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        let (real, kubernetes) = match running("DIFFERENTIAL_REAL") {
            Some(site) => (site, None),
            None => {
                let setup = Setup {
                    history: HISTORY,
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
                let history = format!("{}s", HISTORY.as_secs());
                let built = std::env::var_os("E2E_HOLDFAST");
                let program = built.unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into());
                let started = Holdfast::start(Path::new(&program), &["--history", &history]);
                let started = started.unwrap_or_else(|error| panic!("{error}"));
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
            _started: (kubernetes, holdfast),
        }
    }
}
