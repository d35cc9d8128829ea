//! Two transcripts of one conversation, and what is different in them. Pure.
//!
//! An answer is compared as one value: `{"status": 200, "header": {…}, "body": {…}}`, or
//! `{"event": […]}`. A difference is a path in it with both sides' values.

mod paths; // differences between two values, by path
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::conversation::{Conversation, Mark, Step, Subset};
pub(crate) use paths::Difference;

/// One answer of both sides, made alike, with where it stands.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// Which step, from 0.
    pub(crate) step: usize,
    /// The request in one line.
    pub(crate) request: &'a str,
    pub(crate) real: Value,
    pub(crate) ours: Value,
}

/// What is wrong at one step.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    /// Which step, from 0.
    pub(crate) step: usize,
    /// The request in one line.
    pub(crate) request: String,
    pub(crate) what: What,
}

/// What is wrong.
#[derive(Debug, PartialEq)]
pub(crate) enum What {
    /// The servers do not agree.
    Differs(Vec<Difference>),
    /// The real server did not do what the file asks it to.
    Failed {
        /// Whose answer it was.
        whose: Whose,
        /// What it did.
        why: String,
    },
    /// The file lists what is not different.
    Listed(String),
}

/// Which of the servers failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Both, in the same way.
    Both,
    /// Only the real one, or each in its own way.
    Real,
    /// One of them, which its own words name.
    One,
}

/// Keys of an answer which say that it did not come as asked. On the real side, that is the file's
/// fault, whatever our side did; on ours it is never excused.
const FAILED: [&str; 2] = ["missing", "broken"];

/// Compares what both sides answered.
pub(crate) fn findings(conversation: &Conversation, turns: Vec<Turn<'_>>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut turns = turns.into_iter().peekable();
    for (index, step) in conversation.steps.iter().enumerate() {
        let mut excuses = Excuses::new(step);
        let mut request = String::new();
        while let Some(turn) = turns.next_if(|turn| turn.step == index) {
            turn.request.clone_into(&mut request);
            let finding = |what| Finding {
                step: index,
                request: turn.request.to_owned(),
                what,
            };
            let failed = FAILED.iter().find_map(|key| turn.real.get(key));
            found.extend(failed.map(|why| {
                let ours = FAILED.iter().find_map(|key| turn.ours.get(key));
                let alike = ours == Some(why);
                let whose = if alike { Whose::Both } else { Whose::Real };
                let why = crate::values::text_of(why);
                finding(What::Failed { whose, why })
            }));
            let mut unexcused = excuses.compare(turn.real.clone(), &turn.ours);
            // That the real server failed is told already; what came before is compared too.
            let told = |path: &str| failed.is_some() && FAILED.contains(&path);
            unexcused.retain(|difference| !told(&difference.path));
            if !unexcused.is_empty() {
                found.push(finding(What::Differs(unexcused)));
            }
            found.extend(
                excuses
                    .miscounted(&turn.ours)
                    .map(|why| finding(What::Listed(why))),
            );
        }
        found.extend(excuses.unused().map(|why| Finding {
            step: index,
            request: request.clone(),
            what: What::Listed(why),
        }));
    }
    found
}

/// What a step says of its differences, and whether it was true.
struct Excuses<'a> {
    step: &'a Step,
    /// For each mark of each @differs, whether it covered something.
    differs: Vec<(u32, &'a Mark, bool)>,
    /// For each @subset, whether something was left out.
    subsets: Vec<bool>,
}

impl<'a> Excuses<'a> {
    fn new(step: &'a Step) -> Self {
        let differs = step.differs.iter().flat_map(|differs| {
            let marks = differs.marks.iter();
            marks.map(|mark| (differs.entry, mark, false))
        });
        Self {
            step,
            differs: differs.collect(),
            subsets: vec![false; step.subsets.len()],
        }
    }

    /// The differences that nothing excuses.
    fn compare(&mut self, mut real: Value, ours: &Value) -> Vec<Difference> {
        for (subset, used) in self.step.subsets.iter().zip(&mut self.subsets) {
            *used |= paths::leave_out(&mut real, ours, &subset.path, subset.key.as_deref());
        }
        let mut differences = paths::differences(&real, ours);
        differences.retain(|difference| {
            let mut excused = false;
            for (_, mark, used) in &mut self.differs {
                if is_excused(mark, difference) {
                    *used = true;
                    excused = true;
                }
            }
            !excused
        });
        differences
    }

    /// What is said of how many entries our side has, and not so.
    fn miscounted(&self, ours: &Value) -> impl Iterator<Item = String> {
        self.step.subsets.iter().filter_map(|subset| {
            let Subset { entry, path, .. } = subset;
            let count = paths::count(ours, path);
            let why = format!(
                "@subset {entry} {path}: ours has {count}, not {}",
                subset.ours
            );
            (count != subset.ours).then_some(why)
        })
    }

    /// What is said and not so any more.
    fn unused(&self) -> impl Iterator<Item = String> {
        let differs = self.differs.iter().filter(|(_, _, used)| !used);
        let differs = differs.map(|(entry, mark, _)| match mark {
            Mark { path, ours: None } => {
                format!("@differs {entry} {path}: it does not differ (any more)")
            }
            Mark {
                path,
                ours: Some(ours),
            } => {
                format!("@differs {entry} {path}={ours}: it does not differ (any more) so")
            }
        });
        let subsets = self.step.subsets.iter().zip(&self.subsets);
        let subsets = subsets.filter(|(_, used)| !**used).map(|(subset, _)| {
            let Subset { entry, path, .. } = subset;
            format!("@subset {entry} {path}: the real server has no more than we (any more)")
        });
        differs.chain(subsets)
    }
}

/// Whether a mark covers a difference. A failure is never covered, and a status only by a mark that
/// names it: `*` stands for all the rest.
fn is_excused(mark: &Mark, difference: &Difference) -> bool {
    let path = difference.path.as_str();
    let named = mark.path == path;
    if FAILED.contains(&path) || (path == "status" && !named) {
        return false;
    }
    match &mark.ours {
        None => paths::covers(&mark.path, path),
        Some(wanted) => {
            let ours = difference.ours.as_ref().map(crate::values::text_of);
            named && ours.as_ref() == Some(wanted)
        }
    }
}
