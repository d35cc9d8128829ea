//! How kubectl finds the cluster: a kubeconfig in the data folder, with certificates inside.
//!
//! It is written there and nowhere else: a person's own `~/.kube/config` is theirs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use host::files::{self, Audience};

use super::identity::Identity;

/// Writes the administrator's kubeconfig (mode 0600, it holds a key) and gives its path.
pub(crate) fn write(
    data_dir: &Path,
    address: SocketAddr,
    identity: &Identity,
) -> anyhow::Result<PathBuf> {
    let path = data_dir.join("kubeconfig");
    let admin = identity.admin()?;
    let text = text(
        reachable(address),
        &identity.authority_pem(),
        &admin.certificate_pem(),
        &admin.key_pem(),
    );
    files::write(&path, text.as_bytes(), Audience::Owner)?;
    Ok(path)
}

fn text(address: SocketAddr, authority: &str, certificate: &str, key: &str) -> String {
    let [authority, certificate, key] =
        [authority, certificate, key].map(|pem| BASE64_STANDARD.encode(pem));
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: holdfast
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: holdfast-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: holdfast
  context:
    cluster: holdfast
    user: holdfast-admin
current-context: holdfast
"
    )
}

/// The address that a client on this machine dials: one cannot dial "all of them".
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_dials_loopback_when_we_listen_everywhere() {
        for (listens, dials) in [
            ("0.0.0.0:6443", "127.0.0.1:6443"),
            ("[::]:6443", "[::1]:6443"),
            ("192.0.2.7:7443", "192.0.2.7:7443"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()), dials.parse().unwrap());
        }
    }

    #[test]
    fn certificates_are_embedded_and_the_context_is_set() {
        let text = text("[::1]:6443".parse().unwrap(), "ca", "crt", "key");
        assert!(text.contains("server: https://[::1]:6443\n"));
        assert!(text.contains("certificate-authority-data: Y2E=\n"));
        assert!(text.contains("client-certificate-data: Y3J0\n"));
        assert!(text.contains("client-key-data: a2V5\n"));
        assert!(text.ends_with("current-context: holdfast\n"));
    }
}
