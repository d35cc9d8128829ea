//! What to try next, told to the person who started the cluster.

use std::net::SocketAddr;
use std::path::Path;

use tracing::info;

use super::family::Node;
use crate::failure::print;

/// Says that the cluster is ready, and the three commands to try.
pub(crate) fn ready(address: SocketAddr, kubeconfig: &Path, nodes: &[Node]) -> anyhow::Result<()> {
    info!(%address, kubeconfig = %kubeconfig.display(), "ready");
    print(&text(kubeconfig, nodes))?;
    Ok(())
}

fn text(kubeconfig: &Path, nodes: &[Node]) -> String {
    let mut text = format!(
        "
The cluster is ready. Try:

  export KUBECONFIG={}
  kubectl create namespace demo
  kubectl get namespaces
",
        quoted(&kubeconfig.to_string_lossy())
    );
    if let Some(node) = nodes.first() {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let home = quoted(&node.data_dir.to_string_lossy());
        let status = status(&node.data_dir);
        let name = &node.name;
        text.push_str(&format!(
            "
Agents run on {}. How they are doing, and what one of them holds on its disk:

  {status}
  holdfast status --agent {home}

Each has a Kubernetes API of its own, which goes on without the hub:

  holdfast kubeconfig --data-dir {home} --output {name}.kubeconfig
  kubectl --kubeconfig {name}.kubeconfig get services -A
",
            names.join(", ")
        ));
    }
    text.push_str("\nCtrl-C stops it.\n");
    text
}

/// What tells how all nodes are doing: where the cluster is not in its usual place, that is named.
fn status(home: &Path) -> String {
    let run_dir = home.ancestors().nth(2).map(|data| data.join("run"));
    let usual = super::default_data_dir().map(|data| data.join("run"));
    match run_dir.filter(|run_dir| Some(run_dir) != usual.as_ref()) {
        Some(run_dir) => format!(
            "holdfast status --run-dir {}",
            quoted(&run_dir.to_string_lossy())
        ),
        None => "holdfast status".to_owned(),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell_whatever_it_holds() {
        assert_eq!(quoted("/home/ada/kubeconfig"), "/home/ada/kubeconfig");
        assert_eq!(quoted("/my files/$x"), "'/my files/$x'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
