//! The command behind `just cluster`: builds, starts and ends a real control plane.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use cluster::programs::Program;
use cluster::{Controllers, Setup, detached};

/// A real Kubernetes control plane for tests, on loopback.
#[derive(Parser)]
#[command(name = "cluster")]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build programs that are not built yet, and print their paths.
    Build {
        /// Which ones.
        #[arg(required = true)]
        programs: Vec<Program>,
    },
    /// Start a control plane and leave it running.
    Up {
        /// Where it keeps its files.
        #[arg(long, default_value = ".cluster")]
        folder: PathBuf,
        /// How many seconds of history it keeps at least.
        #[arg(long, default_value_t = 300)]
        history: u64,
        /// Start no controllers.
        #[arg(long)]
        bare: bool,
    },
    /// Start a hub and an agent of a control plane that `up` started, and leave them running.
    Node {
        /// Where the control plane keeps its files.
        #[arg(long, default_value = ".cluster")]
        folder: PathBuf,
        /// The build of Holdfast.
        #[arg(long)]
        program: PathBuf,
    },
    /// End the control plane that `up` started, and remove its files.
    Down {
        /// Where it keeps its files.
        #[arg(long, default_value = ".cluster")]
        folder: PathBuf,
        /// Leave its files: somebody will want to read its logs.
        #[arg(long)]
        keep: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Verb) -> anyhow::Result<()> {
    match command {
        Verb::Build { programs } => {
            for program in programs {
                println!("{}", program.built()?.display());
            }
        }
        Verb::Up {
            folder,
            history,
            bare,
        } => {
            let controllers = if bare {
                Controllers::None
            } else {
                Controllers::Upkeep
            };
            let setup = Setup {
                controllers,
                history: Duration::from_secs(history),
            };
            let folder = std::path::absolute(folder)?;
            let (site, state) = match detached::up(&folder, setup)? {
                detached::Up::Started(site) => (site, "ready"),
                detached::Up::Running(site) => (site, "running already"),
            };
            println!("The control plane is {state} at {}.", site.server());
            println!("  export KUBECONFIG={}", site.kubeconfig().display());
            println!("Its logs are in {}.", folder.join("logs").display());
        }
        Verb::Node { folder, program } => {
            let folder = std::path::absolute(folder)?;
            let kubeconfig = detached::node(&folder, &std::path::absolute(program)?)?;
            println!("The node is ready.");
            println!("  export KUBECONFIG={}", kubeconfig.display());
        }
        Verb::Down { folder, keep } => {
            let folder = std::path::absolute(folder)?;
            let ended = match keep {
                true => detached::end(&folder),
                false => detached::down(&folder)?,
            };
            println!("Ended {ended} processes.");
        }
    }
    Ok(())
}
