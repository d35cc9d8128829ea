//! `holdfast status`: is a node in sync, and if not, what is missing and since when.

mod agent; // what an agent says of itself
mod hub; // what a hub says of its nodes
mod node; // what a hub says of one node

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use host::glass;
use jiff::Timestamp;

use crate::cli::Output;
use crate::failure::{Failure, print};

/// The flags of `holdfast status`.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct StatusFlags {
    /// Tell of one node, in detail
    #[arg(long, value_name = "NAME", conflicts_with = "agent")]
    node: Option<String>,
    /// Ask an agent on this machine instead of a hub: the folder of its data
    #[arg(long, value_name = "DIR")]
    agent: Option<PathBuf>,
    /// Where hubs on this machine have their sockets
    /// [default: that of `holdfast up`, else /run/holdfast]
    #[arg(
        long,
        env = "HOLDFAST_RUN_DIR",
        hide_env_values = true,
        value_name = "DIR"
    )]
    run_dir: Option<PathBuf>,
    /// Tell again every two seconds
    #[arg(short, long)]
    watch: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
}

const HELP: &str = "\
Examples:
  holdfast status                                every node that a hub on this machine has seen
  holdfast status --node shop-17                 one of them, with everything that is known
  holdfast status --agent /var/lib/holdfast      on the node itself
  holdfast status --watch

A hub tells of the nodes that are connected to it; of several hubs each tells of its own.

Exit codes: 0 told, 1 nobody answers, 2 wrong usage.";

/// How often it is told again.
const EVERY: Duration = Duration::from_secs(2);

/// Tells how nodes are doing.
pub(crate) fn run(flags: &StatusFlags) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    runtime.block_on(async {
        if !flags.watch {
            let told = tell(flags).await.map_err(Failure::Run)?;
            return print(&told).map_err(Failure::run);
        }
        loop {
            // Who looks on wants to see that a hub went, and that it came back.
            let told = match tell(flags).await {
                Ok(told) => told,
                Err(error) if flags.output == Output::Text => format!("{error:#}\n"),
                Err(error) => return Err(Failure::Run(error)),
            };
            let clear = match flags.output {
                Output::Text => "\u{1b}[2J\u{1b}[H",
                Output::Json => "",
            };
            print(&format!("{clear}{told}")).map_err(Failure::run)?;
            tokio::time::sleep(EVERY).await;
        }
    })
}

async fn tell(flags: &StatusFlags) -> anyhow::Result<String> {
    if let Some(folder) = &flags.agent {
        let said = glass::look(&folder.join("status.sock"), "/status").await?;
        return match flags.output {
            Output::Json => pretty(&said),
            Output::Text => agent::text(&serde_json::from_slice(&said)?, now()),
        };
    }
    let run_dir = match &flags.run_dir {
        Some(path) => path.clone(),
        None => default_run_dir(),
    };
    let sockets = sockets(&run_dir)?;
    let (mut told, mut found, mut silent) = (String::new(), false, Vec::new());
    for socket in &sockets {
        let path = match &flags.node {
            Some(node) => format!("/nodes/{node}"),
            None => "/status".to_owned(),
        };
        let said = match glass::look(socket, &path).await {
            Ok(said) => said,
            Err(glass::Error::NotShown { .. }) => continue,
            // One that was killed leaves its socket, and says nothing about the others.
            Err(error) => {
                silent.push(format!("Hub {} does not answer: {error}", name(socket)));
                continue;
            }
        };
        found = true;
        if flags.node.is_some() && flags.output == Output::Text && sockets.len() > 1 {
            writeln!(told, "Hub {}", name(socket))?;
        }
        match (flags.output, &flags.node) {
            (Output::Json, _) => told.push_str(&pretty(&said)?),
            (Output::Text, Some(_)) => {
                node::text(&mut told, &serde_json::from_slice(&said)?, now())?;
            }
            (Output::Text, None) => {
                hub::all(&mut told, &serde_json::from_slice(&said)?, now())?;
            }
        }
    }
    match (found, &flags.node, silent.is_empty()) {
        (true, _, _) if flags.output == Output::Json => Ok(told),
        (true, _, _) => Ok(told + &lines(&silent)),
        (false, _, false) => bail!("{}", silent.join("; ")),
        (false, Some(node), true) => bail!("no hub on this machine has seen node {node}"),
        (false, None, true) => bail!(
            "no hub runs on this machine, as {} tells; name another folder with --run-dir, or ask \
             an agent with --agent",
            run_dir.display()
        ),
    }
}

/// What a hub is called, by its socket.
fn name(socket: &Path) -> String {
    let stem = socket.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn lines(all: &[String]) -> String {
    all.iter().map(|line| format!("\n{line}\n")).collect()
}

fn pretty(said: &[u8]) -> anyhow::Result<String> {
    let value: serde_json::Value = serde_json::from_slice(said)?;
    Ok(format!("{value:#}\n"))
}

/// The sockets of the hubs that run here.
fn sockets(run_dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = match std::fs::read_dir(run_dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", run_dir.display()))?,
    };
    let mut sockets = Vec::new();
    for entry in read {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "sock")
        {
            sockets.push(path);
        }
    }
    sockets.sort();
    Ok(sockets)
}

/// That of an embedded cluster, if there is one, else that of the machine.
fn default_run_dir() -> PathBuf {
    let embedded = crate::up::default_data_dir().map(|data| data.join("run"));
    match embedded {
        Some(path) if path.exists() => path,
        _ => "/run/holdfast".into(),
    }
}

#[expect(clippy::disallowed_methods, reason = "what is shown is told as of now")]
fn now() -> Timestamp {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// How long ago something was, for people.
fn ago(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else {
        return "-".to_owned();
    };
    seconds(u64::try_from(now.as_second() - then.as_second()).unwrap_or(0))
}

/// So many seconds, for people.
fn seconds(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of bytes, for people.
fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// Bytes by what they were for, for people: those that there are.
fn by_class(classes: &BTreeMap<String, u64>) -> String {
    let some = classes.iter().filter(|(_, count)| **count > 0);
    let words: Vec<String> = some
        .map(|(class, count)| format!("{class} {}", bytes(*count)))
        .collect();
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

/// Writes rows as columns of their own width.
fn table(out: &mut String, rows: &[Vec<String>]) -> std::fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:width$}  ")?;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_are_short() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let before = |seconds: i64| Timestamp::from_second(now.as_second() - seconds).ok();
        assert_eq!(ago(before(5), now), "5s");
        assert_eq!(ago(before(600), now), "10m");
        assert_eq!(ago(before(10_000), now), "2h");
        assert_eq!(ago(before(1_000_000), now), "11d");
        assert_eq!(ago(None, now), "-");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(123_456), "123 kB");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut out = String::new();
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        table(&mut out, &[row(["NODE", "X"]), row(["a", "long"])]).unwrap();
        assert_eq!(out, "NODE  X\na     long\n");
    }
}
