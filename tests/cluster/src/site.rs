//! Where a server is and how one gets in: a folder with a kubeconfig and the cluster's authority.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use host::Clock;
use host::files::{self, Audience};
use host::pki::{Authority, Credential, Folder, Wanted};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::Error;

/// A server's folder: `kubeconfig`, and `pki/` with the authority that signs its clients. Both of
/// our servers keep theirs like this.
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
    server: String,
}

impl Site {
    /// Reads the folder of a server that runs, or did.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("kubeconfig");
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("server: "));
        let server = line.ok_or_else(|| {
            let error = std::io::Error::other("names no server");
            Error::File { path, error }
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            server: server.to_owned(),
        })
    }

    /// Makes the folder of a new server that will listen on this port of loopback.
    pub(crate) fn make(folder: &Path, port: u16) -> Result<Self, Error> {
        let server = format!("https://127.0.0.1:{port}");
        let site = Self {
            folder: folder.to_owned(),
            server,
        };
        site.write_kubeconfig("kubeconfig", &site.admin()?)?;
        Ok(site)
    }

    /// The address with its scheme, such as `https://127.0.0.1:6443`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The address to dial, such as `127.0.0.1:6443`.
    pub fn address(&self) -> &str {
        self.server.trim_start_matches("https://")
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The authority that signs the server's and its clients' certificates.
    pub fn authority(&self) -> Result<Authority, Error> {
        Ok(self.pki()?.authority("ca", "test-cluster-ca")?)
    }

    /// A certificate of the administrator: a member of `system:masters`.
    pub fn admin(&self) -> Result<Credential, Error> {
        self.client("kubernetes-admin", &["system:masters"])
    }

    /// A client certificate for this user in these groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Credential, Error> {
        let user = user.to_owned();
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let now = Clock::machine().wall();
        Ok(self
            .authority()?
            .issue(&Wanted::Client { user, groups }, now)?)
    }

    /// How a client with this certificate, or with none, speaks TLS to the server.
    pub fn tls(&self, credential: Option<&Credential>) -> Result<ClientConfig, Error> {
        let refused = |error: rustls::Error| {
            let error = std::io::Error::other(error);
            Error::File {
                path: self.folder.join("pki"),
                error,
            }
        };
        let authority = self.authority()?;
        tls([authority.certificate()], credential).map_err(refused)
    }

    pub(crate) fn pki(&self) -> Result<Folder, Error> {
        Ok(Folder::open(&self.folder.join("pki"), Clock::machine())?)
    }

    /// Writes a kubeconfig for this client into the folder, readable by its owner alone.
    pub fn write_kubeconfig(&self, name: &str, client: &Credential) -> Result<PathBuf, Error> {
        let authority = self.authority()?.certificate_pem();
        let [authority, certificate, key] = [authority, client.certificate_pem(), client.key_pem()]
            .map(|pem| BASE64_STANDARD.encode(pem));
        let server = &self.server;
        let text = format!(
            "\
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: client
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: test
  context:
    cluster: test
    user: client
current-context: test
"
        );
        let path = self.folder.join(name);
        files::write(&path, text.as_bytes(), Audience::Owner).map_err(host::pki::Error::from)?;
        Ok(path)
    }

    /// Whether the server answers that it has what is at a path. One that is not there has not.
    pub(crate) fn serves(&self, tls: &Arc<ClientConfig>, path: &str) -> bool {
        self.beginning_of_answer(tls, path)
            .is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200 "))
    }

    fn beginning_of_answer(&self, tls: &Arc<ClientConfig>, path: &str) -> std::io::Result<Vec<u8>> {
        let name = ServerName::try_from("127.0.0.1").map_err(std::io::Error::other)?;
        let session = ClientConnection::new(tls.clone(), name).map_err(std::io::Error::other)?;
        let socket = TcpStream::connect(self.address())?;
        socket.set_read_timeout(Some(ANSWER_WITHIN))?;
        let mut stream = StreamOwned::new(session, socket);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = vec![0; 16];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    }
}

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How a client with this certificate, or with none, speaks TLS to servers of these authorities.
pub(crate) fn tls<'a>(
    authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>,
    credential: Option<&Credential>,
) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match credential {
        None => Ok(builder.with_no_client_auth()),
        Some(Credential { certificate, key }) => builder.with_client_auth_cert(
            vec![certificate.clone()],
            PrivateKeyDer::Pkcs8(key.clone_key()),
        ),
    }
}
