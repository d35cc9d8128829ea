//! The shortest conversation that still differs: steps are left out while it does.

use std::collections::BTreeSet;

use crate::compare::{Finding, What, Whose};
use crate::conversation::Conversation;
use crate::corpus;
use crate::servers::Servers;

/// How often a conversation is played to make it shorter.
const TRIES_MAX: usize = 120;

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

/// Leaves out steps, first many at a time and then one by one.
pub(super) async fn shortest(
    servers: &Servers,
    conversation: &Conversation,
    finding: &Finding,
) -> Short {
    let wanted = sign(conversation, finding);
    let mut steps: Vec<&str> = conversation
        .steps
        .iter()
        .map(|step| step.source.as_str())
        .collect();
    let mut tries = Tries {
        servers,
        conversation,
        wanted,
        left: TRIES_MAX,
    };
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut start = steps.len().saturating_sub(size);
        loop {
            let end = (start + size).min(steps.len());
            let mut fewer = steps.clone();
            fewer.drain(start..end);
            if tries.differ(&fewer).await {
                steps = fewer;
            }
            if start == 0 {
                break;
            }
            start = start.saturating_sub(size);
        }
        size /= 2;
    }
    tries.told(&steps).await
}

struct Tries<'a> {
    servers: &'a Servers,
    conversation: &'a Conversation,
    wanted: Sign,
    left: usize,
}

impl Tries<'_> {
    async fn differ(&mut self, steps: &[&str]) -> bool {
        // Steps that use what is not there any more cannot be read.
        let Ok(fewer) = self.parse(steps) else {
            return false;
        };
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let played = Box::pin(corpus::play_one(self.servers, &fewer)).await;
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
        let played = Box::pin(corpus::play_one(self.servers, &short)).await;
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
