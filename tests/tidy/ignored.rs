//! Tests that a plain `cargo test` leaves out: `.ci/run` runs each of them, itself or by
//! `tests/e2e/run`.

use super::{Broken, lines, read, root, rust_files};

/// The scripts that run what was left out.
const SCRIPTS: &[&str] = &[".ci/run", "tests/e2e/run"];

/// How a test says that another one starts it, as a program of its own.
const STARTED_BY: &str = "is started by ";

#[test]
fn every_test_that_is_left_out_is_run_by_ci() {
    let scripts = SCRIPTS.iter().map(|path| read(&root().join(path)));
    let runs: Vec<Run> = scripts.flat_map(|script| runs_in(&script)).collect();
    let mut broken = Broken::default();
    let mut found = 0;
    for (path, text) in rust_files() {
        let left_out = left_out_in(&text);
        found += left_out.len();
        let is_run = |name: &str| runs.iter().any(|run| run.has(&path, name));
        for LeftOut { line, name, why } in &left_out {
            let by = why.strip_prefix(STARTED_BY).unwrap_or(name);
            if !is_run(by) || !left_out.iter().any(|test| test.name == by) {
                let scripts = SCRIPTS.join(" and ");
                broken.say(format!("{path}:{line}: {name} is run by none of {scripts}"));
            }
        }
    }
    assert!(found > 10, "the search for tests is broken: {found} found");
    broken.expect_none();
}

/// A test that a plain run leaves out.
#[derive(Debug, PartialEq, Eq)]
struct LeftOut {
    line: usize,
    name: String,
    why: String,
}

fn left_out_in(text: &str) -> Vec<LeftOut> {
    let mut why = None;
    let mut found = Vec::new();
    for (line, text) in lines(text) {
        let text = text.trim_start();
        if let Some(rest) = text.strip_prefix("#[ignore") {
            why = Some(rest.split('"').nth(1).unwrap_or_default().to_owned());
        }
        let function = text.strip_prefix("async ").unwrap_or(text);
        if let Some(rest) = function.strip_prefix("fn ")
            && let Some(why) = why.take()
        {
            let name = rest.split('(').next().unwrap_or_default().to_owned();
            found.push(LeftOut { line, name, why });
        }
    }
    found
}

/// A command that runs tests which were left out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    package: Option<String>,
    /// Nothing for those inside a library.
    target: Option<String>,
    only: Vec<String>,
    skip: Vec<String>,
}

impl Run {
    /// Whether it runs a test of a file.
    fn has(&self, path: &str, name: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let (package, target) = match parts[..] {
            ["crates", package, "src", ..] => (Some(package), None),
            ["crates" | "tests", package, "tests", target, ..] => (Some(package), Some(target)),
            ["tests", target, ..] => (None, Some(target)),
            _ => return false,
        };
        let target = target.map(|target| target.trim_end_matches(".rs"));
        self.package.as_deref() == package
            && self.target.as_deref() == target
            && (self.only.is_empty() || self.only.iter().any(|word| name.contains(word)))
            && !self.skip.iter().any(|word| name.contains(word))
    }
}

fn runs_in(script: &str) -> Vec<Run> {
    let whole = script.replace("\\\n", " ");
    let tests = whole
        .lines()
        .filter_map(|line| line.split_once("cargo test "));
    tests.filter_map(|(_, words)| run_of(words)).collect()
}

/// What comes after `cargo test`, if it asks for what is left out.
fn run_of(words: &str) -> Option<Run> {
    let mut run = Run::default();
    let mut left_out = false;
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let mut next = || words.next().map(str::to_owned);
        match word {
            "--ignored" | "--include-ignored" => left_out = true,
            "--package" | "-p" => run.package = next(),
            "--test" => run.target = next(),
            "--skip" => run.skip.extend(next()),
            // What a person may add, and it is nothing when CI runs it.
            _ if word.starts_with('-') || word.starts_with('"') => {}
            _ => run.only.push(word.to_owned()),
        }
    }
    left_out.then_some(run)
}

#[test]
fn a_run_is_read_from_a_script() {
    let script = "cargo test --workspace\n    group x cargo test --locked --package p \\\n        \
                  --test t -- --ignored --skip slow \"$@\"\n\
                  cargo test --test u -- --include-ignored a b\n";
    let runs = runs_in(script);
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[0].has("tests/p/tests/t.rs", "quick"));
    assert!(runs[0].has("crates/p/tests/t/main.rs", "quick"));
    assert!(!runs[0].has("crates/p/tests/t/main.rs", "slow_one"));
    assert!(!runs[0].has("tests/t/main.rs", "quick"));
    assert!(runs[1].has("tests/u/some.rs", "cab"));
    assert!(!runs[1].has("tests/u/some.rs", "none"));
    assert!(!runs[1].has("crates/u/src/lib.rs", "a"));
}

#[test]
fn a_test_that_is_left_out_is_found_with_its_reason() {
    let text = "#[test]\nfn a() {}\n\n    #[ignore = \"takes long\"]\n    async fn b() {}\n";
    let found = left_out_in(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.as_str(), found[0].line), ("b", 5));
    assert_eq!(found[0].why, "takes long");
}
