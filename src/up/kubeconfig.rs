//! How kubectl finds the cluster: a kubeconfig in the data folder.
//!
//! It is written there and nowhere else: a person's own `~/.kube/config` is theirs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use host::files::{self, Audience};
use kubeapi::kubeconfig::Kubeconfig;

use super::identity::Identity;

/// Writes the administrator's kubeconfig (mode 0600, it holds a key) and gives its path.
pub(crate) fn write(
    data_dir: &Path,
    address: SocketAddr,
    identity: &Identity,
) -> anyhow::Result<PathBuf> {
    let path = data_dir.join("kubeconfig");
    let admin = identity.admin()?;
    let config = Kubeconfig {
        address,
        cluster: "holdfast",
        user: "holdfast-admin",
        authority: &identity.authority_pem(),
        certificate: &admin.certificate_pem(),
        key: &admin.key_pem(),
    };
    files::write(&path, config.text().as_bytes(), Audience::Owner)?;
    Ok(path)
}
