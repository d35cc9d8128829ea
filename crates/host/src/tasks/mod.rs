//! Every task has a name and an owner: named tasks that the program cannot do without, and crowds
//! of small ones, such as connections, of which any may fail alone.

mod crowd;
mod guard;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use tokio::task::{Id, JoinSet};

use crate::shutdown::Shutdown;
pub use crowd::{Crowd, Place};
use guard::{Outcome, guarded};

/// The named tasks of a program. The first that fails triggers the shutdown; [`Tasks::join`] waits
/// for all of them. Dropping it ends them where they stand.
pub struct Tasks {
    shutdown: Shutdown,
    running: JoinSet<Result<(), Failed>>,
    names: BTreeMap<Id, &'static str>,
    crowds: Vec<Crowd>,
}

/// Why the tasks did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A task gave up. Its reason is the source.
    #[error("{name} failed")]
    Error {
        /// The task.
        name: &'static str,
        /// Why it gave up.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A task had a bug. The others were told to stop.
    #[error("{name} panicked: {message}; this is a bug in Holdfast, please report it")]
    Panicked {
        /// The task.
        name: &'static str,
        /// What the panic said.
        message: String,
    },
    /// Some did not stop in time and were ended where they stood.
    #[error("{names} did not stop within {grace:?} and were cut off")]
    Stuck {
        /// The tasks and crowds, separated by commas.
        names: String,
        /// How long they had.
        grace: Duration,
    },
}

impl Tasks {
    /// An owner without tasks, which says `shutdown` when one of them fails.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            running: JoinSet::new(),
            names: BTreeMap::new(),
            crowds: Vec::new(),
        }
    }

    /// The shutdown that these tasks share.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Starts a task. It should end by itself once the shutdown is triggered.
    pub fn add<E>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) where
        E: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
    {
        let shutdown = self.shutdown.clone();
        // Each layer around it would have room for it once more.
        let task = Box::pin(task);
        let handle = self.running.spawn(async move {
            let failed = match guarded(task).await {
                Outcome::Ended(Ok(())) => return Ok(()),
                Outcome::Ended(Err(error)) => Failed::Error {
                    name,
                    source: error.into(),
                },
                Outcome::Panicked(message) => Failed::Panicked { name, message },
            };
            // Said here and not in `join`, which may not be waiting yet.
            shutdown.trigger();
            Err(failed)
        });
        self.names.insert(handle.id(), name);
    }

    /// A crowd of at most `places` tasks, which [`Tasks::join`] waits for as well.
    pub fn crowd(&mut self, name: &'static str, places: u32) -> Crowd {
        let crowd = Crowd::new(name, places);
        self.crowds.push(crowd.clone());
        crowd
    }

    /// Waits until every task has ended. Once the shutdown is triggered they have `grace` to do so;
    /// after that they are ended where they stand. The first failure is the answer.
    pub async fn join(mut self, grace: Duration) -> Result<(), Failed> {
        let shutdown = self.shutdown.clone();
        let deadline = async move {
            shutdown.triggered().await;
            tokio::time::sleep(grace).await;
        };
        let mut first = Ok(());
        tokio::select! {
            () = self.ended(&mut first) => return first,
            () = deadline => {}
        }
        let names = self.still_running();
        self.running.shutdown().await;
        for crowd in &self.crowds {
            crowd.cut().await;
        }
        first.and(Err(Failed::Stuck { names, grace }))
    }

    async fn ended(&mut self, first: &mut Result<(), Failed>) {
        while let Some(joined) = self.running.join_next_with_id().await {
            let (id, result) = match joined {
                Ok(ended) => ended,
                // Panics are caught inside the task, so this one was aborted with its runtime.
                Err(aborted) => (aborted.id(), Ok(())),
            };
            self.names.remove(&id);
            if first.is_ok() {
                *first = result;
            }
        }
        for crowd in &self.crowds {
            crowd.emptied().await;
        }
    }

    fn still_running(&self) -> String {
        let mut names: Vec<String> = self.names.values().map(|name| (*name).to_owned()).collect();
        let busy = self.crowds.iter().filter(|crowd| crowd.busy() > 0);
        names.extend(busy.map(|crowd| format!("{} of {}", crowd.busy(), crowd.name())));
        names.join(", ")
    }
}
