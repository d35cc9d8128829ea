//! The authority, the certificates and the keys of the cluster, kept in its data folder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::pki::{Authority, Credential, Folder, Wanted};
use host::tls::Shown;
use host::{Clock, Shutdown};
use kubeapi::serve::SERVICE_NAMES;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tracing::error;

use super::kubeconfig;
use super::settings::Settings;
use crate::config::value::ServerName;

/// Who the cluster is, and how its administrator is known.
#[derive(Clone)]
pub(crate) struct Identity(Arc<Parts>);

struct Parts {
    folder: Folder,
    authority: Authority,
    wanted: Wanted,
    shown: Arc<Shown>,
    tls: Arc<ServerConfig>,
    signing_key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// Opens what the data folder has and makes what it lacks. The folder must be locked by us.
    pub(crate) fn open(settings: &Settings, clock: &Clock) -> anyhow::Result<Self> {
        let folder = Folder::open(&settings.data_dir.join("pki"), clock.clone())?;
        let authority = folder.authority("ca", "holdfast-ca")?;
        let wanted = serving(settings);
        let shown = Shown::new(&folder.credential("serving", &authority, &wanted)?)?;
        let tls = host::tls::server(shown.clone(), authority.certificate(), clock)?;
        let signing_key = folder.signing_key("service-account")?;
        Ok(Self(Arc::new(Parts {
            folder,
            authority,
            wanted,
            shown,
            tls,
            signing_key,
        })))
    }

    /// The certificate that clients must trust, as PEM.
    pub(crate) fn authority_pem(&self) -> String {
        self.0.authority.certificate_pem()
    }

    /// The administrator's certificate and key, renewed if due.
    pub(crate) fn admin(&self) -> Result<Credential, host::pki::Error> {
        let user = "kubernetes-admin".to_owned();
        let wanted = Wanted::Client {
            user,
            groups: vec!["system:masters".to_owned()],
        };
        self.0
            .folder
            .credential("admin", &self.0.authority, &wanted)
    }

    /// How the API speaks TLS.
    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        self.0.tls.clone()
    }

    /// The P-256 key that signs service-account tokens. A secret.
    pub(crate) fn signing_key(&self) -> &PrivatePkcs8KeyDer<'static> {
        &self.0.signing_key
    }

    /// Renews what is due while the cluster runs. A failure is logged and tried again: what is
    /// there stays good for a third of its life.
    pub(crate) fn renewal(
        &self,
        data_dir: PathBuf,
        address: SocketAddr,
        shutdown: Shutdown,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let identity = self.clone();
        async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(RENEWAL_PERIOD) => {}
                    () = shutdown.triggered() => return Ok(()),
                }
                let renewed = identity.renew_serving();
                if let Err(error) = renewed
                    .and_then(|()| kubeconfig::write(&data_dir, address, &identity).map(drop))
                {
                    error!(error = format!("{error:#}"), "cannot renew certificates");
                }
            }
        }
    }

    fn renew_serving(&self) -> anyhow::Result<()> {
        let Parts {
            folder,
            authority,
            wanted,
            shown,
            ..
        } = &*self.0;
        shown.replace(&folder.credential("serving", authority, wanted)?)?;
        Ok(())
    }
}

/// The names and addresses by which pods, people and this machine reach the API.
fn serving(settings: &Settings) -> Wanted {
    let mut dns: Vec<String> = SERVICE_NAMES.map(str::to_owned).to_vec();
    let mut ips = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(FIRST_SERVICE_IP),
    ];
    for name in &settings.server_names {
        match name {
            ServerName::Dns(name) => push_new(&mut dns, name.clone()),
            ServerName::Ip(ip) => push_new(&mut ips, *ip),
        }
    }
    if !settings.listen.ip().is_unspecified() {
        push_new(&mut ips, settings.listen.ip());
    }
    Wanted::Server {
        name: "kube-apiserver".to_owned(),
        dns,
        ips,
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// The first address of the service range, which the service `kubernetes` gets.
const FIRST_SERVICE_IP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// How often certificates are looked at. They are due months before they end.
const RENEWAL_PERIOD: Duration = Duration::from_secs(6 * 3600);
