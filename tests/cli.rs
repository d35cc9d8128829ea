//! The real program, run as a person runs it: good and bad words, files and folders.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// The program, without any of our variables from the environment of the test.
fn holdfast(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HOLDFAST_") {
            command.env_remove(name);
        }
    }
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    holdfast(words).output().expect("the program starts")
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let code = output.status.code().expect("an exit code, not a signal");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Runs the program, which must refuse with exit code 2 and one message with these words in it.
fn refused(words: &[&str], expected: &str) {
    let (code, out, message) = said(&run(words));
    assert_eq!(code, 2, "{words:?}: {message}");
    assert_eq!(out, "", "{words:?}");
    assert!(message.contains(expected), "{words:?}: {message}");
    assert!(!message.contains("panicked"), "{words:?}: {message}");
}

/// The same for a configuration file: one line, with the path in it.
fn file_refused(path: &Path, expected: &str) {
    let path = path.to_str().expect("a path in UTF-8");
    for words in [["config", "check", path], ["up", "--config", path]] {
        let (code, out, message) = said(&run(&words));
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.contains(path) && message.contains(expected),
            "{message}"
        );
    }
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("holdfast.yaml");
        fs::write(&path, bytes).expect("a file");
        path
    }
}

#[test]
fn version_is_told_to_people_and_to_programs() {
    let (code, out, _) = said(&run(&["version"]));
    assert_eq!(code, 0);
    assert!(
        out.starts_with(concat!("holdfast ", env!("CARGO_PKG_VERSION"))),
        "{out}"
    );
    let (_, out, _) = said(&run(&["version", "-o", "json"]));
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["platform"].is_string());
}

#[test]
fn help_shows_examples_and_exit_codes() {
    for words in [&["--help"][..], &["up", "--help"]] {
        let (code, out, _) = said(&run(words));
        assert_eq!(code, 0);
        assert!(
            out.contains("Examples:") && out.contains("Exit codes:"),
            "{out}"
        );
        let widest = out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{out}");
    }
}

/// The words of a text that begin with two dashes.
fn flags(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter(|word| word.len() > 2 && word.starts_with("--"))
        .collect()
}

#[test]
fn every_flag_and_variable_of_what_runs_for_long_is_in_the_documentation() {
    let page = include_str!("../docs/operating/configuration.md");
    for command in ["up", "cloud", "edge"] {
        let section = page.split("\n## ").find(|section| {
            let title = section.lines().next().unwrap_or_default();
            title == format!("`holdfast {command}`")
        });
        let section = section.unwrap_or_else(|| panic!("no section for {command}"));
        let (_, help, _) = said(&run(&[command, "--help"]));
        let options = help.split("Logging:").next().unwrap_or_default();
        for flag in flags(options).into_iter().filter(|flag| *flag != "--help") {
            assert!(section.contains(&format!("`{flag}`")), "{command} {flag}");
        }
        for variable in options.split("[env: ").skip(1) {
            let variable = variable.split(']').next().unwrap_or_default();
            assert!(section.contains(variable), "{command}: {variable}");
        }
    }
}

#[test]
fn examples_have_only_flags_that_there_are() {
    for command in ["up", "cloud", "edge", "status", "token create"] {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let helped = |command: &str| {
            let words = words(&format!("{command} --help"));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            said(&run(&words)).1
        };
        let help = helped(command);
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        let lines = examples.lines().filter_map(|line| {
            let line = line.trim_start().strip_prefix("holdfast ")?;
            Some((line, line.split(" --").next()?.trim()))
        });
        for (line, called) in lines {
            let known = helped(called);
            for flag in flags(line) {
                assert!(flags(&known).contains(&flag), "{command}: {line}");
            }
        }
    }
}

#[test]
fn completions_are_made_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = said(&run(&["completions", shell]));
        assert_eq!(code, 0);
        assert!(
            out.contains("holdfast") && out.contains("log-format"),
            "{shell}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let command = format!(
        "'{}' completions bash | true",
        env!("CARGO_BIN_EXE_holdfast")
    );
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &command])
        .output();
    let (code, _, message) = said(&output.expect("a shell"));
    assert!(code == 0 && message.is_empty(), "{code}: {message}");
}

#[test]
fn wrong_words_are_refused_with_what_would_do() {
    refused(&[], "Usage:");
    refused(&["upp"], "up");
    refused(&["up", "--listne", "127.0.0.1:1"], "--listen");
    refused(&["completions", "tcsh"], "bash");
    refused(&["version", "-o", "xml"], "json");
    refused(
        &["up", "--listen", "127.0.0.1:70000"],
        "\"70000\" is not a port",
    );
    refused(&["up", "--listen", "localhost:6443"], "not an IP address");
    refused(&["up", "--shutdown-grace", "-1s"], "not a duration");
    refused(&["up", "--connections-max", "-1"], "from 1 to 1000000");
    refused(&["up", "--connections-max", "0"], "from 1 to 1000000");
    refused(&["up", "--log-level", "loud"], "trace");
    refused(&["up", "--ephemeral=perhaps"], "true, false");
    refused(&["up", "--server-name", "two words"], "DNS name");
}

#[test]
fn an_agent_that_cannot_join_as_it_is_told_ends_for_good() {
    let folder = Folder::new();
    let home = folder.path("node");
    let token = folder.file("no token at all");
    let (home, token) = (
        home.to_str().expect("UTF-8"),
        token.to_str().expect("UTF-8"),
    );
    let agent = ["edge", "--hub", "127.0.0.1:1", "--data-dir", home];
    let given = |words: &[&'static str]| [&agent[..], words].concat();
    refused(&given(&["--node", "n1"]), "give --token-file and --ca-hash");
    let with_token = [&agent[..], &["--node", "n1", "--token-file", token]].concat();
    refused(&with_token, "does not hold a token");
    let missing = ["--node", "n1", "--token-file", "missing.token"];
    refused(&given(&missing), "missing.token");
}

#[test]
fn a_wrong_variable_is_named() {
    let mut command = holdfast(&["up"]);
    command.env("HOLDFAST_LISTEN", "6443");
    let (code, _, message) = said(&command.output().expect("the program starts"));
    assert_eq!(code, 2);
    assert!(message.contains("HOLDFAST_LISTEN"), "{message}");
}

#[test]
fn a_good_file_is_told_to_be_good() {
    let folder = Folder::new();
    let text = "# comment\r\nlisten: 127.0.0.1:6443\r\nlog:\r\n  level: debug\r\n";
    let path = folder.file(text);
    let (code, out, _) = said(&run(&["config", "check", path.to_str().unwrap()]));
    assert_eq!((code, out), (0, format!("{}: ok\n", path.display())));
}

#[test]
fn files_that_are_no_files_are_refused_and_never_waited_for() {
    let folder = Folder::new();
    file_refused(&folder.path("missing.yaml"), "does not exist");
    file_refused(folder.0.path(), "not a regular file");
    let pipe = folder.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo")
            .success()
    );
    file_refused(&pipe, "not a regular file");
    file_refused(Path::new("/dev/zero"), "not a regular file");
    let (one, two) = (folder.path("one"), folder.path("two"));
    symlink(&one, &two).unwrap();
    symlink(&two, &one).unwrap();
    file_refused(&one, "cannot open");
    file_refused(&folder.file("x").join("below"), "cannot open");
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = Folder::new();
    file_refused(&folder.file(""), "is empty");
    file_refused(&folder.file("# nothing\n"), "is empty");
    file_refused(
        &folder.file("\u{feff}listen: 127.0.0.1:1\n"),
        "byte order mark",
    );
    file_refused(&folder.file(b"\x7fELF\x00\x01"), "control characters");
    file_refused(&folder.file(b"listen: \xff\n"), "not UTF-8");
    file_refused(
        &folder.file(vec![b'#'; 1024 * 1024 + 1]),
        "limit of 1048576 bytes",
    );
}

#[test]
fn wrong_settings_are_refused_with_file_line_column_and_key() {
    let folder = Folder::new();
    for (text, expected) in [
        ("listen: 127.0.0.1:70000\n", "yaml:1:9: listen: "),
        ("\nlog:\n  colour: red\n", "yaml:3:3: colour: unknown key"),
        (
            "listen: 127.0.0.1:1\nlisten: 127.0.0.1:1\n",
            "yaml:2:1: listen: this key is there twice",
        ),
        ("shutdownGrace: -1s\n", "yaml:1:16: shutdownGrace: "),
        (
            "shutdownGrace: 9999999999999h\n",
            "yaml:1:16: shutdownGrace: ",
        ),
        ("ephemeral: [true]\n", "yaml:1:12: ephemeral: "),
        ("listen: 'open\n", "yaml:"),
    ] {
        file_refused(&folder.file(text), expected);
    }
}

#[test]
fn bombs_are_refused_quickly() {
    let folder = Folder::new();
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, below) in ('b'..='k').zip('a'..='j') {
        bomb.push_str(&format!(
            "{name}: &{name} [{}]\n",
            format!("*{below},").repeat(9)
        ));
    }
    file_refused(&folder.file(&bomb), "yaml:");
    file_refused(
        &folder.file(format!("listen: {}\n", "[".repeat(400_000))),
        "yaml:",
    );
    file_refused(
        &folder.file(format!("serverNames: [{}]\n", "a,".repeat(400_000))),
        "yaml:",
    );
}

#[test]
fn up_makes_its_folder_with_private_keys_and_a_private_kubeconfig() {
    let folder = Folder::new();
    let home = folder.path("cluster");
    up_until_it_is_prepared(&home);
    for name in [
        "pki/ca.key",
        "pki/serving.key",
        "pki/admin.key",
        "pki/service-account.key",
    ] {
        assert_eq!(mode(&home.join(name)), 0o600, "{name}");
    }
    assert_eq!(
        (mode(&home), mode(&home.join("kubeconfig"))),
        (0o700, 0o600)
    );
    let authority = fs::read(home.join("pki/ca.crt")).unwrap();
    up_until_it_is_prepared(&home);
    assert_eq!(
        fs::read(home.join("pki/ca.crt")).unwrap(),
        authority,
        "found again"
    );
}

#[test]
fn up_refuses_a_key_that_others_may_read() {
    let folder = Folder::new();
    let home = folder.path("cluster");
    up_until_it_is_prepared(&home);
    let key = home.join("pki/ca.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let words = [
        "up",
        "--data-dir",
        home.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ];
    let (code, _, message) = said(&run(&words));
    assert_eq!(code, 1);
    assert!(message.contains("chmod 600"), "{message}");
}

#[test]
fn up_says_so_when_its_folder_or_its_port_is_taken() {
    let folder = Folder::new();
    let file = folder.file("x");
    let (code, _, message) = said(&run(&["up", "--data-dir", file.to_str().unwrap()]));
    assert!(
        code == 1 && message.contains("not a directory"),
        "{code}: {message}"
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = folder.path("cluster");
    let words = [
        "up",
        "--data-dir",
        home.to_str().unwrap(),
        "--listen",
        &address,
    ];
    let (code, _, message) = said(&run(&words));
    assert!(
        code == 1 && message.contains("in use by another program"),
        "{code}: {message}"
    );
    // The hub's port as well, and before a hub is started in vain.
    let listen = ["--listen", "127.0.0.1:0", "--hub-listen", &address];
    let words = [&words[..3], &listen].concat();
    let (code, _, message) = said(&run(&words));
    assert!(
        code == 1 && message.contains("--hub-listen") && message.contains("in use"),
        "{code}: {message}"
    );
}

#[test]
fn a_json_log_is_json_on_every_line_but_the_last_word() {
    let folder = Folder::new();
    let home = folder.path("cluster");
    let words = [
        "up",
        "--log-format",
        "json",
        "--data-dir",
        home.to_str().unwrap(),
    ];
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = words
        .iter()
        .copied()
        .chain(["--listen", &address])
        .collect::<Vec<_>>();
    let (_, _, log) = said(&run(&words));
    let lines: Vec<&str> = log.lines().collect();
    let (last, lines) = lines.split_last().expect("some lines");
    assert!(last.starts_with("holdfast: ") && !lines.is_empty(), "{log}");
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(
            event["level"].is_string() && event["message"].is_string(),
            "{line}"
        );
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

/// Runs `holdfast up` on this folder until its kubeconfig is there, and stops it.
fn up_until_it_is_prepared(home: &Path) {
    let kubeconfig = home.join("kubeconfig");
    drop(fs::remove_file(&kubeconfig));
    let words = [
        "up",
        "--data-dir",
        home.to_str().expect("a path in UTF-8"),
        "--listen",
        "127.0.0.1:0",
    ];
    let mut child = holdfast(&words)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    for _ in 0..2000 {
        if kubeconfig.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(kubeconfig.exists(), "no kubeconfig within twenty seconds");
    let pid = child.id().to_string();
    // It may have ended by itself already, in which case there is nobody to stop.
    drop(
        Command::new("kill")
            .args(["-TERM", &pid])
            .stderr(Stdio::null())
            .status(),
    );
    child.wait().expect("its end");
}
