//! `holdfast kubeconfig`: how clients on a node find its API.

use anyhow::Context;
use edge::local::identity::{self, KUBECONFIG_BYTES_MAX};
use host::files::{self, Audience};

use crate::cli::{Holder, KubeconfigFlags};
use crate::failure::{Failure, print};

/// Prints a kubeconfig that the agent has written, or copies it.
pub(crate) fn run(flags: &KubeconfigFlags) -> Result<(), Failure> {
    let holder = match flags.holder {
        Holder::Admin => identity::Holder::Admin,
        Holder::Kubelet => identity::Holder::Kubelet,
    };
    let path = identity::kubeconfig(&flags.data_dir, holder);
    let text = files::read_private(&path, KUBECONFIG_BYTES_MAX)
        .context("no kubeconfig; the agent writes it when it starts with its API (--api) on")
        .map_err(Failure::Run)?;
    match &flags.output {
        Some(file) => files::write(file, &text, Audience::Owner).map_err(Failure::run),
        None => print(&String::from_utf8_lossy(&text)).map_err(Failure::run),
    }
}
