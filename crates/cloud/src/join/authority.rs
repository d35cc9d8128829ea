//! The authority of links: one for all hubs, in a Secret; and what a hub shows under it.
//!
//! While one takes over from another ([`super::takeover`]) both are trusted, and one issues.

use std::sync::Arc;
use std::time::Duration;

use host::pki::{Authority, Credential, Error, Leaf, Validity, Wanted, certificate_from_pem};
use host::tls::{Introducing, Shown};
use host::{Clock, Shutdown};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tracing::{error, info};

use super::record::{Record, Resource};
use super::records::{RecordError, Records};

/// The Secret that the authority of links is kept in.
pub const LINK_CA: &str = "holdfast-link-ca";

pub(super) const COMMON_NAME: &str = "holdfast-link-ca";
pub(super) const CERTIFICATE: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";
/// The certificate of an authority that will take over.
pub(super) const NEXT_CERTIFICATE: &str = "next.crt";
/// The certificate of the authority that was before.
pub(super) const OLD_CERTIFICATE: &str = "old.crt";

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

/// Who issues, and who is trusted beside it.
#[derive(Clone)]
pub struct Authorities {
    issuing: Arc<Authority>,
    beside: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// The one that issues certificates of nodes and of hubs.
    pub fn issuing(&self) -> &Authority {
        &self.issuing
    }

    /// Those that are trusted beside it: the next one, or the one before.
    pub fn beside(&self) -> &[CertificateDer<'static>] {
        &self.beside
    }

    fn all(&self) -> Vec<CertificateDer<'static>> {
        let issuing = self.issuing.certificate().clone();
        [&[issuing], self.beside()].concat()
    }
}

impl From<Arc<Authority>> for Authorities {
    /// An authority alone.
    fn from(issuing: Arc<Authority>) -> Self {
        let beside = Vec::new();
        Self { issuing, beside }
    }
}

/// The authority that all hubs share. The first who asks makes it; of two at once, one is faster
/// and the other takes that.
pub async fn shared(records: &impl Records, now: Timestamp) -> Result<Authority, NoAuthority> {
    read(&found(records, now).await?, now)
}

/// The same, with those that are trusted beside it.
pub async fn trusted(records: &impl Records, now: Timestamp) -> Result<Authorities, NoAuthority> {
    let record = found(records, now).await?;
    Ok(Authorities {
        issuing: Arc::new(read(&record, now)?),
        beside: beside(&record)?,
    })
}

/// The record of the authority, which is made if there is none.
async fn found(records: &impl Records, now: Timestamp) -> Result<Record, NoAuthority> {
    for _ in 0..ATTEMPTS_MAX {
        let found = records.get(Resource::Secrets, LINK_CA).await;
        if let Some(record) = found.map_err(NoAuthority::Record)? {
            return Ok(record);
        }
        let authority = Authority::create(COMMON_NAME, now).map_err(NoAuthority::Make)?;
        let record = record(&authority);
        match records.create(&record).await {
            Ok(()) => {
                info!(secret = LINK_CA, "made the authority of links");
                return Ok(record);
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

/// The authority of a record.
pub(super) fn read(record: &Record, now: Timestamp) -> Result<Authority, NoAuthority> {
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

/// Those that a record says are trusted beside its authority. One that cannot be read is not passed
/// over: nodes would be lost when it takes over.
fn beside(record: &Record) -> Result<Vec<CertificateDer<'static>>, NoAuthority> {
    let texts = [NEXT_CERTIFICATE, OLD_CERTIFICATE];
    let texts = texts.iter().filter_map(|key| record.text(key));
    let read = texts.map(|text| certificate_from_pem(text.as_bytes()));
    let read: Result<Vec<_>, Error> = read.collect();
    read.map_err(|error| NoAuthority::Damaged(Some(error)))
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
        authorities: impl Into<Authorities>,
        wanted: Wanted,
        clock: &Clock,
    ) -> Result<Self, CannotServe> {
        let authorities = authorities.into();
        let authority = Arc::clone(&authorities.issuing);
        let (credential, validity) = issue(&authority, &wanted, clock.wall())?;
        let shown = Shown::new(&credential).map_err(CannotServe::Tls)?;
        let introducing = Introducing::new(shown.clone(), authority.certificate());
        let tls = host::tls::server_of(introducing, &authorities.all(), clock);
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
