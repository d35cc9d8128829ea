//! The real kube-apiserver and ours are asked the same questions, and must answer alike.
//!
//! Conversations are files in `tests/conversations`, whose README.md says how they are written. The
//! tests of the engine itself run in a plain `cargo test`; those that need the real server run with
//! `tests/e2e/run differential`.

mod conversation; // text            -> steps
mod values; //       {{…}}
mod play; //         steps, a server -> answers
mod normal; //       answers         -> answers without what must differ
mod compare; //      two of them     -> differences
mod report; //       differences     -> words
mod servers; //      the two servers
mod node; //         what differs between a cluster and a node of it
mod corpus; //       the files
mod random; //       a seed          -> conversations

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use host::Clock;
use servers::Servers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Go toolchain: tests/e2e/run differential"]
async fn the_corpus_is_answered_alike() {
    let words = std::env::var("DIFFERENTIAL").unwrap_or_default();
    let conversations = corpus::conversations(&words);
    assert!(!conversations.is_empty(), "no file's path has {words:?}");
    let run = Clock::machine().wall().as_second();
    let servers = Arc::new(tokio::task::block_in_place(|| Servers::find(run, SHORT)));
    corpus::play_all(&servers, conversations)
        .await
        .expect_alike();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Go toolchain: tests/e2e/run node"]
async fn the_corpus_is_answered_alike_by_a_cluster_and_by_a_node_of_it() {
    let words = std::env::var("DIFFERENTIAL").unwrap_or_default();
    let mut conversations = corpus::conversations(&words);
    assert!(!conversations.is_empty(), "no file's path has {words:?}");
    // What differs between a real server and ours does not between two real ones.
    for step in conversations.iter_mut().flat_map(|all| &mut all.steps) {
        step.differs.clear();
        step.subsets.clear();
    }
    let servers = tokio::task::block_in_place(|| Servers::direct_and_through_a_node(SHORT));
    corpus::play_all(&Arc::new(servers), conversations)
        .await
        .expect_alike();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Go toolchain: tests/e2e/run differential"]
async fn random_conversations_are_answered_alike() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        let number = text.parse::<u64>();
        Some(number.unwrap_or_else(|_| panic!("{name}={text}: not a number")))
    };
    let seeds = number("DIFFERENTIAL_SEED").map_or(SEEDS.to_vec(), |seed| vec![seed]);
    let steps = number("DIFFERENTIAL_STEPS").unwrap_or(RANDOM_STEPS);
    let steps = usize::try_from(steps).expect("a number of steps");
    let run = Clock::machine().wall().as_second();
    let servers = Arc::new(tokio::task::block_in_place(|| Servers::find(run, LONG)));
    eprintln!("random conversations of the seeds {seeds:?}");
    random::run(&servers, seeds, steps).await.expect_alike();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_server_is_answered_alike_by_another_of_its_kind() {
    let servers = Arc::new(tokio::task::block_in_place(|| Servers::ours_twice(LONG)));
    // Without marks: what differs from a real server does not from another of ours.
    let conversations = ["life/configmap", "watch/label", "access/tokens"];
    let conversations = conversations
        .iter()
        .flat_map(|words| corpus::conversations(words));
    let outcome = corpus::play_all(&servers, conversations.collect()).await;
    outcome.expect_alike();
    random::run(&servers, vec![1], 160).await.expect_alike();
}

#[test]
fn every_file_of_the_corpus_can_be_read_and_there_are_enough() {
    let mut size = conversation::Size::default();
    let mut namespaces = BTreeSet::new();
    for conversation in corpus::conversations("") {
        let own = conversation.size();
        size.requests += own.requests;
        size.streams += own.streams;
        let namespace = conversation.namespace();
        assert!(
            namespaces.insert(namespace.clone()),
            "{}: the namespace {namespace} is another file's too: name it otherwise",
            conversation.path
        );
    }
    assert!(
        size.requests >= REQUESTS_MIN,
        "only {} requests",
        size.requests
    );
    assert!(size.streams >= STREAMS_MIN, "only {} streams", size.streams);
}

#[test]
fn every_listed_difference_is_explained_and_every_explanation_is_used() {
    let text = std::fs::read_to_string(root().join("docs/conformance.md")).expect("the document");
    let entries = entries(&text);
    let mut used = BTreeSet::new();
    for conversation in corpus::conversations("") {
        for step in &conversation.steps {
            let differs = step.differs.iter().map(|differs| differs.entry);
            let subsets = step.subsets.iter().map(|subset| subset.entry);
            for entry in differs.chain(subsets) {
                assert!(
                    entries.contains_key(&entry),
                    "{}:{}: docs/conformance.md has no difference {entry}",
                    conversation.path,
                    step.line
                );
                used.insert(entry);
            }
        }
    }
    for (entry, text) in entries {
        match tested(&text) {
            None => assert!(used.contains(&entry), "no step differs as {entry}. {text}"),
            Some(test) => assert!(is_there(test), "{entry}.: there is no test {test}"),
        }
    }
}

#[test]
fn entries_are_the_numbers_under_the_heading_of_differences() {
    let text = "## Cases\n1. no\n## Differences, on purpose\n\n\
                7. **yes** (not in\n   the corpus: `a::b`)\n   8. no\n12. yes\n## X\n9. no";
    let entries = entries(text);
    assert_eq!(entries.keys().collect::<Vec<_>>(), [&7, &12]);
    assert_eq!(tested(&entries[&7]), Some("a::b"));
    assert_eq!(tested(&entries[&12]), None);
}

/// The listed differences, by their numbers.
fn entries(text: &str) -> BTreeMap<u32, String> {
    let after = text
        .lines()
        .skip_while(|line| !line.starts_with("## Differences"));
    let section = after.skip(1).take_while(|line| !line.starts_with("## "));
    let mut entries: BTreeMap<u32, String> = BTreeMap::new();
    for line in section {
        let number = line.split_once(". ");
        if let Some(number) = number.and_then(|(number, _)| number.parse().ok()) {
            entries.insert(number, line.to_owned());
        } else if let Some(mut last) = entries.last_entry() {
            last.get_mut().push(' ');
            last.get_mut().push_str(line.trim());
        }
    }
    entries
}

/// The test that an entry names because no conversation can show the difference.
fn tested(entry: &str) -> Option<&str> {
    let (_, after) = entry.split_once("(not in the corpus: `")?;
    after.split('`').next()
}

/// Whether there is a test `module::name` of our server.
fn is_there(test: &str) -> bool {
    let (modules, name) = test.rsplit_once("::").unwrap_or(("", test));
    let folder = root().join("crates/kubeapi/tests");
    let file = folder.join(modules.replace("::", "/"));
    let files = [file.with_extension("rs"), file.join("mod.rs")];
    let text = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    text.is_some_and(|text| text.contains(&format!("fn {name}()")))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How much history both servers keep at least. Short, so that conversations can wait for its end;
/// long, so that random ones never meet it.
const SHORT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(600);

/// The seeds of a run without others, so that one can be repeated.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// How many random steps a run has.
const RANDOM_STEPS: u64 = 2_000;

/// What the corpus must have at least, so that it does not shrink unseen.
const REQUESTS_MIN: usize = 1_500;
const STREAMS_MIN: usize = 150;
