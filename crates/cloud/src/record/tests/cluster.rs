//! A cluster that keeps records in a map and answers as a real one would.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Records by path.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) records: BTreeMap<String, Value>,
    pub(super) requests: Vec<(Verb, String)>,
    /// Paths in which nothing can be put.
    pub(super) closed: BTreeSet<String>,
    pub(super) broken: bool,
}

impl Cluster {
    pub(super) fn answer(&mut self, write: &Write) -> Outcome {
        self.requests.push((write.verb, write.path.clone()));
        if self.broken {
            return Outcome::Failed(None);
        }
        match write.verb {
            Verb::Create => {
                let body = json(&write.body);
                let name = body["metadata"]["name"].as_str().unwrap();
                let path = format!("{}/{name}", write.path);
                if self.closed.contains(&write.path) {
                    return Outcome::Missing;
                }
                if self.records.contains_key(&path) {
                    return Outcome::Exists;
                }
                self.records.insert(path, body);
                Outcome::Done
            }
            Verb::Patch => {
                let path = write.path.strip_suffix("/status").unwrap();
                let Some(record) = self.records.get_mut(path) else {
                    return Outcome::Missing;
                };
                record["status"] = json(&write.body)["status"].clone();
                Outcome::Done
            }
            Verb::Delete => match self.records.remove(&write.path) {
                Some(_) => Outcome::Done,
                None => Outcome::Missing,
            },
        }
    }

    /// What the records of objects tell: path and version.
    pub(super) fn told(&self) -> Vec<(String, String)> {
        let told = self.records.iter().map(|(path, record)| {
            let version = record["status"]["objectResourceVersion"].as_str();
            let path = path.trim_start_matches("/apis/holdfast.dev/v1alpha1/");
            (path.to_owned(), version.unwrap_or("none").to_owned())
        });
        told.collect()
    }

    /// Writes all that is due up to a moment, and nothing later; tells when the plan next wants to
    /// be asked.
    pub(super) fn write(&mut self, records: &mut Records, now: Duration) -> Option<Duration> {
        loop {
            match records.next(now) {
                Next::Write(write) => {
                    let outcome = self.answer(&write);
                    records.done(&write, outcome, now);
                }
                Next::Wait(until) => return until,
                next => panic!("{next:?}"),
            }
        }
    }

    /// Lets time pass, moment by moment, and does all that is due; surveys find what `truth` says.
    pub(super) fn run(
        &mut self,
        records: &mut Records,
        truth: &Nodes,
        from: Duration,
        to: Duration,
    ) {
        let mut now = from;
        while now <= to {
            match records.next(now) {
                Next::Write(write) => {
                    let outcome = self.answer(&write);
                    records.done(&write, outcome, now);
                }
                Next::Survey => self.survey(records, truth, now),
                Next::Fill(after) => records.fill(truth.holdings(after.as_ref()), now),
                Next::Wait(Some(until)) => now = until,
                Next::Wait(None) => return,
            }
        }
    }

    fn survey(&self, records: &mut Records, truth: &Nodes, now: Duration) {
        records.survey_began(now);
        if self.broken {
            return records.survey_ended(Outcome::Failed(None), now);
        }
        for (path, record) in &self.records {
            let of = |kind: &RecordKind| path.contains(&format!("/{}/", kind.plural()));
            let kind = RecordKind::ALL.into_iter().find(of).unwrap();
            let found = Found::read(kind, record.to_string().as_bytes()).unwrap();
            let node = truth.presence(&found.node().unwrap());
            if let Some(question) = records.found(found, node, now) {
                let known = truth.known(&question);
                records.answer(question, known, now);
            }
        }
        records.survey_ended(Outcome::Done, now);
    }
}

/// What nodes hold.
#[derive(Default, Clone, Debug)]
pub(super) struct Nodes {
    pub(super) here: BTreeMap<NodeName, Vec<Holding>>,
    pub(super) elsewhere: BTreeSet<NodeName>,
}

impl Truth for Nodes {
    fn presence(&self, node: &NodeName) -> Presence {
        match self.here.contains_key(node) || self.elsewhere.contains(node) {
            true => Presence::Possible,
            false => Presence::Gone,
        }
    }

    fn known(&self, question: &Question) -> Known {
        let Some(holdings) = self.here.get(&question.node) else {
            return Known::Unknown;
        };
        let held = holdings.iter().find(|held| held.uid == question.uid);
        held.map_or(Known::Nothing, |held| Known::Holds(held.version.clone()))
    }

    fn holdings(&self, after: Option<&NodeName>) -> Option<(NodeName, Vec<Holding>)> {
        let mut nodes = self.here.iter();
        let (node, held) = nodes.find(|(node, _)| after.is_none_or(|after| *node > after))?;
        Some((node.clone(), held.clone()))
    }
}
