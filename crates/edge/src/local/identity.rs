//! The certificates of a node's API: an authority of the node's own, what it shows, and what the
//! node's own clients show. None of them is worth anything elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::Clock;
use host::files::{self, Audience};
use host::pki::{self, Authority, Folder, Wanted};
use host::tls::{self, Shown};
use jiff::{SignedDuration, Timestamp};
use kubeapi::kubeconfig::Kubeconfig;
use kubeapi::serve::SERVICE_NAMES;
use kubeapi::who::User;
use kubeapi::who::user::{LOCAL_ADMINS, NODES};
use rustls::ServerConfig;
use wire::join::NodeName;

use super::rights::user_of;

/// What the API of a node shows and whom it knows.
pub struct Identity {
    folder: Folder,
    path: PathBuf,
    node: NodeName,
    authority: Authority,
    wanted: Wanted,
    shown: Arc<Shown>,
}

/// Why the API has no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// One cannot be read, made or kept.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// It is not good for TLS.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A kubeconfig cannot be written.
    #[error(transparent)]
    File(#[from] files::Error),
}

/// Who a kubeconfig is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Whoever looks after the node.
    Admin,
    /// What runs as the node: a kubelet.
    Kubelet,
}

impl Holder {
    /// Everyone that a kubeconfig is written for.
    pub const ALL: [Self; 2] = [Self::Admin, Self::Kubelet];

    /// The word for it, which its files are named after.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Kubelet => "kubelet",
        }
    }

    fn wanted(self, node: &NodeName) -> Wanted {
        let (user, group) = match self {
            Self::Admin => (KEEPER.to_owned(), LOCAL_ADMINS),
            Self::Kubelet => (user_of(node), NODES),
        };
        Wanted::Client {
            user,
            groups: vec![group.to_owned()],
        }
    }
}

/// What whoever looks after the node is called.
const KEEPER: &str = "holdfast:local-admin";

/// Whoever looks after the node, as a user of its API.
pub(super) fn keeper() -> User {
    User::new(KEEPER, [LOCAL_ADMINS]).authenticated()
}

/// Where a kubeconfig lies in a node's folder.
pub fn kubeconfig(data_dir: &Path, holder: Holder) -> PathBuf {
    folder(data_dir).join(format!("{}.kubeconfig", holder.word()))
}

/// Where the API listened last time, as its kubeconfig says.
pub(super) fn last_address(data_dir: &Path) -> Option<SocketAddr> {
    let path = kubeconfig(data_dir, Holder::Admin);
    let text = files::read_private(&path, KUBECONFIG_BYTES_MAX).ok()?;
    let text = std::str::from_utf8(&text).ok()?;
    let server = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("server: https://"))?;
    server.parse().ok()
}

/// How old kubeconfigs may be before it is looked whether they are still good. When one is written
/// it is good for a third of a year at least.
const KUBECONFIG_AGE_MAX: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Whether there are kubeconfigs for this address that are good, without opening any certificate.
/// Where that cannot be said they are not.
pub(super) fn is_ready(data_dir: &Path, address: SocketAddr, now: Timestamp) -> bool {
    let server = format!("server: https://{address}\n");
    Holder::ALL.into_iter().all(|holder| {
        let path = kubeconfig(data_dir, holder);
        let text = files::read_private(&path, KUBECONFIG_BYTES_MAX).unwrap_or_default();
        let written = std::fs::metadata(&path).and_then(|found| found.modified());
        let written = written.ok().and_then(|at| Timestamp::try_from(at).ok());
        let age = written.map(|at| now.duration_since(at));
        let fresh = age.is_some_and(|age| !age.is_negative() && age < KUBECONFIG_AGE_MAX);
        fresh && String::from_utf8_lossy(&text).contains(&server)
    })
}

/// Bytes of a kubeconfig of ours.
pub const KUBECONFIG_BYTES_MAX: u64 = 64 * 1024;

fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("local")
}

impl Identity {
    /// Opens what the node's folder has and makes what it lacks. The folder must be locked by us.
    pub fn open(
        data_dir: &Path,
        node: &NodeName,
        address: IpAddr,
        clock: &Clock,
    ) -> Result<Self, Failed> {
        let path = folder(data_dir);
        let folder = Folder::open(&path, clock.clone())?;
        let authority = folder.authority("ca", &format!("holdfast-local-{node}"))?;
        let wanted = serving(node, address);
        let shown = Shown::new(&folder.credential("serving", &authority, &wanted)?)?;
        Ok(Self {
            folder,
            path,
            node: node.clone(),
            authority,
            wanted,
            shown,
        })
    }

    /// The authority whose certificate the API shows.
    pub fn authority_pem(&self) -> String {
        self.authority.certificate_pem()
    }

    /// How the API speaks TLS.
    pub fn tls(&self, clock: &Clock) -> Result<Arc<ServerConfig>, Failed> {
        let clients = self.authority.certificate();
        Ok(tls::server(self.shown.clone(), clients, clock)?)
    }

    /// Issues anew what is due, and writes the kubeconfigs (mode 0600, they hold keys).
    pub fn renew(&self, address: SocketAddr) -> Result<(), Failed> {
        let serving = self
            .folder
            .credential("serving", &self.authority, &self.wanted)?;
        self.shown.replace(&serving)?;
        for holder in Holder::ALL {
            let wanted = holder.wanted(&self.node);
            let own = self
                .folder
                .credential(holder.word(), &self.authority, &wanted)?;
            let config = Kubeconfig {
                address,
                cluster: self.node.as_str(),
                user: holder.word(),
                authority: &self.authority.certificate_pem(),
                certificate: &own.certificate_pem(),
                key: &own.key_pem(),
            };
            let path = self.path.join(format!("{}.kubeconfig", holder.word()));
            files::write(&path, config.text().as_bytes(), Audience::Owner)?;
        }
        Ok(())
    }
}

/// The names and addresses by which what runs on the node reaches the API.
fn serving(node: &NodeName, address: IpAddr) -> Wanted {
    let mut dns: Vec<String> = SERVICE_NAMES.map(str::to_owned).to_vec();
    dns.push(node.to_string());
    let mut ips = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    if !address.is_unspecified() && !ips.contains(&address) {
        ips.push(address);
    }
    Wanted::Server {
        name: format!("holdfast-{node}"),
        dns,
        ips,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn kubeconfigs_are_for_their_owner_alone_and_stay_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::machine();
        let node: NodeName = "n1".parse().unwrap();
        let at: SocketAddr = "127.0.0.1:10443".parse().unwrap();
        let mut texts = Vec::new();
        for _ in 0..2 {
            let identity = Identity::open(folder.path(), &node, at.ip(), &clock).unwrap();
            identity.renew(at).unwrap();
            identity.tls(&clock).unwrap();
            for holder in Holder::ALL {
                let path = kubeconfig(folder.path(), holder);
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                texts.push(std::fs::read_to_string(&path).unwrap());
            }
        }
        let later = |hours| clock.wall() + SignedDuration::from_hours(hours);
        assert!(is_ready(folder.path(), at, later(1)));
        assert!(!is_ready(folder.path(), at, later(31 * 24)));
        assert!(
            !is_ready(folder.path(), at, later(-31 * 24)),
            "a clock that went back"
        );
        assert!(!is_ready(
            folder.path(),
            "127.0.0.1:10444".parse().unwrap(),
            later(1)
        ));
        assert_eq!(texts[..2], texts[2..]);
        assert_ne!(texts[0], texts[1]);
        assert!(texts[0].contains("server: https://127.0.0.1:10443\n"));
    }
}
