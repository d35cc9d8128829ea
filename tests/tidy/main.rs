//! The rules of the house, as tests: each names the files that break it.

mod ignored; // what a plain run leaves out is run by CI

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each may use. A crate that is not here may not exist. Later crates are
/// listed before they are built, so that the direction is decided before the code is.
const MAY_USE: &[(&str, &[&str])] = &[
    ("object", &[]),
    ("host", &[]),
    ("wire", &["object"]),
    ("tunnel", &["object", "wire"]),
    ("store", &["object", "host"]),
    ("kubeapi", &["object", "host", "store"]),
    (
        "cloud",
        &["object", "host", "wire", "tunnel", "store", "kubeapi"],
    ),
    (
        "edge",
        &["object", "host", "wire", "tunnel", "store", "kubeapi"],
    ),
    ("router", &["object", "host", "wire"]),
    ("mesh", &["object", "host", "store"]),
    (
        "sim",
        &[
            "object", "host", "wire", "tunnel", "store", "kubeapi", "cloud", "edge", "router",
            "mesh",
        ],
    ),
];

/// Crates without I/O, and what would bring it in.
const PURE: &[&str] = &["object", "wire"];
const IMPURE: &[&str] = &[
    "tokio",
    "rustix",
    "hyper",
    "rustls",
    "parking_lot",
    "tracing",
];

/// Files of more than 500 lines, each with the reason why it is not two. At most 800.
const LONG_FILES: &[(&str, &str)] = &[];

/// Names of drawers: what is in them could be anything.
const DRAWERS: &[&str] = &[
    "util",
    "utils",
    "common",
    "helper",
    "helpers",
    "misc",
    "manager",
    "handler",
    "handlers",
    "base",
    "types",
    "constants",
    "info",
    "data",
    "process",
    "shared",
    "core",
];

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;
const LONG_FILE_LINES_MAX: usize = 800;

#[test]
fn crates_depend_in_one_direction_only() {
    let names: BTreeSet<String> = crates();
    let mut broken = Broken::default();
    for name in &names {
        let Some((_, allowed)) = MAY_USE.iter().find(|(listed, _)| listed == name) else {
            broken.say(format!(
                "crates/{name} is not in the table of directions in this test"
            ));
            continue;
        };
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        for used in dependencies(&manifest) {
            let ours = names.contains(&used) && !allowed.contains(&used.as_str());
            let impure = PURE.contains(&name.as_str()) && IMPURE.contains(&used.as_str());
            if ours || impure {
                broken.say(format!("crates/{name} must not depend on {used}"));
            }
        }
    }
    broken.expect_none();
}

#[test]
fn every_module_opens_with_a_sentence_on_what_it_is() {
    let mut broken = Broken::default();
    for (path, text) in rust_files() {
        let first = text.lines().next().unwrap_or_default();
        let words = first
            .strip_prefix("//! ")
            .map_or(0, |said| said.split(' ').count());
        if words < 3 {
            broken.say(format!("{path}: opens with {first:?}"));
        }
    }
    broken.expect_none();
}

#[test]
fn the_architecture_names_every_crate_and_only_paths_that_exist() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let mut broken = Broken::default();
    for path in paths_named_in(&text) {
        if !root().join(&path).exists() {
            broken.say(format!(
                "ARCHITECTURE.md names {path}, which does not exist"
            ));
        }
    }
    for name in crates() {
        if !text.contains(&format!("crates/{name}")) {
            broken.say(format!("ARCHITECTURE.md does not name crates/{name}"));
        }
    }
    broken.expect_none();
}

#[test]
fn no_file_or_folder_is_a_drawer() {
    let mut broken = Broken::default();
    for (path, _) in rust_files() {
        let parts = Path::new(&path).with_extension("");
        let mut parts = parts.iter().map(|part| part.to_string_lossy());
        if let Some(drawer) = parts.find(|part| DRAWERS.contains(&part.as_ref())) {
            broken.say(format!(
                "{path}: {drawer} says nothing; name what is inside"
            ));
        }
    }
    broken.expect_none();
}

#[test]
fn nothing_is_left_to_do_without_an_issue_or_a_decision() {
    let mut broken = Broken::default();
    for (path, text) in source_files() {
        for (number, line) in lines(&text) {
            if is_forgotten(line) {
                broken.say(format!(
                    "{path}:{number}: name an issue (#12) or docs/decisions/NNNN"
                ));
            }
        }
    }
    broken.expect_none();
}

#[test]
fn lines_functions_and_files_fit_on_a_screen() {
    let mut broken = Broken::default();
    for (path, text) in rust_files() {
        for (number, line) in lines(&text) {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                broken.say(format!("{path}:{number}: {columns} columns"));
            }
        }
        for (number, count) in function_lengths(&text) {
            if count > FUNCTION_LINES_MAX {
                broken.say(format!("{path}:{number}: a function of {count} lines"));
            }
        }
        let excused = LONG_FILES.iter().any(|(listed, _)| *listed == path);
        let most = if excused {
            LONG_FILE_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        let count = text.lines().count();
        if count > most {
            broken.say(format!("{path}: {count} lines, at most {most}"));
        }
    }
    for (listed, _) in LONG_FILES {
        let count = read(&root().join(listed)).lines().count();
        if count <= FILE_LINES_MAX {
            broken.say(format!(
                "{listed} has {count} lines and needs no exception any more"
            ));
        }
    }
    broken.expect_none();
}

#[test]
fn no_unwrap_outside_tests() {
    let mut broken = Broken::default();
    for (path, text) in rust_files() {
        if is_test(&path) {
            continue;
        }
        for (number, line) in lines(without_tests(&text)) {
            if has_unwrap(line) {
                broken.say(format!(
                    "{path}:{number}: return an error, or expect with the reason"
                ));
            }
        }
    }
    broken.expect_none();
}

#[test]
fn nothing_speaks_of_one_machine_or_of_a_registry() {
    let words = [
        "/root/",
        "/work/",
        "docker.io",
        "ghcr.io",
        "quay.io",
        "gcr.io",
        "registry.k8s.io",
    ];
    let mut broken = Broken::default();
    for (path, text) in source_files() {
        if path == "tests/tidy/main.rs" {
            continue; // the words above
        }
        for (number, line) in lines(&text) {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                broken.say(format!("{path}:{number}: {word}"));
            }
        }
    }
    for (number, line) in lines(&read(&root().join("Cargo.lock"))) {
        let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
        if line.starts_with("source") && line != public {
            broken.say(format!("Cargo.lock:{number}: {line}"));
        }
    }
    broken.expect_none();
}

#[test]
fn the_rules_above_see_what_they_should() {
    let manifest = "[dependencies]\nhost.workspace = true\nstore = \"1\"\n\
                    [dependencies.wire]\npath = \"x\"\n[features]\nedge = []\n";
    assert_eq!(dependencies(manifest), ["host", "store", "wire"]);
    for path in [
        "a/b.go",
        "go.mod",
        "a.http",
        "tests/e2e/run",
        ".ci/run",
        "justfile",
    ] {
        assert!(is_written_by_people(Path::new(path)), "{path}");
    }
    assert!(!is_written_by_people(Path::new("go.sum")));
    let text = "see `crates/x/src`, `GET /api`, `src/main.rs`, `docs/a b` and `crates/<name>`";
    assert_eq!(paths_named_in(text), ["crates/x/src", "src/main.rs"]);
    let function = "impl X {\n    fn a(&self) {\n        b();\n    }\n    fn c();\n}\n";
    assert_eq!(function_lengths(function), [(2, 3)]);
    assert!(has_unwrap("    let x = y.unwrap();") && !has_unwrap("    // never y.unwrap() here"));
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\nb"), "a\n");
    let (todo, fixme) = (["TO", "DO"].concat(), ["FIX", "ME"].concat());
    assert!(is_forgotten(&format!("// {todo}: later")) && is_forgotten(&format!("// {fixme}")));
    assert!(!is_forgotten(&format!("// {todo}(#12): then")));
    assert!(!is_forgotten(&format!(
        "// {todo}: see docs/decisions/0004-x.md"
    )));
}

/// What breaks a rule, told all at once.
#[derive(Default)]
struct Broken(String, usize);

impl Broken {
    fn say(&mut self, what: String) {
        writeln!(self.0, "  {what}").expect("writing to a string");
        self.1 += 1;
    }

    fn expect_none(self) {
        assert!(self.1 == 0, "{} broken rules:\n{}", self.1, self.0);
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

fn crates() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder of our crates");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    names.collect::<Result<_, _>>().expect("names in UTF-8")
}

/// Every Rust file of ours with its path from the root.
fn rust_files() -> Vec<(String, String)> {
    let files = source_files()
        .into_iter()
        .filter(|(path, _)| path.ends_with(".rs"));
    let files: Vec<_> = files.collect();
    assert!(
        files.len() > 10,
        "the search for files is broken: {} found",
        files.len()
    );
    files
}

/// Every file of ours that people write, with its path from the root.
fn source_files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of ours") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let hidden = name.starts_with('.') && name != ".ci";
            if path.is_dir() {
                let made = ["target", "corpus", "artifacts"].contains(&name.as_str());
                if !hidden && !made {
                    folders.push(path);
                }
            } else if is_written_by_people(&path) {
                let relative = path.strip_prefix(root()).expect("below the root");
                found.push((relative.to_string_lossy().into_owned(), read(&path)));
            }
        }
    }
    found.sort();
    found
}

fn is_written_by_people(path: &Path) -> bool {
    let endings = [
        "rs", "md", "toml", "yaml", "yml", "sh", "py", "go", "mod", "http",
    ];
    let ending = path.extension().and_then(|ending| ending.to_str());
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    name(path).is_some_and(|name| ["justfile", "run"].contains(&name.as_str()))
        || path.parent().and_then(name).as_deref() == Some(".ci")
        || ending.is_some_and(|ending| endings.contains(&ending))
}

fn is_test(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    path.ends_with("tests.rs")
        || ["tests", "benches", "fuzz"]
            .iter()
            .any(|at| parts.contains(at))
}

/// The part of a file before its unit tests, which stand at the end.
fn without_tests(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    &text[..end]
}

fn has_unwrap(line: &str) -> bool {
    line.contains(".unwrap()") && !line.trim_start().starts_with("//")
}

fn is_forgotten(line: &str) -> bool {
    let (todo, fixme) = (["TO", "DO"].concat(), ["FIX", "ME"].concat());
    match line.split_once(&todo) {
        None => line.contains(&fixme),
        Some((_, rest)) => !rest.contains("(#") && !rest.contains("docs/decisions/"),
    }
}

/// The crates that a manifest depends on, in any of the ways of writing it that we use.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            inside = header.ends_with("dependencies");
            if let Some((_, name)) = header.split_once("dependencies.") {
                found.push(name.to_owned());
            }
        } else if inside {
            let name: String = line.chars().take_while(|c| !" .=#".contains(*c)).collect();
            found.extend((!name.is_empty()).then_some(name));
        }
    }
    found
}

/// Words in backticks that name something in this repository.
fn paths_named_in(text: &str) -> Vec<String> {
    let tops = [
        "crates/", "src/", "tests/", "benches/", "fuzz/", "docs/", "deploy/", ".ci/",
    ];
    let quoted = text.split('`').skip(1).step_by(2);
    let plain = |word: &&str| !word.contains([' ', '<', '*', '\n']);
    let paths = quoted
        .filter(plain)
        .filter(|word| tops.iter().any(|top| word.starts_with(top)));
    paths.map(str::to_owned).collect()
}

/// The line on which each function begins and how many lines it has. Our code is formatted, so a
/// function ends with a brace in the column where it began.
fn function_lengths(text: &str) -> Vec<(usize, usize)> {
    let all: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in all.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let words = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "async fn ",
        ];
        let more = [
            "pub async fn ",
            "pub(crate) async fn ",
            "pub(super) async fn ",
            "const fn ",
        ];
        let begins = words.iter().chain(&more).any(|word| code.starts_with(word));
        if !begins || code.ends_with(['}', ';']) {
            continue;
        }
        let (end, declared) = (format!("{indent}}}"), format!("{indent})"));
        let closing = all[start + 1..]
            .iter()
            .position(|line| *line == end || (line.starts_with(&declared) && line.ends_with(';')));
        if let Some(offset) = closing.filter(|offset| all[start + 1 + offset] == end) {
            found.push((start + 1, offset + 2));
        }
    }
    found
}
