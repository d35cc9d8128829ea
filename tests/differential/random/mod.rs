//! Random conversations: from a seed, always the same. Pure, but for the playing of them.
//!
//! A conversation is made as text in the form of the corpus, so that whatever is found can be added
//! to it. What is asked should mostly succeed, so the maker keeps a rough idea of what is there;
//! where it is wrong, both servers fail alike and nothing is lost but a step.
//!
//! Left out is what a real server does in its own time or by chance: reads of the past without a
//! current list before them, deletions that a garbage collector completes, generated names in
//! lists.

mod kinds; // what the conversations are about
mod lot; // chance that can be repeated
mod maker; // the text so far, and what is believed to be there
mod patching; // patches
mod reading; // gets, lists and watches
mod shrink; // the shortest conversation that still differs
mod writing; // creates, updates and deletions
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::compare::{Finding, What, Whose};
use crate::conversation::Conversation;
use crate::corpus;
use crate::servers::Servers;
use maker::Maker;

/// The steps of one conversation, about.
const STEPS: usize = 80;
/// How many are played at a time.
const AT_ONCE: usize = 4;

/// What a run found.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) steps: usize,
    /// Steps that neither server could be asked.
    pub(crate) failed: usize,
    /// What is different, in words.
    pub(crate) differences: Vec<String>,
}

/// The text of a random conversation.
fn text(seed: u64, steps: usize) -> String {
    let mut maker = Maker::new(seed);
    while maker.steps() < steps {
        match maker.lot.percent(55) {
            true => writing::step(&mut maker),
            false => reading::step(&mut maker),
        }
    }
    maker.finish()
}

/// Plays conversations of these seeds until there were enough steps.
pub(crate) async fn run(servers: &Arc<Servers>, seeds: Vec<u64>, steps: usize) -> Outcome {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    let each = steps / seeds.len().max(1) + 1;
    for seed in seeds {
        let (servers, places) = (servers.clone(), places.clone());
        for part in 0..each.div_ceil(STEPS) {
            let (servers, places) = (servers.clone(), places.clone());
            playing.spawn(async move {
                let _place = places.acquire_owned().await;
                one(&servers, seed, part).await
            });
        }
    }
    let mut outcome = Outcome::default();
    while let Some(one) = playing.join_next().await {
        let one = one.expect("playing does not panic");
        outcome.steps += one.steps;
        outcome.failed += one.failed;
        outcome.differences.extend(one.differences);
    }
    outcome
}

/// Plays one conversation; what is different is made short and written down.
async fn one(servers: &Servers, seed: u64, part: usize) -> Outcome {
    let path = format!("random/{seed}-{part}.http");
    let own = seed.wrapping_mul(1000).wrapping_add(part as u64);
    let text = text(own, STEPS);
    let conversation = Conversation::parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
    let played = corpus::play_one(servers, &conversation).await;
    let failed = |finding: &&Finding| {
        matches!(
            finding.what,
            What::Failed {
                whose: Whose::Both,
                ..
            }
        )
    };
    let mut outcome = Outcome {
        steps: conversation.steps.len(),
        failed: played.findings.iter().filter(failed).count(),
        differences: Vec::new(),
    };
    let different = played.findings.iter().find(|finding| !failed(finding));
    if std::env::var_os("DIFFERENTIAL_WHOLE").is_some() {
        outcome.differences.extend(different.map(|_| played.text));
    } else if let Some(finding) = different {
        let short = shrink::shortest(servers, &conversation, finding).await;
        outcome.differences.push(kept(&short));
    }
    outcome
}

/// Writes a difference into a folder, and tells of both.
fn kept(short: &shrink::Short) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("found");
    std::fs::create_dir_all(&folder).expect("a folder for what is found");
    let file = folder.join(short.path.rsplit('/').next().unwrap_or("found.http"));
    std::fs::write(&file, &short.text).expect("a file for what is found");
    format!("{}\n{}", file.display(), short.findings)
}
