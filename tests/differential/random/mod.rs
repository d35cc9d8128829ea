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

use crate::compare::{Finding, What, Whose};
use crate::conversation::Conversation;
use crate::corpus;
use crate::servers::Servers;
use maker::Maker;

/// The steps of one conversation, about.
const STEPS: usize = 80;

/// What a run found.
#[derive(Default)]
pub(crate) struct Outcome {
    steps: usize,
    /// Steps that neither server could be asked.
    failed: usize,
    /// What is different, in words.
    differences: Vec<String>,
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
    let each = steps / seeds.len().max(1) + 1;
    let parts = 0..each.div_ceil(STEPS);
    let all = seeds
        .into_iter()
        .flat_map(|seed| parts.clone().map(move |part| (seed, part)));
    let all = all.map(|(seed, part)| {
        let servers = servers.clone();
        async move { one(&servers, seed, part).await }
    });
    let mut outcome = Outcome::default();
    corpus::some_at_a_time(all, |one| {
        outcome.steps += one.steps;
        outcome.failed += one.failed;
        outcome.differences.extend(one.differences);
    })
    .await;
    outcome
}

impl Outcome {
    /// Prints what was found, and fails where there was a difference or hardly anything was asked.
    pub(crate) fn expect_alike(self) {
        let Self {
            steps,
            failed,
            differences,
        } = self;
        for difference in &differences {
            eprintln!("{difference}");
        }
        let summary = format!(
            "{steps} random steps, {} conversations differ",
            differences.len()
        );
        eprintln!("{summary}; {failed} steps could not be asked of either server");
        assert!(differences.is_empty(), "{summary}");
        assert!(
            failed * 10 < steps,
            "{failed} of {steps} steps could not be asked: a hollow run"
        );
    }
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
