//! How a client finds an API and who it is there: the text of a kubeconfig, with certificates
//! inside. It holds a key: who writes it down sees to it that others do not read it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// What a kubeconfig says.
pub struct Kubeconfig<'a> {
    /// Where the API listens.
    pub address: SocketAddr,
    /// What the cluster is called in it, and its context.
    pub cluster: &'a str,
    /// What the user is called in it.
    pub user: &'a str,
    /// The authority whose servers are trusted, as PEM.
    pub authority: &'a str,
    /// The user's certificate, as PEM.
    pub certificate: &'a str,
    /// The user's key, as PEM.
    pub key: &'a str,
}

impl Kubeconfig<'_> {
    /// The text.
    pub fn text(&self) -> String {
        let [authority, certificate, key] =
            [self.authority, self.certificate, self.key].map(|pem| BASE64_STANDARD.encode(pem));
        let (cluster, user) = (self.cluster, self.user);
        let address = reachable(self.address);
        format!(
            "\
apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: {user}
current-context: {cluster}
"
        )
    }
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
        let text = Kubeconfig {
            address: "[::1]:6443".parse().unwrap(),
            cluster: "holdfast",
            user: "holdfast-admin",
            authority: "ca",
            certificate: "crt",
            key: "key",
        };
        let text = text.text();
        assert!(text.contains("server: https://[::1]:6443\n"));
        assert!(text.contains("certificate-authority-data: Y2E=\n"));
        assert!(text.contains("client-certificate-data: Y3J0\n"));
        assert!(text.contains("client-key-data: a2V5\n"));
        assert!(text.ends_with("current-context: holdfast\n"));
    }
}
