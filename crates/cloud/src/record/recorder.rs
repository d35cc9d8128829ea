//! Carries out what the plan says, one request at a time, and is what sessions tell.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::{Clock, Shutdown};
use object::Resource;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Counts, Found, Holding, Known, Next, Outcome, Presence, RecordKind, Records, Summary, Truth,
    Verb, Write,
};
use crate::cluster::{Client, Error, Paging, Served};
use crate::view::NodeName;

/// The definitions of the kinds of records, as they are in deploy/crds.
const DEFINITIONS: [&str; 3] = [
    include_str!("../../../../deploy/crds/objectsyncs.yaml"),
    include_str!("../../../../deploy/crds/clusterobjectsyncs.yaml"),
    include_str!("../../../../deploy/crds/nodesyncs.yaml"),
];

/// What sessions tell of nodes, on its way into the cluster. To tell it something takes no longer
/// than to note it down.
pub struct Recorder {
    records: Mutex<Records>,
    told: Notify,
    clock: Clock,
    began: Instant,
}

impl Recorder {
    /// Writes by these rules.
    pub fn new(records: Records, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            records: Mutex::new(records),
            told: Notify::new(),
            began: clock.now(),
            clock,
        })
    }

    /// How the objects of a resource are called: see [`Records::describe`].
    pub fn describe(&self, resource: Resource, api_version: &str, kind: &str) {
        let mut records = self.records.lock();
        records.describe(resource, api_version, kind);
    }

    /// Whether objects of a resource have records.
    pub fn has_records(&self, resource: &Resource) -> bool {
        self.records.lock().has_records(resource)
    }

    /// See [`Records::holds`].
    pub fn holds(&self, node: &NodeName, holding: &Holding) {
        self.tell(|records, now| records.holds(node, holding, now));
    }

    /// See [`Records::dropped`].
    pub fn dropped(&self, node: &NodeName, holding: &Holding) {
        self.tell(|records, now| records.dropped(node, holding, now));
    }

    /// See [`Records::doubt`].
    pub fn doubt(&self, node: &NodeName) {
        self.tell(|records, _| records.doubt(node));
    }

    /// There is reason for a survey.
    pub fn want_survey(&self) {
        self.tell(|records, _| records.want_survey());
    }

    /// See [`Records::node_gone`].
    pub fn node_gone(&self, node: &NodeName) {
        self.tell(|records, now| records.node_gone(node, now));
    }

    /// See [`Records::summary`].
    pub fn summary(&self, node: &NodeName, summary: Summary) {
        self.tell(|records, now| records.summary(node, summary, now));
    }

    /// How often what happened, and how many records wait to be written.
    pub fn counts(&self) -> (Counts, usize) {
        let records = self.records.lock();
        (records.counts(), records.waiting())
    }

    /// Writes until the shutdown. What is not written then is found by the next hub's survey.
    pub async fn run(&self, client: Client, truth: impl Truth, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.triggered() => {}
            () = self.write(&client, &truth) => {}
        }
    }

    async fn write(&self, client: &Client, truth: &impl Truth) {
        loop {
            let next = self.records.lock().next(self.now());
            match next {
                Next::Write(write) => {
                    let outcome = carry_out(client, &write).await;
                    self.records.lock().done(&write, outcome, self.now());
                }
                Next::Survey => self.survey(client, truth).await,
                Next::Fill(after) => {
                    let holdings = truth.holdings(after.as_ref());
                    self.records.lock().fill(holdings, self.now());
                    // A hub with many nodes is not to be held up by this.
                    tokio::task::yield_now().await;
                }
                Next::Wait(until) => self.wait(until).await,
            }
        }
    }

    async fn wait(&self, until: Option<Duration>) {
        let Some(until) = until else {
            return self.told.notified().await;
        };
        tokio::select! {
            () = self.told.notified() => {}
            () = self.clock.sleep_until(self.began + until) => {}
        }
    }

    async fn survey(&self, client: &Client, truth: &impl Truth) {
        self.records.lock().survey_began(self.now());
        let mut outcome = Outcome::Done;
        for kind in RecordKind::ALL {
            if let Err(error) = self.list(client, kind, truth).await {
                tracing::warn!(kind = kind.kind(), %error, "records could not be listed");
                outcome = Outcome::Failed(error.status().and_then(|status| status.retry_after));
                break;
            }
        }
        self.records.lock().survey_ended(outcome, self.now());
    }

    async fn list(
        &self,
        client: &Client,
        kind: RecordKind,
        truth: &impl Truth,
    ) -> Result<(), Error> {
        let mut list = client.list(&kind.served(), Paging::Pages);
        while let Some(bytes) = list.next().await? {
            let Some(found) = Found::read(kind, &bytes) else {
                continue;
            };
            let node = found.node().map(|node| truth.presence(&node));
            let node = node.unwrap_or(Presence::Possible);
            let question = self.records.lock().found(found, node, self.now());
            if let Some(question) = question {
                let known: Known = truth.known(&question);
                self.records.lock().answer(question, known, self.now());
            }
        }
        Ok(())
    }

    fn tell(&self, say: impl FnOnce(&mut Records, Duration)) {
        say(&mut self.records.lock(), self.now());
        self.told.notify_one();
    }

    /// The time since the start, which is all that the plan knows of time.
    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.began)
    }
}

/// The definitions of the kinds of records, each as JSON.
pub fn definitions() -> Vec<serde_json::Value> {
    DEFINITIONS
        .iter()
        .map(|text| serde_saphyr::from_str(text).expect("our own definitions are YAML"))
        .collect()
}

/// Creates the definitions of the kinds of records where they are missing. Those that are there
/// stay as they are: a cluster may have newer ones.
pub async fn install(client: &Client) -> Result<(), Error> {
    let resource = Resource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let served = Served::new(
        resource,
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    );
    for definition in definitions() {
        let body = Bytes::from(definition.to_string());
        match client.create(&served.path(), body).await {
            Err(error) if !error.is_code(409) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

async fn carry_out(client: &Client, write: &Write) -> Outcome {
    let (path, body) = (&write.path, write.body.clone());
    let done = match write.verb {
        Verb::Create => client.create(path, body).await,
        Verb::Patch => client.patch(path, body).await,
        Verb::Delete => client.delete(path, None).await,
    };
    let Err(error) = done else {
        return Outcome::Done;
    };
    let outcome = outcome(write.verb, &error);
    match outcome {
        Outcome::Refused | Outcome::Forbidden => {
            tracing::warn!(path, %error, "a record was refused");
        }
        Outcome::Failed(_) => tracing::debug!(path, %error, "a record was not written"),
        Outcome::Done | Outcome::Missing | Outcome::Exists => {}
    }
    outcome
}

fn outcome(verb: Verb, error: &Error) -> Outcome {
    let Some(status) = error.status() else {
        return Outcome::Failed(None);
    };
    match (status.code, verb) {
        (404, _) => Outcome::Missing,
        (409, Verb::Create) => Outcome::Exists,
        (400 | 405 | 413 | 415 | 422, _) => Outcome::Refused,
        // A namespace that is going takes nothing new, and its records go with it.
        (403, Verb::Create) if status.message.contains("being terminated") => Outcome::Refused,
        (403, _) => Outcome::Forbidden,
        _ => Outcome::Failed(status.retry_after),
    }
}
