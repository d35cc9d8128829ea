//! A kubeconfig -> how the cluster is reached.
//!
//! Only its current context counts. What would run a program, skip verification or speak to a proxy
//! is refused in words, not ignored: a hub that reaches the wrong cluster, or the right one as
//! somebody else, is worse than one that does not start.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use host::files;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::config::{Config, ConfigError, FILE_BYTES_MAX, Pem, Server, Token, checked_token};

pub(super) fn read(path: &Path) -> Result<Config, ConfigError> {
    let bytes = files::read(path, FILE_BYTES_MAX)?;
    let broken = |problem: String| ConfigError::NotAKubeconfig {
        path: path.to_owned(),
        problem,
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| broken("it is not UTF-8".into()))?;
    let file = parse(text).map_err(broken)?;
    let (cluster, user) = file.current().map_err(|what| broken(what.into()))?;
    if user.has_secret() {
        // Once more, with a look at who else may read it.
        files::read_secret(path, FILE_BYTES_MAX)?;
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    config(folder, cluster, user)
}

fn parse(text: &str) -> Result<Kubeconfig, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 50_000,
            max_events: 200_000,
            max_anchors: 0,
            max_aliases: 0,
            max_documents: 1,
        },
        with_snippet: false,
    };
    // The parser's own words may quote the text, which holds secrets: only the place is told.
    serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(at) => format!("line {}, column {} cannot be read", at.line(), at.column()),
        None => "it cannot be read as YAML".into(),
    })
}

fn config(folder: &Path, cluster: Cluster, user: User) -> Result<Config, ConfigError> {
    if let Some(refused) = cluster.refused().or(user.refused()) {
        return Err(ConfigError::Unsupported(refused));
    }
    let server = cluster.server.unwrap_or_default();
    let server = Server::parse(&server, cluster.tls_server_name.as_deref())?;
    let authority = (cluster.authority_data, cluster.authority);
    let trusted = pem(folder, authority)?.ok_or(ConfigError::Missing {
        what: "certificate-authority-data of the cluster",
        advice: "add it: without it nobody knows whom the kubeconfig trusts",
    })?;
    let chain = pem(folder, (user.certificate_data, user.certificate))?;
    let key = pem(folder, (user.key_data, user.key))?;
    let certificate = match (chain, key) {
        (Some(chain), Some(key)) => Some((chain, key)),
        (None, None) => None,
        _ => {
            return Err(ConfigError::Missing {
                what: "one of client-certificate and client-key",
                advice: "give both, or neither",
            });
        }
    };
    let token = token(folder, user.token, user.token_file)?;
    if certificate.is_none() && token.is_none() {
        return Err(ConfigError::Missing {
            what: "a client certificate or a token of the user",
            advice: "add one: the cluster would take us for nobody",
        });
    }
    Ok(Config {
        server,
        trusted,
        certificate,
        token,
    })
}

/// Data in the file comes before a file that it names, as kubectl has it.
fn pem(
    folder: &Path,
    (data, path): (Option<String>, Option<PathBuf>),
) -> Result<Option<Pem>, ConfigError> {
    let filled = |text: &String| !text.is_empty();
    match (data.filter(filled), path) {
        (Some(data), _) => match BASE64_STANDARD.decode(data.trim()) {
            Ok(bytes) => Ok(Some(Pem::Inline(bytes))),
            Err(_) => Err(ConfigError::Unusable {
                what: "base64 data",
                place: "in the kubeconfig".into(),
            }),
        },
        (None, Some(path)) if path != Path::new("") => Ok(Some(Pem::File(folder.join(path)))),
        _ => Ok(None),
    }
}

/// A file comes before a token that stands here, as kubectl has it: the file is the newer one.
fn token(
    folder: &Path,
    token: Option<String>,
    file: Option<PathBuf>,
) -> Result<Option<Token>, ConfigError> {
    match (file.filter(|file| file != Path::new("")), token) {
        (Some(file), _) => Ok(Some(Token::Named(folder.join(file)))),
        (None, Some(token)) if !token.is_empty() => match checked_token(&token) {
            Some(token) => Ok(Some(Token::Inline(token))),
            None => Err(ConfigError::Unusable {
                what: "the token",
                place: "in the kubeconfig".into(),
            }),
        },
        _ => Ok(None),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
}

impl Kubeconfig {
    /// The cluster and the user of the current context.
    fn current(self) -> Result<(Cluster, User), &'static str> {
        let current = self.current_context.unwrap_or_default();
        let mut contexts = self.contexts.into_iter().flatten();
        let context = contexts.find(|named| named.name == current);
        let context = context.ok_or("its current-context is not among its contexts")?;
        let context = context.context;
        let mut clusters = self.clusters.into_iter().flatten();
        let cluster = clusters.find(|named| named.name == context.cluster);
        let cluster = cluster.ok_or("the cluster of its current context is not in it")?;
        let mut users = self.users.into_iter().flatten();
        let user = users.find(|named| named.name == context.user);
        let user = user.ok_or("the user of its current context is not in it")?;
        Ok((cluster.cluster, user.user))
    }
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: Option<String>,
    tls_server_name: Option<String>,
    #[serde(rename = "certificate-authority")]
    authority: Option<PathBuf>,
    #[serde(rename = "certificate-authority-data")]
    authority_data: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    proxy_url: Option<String>,
}

impl Cluster {
    fn refused(&self) -> Option<&'static str> {
        if self.insecure_skip_tls_verify == Some(true) {
            return Some(
                "insecure-skip-tls-verify is refused: anybody on the way could take the cluster's \
                 place; give certificate-authority-data instead",
            );
        }
        let proxy = self.proxy_url.as_deref().unwrap_or_default();
        (!proxy.is_empty()).then_some("proxy-url is not supported: give an address without a proxy")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    #[serde(rename = "client-certificate")]
    certificate: Option<PathBuf>,
    #[serde(rename = "client-certificate-data")]
    certificate_data: Option<String>,
    #[serde(rename = "client-key")]
    key: Option<PathBuf>,
    #[serde(rename = "client-key-data")]
    key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
    username: Option<String>,
    #[serde(rename = "as")]
    impersonates: Option<String>,
}

impl User {
    fn has_secret(&self) -> bool {
        let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        filled(&self.key_data) || filled(&self.token)
    }

    fn refused(&self) -> Option<&'static str> {
        if self.exec.is_some() {
            return Some(
                "exec plugins are not supported: they run programs; give a client certificate, a \
                 token or a tokenFile, for example of a service account",
            );
        }
        if self.auth_provider.is_some() {
            return Some(
                "auth-provider is not supported: give a client certificate, a token or a tokenFile",
            );
        }
        if self
            .username
            .as_deref()
            .is_some_and(|name| !name.is_empty())
        {
            return Some("username and password are not supported: Kubernetes removed them");
        }
        let acts = self.impersonates.as_deref().unwrap_or_default();
        (!acts.is_empty()).then_some("as is not supported: give the credentials of that user")
    }
}
