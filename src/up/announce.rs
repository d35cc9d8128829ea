//! What to try next, told to the person who started the cluster.

use std::net::SocketAddr;
use std::path::Path;

use tracing::info;

use crate::failure::print;

/// Says that the cluster is ready, and the three commands to try.
pub(crate) fn ready(address: SocketAddr, kubeconfig: &Path) -> anyhow::Result<()> {
    info!(%address, kubeconfig = %kubeconfig.display(), "ready");
    print(&text(kubeconfig))?;
    Ok(())
}

fn text(kubeconfig: &Path) -> String {
    format!(
        "
The cluster is ready. Try:

  export KUBECONFIG={}
  kubectl create namespace demo
  kubectl get namespaces

Ctrl-C stops it.
",
        quoted(&kubeconfig.to_string_lossy())
    )
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
