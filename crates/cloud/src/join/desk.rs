//! A request over HTTPS -> an answer: the rules of joining, run against the cluster.

use std::net::SocketAddr;
use std::time::Duration;

use host::http::Response;
use host::pki::{Request, Validity};
use host::{Clock, secret};
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};
use wire::join::{
    Issued, JOIN_PATH, JoinRequest, NodeName, RENEW_PATH, Refusal, RenewRequest, Token,
};

use super::claim::{Claim, Name};
use super::limiter::{Limiter, Renewals};
use super::record::Resource;
use super::records::{RecordError, Records};
use super::revoked::{Revocations, Revoked};
use super::signer::{NotIssued, Peer, Signer};
use super::token::{Attempt, Kept, Verdict, judge_nothing};
use super::{Happening, Why};

/// Requests that are worked on at once. Others are asked to come again: each costs the cluster a
/// few requests.
pub const REQUESTS_MAX: usize = 64;

/// Certificates that are signed at once, each on a thread of its own beside those that carry
/// sessions. Who comes further waits for its turn.
const SIGNATURES_MAX: usize = 2;

/// Where nodes ask for certificates.
pub struct Desk<R> {
    records: R,
    signer: Signer,
    revocations: Revocations,
    clock: Clock,
    limiter: Mutex<Limiter>,
    renewals: Mutex<Renewals>,
    signatures: Semaphore,
    turns: Semaphore,
}

/// A request as it came in.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What it is for.
    pub path: &'a str,
    /// Its content.
    pub body: &'a [u8],
    /// The certificate that the peer showed, which TLS verified.
    pub peer: Option<&'a CertificateDer<'static>>,
    /// Where it comes from.
    pub remote: SocketAddr,
}

/// What is said, and what happened.
#[derive(Debug)]
pub struct Answer {
    /// The answer for the one who asked.
    pub response: Response,
    /// What people should see in the cluster.
    pub happened: Option<Happening>,
}

/// Why somebody does not get what it asked for.
enum No {
    /// It did something wrong, and is told these words with this status.
    Theirs(u16, String, Why),
    /// We cannot say yet.
    Later(u16, &'static str, Duration),
}

impl<R: Records> Desk<R> {
    /// A desk that keeps its records there.
    pub fn new(records: R, signer: Signer, revocations: Revocations, clock: Clock) -> Self {
        Self {
            records,
            signer,
            revocations,
            clock,
            limiter: Mutex::default(),
            renewals: Mutex::default(),
            signatures: Semaphore::new(SIGNATURES_MAX),
            turns: Semaphore::new(REQUESTS_MAX),
        }
    }

    /// Who is revoked, as this hub knows it.
    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Answers a request. Nothing of a token is ever logged.
    pub async fn answer(&self, question: Question<'_>) -> Answer {
        let ip = question.remote.ip();
        let allowed = self.limiter.lock().check(ip, self.clock.now());
        let answered = match (allowed, self.turns.try_acquire()) {
            (Err(wait), _) => Err(No::Later(429, TOO_MANY, wait)),
            (Ok(()), Err(_)) => Err(No::Later(503, BUSY, spread())),
            (Ok(()), Ok(_turn)) => match question.path {
                JOIN_PATH => self.join(&question).await,
                RENEW_PATH => self.renew(&question).await,
                _ => Err(No::Theirs(404, "not found".to_owned(), Why::BadRequest)),
            },
        };
        match answered {
            Ok((issued, happened)) => Answer {
                response: json(200, None, &issued),
                happened,
            },
            Err(no) => self.refuse(&question, no),
        }
    }

    async fn join(&self, question: &Question<'_>) -> Result<(Issued, Option<Happening>), No> {
        let asked: JoinRequest = parse(question.body)?;
        let node: NodeName = asked.node.parse().map_err(bad)?;
        let request = Request::read(&asked.csr).map_err(bad)?;
        Signer::check(&request, &node).map_err(bad)?;
        let token: Token = asked.token.parse().map_err(|_| unknown(Why::NoSuchToken))?;

        let now = self.clock.wall();
        let revoked = self.revoked()?.since(&node);
        let attempt = Attempt {
            token: &token,
            node: &node,
            key: request.key_hash(),
            revoked,
            now,
        };
        let kept = self.consume(&attempt).await?;
        let validity = self.validity(revoked, now)?;
        let claim = Claim::new(&node, &kept, attempt.key, now);
        let name = claim.keep(&kept.bound, &self.records).await;
        taken_unless_free(name.map_err(|error| unavailable(&error))?)?;
        let issued = self.issue(request, &node, validity).await?;
        info!(%node, token = kept.id, remote = %question.remote, "a node joined");
        let pool = kept.pool().map(str::to_owned);
        Ok((issued, Some(Happening::Joined { node, pool })))
    }

    /// Uses the token up, or finds that it may not be used.
    async fn consume(&self, attempt: &Attempt<'_>) -> Result<Kept, No> {
        for _ in 0..ATTEMPTS_MAX {
            let name = Kept::record_name(attempt.token.id());
            let found = self.records.get(Resource::Secrets, &name).await;
            let found = found.map_err(|error| unavailable(&error))?;
            let Some(kept) = found.as_ref().and_then(Kept::read) else {
                return Err(unknown(judge_nothing(attempt.token)));
            };
            if kept.judge(attempt).map_err(unknown)? == Verdict::Repeated {
                return Ok(kept);
            }
            // What would fail later must fail before the token is used up.
            self.validity(attempt.revoked, attempt.now)?;
            let claim = Claim::new(attempt.node, &kept, attempt.key, attempt.now);
            let name = claim.is_free(&kept.bound, &self.records).await;
            taken_unless_free(name.map_err(|error| unavailable(&error))?)?;
            let used = kept.used_by(attempt);
            match self.records.update(&used.record()).await {
                Ok(()) => return Ok(used),
                // Another hub was faster: maybe for the same node, which asked twice.
                Err(RecordError::Conflict) => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Err(unavailable(&RecordError::Conflict))
    }

    async fn renew(&self, question: &Question<'_>) -> Result<(Issued, Option<Happening>), No> {
        let Some(certificate) = question.peer else {
            let words = "a certificate is renewed with the certificate itself; join with a token";
            return Err(No::Theirs(401, words.to_owned(), Why::WrongCertificate));
        };
        let wrong = |words: String| No::Theirs(403, words, Why::WrongCertificate);
        let peer = Peer::read(certificate).map_err(|error| wrong(error.to_string()))?;
        let now = self.clock.wall();
        // TLS checked this too, but perhaps long ago.
        if now > peer.validity.not_after {
            return Err(wrong(
                "the certificate is expired; join with a new token".to_owned(),
            ));
        }
        let revoked = self.revoked()?;
        if revoked.refuses(&peer.node, peer.validity.not_before) {
            let words = "the node is revoked; join with a new token".to_owned();
            return Err(No::Theirs(403, words, Why::Revoked));
        }
        let asked: RenewRequest = parse(question.body)?;
        let request = Request::read(&asked.csr).map_err(bad)?;
        Signer::check(&request, &peer.node).map_err(|error| wrong(error.to_string()))?;
        let validity = self.validity(revoked.since(&peer.node), now)?;
        let turn = self.renewals.lock().take(&peer.node, self.clock.now());
        turn.map_err(|wait| No::Later(429, RENEWED_OFTEN, wait))?;
        let issued = self.issue(request, &peer.node, validity).await?;
        debug!(node = %peer.node, "renewed a certificate");
        Ok((issued, None))
    }

    fn revoked(&self) -> Result<std::sync::Arc<Revoked>, No> {
        let known = self.revocations.known();
        known.ok_or_else(|| No::Later(503, NOT_READY, spread()))
    }

    fn validity(&self, revoked: Option<Timestamp>, now: Timestamp) -> Result<Validity, No> {
        self.signer.validity(revoked, now).map_err(|error| {
            warn!(%error, "cannot issue a certificate yet");
            No::Later(503, REVOKED_AHEAD, Duration::from_secs(2))
        })
    }

    async fn issue(
        &self,
        request: Request,
        node: &NodeName,
        validity: Validity,
    ) -> Result<Issued, No> {
        let failed = || No::Later(500, FAILED, spread());
        let _turn = self.signatures.acquire().await.map_err(|_| failed())?;
        let (signer, name) = (self.signer.clone(), node.clone());
        let signing = move || signer.issue(&request, &name, validity);
        let signed = tokio::task::spawn_blocking(signing).await;
        let certificate = match signed.map_err(|_| failed())? {
            Ok(certificate) => certificate,
            Err(NotIssued::Failed(error)) => {
                warn!(%node, %error, "cannot issue a certificate");
                return Err(failed());
            }
            Err(error) => return Err(bad(error)),
        };
        Ok(Issued {
            certificate,
            ca: self.signer.authority_pem(),
            beside: self.signer.beside_pem(),
        })
    }

    fn refuse(&self, question: &Question<'_>, no: No) -> Answer {
        let remote = question.remote;
        let (status, words, why) = match no {
            No::Theirs(status, words, why) => (status, words, why),
            No::Later(status, words, wait) => {
                debug!(%remote, status, words, "a node was asked to come again");
                let error = words.to_owned();
                return Answer {
                    response: json(status, Some(wait), &Refusal { error }),
                    happened: None,
                };
            }
        };
        self.limiter
            .lock()
            .handle_failure(remote.ip(), self.clock.now());
        warn!(%remote, status, %why, "a node was refused");
        let node = claimed(question);
        Answer {
            response: json(status, None, &Refusal { error: words }),
            happened: Some(Happening::Refused { node, remote, why }),
        }
    }
}

/// The name that was asked for, if it is one: nothing else of a request is told on.
fn claimed(question: &Question<'_>) -> Option<NodeName> {
    if let Some(peer) = question.peer.and_then(|peer| Peer::read(peer).ok()) {
        return Some(peer.node);
    }
    let asked: JoinRequest = serde_json::from_slice(question.body).ok()?;
    asked.node.parse().ok()
}

fn parse<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, No> {
    // The reader's own words may quote the body, which holds a token: only the place is told.
    serde_json::from_slice(body).map_err(|error| {
        let words = format!("not the JSON expected here, at column {}", error.column());
        No::Theirs(400, words, Why::BadRequest)
    })
}

fn bad(error: impl std::error::Error) -> No {
    No::Theirs(400, error.to_string(), Why::BadRequest)
}

/// Whatever is wrong with a token, the one who sent it hears the same.
fn unknown(why: Why) -> No {
    let words = "the token is not good: it is unknown, expired, used, or for another node";
    No::Theirs(401, words.to_owned(), why)
}

fn taken_unless_free(name: Name) -> Result<(), No> {
    match name {
        Name::Free => Ok(()),
        Name::Taken => {
            let words = "another node has this name; to take it over, use a token that was created \
                         with --node and this name";
            Err(No::Theirs(409, words.to_owned(), Why::NameTaken))
        }
    }
}

fn unavailable(error: &RecordError) -> No {
    warn!(%error, "cannot ask the cluster about a node that wants to join");
    No::Later(503, "the cluster cannot be asked now", spread())
}

fn json(status: u16, retry_after: Option<Duration>, body: &impl serde::Serialize) -> Response {
    Response {
        status,
        retry_after,
        body: serde_json::to_vec(body).expect("texts can be written as JSON"),
    }
}

/// Five to fifteen seconds: who was sent away together does not come back together.
fn spread() -> Duration {
    let [chance] = secret::random::<1>().unwrap_or([128]);
    Duration::from_secs(5 + u64::from(chance) * 10 / 255)
}

/// How often a token is looked at that others use too.
const ATTEMPTS_MAX: u32 = 4;

const TOO_MANY: &str = "too many failed attempts";
const BUSY: &str = "too many nodes join at once";
const NOT_READY: &str = "this hub does not know yet who is revoked";
const REVOKED_AHEAD: &str =
    "the node was revoked a moment ago, or at a time that is yet to come by this hub's clock";
const RENEWED_OFTEN: &str = "this node renewed its certificate too often";
const FAILED: &str = "the certificate could not be made";
