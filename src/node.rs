//! `holdfast node`: revoke nodes, and take it back.

use anyhow::bail;
use cloud::join::revoked;

use crate::cli::{ClusterFlags, NodeCommand};
use crate::cluster;
use crate::failure::{Failure, print};

/// Does what was asked for and says what it means.
pub(crate) fn run(command: NodeCommand, flags: &ClusterFlags) -> Result<(), Failure> {
    let said = cluster::ask(flags, async |client, clock| match command {
        NodeCommand::Revoke { name, reason } => {
            revoked::revoke(&client, &name, &reason, clock.wall()).await?;
            let known = client.get(&format!("/api/v1/nodes/{name}")).await;
            let doubt = match known {
                Err(error) if error.status().is_some_and(|status| status.code == 404) => {
                    "\nThe cluster has no Node of this name: look whether it is the one that you \
                     mean (`kubectl get nodes`).\n"
                }
                _ => "",
            };
            Ok(format!(
                "Node {name} is revoked. Hubs cut it off at once. To let it join again:\n\n  \
                 holdfast token create --node {name}\n{doubt}"
            ))
        }
        NodeCommand::Unrevoke { name } => match revoked::unrevoke(&client, &name).await? {
            true => Ok(format!(
                "Node {name} is not revoked any more. Its certificates are good again.\n"
            )),
            false => bail!("node {name} is not revoked"),
        },
    })?;
    print(&said).map_err(Failure::run)
}
