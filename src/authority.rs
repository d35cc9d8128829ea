//! `holdfast authority`: replace the authority of links, step by step.

use cloud::join::takeover::{self, Stage, Standing, Step};

use crate::cli::{AuthorityCommand, ClusterFlags};
use crate::cluster;
use crate::failure::{Failure, print};

/// Does what was asked for, and says what comes next.
pub(crate) fn run(command: AuthorityCommand, flags: &ClusterFlags) -> Result<(), Failure> {
    let step = match command {
        AuthorityCommand::Show => None,
        AuthorityCommand::Prepare => Some((Step::Prepare, false)),
        AuthorityCommand::Switch { even_now } => Some((Step::Switch, even_now)),
        AuthorityCommand::Retire { even_now } => Some((Step::Retire, even_now)),
    };
    let standing = cluster::ask(flags, async |client, clock| {
        let now = clock.wall();
        Ok(match step {
            None => takeover::look(&client, now).await?,
            Some((step, even_now)) => takeover::take(&client, step, even_now, now).await?,
        })
    })?;
    let mut words = told(&standing);
    if step.is_some() {
        words.push_str(
            "\nRestart all hubs now, one after the other: each reads this at its start.\n",
        );
    }
    print(&words).map_err(Failure::run)
}

fn told(standing: &Standing) -> String {
    let Standing { issuing, ends, .. } = standing;
    let from = standing.not_before.map(|at| format!("{at:.0}"));
    let from = from.unwrap_or_else(|| "now".to_owned());
    let stage = match standing.stage {
        Stage::Settled => {
            "No other one is trusted. To replace it: holdfast authority prepare\n".to_owned()
        }
        Stage::Prepared(next) => format!(
            "The next one is {next}. Nodes learn of it when they renew their certificates.\n\
             From {from} on: holdfast authority switch\n"
        ),
        Stage::Switched(old) => format!(
            "The old one, {old}, is still trusted. Nodes leave it when they renew their \
             certificates.\nFrom {from} on: holdfast authority retire\n"
        ),
    };
    format!("Certificates are issued by {issuing}, which ends at {ends:.0}.\n{stage}")
}
