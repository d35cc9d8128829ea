//! The authority of links: one for all hubs, in a Secret; and what a hub shows under it.

use std::sync::Arc;
use std::time::Duration;

use host::pki::{Authority, Credential, Error, Leaf, Validity, Wanted};
use host::tls::{Introducing, Shown};
use host::{Clock, Shutdown};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tracing::{error, info};

use super::record::{Record, Resource};
use super::records::{RecordError, Records};

/// The Secret that the authority of links is kept in.
pub const LINK_CA: &str = "holdfast-link-ca";

const COMMON_NAME: &str = "holdfast-link-ca";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum NoAuthority {
    /// The record could not be read or written.
    #[error("cannot read or make Secret {LINK_CA}")]
    Record(#[source] RecordError),
    /// What is in it is no authority. It is never replaced: every node trusts it.
    #[error("Secret {LINK_CA} does not hold an authority; restore it from a backup")]
    Damaged(#[source] Option<Error>),
    /// It is past its end.
    #[error("the authority in Secret {LINK_CA} expired at {0}; every node has to join anew")]
    Expired(Timestamp),
    /// A new one could not be made.
    #[error("cannot make an authority")]
    Make(#[source] Error),
}

/// The authority that all hubs share. The first who asks makes it; of two at once, one is faster
/// and the other takes that.
pub async fn shared(records: &impl Records, now: Timestamp) -> Result<Authority, NoAuthority> {
    for _ in 0..ATTEMPTS_MAX {
        let found = records.get(Resource::Secrets, LINK_CA).await;
        if let Some(record) = found.map_err(NoAuthority::Record)? {
            return read(&record, now);
        }
        let authority = Authority::create(COMMON_NAME, now).map_err(NoAuthority::Make)?;
        match records.create(&record(&authority)).await {
            Ok(()) => {
                info!(secret = LINK_CA, "made the authority of links");
                return Ok(authority);
            }
            Err(RecordError::Conflict) => {}
            Err(error) => return Err(NoAuthority::Record(error)),
        }
    }
    Err(NoAuthority::Record(RecordError::Conflict))
}

fn record(authority: &Authority) -> Record {
    let mut record = Record::new(Resource::Secrets, LINK_CA, "link-ca")
        .with(CERTIFICATE, authority.certificate_pem())
        .with(KEY, authority.key_pem());
    record.secret_type = "kubernetes.io/tls".to_owned();
    record
}

fn read(record: &Record, now: Timestamp) -> Result<Authority, NoAuthority> {
    let (Some(certificate), Some(key)) = (record.text(CERTIFICATE), record.text(KEY)) else {
        return Err(NoAuthority::Damaged(None));
    };
    let damaged = |error| NoAuthority::Damaged(Some(error));
    let authority = Authority::from_pem(certificate.as_bytes(), key.as_bytes()).map_err(damaged)?;
    let leaf = Leaf::read(authority.certificate()).map_err(damaged)?;
    match leaf.validity.not_after > now {
        true => Ok(authority),
        false => Err(NoAuthority::Expired(leaf.validity.not_after)),
    }
}

/// What a hub shows to nodes: a certificate that lives in memory and is renewed there.
pub struct Serving {
    authority: Arc<Authority>,
    wanted: Wanted,
    shown: Arc<Shown>,
    validity: Mutex<Validity>,
    tls: Arc<ServerConfig>,
}

/// Bytes of a TLS record that a hub sends. Nothing of a record can be read before all of it is
/// there: over the slowest link a larger one would take longer than an agent waits for a sign of
/// life.
const RECORD_BYTES_MAX: usize = 2 * 1024;

/// Why a hub cannot show anything.
#[derive(Debug, thiserror::Error)]
pub enum CannotServe {
    /// The certificate could not be made.
    #[error("cannot make the hub's certificate")]
    Certificate(#[source] Error),
    /// It cannot be used.
    #[error("cannot use the hub's certificate")]
    Tls(#[source] host::tls::Error),
}

impl Serving {
    /// A hub that is reached by the names and addresses in `wanted`.
    pub fn new(
        authority: Arc<Authority>,
        wanted: Wanted,
        clock: &Clock,
    ) -> Result<Self, CannotServe> {
        let (credential, validity) = issue(&authority, &wanted, clock.wall())?;
        let shown = Shown::new(&credential).map_err(CannotServe::Tls)?;
        let introducing = Introducing::new(shown.clone(), authority.certificate());
        let tls = host::tls::server(introducing, authority.certificate(), clock);
        let mut tls = tls.map_err(CannotServe::Tls)?;
        Arc::make_mut(&mut tls).max_fragment_size = Some(RECORD_BYTES_MAX);
        Ok(Self {
            tls,
            authority,
            wanted,
            shown,
            validity: Mutex::new(validity),
        })
    }

    /// How a hub speaks TLS: nodes by their certificate, strangers as nobody, and nobody resumed.
    pub fn tls(&self) -> Arc<ServerConfig> {
        self.tls.clone()
    }

    /// Shows a new certificate if the old one is due.
    pub fn renew_if_due(&self, now: Timestamp) -> Result<(), CannotServe> {
        if !self.validity.lock().is_due(now) {
            return Ok(());
        }
        let (credential, validity) = issue(&self.authority, &self.wanted, now)?;
        self.shown.replace(&credential).map_err(CannotServe::Tls)?;
        *self.validity.lock() = validity;
        Ok(())
    }

    /// Renews for as long as the hub runs. A failure is logged and tried again: a third of the old
    /// one's life is left.
    pub async fn run(self: Arc<Self>, clock: Clock, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = clock.sleep_until(clock.now() + RENEWAL_PERIOD) => {}
                () = shutdown.triggered() => return,
            }
            if let Err(error) = self.renew_if_due(clock.wall()) {
                error!(%error, "cannot renew the hub's certificate");
            }
        }
    }
}

fn issue(
    authority: &Authority,
    wanted: &Wanted,
    now: Timestamp,
) -> Result<(Credential, Validity), CannotServe> {
    let issued = authority.issue_for(wanted, SERVING_LIFE, now);
    let credential = issued.map_err(CannotServe::Certificate)?;
    let leaf = Leaf::read(&credential.certificate).map_err(CannotServe::Certificate)?;
    Ok((credential, leaf.validity))
}

/// How long a hub's certificate lives. It is made anew at each start and in its last third.
const SERVING_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How often a hub looks whether its certificate is due.
const RENEWAL_PERIOD: Duration = Duration::from_secs(3600);

/// How often the authority is looked for while others make and remove it.
const ATTEMPTS_MAX: u32 = 4;
