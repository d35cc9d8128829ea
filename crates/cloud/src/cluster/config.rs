//! Where the cluster is, whom we trust, and who we are.
//!
//! Files are named here and read when they are needed: certificates with each new connection,
//! tokens about once a minute, because whoever put them there replaces them in time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::{Clock, files, tls};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::kubeconfig;

/// Bytes that a file of certificates, keys or a token may have. A larger one is refused.
pub(super) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the cluster is reached.
#[derive(Clone)]
pub struct Config {
    pub(super) server: Server,
    pub(super) trusted: Pem,
    pub(super) certificate: Option<(Pem, Pem)>,
    pub(super) token: Option<Token>,
}

/// Where the cluster's API is.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// `host:port`.
    pub(super) address: String,
    /// Whom its certificate must name.
    pub(super) name: ServerName<'static>,
    /// What stands before every path; empty for most.
    pub(super) prefix: String,
}

/// Certificates or a key: here, or in a file that may change.
#[derive(Clone)]
pub(super) enum Pem {
    Inline(Vec<u8>),
    File(PathBuf),
}

/// A token: here, or in a file that changes.
#[derive(Clone)]
pub(super) enum Token {
    Inline(Arc<str>),
    /// A file that a person names: others must not be able to read it.
    Named(PathBuf),
    /// A file that the cluster puts into a pod, which may have any mode.
    Mounted(PathBuf),
}

/// Why the cluster cannot be reached as it is configured. A person has to change something.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] files::Error),
    /// This is not a kubeconfig.
    #[error("{} is not a kubeconfig: {problem}", path.display())]
    NotAKubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong, without any of its content.
        problem: String,
    },
    /// Something that we do not do, and what to do instead.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Something that must be there is not.
    #[error("{what} is missing; {advice}")]
    Missing {
        /// What.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The address cannot be used.
    #[error("{0:?} is not an address of a cluster; it looks like https://host:6443")]
    BadServer(String),
    /// What should be certificates, a key or a token is not.
    #[error("{what} {} cannot be used", place)]
    Unusable {
        /// What it should be.
        what: &'static str,
        /// Where it stands.
        place: String,
    },
    /// Certificate and key cannot be used together.
    #[error(transparent)]
    Tls(#[from] tls::Error),
}

impl Config {
    /// What a kubeconfig says in its current context. Nothing is read but this one file; the files
    /// that it names are read when they are needed.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, ConfigError> {
        kubeconfig::read(path)
    }

    /// What a pod is given: the cluster's address, its authority, and a token that changes.
    pub fn in_cluster() -> Result<Self, ConfigError> {
        let advice = "run in a pod with a service account, or name a kubeconfig";
        let variable = |what: &'static str| {
            let value = std::env::var(what).ok().filter(|value| !value.is_empty());
            value.ok_or(ConfigError::Missing { what, advice })
        };
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        Self::in_pod(&host, &port, Path::new(SERVICE_ACCOUNT))
    }

    /// As [`Config::in_cluster`], with the address and the folder of the service account given.
    pub fn in_pod(host: &str, port: &str, folder: &Path) -> Result<Self, ConfigError> {
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        let token = folder.join("token");
        // One look, so that a missing service account is told of at the start.
        files::read(&token, FILE_BYTES_MAX)?;
        Ok(Self {
            server: Server::parse(&format!("https://{host}:{port}"), None)?,
            trusted: Pem::File(folder.join("ca.crt")),
            certificate: None,
            token: Some(Token::Mounted(token)),
        })
    }

    /// The same cluster, for somebody who has credentials of his own: nothing of ours is shown.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        Self {
            certificate: None,
            token: None,
            ..self.clone()
        }
    }

    /// The address, for people.
    pub fn address(&self) -> &str {
        &self.server.address
    }

    /// Looks whether the files that are named can be used, so that this is told of at the start.
    pub fn check(&self, clock: &Clock) -> Result<(), ConfigError> {
        self.tls(&tls::ALPN, clock)?;
        if let Some(token) = &self.token {
            token.read()?;
        }
        Ok(())
    }

    /// How TLS is spoken from now on, and what over it: files are read now.
    pub(super) fn tls(
        &self,
        protocols: &[&[u8]],
        clock: &Clock,
    ) -> Result<Arc<ClientConfig>, ConfigError> {
        let servers = self.trusted.certificates(Secrecy::Public)?;
        let own = match &self.certificate {
            Some((chain, key)) => Some((chain.certificates(Secrecy::Public)?, key.key()?)),
            None => None,
        };
        let protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let party = tls::Party {
            servers,
            own,
            protocols,
        };
        Ok(tls::client_of(party, clock)?)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config({})", self.server.address)
    }
}

impl Server {
    /// Takes an address apart. `name` is whom the certificate must name, if not the host.
    pub(super) fn parse(text: &str, name: Option<&str>) -> Result<Self, ConfigError> {
        let bad = || ConfigError::BadServer(text.to_owned());
        let uri: http::Uri = text.parse().map_err(|_| bad())?;
        if uri.scheme_str() != Some("https") || uri.query().is_some() {
            return Err(bad());
        }
        let authority = uri.authority().ok_or_else(bad)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(bad());
        }
        let port = authority.port_u16().unwrap_or(443);
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(name.unwrap_or(bare).to_owned()).map_err(|_| bad())?;
        Ok(Self {
            address: format!("{host}:{port}"),
            name,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// Whether others may read a file.
#[derive(Clone, Copy)]
enum Secrecy {
    Public,
    Secret,
}

impl Pem {
    fn certificates(&self, secrecy: Secrecy) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
        let bytes = self.bytes(secrecy)?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            _ => Err(self.unusable("the PEM certificate")),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, ConfigError> {
        let bytes = self.bytes(Secrecy::Secret)?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| self.unusable("the PEM private key"))
    }

    fn bytes(&self, secrecy: Secrecy) -> Result<Vec<u8>, ConfigError> {
        Ok(match (self, secrecy) {
            (Self::Inline(bytes), _) => bytes.clone(),
            (Self::File(path), Secrecy::Public) => files::read(path, FILE_BYTES_MAX)?,
            (Self::File(path), Secrecy::Secret) => files::read_secret(path, FILE_BYTES_MAX)?,
        })
    }

    fn unusable(&self, what: &'static str) -> ConfigError {
        let place = match self {
            Self::Inline(_) => "in the kubeconfig".to_owned(),
            Self::File(path) => format!("in {}", path.display()),
        };
        ConfigError::Unusable { what, place }
    }
}

impl Token {
    /// The token as it is now.
    pub(super) fn read(&self) -> Result<Arc<str>, ConfigError> {
        let (path, bytes) = match self {
            Self::Inline(token) => return Ok(token.clone()),
            Self::Named(path) => (path, files::read_secret(path, FILE_BYTES_MAX)?),
            Self::Mounted(path) => (path, files::read(path, FILE_BYTES_MAX)?),
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
        let unusable = || ConfigError::Unusable {
            what: "the token",
            place: format!("in {}", path.display()),
        };
        checked_token(text).ok_or_else(unusable)
    }
}

/// A token that can be sent in a header.
pub(super) fn checked_token(text: &str) -> Option<Arc<str>> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.into())
}
