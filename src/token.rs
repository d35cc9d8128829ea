//! `holdfast token`: make, list and revoke tokens that let nodes join.

use std::fmt::Write;

use anyhow::{Context, bail};
use cloud::cluster::Client;
use cloud::join::authority;
use cloud::join::token::{self, Bound, Kept};
use host::Clock;
use host::files::{self, Audience};
use host::pki::Pin;
use jiff::Timestamp;
use serde_json::{Value, json};
use wire::join::Token;

use crate::cli::{ClusterFlags, Output, TokenCommand, TokenFlags};
use crate::cluster;
use crate::failure::{Failure, print};

/// Does what was asked for.
pub(crate) fn run(command: TokenCommand, flags: &ClusterFlags) -> Result<(), Failure> {
    match command {
        TokenCommand::Create(wanted) => {
            let made = cluster::ask(flags, async |client, clock| {
                create(&client, &clock, &wanted).await
            })?;
            tell(&made, &wanted).map_err(Failure::Run)
        }
        TokenCommand::List { output } => {
            let said = cluster::ask(flags, async |client, clock| {
                let tokens = token::list(&client).await?;
                list(&tokens, output, clock.wall())
            })?;
            print(&said).map_err(Failure::run)
        }
        TokenCommand::Revoke { id } => {
            if !Token::is_id(&id) {
                let words = "the id of a token has 8 lower-case letters or digits; it stands \
                             before the dot";
                return Err(Failure::Usage(anyhow::anyhow!(words)));
            }
            cluster::ask(flags, async |client, _| {
                match token::revoke(&client, &id).await? {
                    true => Ok(()),
                    false => bail!("there is no token {id}"),
                }
            })?;
            print(&format!("Token {id} is revoked.\n")).map_err(Failure::run)
        }
    }
}

/// A token that was made, and what to do with it.
struct Made {
    token: Token,
    kept: Kept,
    pin: Pin,
}

async fn create(client: &Client, clock: &Clock, wanted: &TokenFlags) -> anyhow::Result<Made> {
    let bound = match (&wanted.node, &wanted.pool) {
        (Some(node), None) => Bound::Node(node.clone()),
        (None, Some(pool)) => Bound::Pool(pool.0.clone()),
        _ => bail!("say either --node or --pool"),
    };
    let now = clock.wall();
    // First the authority: without it nobody could join.
    let authority = authority::shared(client, now).await?;
    let pin = Pin::of(authority.certificate())?;
    token::sweep(client, now).await?;
    let (token, kept) = token::create(client, bound, wanted.ttl.0, now).await?;
    if let Some(path) = &wanted.token_file {
        let text = format!("{}\n", token.text());
        if let Err(error) = files::write(path, text.as_bytes(), Audience::Owner) {
            // Nobody has it: it must not lie around.
            token::revoke(client, token.id()).await?;
            return Err(error).context("the token was not kept");
        }
    }
    Ok(Made { token, kept, pin })
}

/// Prints the token, unless it is in a file, and the command to run on the node. The two never
/// stand together: where the token goes to standard output, the command goes to standard error.
fn tell(made: &Made, wanted: &TokenFlags) -> anyhow::Result<()> {
    let command = join_command(made, wanted);
    let (id, expires) = (&made.kept.id, made.kept.expires);
    let words = format!(
        "Token {id} is {}, good once and until {expires:.0}. Bring it to the node in a file that \
         only its owner can read, and run there:\n\n  {command}\n",
        whom(&made.kept.bound),
    );
    match (wanted.output, &wanted.token_file) {
        (Output::Json, file) => {
            let mut shown = shown(&made.kept);
            shown["caHash"] = json!(made.pin.to_string());
            shown["joinCommand"] = json!(command);
            match file {
                Some(path) => shown["tokenFile"] = json!(path),
                None => shown["token"] = json!(made.token.text()),
            }
            print(&format!("{shown:#}\n"))?;
        }
        (Output::Text, Some(_)) => print(&words)?,
        (Output::Text, None) => {
            eprint!("{words}");
            print(&format!("{}\n", made.token.text()))?;
        }
    }
    Ok(())
}

/// The command that a node joins with. The token is not in it: a command line can be read by
/// everyone on a machine.
fn join_command(made: &Made, wanted: &TokenFlags) -> String {
    let mut command = "holdfast edge".to_owned();
    if wanted.hubs.is_empty() {
        command.push_str(" --hub HOST:PORT");
    }
    for hub in &wanted.hubs {
        command = format!("{command} --hub {}", hub.address());
    }
    if let Bound::Node(node) = &made.kept.bound {
        command = format!("{command} --node {node}");
    }
    format!("{command} --token-file FILE --ca-hash {}", made.pin)
}

fn whom(bound: &Bound) -> String {
    match bound {
        Bound::Node(node) => format!("for node {node}"),
        Bound::Pool(pool) => format!("for a new node of pool {pool}"),
    }
}

fn list(tokens: &[Kept], output: Output, now: Timestamp) -> anyhow::Result<String> {
    if matches!(output, Output::Json) {
        let shown: Vec<Value> = tokens.iter().map(shown).collect();
        return Ok(format!("{:#}\n", json!(shown)));
    }
    if tokens.is_empty() {
        return Ok("There are no tokens. Make one with: holdfast token create\n".to_owned());
    }
    let mut text = format!("{:<10}{:<34}{:<22}STATE\n", "ID", "FOR", "EXPIRES");
    for kept in tokens {
        let whom = match &kept.bound {
            Bound::Node(node) => format!("node {node}"),
            Bound::Pool(pool) => format!("pool {pool}"),
        };
        let state = match &kept.used {
            Some(used) => format!("used by {}", used.node),
            None if kept.expires <= now => "expired".to_owned(),
            None => "not used".to_owned(),
        };
        let expires = format!("{:.0}", kept.expires);
        writeln!(text, "{:<10}{whom:<33} {expires:<22}{state}", kept.id)?;
    }
    Ok(text)
}

fn shown(kept: &Kept) -> Value {
    let mut shown = json!({
        "id": kept.id,
        "created": kept.created,
        "expires": kept.expires,
    });
    match &kept.bound {
        Bound::Node(node) => shown["node"] = json!(node.as_str()),
        Bound::Pool(pool) => shown["pool"] = json!(pool),
    }
    if let Some(used) = &kept.used {
        shown["usedBy"] = json!(used.node.as_str());
        shown["usedAt"] = json!(used.at);
    }
    shown
}
