//! Writes events, one at a time, and is what the rest of the hub tells.

use std::convert::Infallible;
use std::time::Duration;

use host::{Shutdown, Times, secret};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::debug;

use super::{Board, Counts, Next, Notice, Outcome, Write};
use crate::cluster::{Client, Error};

/// Where events of what is in no namespace are.
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Events on their way into the cluster. To tell of something takes no longer than to note it down.
#[derive(Debug)]
pub struct Notices {
    board: Mutex<Board>,
    told: Notify,
}

impl Default for Notices {
    fn default() -> Self {
        let origin = u64::from_le_bytes(secret::random().unwrap_or_default());
        Self {
            board: Mutex::new(Board::new(&format!("{origin:016x}"))),
            told: Notify::new(),
        }
    }
}

impl Notices {
    /// Something happened.
    pub fn tell(&self, notice: Notice, times: &Times) {
        let wall = times.clock().wall();
        self.board.lock().tell(notice, times.now(), wall);
        self.told.notify_one();
    }

    /// How often what happened.
    pub fn counts(&self) -> Counts {
        self.board.lock().counts()
    }

    /// Writes until the shutdown.
    pub async fn run(
        &self,
        client: &Client,
        times: &Times,
        shutdown: &Shutdown,
    ) -> Result<(), Infallible> {
        tokio::select! {
            () = shutdown.triggered() => {}
            () = self.write(client, times) => {}
        }
        Ok(())
    }

    async fn write(&self, client: &Client, times: &Times) {
        loop {
            let next = self.board.lock().next(times.now());
            match next {
                Next::Write(write) => {
                    let outcome = carry_out(client, &write).await;
                    self.board.lock().done(&write, outcome, times.now());
                }
                Next::Wait(until) => {
                    let until = times.moment(until.unwrap_or(Duration::MAX));
                    tokio::select! {
                        () = self.told.notified() => {}
                        () = times.clock().sleep_until(until) => {}
                    }
                }
            }
        }
    }
}

async fn carry_out(client: &Client, write: &Write) -> Outcome {
    let body = write.body.clone();
    let done = match write.fresh {
        true => client.create(EVENTS, body).await,
        false => {
            let path = format!("{EVENTS}/{}", write.name);
            client.patch(&path, body).await
        }
    };
    match done {
        Ok(_) => Outcome::Done,
        Err(error) => outcome(&error),
    }
}

fn outcome(error: &Error) -> Outcome {
    debug!(%error, "an event was not written");
    match error.status().map(|status| status.code) {
        Some(404) => Outcome::Missing,
        // It is there: what was thought to have failed had not.
        Some(409) => Outcome::Done,
        Some(429) => Outcome::Failed,
        Some(400..=499) => Outcome::Refused,
        _ => Outcome::Failed,
    }
}
