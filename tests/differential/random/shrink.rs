//! The shortest conversation that still differs: steps are left out while it does.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::compare::{Finding, What, Whose};
use crate::conversation::Conversation;
use crate::corpus;
use crate::servers::Servers;

/// How often a conversation is played to make it shorter, and for how long.
const TRIES_MAX: usize = 120;
const TIME_MAX: Duration = Duration::from_secs(120);

/// A short conversation that differs.
pub(super) struct Short {
    pub(super) path: String,
    pub(super) text: String,
    /// What is different in it, in words.
    pub(super) findings: String,
}

/// What must stay the same while steps are left out: the step's title, and what differs there.
#[derive(PartialEq, Eq)]
struct Sign {
    title: String,
    paths: BTreeSet<String>,
}

/// Leaves out steps of a conversation while the same still differs.
pub(super) async fn shortest(
    servers: &Servers,
    conversation: &Conversation,
    finding: &Finding,
) -> Short {
    let steps = conversation.steps.iter();
    let steps: Vec<&str> = steps.map(|step| step.source.as_str()).collect();
    let mut tries = Tries {
        servers,
        conversation,
        wanted: sign(conversation, finding),
        left: TRIES_MAX,
        end: Instant::now() + TIME_MAX,
    };
    let mut fewest = Fewest::of(steps.len());
    let chosen = |kept: &[usize]| -> Vec<&str> { kept.iter().map(|at| steps[*at]).collect() };
    while let Some(fewer) = fewest.candidate() {
        let wanted = tries.differ(&chosen(&fewer)).await;
        fewest.judge(wanted);
    }
    tries.told(&chosen(&fewest.kept)).await
}

/// A search for the fewest entries that are still wanted. Entries are left out many at a time, then
/// one by one, from the end to the beginning: what comes later rests on what came before.
struct Fewest {
    /// What is left.
    kept: Vec<usize>,
    /// How many are left out next, and up to where.
    size: usize,
    end: usize,
}

impl Fewest {
    fn of(count: usize) -> Self {
        Self {
            kept: (0..count).collect(),
            size: count.div_ceil(2),
            end: count,
        }
    }

    /// What may be enough; nothing when all was tried.
    fn candidate(&self) -> Option<Vec<usize>> {
        if self.size == 0 {
            return None;
        }
        let mut fewer = self.kept.clone();
        fewer.drain(self.start()..self.end);
        Some(fewer)
    }

    /// Whether the candidate was.
    fn judge(&mut self, wanted: bool) {
        let start = self.start();
        if wanted {
            self.kept.drain(start..self.end);
        }
        self.end = start;
        if self.end == 0 {
            self.size /= 2;
            self.end = self.kept.len();
        }
    }

    fn start(&self) -> usize {
        self.end.saturating_sub(self.size)
    }
}

struct Tries<'a> {
    servers: &'a Servers,
    conversation: &'a Conversation,
    wanted: Sign,
    left: usize,
    end: Instant,
}

impl Tries<'_> {
    async fn differ(&mut self, steps: &[&str]) -> bool {
        // Steps that use what is not there any more cannot be read.
        let Ok(fewer) = self.parse(steps) else {
            return false;
        };
        if self.left == 0 || Instant::now() > self.end {
            return false;
        }
        self.left -= 1;
        let played = corpus::play_one(self.servers, &fewer).await;
        played
            .findings
            .iter()
            .any(|finding| sign(&fewer, finding).is_like(&self.wanted))
    }

    /// The conversation of these steps, in a namespace of its own.
    fn parse(&self, steps: &[&str]) -> Result<Conversation, ()> {
        let path = self.conversation.path.trim_end_matches(".http");
        let path = format!("{path}-{}.http", self.left);
        let text = format!("{}{}", self.conversation.preface, steps.concat());
        Conversation::parse(&path, &text).map_err(drop)
    }

    async fn told(self, steps: &[&str]) -> Short {
        let short = self.parse(steps).expect("it was read before");
        let played = corpus::play_one(self.servers, &short).await;
        Short {
            path: self.conversation.path.clone(),
            text: short.text,
            findings: played.text,
        }
    }
}

impl Sign {
    fn is_like(&self, wanted: &Self) -> bool {
        self.title == wanted.title && !self.paths.is_disjoint(&wanted.paths)
    }
}

fn sign(conversation: &Conversation, finding: &Finding) -> Sign {
    let paths = match &finding.what {
        What::Differs(differences) => differences.iter().map(|one| anywhere(&one.path)).collect(),
        What::Failed { whose, why } if *whose != Whose::Both => BTreeSet::from([why.clone()]),
        What::Failed { .. } | What::Listed(_) => BTreeSet::new(),
    };
    Sign {
        title: conversation.steps[finding.step].title.clone(),
        paths,
    }
}

/// A path without the numbers in it, which change as steps are left out.
fn anywhere(path: &str) -> String {
    let parts = path.split('.').map(|part| match part.parse::<usize>() {
        Ok(_) => "*",
        Err(_) => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_out() {
        let needed = [7, 23, 49];
        let mut fewest = Fewest::of(50);
        let mut tries = 0;
        while let Some(fewer) = fewest.candidate() {
            tries += 1;
            fewest.judge(needed.iter().all(|one| fewer.contains(one)));
        }
        assert_eq!(fewest.kept, needed);
        assert!(tries < TRIES_MAX, "{tries}");
    }

    #[test]
    fn where_nothing_is_needed_nothing_is_left() {
        let mut fewest = Fewest::of(5);
        while fewest.candidate().is_some() {
            fewest.judge(true);
        }
        assert_eq!(fewest.kept, [0; 0]);
        assert_eq!(Fewest::of(0).candidate(), None);
    }

    #[test]
    fn a_difference_is_known_again_though_its_place_has_moved() {
        assert_eq!(anywhere("body.items.12.spec.a1"), "body.items.*.spec.a1");
    }
}
