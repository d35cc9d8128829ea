//! The files of the corpus, and playing many of them against both servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::Clock;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::compare::{self, Finding, Turn, What, Whose};
use crate::conversation::{Conversation, Size};
use crate::normal::{self, Kind, Side};
use crate::servers::{Entrance, Servers};
use crate::{node, play, report};

/// How many conversations are played at a time.
const AT_ONCE: usize = 4;

/// The result of one conversation.
pub(crate) struct Played {
    /// The findings in words.
    pub(crate) text: String,
    pub(crate) findings: Vec<Finding>,
}

/// The result of many.
#[derive(Default)]
pub(crate) struct Outcome {
    conversations: usize,
    size: Size,
    differences: usize,
}

/// Every file of the corpus, or those whose path has all of these words.
pub(crate) fn conversations(words: &str) -> Vec<Conversation> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join("tests/conversations")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the corpus") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "http") {
                found.push(path);
            }
        }
    }
    found.sort();
    let name = |path: &PathBuf| {
        let name = path.strip_prefix(root).expect("below the root");
        name.to_string_lossy().into_owned()
    };
    let wanted = |path: &PathBuf| {
        words
            .split_whitespace()
            .all(|word| name(path).contains(word))
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a file in UTF-8");
        Conversation::parse(&name(&path), &text).unwrap_or_else(|error| panic!("{error}"))
    };
    found.into_iter().filter(wanted).map(read).collect()
}

/// Plays conversations, several at a time, and prints what is found as it is found.
pub(crate) async fn play_all(servers: &Arc<Servers>, all: Vec<Conversation>) -> Outcome {
    let mut outcome = Outcome {
        conversations: all.len(),
        ..Outcome::default()
    };
    for conversation in &all {
        let size = conversation.size();
        outcome.size.requests += size.requests;
        outcome.size.streams += size.streams;
    }
    let all = all.into_iter().map(|conversation| {
        let servers = servers.clone();
        async move { play_one(&servers, &conversation).await }
    });
    some_at_a_time(all, |played| {
        outcome.differences += played.findings.len();
        eprint!("{}", played.text);
    })
    .await;
    outcome
}

/// Plays several at a time, and takes each result as it comes.
pub(crate) async fn some_at_a_time<F>(all: impl Iterator<Item = F>, mut take: impl FnMut(F::Output))
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    next_second().await;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for one in all {
        let places = places.clone();
        playing.spawn(async move {
            let _place = places.acquire_owned().await;
            one.await
        });
    }
    while let Some(played) = playing.join_next().await {
        take(played.expect("playing does not panic"));
    }
}

/// Waits for the next second of the clock. Times of objects have no parts of a second: what a
/// server made before its first conversation can then be told from what it makes in it.
async fn next_second() {
    let parts = Clock::machine().wall().subsec_nanosecond().unsigned_abs();
    let left = Duration::from_secs(1).saturating_sub(Duration::from_nanos(parts.into()));
    tokio::time::sleep(left).await;
}

/// Plays one conversation against both servers, and compares.
pub(crate) async fn play_one(servers: &Servers, conversation: &Conversation) -> Played {
    let namespace = format!("{}{}", conversation.namespace(), servers.suffix);
    let (real, ours) = tokio::join!(
        Box::pin(play::play(conversation, &servers.real, &namespace)),
        Box::pin(play::play(conversation, &servers.ours, &namespace)),
    );
    let (real, ours) = match (real, ours) {
        (Ok(real), Ok(ours)) => (real, ours),
        (real, ours) => return Played::not_begun(conversation, real.err(), ours.err()),
    };
    let told = real.told.iter();
    let lines: Vec<_> = told.map(|told| (told.step, told.request.clone())).collect();
    let side = |kind, entrance: &Entrance, played: play::Played| Side {
        kind,
        server: entrance.address().to_owned(),
        began: played.began,
        answers: played
            .told
            .into_iter()
            .map(|told| (told.at, told.answer))
            .collect(),
    };
    let real = side(Kind::Real, &servers.real, real);
    let ours = side(servers.kind, &servers.ours, ours);
    let pair = normal::normalise(real, ours, &conversation.text);
    let answers = pair.real.into_iter().zip(pair.ours);
    let turns = lines.iter().zip(answers);
    let turns: Vec<Turn<'_>> = turns
        .map(|((step, request), (real, ours))| Turn {
            step: *step,
            request,
            real,
            ours,
        })
        .collect();
    let mut text = String::new();
    if std::env::var_os("DIFFERENTIAL_SHOW").is_some() {
        text.push_str(&report::transcript(conversation, &turns));
    }
    let mut findings = compare::findings(conversation, turns);
    if servers.kind == Kind::Real {
        findings.retain(|finding| node::excuse(conversation, finding).is_none());
    }
    text.push_str(&report::findings(conversation, &findings));
    Played { text, findings }
}

impl Played {
    /// The conversation's namespace could not be had.
    fn not_begun(conversation: &Conversation, real: Option<String>, ours: Option<String>) -> Self {
        let side = |name: &str, why: Option<String>| why.map(|why| format!("{name}: {why}"));
        let why = [side("real", real), side("ours", ours)];
        let why: Vec<_> = why.into_iter().flatten().collect();
        let findings = vec![Finding {
            step: 0,
            request: "the namespace of the conversation".to_owned(),
            what: What::Failed {
                whose: Whose::One,
                why: why.join("; "),
            },
        }];
        let text = report::findings(conversation, &findings);
        Self { text, findings }
    }
}

impl Outcome {
    /// Prints the summary, and fails where there was a difference.
    pub(crate) fn expect_alike(self) {
        let Size { requests, streams } = self.size;
        let summary = format!(
            "{} conversations, {requests} requests, {streams} watch streams, {} differences",
            self.conversations, self.differences
        );
        eprintln!("{summary}");
        assert!(self.differences == 0, "{summary}");
    }
}
