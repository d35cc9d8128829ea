//! One run of kubectl: its words, what it read, and what it said.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A kubectl command that has not run yet.
pub(crate) struct Kubectl {
    line: String,
    command: Command,
    input: Option<PathBuf>,
    output: PathBuf,
    complaint: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(line: &str, kubeconfig: &Path, folder: &Path) -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new(kubectl());
        command
            .args(words(line))
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", folder)
            .env("KUBECACHEDIR", folder.join("cache"))
            .current_dir(folder);
        Self {
            line: line.to_owned(),
            command,
            input: None,
            output: folder.join(format!("run-{run}.out")),
            complaint: folder.join(format!("run-{run}.err")),
        }
    }

    /// Gives it this text to read.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        let path = self.output.with_extension("in");
        fs::write(&path, text).expect("a file for its input");
        self.input = Some(path);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it; it must succeed. Gives what it printed, without the last line end.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        let line = self.line.clone();
        let said = self.run();
        assert!(
            said.code == 0,
            "kubectl {line}: exit code {}\n{}{}",
            said.code,
            said.out,
            said.err
        );
        said.out.trim_end().to_owned()
    }

    /// Runs it; it must fail. Gives what it complained, without the last line end.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        let line = self.line.clone();
        let said = self.run();
        assert!(
            said.code != 0,
            "kubectl {line} was not refused:\n{}{}",
            said.out,
            said.err
        );
        said.err.trim_end().to_owned()
    }

    /// Runs it and gives everything.
    pub(crate) fn run(self) -> Said {
        let mut running = self.spawn();
        for _ in 0..TENTHS_OF_SECONDS_MAX * 10 {
            if let Some(status) = running.child.try_wait().expect("its state") {
                return Said {
                    code: status.code().unwrap_or(-1),
                    out: running.printed(),
                    err: fs::read_to_string(&running.complaint).expect("its complaint"),
                };
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!(
            "kubectl {} has not ended:\n{}",
            running.line,
            running.printed()
        );
    }

    /// Starts it and leaves it running.
    pub(crate) fn spawn(mut self) -> Running {
        let input = match &self.input {
            Some(path) => File::open(path).expect("its input").into(),
            None => Stdio::null(),
        };
        let child = self
            .command
            .stdin(input)
            .stdout(File::create(&self.output).expect("a file"))
            .stderr(File::create(&self.complaint).expect("a file"))
            .spawn()
            .expect("kubectl starts");
        Running {
            line: self.line,
            child,
            output: self.output,
            complaint: self.complaint,
        }
    }
}

/// What a run of kubectl came to.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A kubectl that runs, such as a watch. Dropping it ends it.
pub(crate) struct Running {
    line: String,
    child: Child,
    output: PathBuf,
    complaint: PathBuf,
}

impl Running {
    /// What it has printed until now.
    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.output).expect("its output")
    }

    /// Waits until what it has printed has this in it, and gives all of it.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        for _ in 0..TENTHS_OF_SECONDS_MAX {
            let printed = self.printed();
            if printed.contains(text) {
                return printed;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let complaint = fs::read_to_string(&self.complaint).unwrap_or_default();
        panic!(
            "kubectl {} never printed {text:?}:\n{}{complaint}",
            self.line,
            self.printed()
        );
    }

    /// Waits for its end, which must be a good one, and gives what it printed.
    #[track_caller]
    pub(crate) fn finish(mut self) -> String {
        for _ in 0..TENTHS_OF_SECONDS_MAX {
            if let Some(status) = self.child.try_wait().expect("its state") {
                assert!(
                    status.success(),
                    "kubectl {}: {status}\n{}",
                    self.line,
                    self.printed()
                );
                return self.printed();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("kubectl {} has not ended:\n{}", self.line, self.printed());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The kubectl that `tests/e2e/run` built.
fn kubectl() -> PathBuf {
    match std::env::var_os("E2E_KUBECTL") {
        Some(path) => path.into(),
        None => panic!("E2E_KUBECTL names no kubectl; run tests/e2e/run, which builds one"),
    }
}

/// Splits a line at spaces; what stands in single quotes stays together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    assert!(!quoted, "a quote is left open in {line:?}");
    words.extend(word);
    words
}

/// How long a command, or an awaited line of a watch, may take on a busy machine.
const TENTHS_OF_SECONDS_MAX: u32 = 900;
