//! The life of a program that runs until it is asked to stop: its threads, its tasks, its end.

use std::time::Duration;

use anyhow::bail;
use host::shutdown::Signals;
use host::{Clock, Shutdown, Tasks};
use tokio::runtime::Builder;
use tracing::info;

use crate::failure::Failure;

/// On how many threads a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Threads {
    /// One for each core.
    Many,
    /// One: for small machines, where memory counts.
    One,
}

/// What ends a program, beside a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nothing.
    Signal,
    /// The end of its standard input: whoever started it is gone.
    StdinEnds,
}

impl From<bool> for Until {
    fn from(stdin_ends: bool) -> Self {
        match stdin_ends {
            true => Self::StdinEnds,
            false => Self::Signal,
        }
    }
}

/// Starts a program and waits for its end. Its tasks have `grace` once it is to stop.
pub(crate) fn live(
    (threads, until): (Threads, Until),
    grace: Duration,
    start: impl AsyncFnOnce(&mut Tasks, Clock) -> anyhow::Result<()>,
) -> Result<(), Failure> {
    let mut runtime = match threads {
        Threads::Many => Builder::new_multi_thread(),
        Threads::One => Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build().map_err(Failure::run)?;
    let ended = runtime
        .block_on(whole(until, grace, start))
        .map_err(Failure::from);
    // Tasks have ended by now; what is left is a thread in a system call, which is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

async fn whole(
    until: Until,
    grace: Duration,
    start: impl AsyncFnOnce(&mut Tasks, Clock) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let shutdown = Shutdown::new();
    let mut signals = Signals::listen()?;
    let mut tasks = Tasks::new(shutdown.clone());
    if until == Until::StdinEnds {
        tasks.add("parent", parent(shutdown.clone()));
    }
    // A start can take long: a hub waits for its cluster, an agent for its hub.
    tokio::select! {
        started = start(&mut tasks, Clock::machine()) => started?,
        signal = signals.next() => {
            info!(signal, "stopped before it was ready");
            return Ok(());
        }
    }
    tokio::select! {
        joined = tasks.join(grace) => joined?,
        () = told_twice(&mut signals, &shutdown) => bail!("stopped at once, as asked"),
    }
    info!("stopped");
    Ok(())
}

/// Says the shutdown at the first signal and returns at the second: a person who presses Ctrl-C
/// twice means it, and nothing acknowledged is lost by it.
pub(crate) async fn told_twice(signals: &mut Signals, shutdown: &Shutdown) {
    let signal = signals.next().await;
    info!(signal, "stopping; again to stop at once");
    shutdown.trigger();
    signals.next().await;
}

/// Says the shutdown when standard input ends.
async fn parent(shutdown: Shutdown) -> Result<(), std::convert::Infallible> {
    let gone = async {
        let mut sink = tokio::io::sink();
        drop(tokio::io::copy(&mut tokio::io::stdin(), &mut sink).await);
    };
    tokio::select! {
        () = gone => {
            info!("whoever started this is gone");
            shutdown.trigger();
        }
        () = shutdown.triggered() => {}
    }
    Ok(())
}
