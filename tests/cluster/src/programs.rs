//! Programs of a control plane, built once per machine from the Go modules beside this crate.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use host::Clock;

/// A program that tests may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Program {
    /// The database of the control plane.
    Etcd,
    /// The API.
    KubeApiserver,
    /// What fills namespaces, empties them, and collects garbage.
    KubeControllerManager,
    /// What gives pods their nodes.
    KubeScheduler,
    /// Services on a node.
    KubeProxy,
    /// What runs pods on a node.
    Kubelet,
    /// What people use.
    Kubectl,
    /// Names of services on a node.
    Coredns,
}

/// Why a program could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no Go toolchain.
    #[error(
        "{0} is built from its Go modules, and there is no `go` on the PATH: \
         install Go 1.26 or later (https://go.dev/dl)"
    )]
    NoGo(&'static str),
    /// The toolchain failed; what it said was shown as it came.
    #[error("go build of {0} failed, see above")]
    Failed(&'static str),
    /// The cache or the toolchain could not be used.
    #[error("{path}: {error}")]
    Io {
        /// What was to be used.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The module of CoreDNS, and its program.
const COREDNS: &str = "github.com/coredns/coredns";

impl Program {
    /// The name of the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::KubeProxy => "kube-proxy",
            Self::Kubelet => "kubelet",
            Self::Kubectl => "kubectl",
            Self::Coredns => "coredns",
        }
    }

    /// The folder of the Go module, beside this crate, and the module that gives the version.
    fn module(self) -> (&'static str, &'static str) {
        match self {
            Self::Etcd => ("etcd", "go.etcd.io/etcd/server/v3"),
            Self::Coredns => ("coredns", COREDNS),
            _ => ("kubernetes", "k8s.io/kubernetes"),
        }
    }

    fn package(self) -> String {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
            Self::Coredns => COREDNS.to_owned(),
            _ => format!("k8s.io/kubernetes/cmd/{}", self.name()),
        }
    }

    /// The program's path, after building it if this machine has not built it yet.
    pub fn built(self) -> Result<PathBuf, Error> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.module().0);
        let recipe = Recipe::read(self, &source)?;
        let folder = cache_folder().join(&recipe.folder);
        let path = folder.join(self.name());
        if path.is_file() {
            return Ok(path);
        }
        fs::create_dir_all(&folder).map_err(io_error(&folder))?;
        // Two tests may want the same program at once; the second finds it made.
        let lock = folder.join("lock");
        let lock_file = File::create(&lock).map_err(io_error(&lock))?;
        lock_file.lock().map_err(io_error(&lock))?;
        if !path.is_file() {
            recipe.build(&source, &path)?;
        }
        Ok(path)
    }
}

/// What to build and how; two equal recipes make the same program.
struct Recipe {
    program: Program,
    folder: String,
    version: String,
    link: String,
}

impl Recipe {
    fn read(program: Program, source: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = source.join(name);
            fs::read_to_string(&path).map_err(io_error(&path))
        };
        let (wanted, pinned) = (read("go.mod")?, read("go.sum")?);
        let version = required_version(&wanted, program.module().1)
            .unwrap_or("unknown")
            .to_owned();
        let link = link_flags(program, &version);
        let key = crc32fast::hash(
            [&wanted, &pinned, &link]
                .map(String::as_str)
                .concat()
                .as_bytes(),
        );
        let folder = format!("{}-{version}-{key:08x}", program.name());
        Ok(Self {
            program,
            folder,
            version,
            link,
        })
    }

    fn build(&self, source: &Path, path: &Path) -> Result<(), Error> {
        let name = self.program.name();
        let made = path.with_extension("new");
        let mut go = Command::new("go");
        go.current_dir(source)
            .env("GOWORK", "off")
            .env("GOFLAGS", "")
            .args([
                "build",
                "-v",
                "-trimpath",
                "-mod=readonly",
                "-ldflags",
                &self.link,
                "-o",
            ])
            .arg(&made)
            .arg(self.program.package())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut go = match go.spawn() {
            Ok(go) => go,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoGo(name)),
            Err(error) => return Err(io_error(Path::new("go"))(error)),
        };
        let said = go.stderr.take().expect("it was asked for");
        let mut progress = Progress::begin(format!("{name} {}", self.version));
        let complaints = progress.follow(BufReader::new(said));
        let status = go.wait().map_err(io_error(Path::new("go")))?;
        progress.end();
        if !status.success() {
            show(&complaints);
            return Err(Error::Failed(name));
        }
        fs::rename(&made, path).map_err(io_error(path))
    }
}

/// Shows a person that a long build goes on: one line that changes on a terminal, a line now and
/// then in a log.
struct Progress {
    what: String,
    clock: Clock,
    began: std::time::Instant,
    shown: Duration,
    packages: u32,
    terminal: bool,
}

impl Progress {
    fn begin(what: String) -> Self {
        let clock = Clock::machine();
        let began = clock.now();
        let terminal = io::stderr().is_terminal();
        show(&format!(
            "-- {what}: building from its Go modules, once (minutes on a small machine)\n"
        ));
        Self {
            what,
            clock,
            began,
            shown: Duration::ZERO,
            packages: 0,
            terminal,
        }
    }

    /// Counts the packages that `go build -v` names, and gives whatever else it says.
    fn follow(&mut self, said: impl BufRead) -> String {
        let mut complaints = String::new();
        for line in said.lines().map_while(Result::ok) {
            if line.starts_with("go: downloading ") {
                self.tell("downloading modules");
            } else if is_package(&line) {
                self.packages += 1;
                self.tell(&format!("{} packages compiled", self.packages));
            } else if complaints.len() < COMPLAINTS_BYTES_MAX {
                complaints += &line;
                complaints.push('\n');
            }
        }
        complaints
    }

    fn tell(&mut self, state: &str) {
        let passed = self.clock.now() - self.began;
        let pause = if self.terminal {
            TERMINAL_PAUSE
        } else {
            LOG_PAUSE
        };
        if passed < self.shown + pause {
            return;
        }
        self.shown = passed;
        let line = format!("-- {}: {state}, {} s", self.what, passed.as_secs());
        match self.terminal {
            true => show(&format!("\r\x1b[K{line}")),
            false => show(&format!("{line}\n")),
        }
    }

    fn end(self) {
        let passed = (self.clock.now() - self.began).as_secs();
        let back = if self.terminal { "\r\x1b[K" } else { "" };
        show(&format!("{back}-- {}: done in {passed} s\n", self.what));
    }
}

/// Written past the capturing of test output: a person waits for minutes here.
fn show(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

/// `go build -v` names each package that it compiles on a line of its own.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(['#', ' ', '\t']) && !line.contains([' ', ':'])
}

/// The version that a go.mod requires of a module.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line
            .trim()
            .trim_start_matches("require ")
            .split_whitespace();
        (words.next() == Some(module)).then(|| words.next())?
    })
}

/// Kubernetes' programs learn their version when they are linked, and are of no use without it.
fn link_flags(program: Program, version: &str) -> String {
    let mut flags = "-s -w".to_owned();
    if matches!(program, Program::Etcd | Program::Coredns) {
        return flags;
    }
    let minor = version.split('.').nth(1).unwrap_or_default();
    for (name, value) in [
        ("gitVersion", version),
        ("gitMajor", "1"),
        ("gitMinor", minor),
        ("gitTreeState", "clean"),
    ] {
        flags += &format!(" -X k8s.io/component-base/version.{name}={value}");
    }
    flags
}

/// Where programs are kept, outside of any checkout.
fn cache_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(folder) = set("HOLDFAST_CACHE") {
        return folder.into();
    }
    let home = || PathBuf::from(set("HOME").unwrap_or_else(|| "/".into())).join(".cache");
    set("XDG_CACHE_HOME")
        .map_or_else(home, PathBuf::from)
        .join("holdfast")
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Io { path, error }
}

/// How much of what a failing compiler says is shown.
const COMPLAINTS_BYTES_MAX: usize = 64 * 1024;
const TERMINAL_PAUSE: Duration = Duration::from_millis(200);
const LOG_PAUSE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_go_mod_requires() {
        let text = "module x\nrequire (\n\ta/b v1.0.0\n\ta/b/c v2.0.0 // indirect\n)\n";
        assert_eq!(required_version(text, "a/b"), Some("v1.0.0"));
        assert_eq!(required_version(text, "a/b/c"), Some("v2.0.0"));
        assert_eq!(required_version("require a v3", "a"), Some("v3"));
        assert_eq!(required_version(text, "a"), None);
    }

    #[test]
    fn lines_of_the_compiler_are_told_from_names_of_packages() {
        assert!(is_package("k8s.io/api/core/v1"));
        assert!(!is_package("# k8s.io/api/core/v1"));
        assert!(!is_package("main.go:3:1: undefined: x"));
        assert!(!is_package("go: downloading a v1"));
    }

    #[test]
    fn every_program_is_in_the_module_that_it_is_built_from() {
        for program in <Program as clap::ValueEnum>::value_variants() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(program.module().0);
            let go_mod = fs::read_to_string(folder.join("go.mod")).expect("a go.mod");
            assert!(go_mod.contains(&program.package()), "{program:?}");
            assert!(
                required_version(&go_mod, program.module().1).is_some(),
                "{program:?}"
            );
        }
    }
}
