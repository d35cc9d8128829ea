//! A token, or a certificate -> the next certificate, from a hub over HTTPS.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use host::http::{self, Asked, ExchangeFailed, Response};
use host::pki::Pin;
use host::tls::{self, NotPinned};
use host::{Clock, Shutdown, chain, dial, secret};
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use serde::Serialize;
use tokio::time::timeout;
use tracing::{info, warn};
use wire::join::{
    BODY_BYTES_MAX, Issued, JOIN_PATH, JoinRequest, NODES_GROUP, NodeName, RENEW_PATH, Refusal,
    RenewRequest, Token,
};

use super::home::{Home, HomeError, Identity};
use super::schedule::Standing;

/// A hub that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// `host:port`.
    address: String,
    /// Whom its certificate must name.
    name: ServerName<'static>,
}

/// A text that is no hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hub: write HOST:PORT, such as hub.example:8443 or [2001:db8::1]:8443")]
pub struct NotAHub;

impl Hub {
    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whom its certificate must name.
    pub fn name(&self) -> &ServerName<'static> {
        &self.name
    }
}

impl FromStr for Hub {
    type Err = NotAHub;

    fn from_str(text: &str) -> Result<Self, NotAHub> {
        let (host, port) = text.rsplit_once(':').ok_or(NotAHub)?;
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = port.parse().map_err(|_| NotAHub)?;
        let bare = host.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
        let name = match bare {
            Some(ip) => ServerName::from(ip.parse::<std::net::Ipv6Addr>().map_err(|_| NotAHub)?),
            None if host.contains(':') => return Err(NotAHub),
            None => ServerName::try_from(host.to_owned()).map_err(|_| NotAHub)?,
        };
        match port != 0 && digits {
            true => Ok(Self {
                address: text.to_owned(),
                name,
            }),
            false => Err(NotAHub),
        }
    }
}

/// Who wants to join what, and why it should be let in.
#[derive(Clone, Debug)]
pub struct Joining {
    /// The hubs, each of which will do.
    pub hubs: Vec<Hub>,
    /// The name that this machine wants to have.
    pub node: NodeName,
    /// The token.
    pub token: Token,
    /// The pin of the hubs' authority.
    pub pin: Pin,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The way to the hub failed. Try again.
    #[error("the hub at {hub} cannot be reached")]
    Unreachable {
        /// The hub.
        hub: String,
        /// Why.
        source: io::Error,
    },
    /// This is not the hub that the join command names, or somebody is in between. Nothing was
    /// sent to it.
    #[error("the hub at {hub} cannot be trusted")]
    Untrusted {
        /// The hub.
        hub: String,
        /// Why.
        source: NotPinned,
    },
    /// By our clock the hub's certificate is not valid.
    #[error(
        "by this machine's clock ({ours}) the certificate of the hub at {hub} is {wrong}; set the \
         clock and try again"
    )]
    WrongTime {
        /// The hub.
        hub: String,
        /// What our clock says.
        ours: jiff::Timestamp,
        /// What is wrong.
        wrong: String,
    },
    /// The hub's certificate is of an authority that we do not know: another one took over while
    /// this node was away, or somebody is in between. Nothing was sent to it.
    #[error(
        "the hub at {0} has a certificate of an authority that this node does not know. If the \
         hubs' authority was replaced, make a token with `holdfast token create` and start with \
         --token-file and the --ca-hash that it prints"
    )]
    Stranger(String),
    /// The hub said no. Asking again is of no use.
    #[error("the hub refused ({status}): {words}")]
    Refused {
        /// Its status.
        status: u16,
        /// Its words.
        words: String,
    },
    /// The hub cannot say yet.
    #[error("the hub asks to come again ({status}): {words}")]
    Later {
        /// Its status.
        status: u16,
        /// Its words.
        words: String,
        /// After how long, if it said so.
        wait: Option<Duration>,
    },
    /// The answer makes no sense.
    #[error("the answer of the hub at {0} makes no sense")]
    BadAnswer(String),
    /// Our certificate is over: there is nothing to renew it with.
    #[error(
        "the certificate of node {node} expired at {at}; what is on disk is still served. Make a \
         token with `holdfast token create --node {node}` and start with --token-file and the \
         --ca-hash that it prints"
    )]
    Expired {
        /// The node.
        node: NodeName,
        /// When.
        at: jiff::Timestamp,
    },
    /// This data belongs to another node.
    #[error("this data is that of node {held}; to join as {asked}, use another data directory")]
    OtherNode {
        /// Whose it is.
        held: NodeName,
        /// Who asked.
        asked: NodeName,
    },
    /// Our own disk, or what the hub issued.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// We are leaving.
    #[error("stopped before the node had joined")]
    Shutdown,
}

impl Failed {
    /// Whether trying again without changing anything is of no use.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Later { .. }
            | Self::BadAnswer(_)
            | Self::Stranger(_)
            | Self::WrongTime { .. } => false,
            Self::Untrusted { .. }
            | Self::Refused { .. }
            | Self::Expired { .. }
            | Self::OtherNode { .. }
            | Self::Home(_)
            | Self::Shutdown => true,
        }
    }

    /// How long a hub asked us to wait.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Later { wait, .. } => *wait,
            _ => None,
        }
    }
}

/// Joins with a token at one of the hubs, the first that answers. What is kept of another node is
/// refused; an older identity of the same node is replaced once the new one is on disk.
pub async fn join(home: &Home, joining: &Joining, clock: &Clock) -> Result<Identity, Failed> {
    // One that cannot be read is replaced as well: a new token is how a node recovers.
    if let Ok(Some(held)) = home.identity()
        && held.node != joining.node
    {
        return Err(Failed::OtherNode {
            held: held.node,
            asked: joining.node.clone(),
        });
    }
    let key = home.pending_key()?;
    let user = joining.node.user();
    let csr = key.request(&user, NODES_GROUP).map_err(HomeError::Pki)?;
    let request = JoinRequest {
        token: joining.token.text(),
        node: joining.node.to_string(),
        csr,
    };
    let tls = tls::pinned_client(joining.pin, clock).map_err(HomeError::Tls)?;
    let issued = ask_any(&joining.hubs, JOIN_PATH, &request, tls).await?;
    let identity = Identity::of_issued(&key, &joining.node, &issued, &[joining.pin])?;
    home.keep(&identity)?;
    home.note_token(&joining.token)?;
    info!(node = %identity.node, until = %identity.validity.not_after, "joined");
    Ok(identity)
}

/// Joins, however long it takes for a hub to answer; a refusal ends it. What keeps it from joining
/// is told each time.
pub async fn join_until(
    home: &Home,
    joining: &Joining,
    clock: &Clock,
    shutdown: &Shutdown,
    told: impl Fn(&Failed),
) -> Result<Identity, Failed> {
    let mut failures = 0;
    loop {
        let failed = match join(home, joining, clock).await {
            Ok(identity) => return Ok(identity),
            Err(failed) if failed.is_final() => return Err(failed),
            Err(failed) => failed,
        };
        told(&failed);
        failures += 1;
        let pause = pause(failures, WAIT_MAX).max(failed.wait().unwrap_or_default());
        warn!(error = chain(&failed), wait = ?pause, "cannot join yet");
        tokio::select! {
            () = clock.sleep_until(clock.now() + pause) => {}
            () = shutdown.triggered() => return Err(Failed::Shutdown),
        }
    }
}

/// Gets the next certificate for the one that is there, with a new key, and keeps it.
pub async fn renew(
    home: &Home,
    identity: &Identity,
    hubs: &[Hub],
    clock: &Clock,
) -> Result<Identity, Failed> {
    if identity.standing(clock.wall()) == Standing::Expired {
        return Err(Failed::Expired {
            node: identity.node.clone(),
            at: identity.validity.not_after,
        });
    }
    let key = home.pending_key()?;
    let user = identity.node.user();
    let csr = key.request(&user, NODES_GROUP).map_err(HomeError::Pki)?;
    let tls = identity.tls(clock)?;
    let issued = ask_any(hubs, RENEW_PATH, &RenewRequest { csr }, tls).await?;
    let next = Identity::of_issued(&key, &identity.node, &issued, &identity.pins()?)?;
    home.keep(&next)?;
    info!(node = %next.node, until = %next.validity.not_after, "renewed the certificate");
    Ok(next)
}

/// Asks the hubs in turn until one says yes or no for good. The last failure is the answer.
async fn ask_any(
    hubs: &[Hub],
    path: &str,
    request: &impl Serialize,
    tls: Arc<ClientConfig>,
) -> Result<Issued, Failed> {
    let body = serde_json::to_vec(request).expect("texts can be written as JSON");
    let mut last = Failed::BadAnswer("nobody".to_owned());
    for hub in hubs {
        match ask(hub, path, &body, tls.clone()).await {
            Ok(issued) => return Ok(issued),
            Err(failed @ Failed::Refused { .. }) => return Err(failed),
            Err(failed) => last = failed,
        }
    }
    Err(last)
}

async fn ask(hub: &Hub, path: &str, body: &[u8], tls: Arc<ClientConfig>) -> Result<Issued, Failed> {
    let dialled = dial::secure(&hub.address, hub.name.clone(), tls, DIAL_TIME_MAX).await;
    let mut stream = dialled.map_err(|error| unreachable(hub, error))?;
    let asked = Asked {
        host: &hub.address,
        path,
        body,
    };
    let answered = timeout(
        ANSWER_TIME_MAX,
        http::ask(&mut stream, asked, BODY_BYTES_MAX),
    )
    .await;
    match answered {
        Ok(Ok(response)) => read(hub, &response),
        Ok(Err(ExchangeFailed::Lost(error))) => Err(unreachable(hub, error)),
        Ok(Err(_)) => Err(Failed::BadAnswer(hub.address.clone())),
        Err(_) => Err(unreachable(hub, io::ErrorKind::TimedOut.into())),
    }
}

fn read(hub: &Hub, response: &Response) -> Result<Issued, Failed> {
    let status = response.status;
    if status == 200 {
        let issued = serde_json::from_slice(&response.body);
        return issued.map_err(|_| Failed::BadAnswer(hub.address.clone()));
    }
    let refusal = serde_json::from_slice::<Refusal>(&response.body);
    let words = refusal.map_or_else(|_| "no words".to_owned(), |refusal| refusal.error);
    // What a stranger says goes to a terminal.
    let words: String = words
        .chars()
        .filter(|c| !c.is_control())
        .take(500)
        .collect();
    match status {
        400..500 if status != 429 => Err(Failed::Refused { status, words }),
        _ => Err(Failed::Later {
            status,
            words,
            wait: response.retry_after,
        }),
    }
}

/// Why a connection failed, as far as TLS tells.
fn unreachable(hub: &Hub, error: io::Error) -> Failed {
    let hub = hub.address.clone();
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let certificate = match tls {
        Some(rustls::Error::InvalidCertificate(certificate)) => certificate,
        _ => return Failed::Unreachable { hub, source: error },
    };
    let wrong_time = |ours: u64, wrong: String| Failed::WrongTime {
        hub: hub.clone(),
        ours: moment(ours),
        wrong,
    };
    match certificate {
        CertificateError::NotValidYetContext { time, not_before } => {
            let from = moment(not_before.as_secs());
            wrong_time(time.as_secs(), format!("not valid before {from}"))
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let to = moment(not_after.as_secs());
            wrong_time(time.as_secs(), format!("not valid after {to}"))
        }
        CertificateError::Other(other) => match other.0.downcast_ref::<NotPinned>() {
            Some(source) => Failed::Untrusted {
                hub,
                source: *source,
            },
            None => Failed::Unreachable { hub, source: error },
        },
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Failed::Stranger(hub),
        _ => Failed::Unreachable { hub, source: error },
    }
}

/// Why TLS does not take a hub, in words that say what to do where that is known.
pub(crate) fn not_trusted(hub: &Hub, error: io::Error) -> String {
    match unreachable(hub, error) {
        Failed::Unreachable { source, .. } => source.to_string(),
        known => known.to_string(),
    }
}

fn moment(seconds: u64) -> jiff::Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX)
}

/// A random time up to a bound that doubles with every failure: whoever failed together does not
/// come back together.
pub(super) fn pause(failures: u32, longest: Duration) -> Duration {
    let bound = WAIT_FIRST
        .saturating_mul(1 << failures.min(16))
        .min(longest);
    let [chance] = secret::random::<1>().unwrap_or([128]);
    WAIT_FIRST / 4 + bound.mul_f64(f64::from(chance) / 255.0)
}

const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
const DIAL_TIME_MAX: Duration = Duration::from_secs(10);
/// A hub takes at most half a minute for its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(40);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_a_host_and_a_port_and_nothing_else() {
        for good in [
            "hub.example:8443",
            "10.0.0.1:1",
            "[::1]:8443",
            "localhost:65535",
        ] {
            assert_eq!(good.parse::<Hub>().unwrap().address(), good);
        }
        for wrong in [
            "",
            "hub",
            "hub:",
            ":8443",
            "hub:0",
            "hub:+1",
            "hub:70000",
            "https://hub:8443",
            "user@hub:8443",
            "::1:8443",
            "[hub]:8443",
            "[::1]",
            " hub:8443",
            "hub:8443 ",
            "hub:8443/x",
        ] {
            assert_eq!(wrong.parse::<Hub>(), Err(NotAHub), "{wrong:?}");
        }
    }

    #[test]
    fn a_pause_is_never_nothing_and_never_longer_than_its_bound() {
        for failures in 0..100 {
            let pause = pause(failures, WAIT_MAX);
            assert!(pause >= WAIT_FIRST / 4 && pause <= WAIT_MAX + WAIT_FIRST);
        }
    }
}
