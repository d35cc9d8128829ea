//! Key, certificate and authorities on the node's disk.
//!
//! They are one file that is replaced in one step: whoever looks, also after a power cut,
//! finds an identity that fits together. A key that waits for its certificate has a file of its
//! own, so that a node which lost the answer asks again with the same key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::files::{self, Audience};
use host::pki::{self, Credential, Key, Leaf, Pin, Validity};
use host::tls::{self, HTTP1, Party};
use host::{Clock, secret};
use jiff::Timestamp;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use wire::join::{BESIDE_MAX, Issued, NODES_GROUP, NodeName, Token};

use super::schedule::{self, Standing};

/// Who this node is.
#[derive(Clone)]
pub struct Identity {
    /// Its name.
    pub node: NodeName,
    /// When its certificate is valid.
    pub validity: Validity,
    credential: Credential,
    /// Whom we trust: the one that issued the certificate, and those beside it.
    authorities: Vec<CertificateDer<'static>>,
}

/// Why what is on disk, or what a hub sent, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] files::Error),
    /// The file does not hold an identity.
    #[error(
        "{} does not hold this node's key and certificates; move it away and join with a new token",
        .0.display()
    )]
    Damaged(PathBuf),
    /// A key or certificate cannot be used.
    #[error("a key or certificate cannot be used")]
    Pki(#[from] pki::Error),
    /// The certificate is not the one that was asked for.
    #[error("the hub issued another certificate than was asked for")]
    OtherCertificate,
    /// The authority is none that we trust.
    #[error("the hub named an authority that this node does not trust, with pin {0}")]
    OtherAuthority(Pin),
    /// There are more authorities than make sense.
    #[error("the hub named more than {BESIDE_MAX} further authorities")]
    TooManyAuthorities,
    /// TLS cannot use it.
    #[error("the certificate cannot be used for TLS")]
    Tls(#[from] tls::Error),
}

impl Identity {
    /// What a hub issued for a key, if it is what was asked for. We trust the authority that issued
    /// it already; those beside it are trusted since that one says so.
    pub(super) fn of_issued(
        key: &Key,
        node: &NodeName,
        issued: &Issued,
        trusted: &[Pin],
    ) -> Result<Self, HomeError> {
        let authority = pki::certificate_from_pem(issued.ca.as_bytes())?;
        let pin = Pin::of(&authority)?;
        if !trusted.contains(&pin) {
            return Err(HomeError::OtherAuthority(pin));
        }
        if issued.beside.len() > BESIDE_MAX {
            return Err(HomeError::TooManyAuthorities);
        }
        let mut authorities = vec![authority];
        for beside in &issued.beside {
            authorities.push(pki::certificate_from_pem(beside.as_bytes())?);
        }
        let certificate = pki::certificate_from_pem(issued.certificate.as_bytes())?;
        let identity = Self::new(key, certificate, authorities)?;
        match identity.node == *node {
            true => Ok(identity),
            false => Err(HomeError::OtherCertificate),
        }
    }

    fn new(
        key: &Key,
        certificate: CertificateDer<'static>,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<Self, HomeError> {
        let leaf = Leaf::read(&certificate)?;
        let node = NodeName::of_user(&leaf.common_name).ok_or(HomeError::OtherCertificate)?;
        if leaf.organizations != [NODES_GROUP] {
            return Err(HomeError::OtherCertificate);
        }
        Ok(Self {
            node,
            validity: leaf.validity,
            credential: key.certified(certificate)?,
            authorities,
        })
    }

    /// The pin of the authority that issued our certificate.
    pub fn pin(&self) -> Result<Pin, HomeError> {
        let first = self
            .authorities
            .first()
            .ok_or(HomeError::OtherCertificate)?;
        Ok(Pin::of(first)?)
    }

    /// The pins of all authorities that we trust, that one first.
    pub fn pins(&self) -> Result<Vec<Pin>, HomeError> {
        let pins = self.authorities.iter().map(|it| Pin::of(it));
        Ok(pins.collect::<Result<_, _>>()?)
    }

    /// How the certificate stands now.
    pub fn standing(&self, now: Timestamp) -> Standing {
        let hash = secret::sha256(&self.credential.certificate);
        let chance = hash.iter().take(8);
        let chance = chance.fold(0, |number, byte| number << 8 | u64::from(*byte));
        schedule::standing(&self.validity, chance, now)
    }

    /// How to speak TLS with a hub.
    pub fn tls(&self, clock: &Clock) -> Result<Arc<ClientConfig>, HomeError> {
        let key = self.credential.key.clone_key().into();
        let party = Party {
            servers: self.authorities.clone(),
            own: Some((vec![self.credential.certificate.clone()], key)),
            protocols: vec![HTTP1.to_vec()],
        };
        let mut tls = tls::client_of(party, clock)?;
        Arc::make_mut(&mut tls).max_fragment_size = Some(RECORD_BYTES_MAX);
        Ok(tls)
    }

    fn pem(&self) -> String {
        let authorities = self.authorities.iter().map(|it| pki::certificate_pem(it));
        let own = [self.credential.key_pem(), self.credential.certificate_pem()];
        own.into_iter().chain(authorities).collect()
    }
}

/// Bytes of a TLS record that an agent sends: of one that is larger nothing could be read for
/// longer than a hub waits for a sign of life, over the slowest link.
const RECORD_BYTES_MAX: usize = 2 * 1024;

/// The folder that the identity is kept in.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// Opens the folder, making it if need be. The caller holds the lock of the data folder.
    pub fn open(folder: &Path) -> Result<Self, HomeError> {
        files::create_dir(folder)?;
        let folder = folder.to_owned();
        Ok(Self { folder })
    }

    /// The identity, if this machine has joined.
    pub fn identity(&self) -> Result<Option<Identity>, HomeError> {
        let path = self.path(IDENTITY);
        let bytes = match files::read_private(&path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(files::Error::Missing(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match read(&bytes) {
            Some(identity) => Ok(Some(identity)),
            None => Err(HomeError::Damaged(path)),
        }
    }

    /// The id of the token that was used last, if it is known.
    pub fn joined_with(&self) -> Option<String> {
        let bytes = files::read_private(&self.path(TOKEN), TOKEN_ID_BYTES_MAX).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        Some(text.trim_end().to_owned()).filter(|id| Token::is_id(id))
    }

    /// The key that waits for a certificate. It is made on first use and again after
    /// [`Home::keep`], so that each certificate has a key of its own.
    pub fn pending_key(&self) -> Result<Key, HomeError> {
        let path = self.path(PENDING);
        match files::read_private(&path, FILE_BYTES_MAX) {
            Ok(bytes) => {
                // What is damaged was never certified: nothing is lost with it.
                let key = Key::from_pem(&bytes).ok();
                if let Some(key) = key.filter(|key| !self.is_certified(key)) {
                    return Ok(key);
                }
            }
            Err(files::Error::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let key = Key::create()?;
        files::write(&path, key.pem().as_bytes(), Audience::Owner)?;
        Ok(key)
    }

    /// Keeps an identity, in the place of the one before. It is on disk when this returns.
    pub fn keep(&self, identity: &Identity) -> Result<(), HomeError> {
        let text = identity.pem();
        files::write(&self.path(IDENTITY), text.as_bytes(), Audience::Owner)?;
        // If this fails the key is found to be certified already, and another one is made.
        drop(fs::remove_file(self.path(PENDING)));
        Ok(())
    }

    /// Notes which token was used, so that it is not tried again.
    pub fn note_token(&self, token: &Token) -> Result<(), HomeError> {
        let path = self.path(TOKEN);
        Ok(files::write(&path, token.id().as_bytes(), Audience::Owner)?)
    }

    /// Whether the identity has this key already.
    fn is_certified(&self, key: &Key) -> bool {
        let identity = self.identity().ok().flatten();
        identity.is_some_and(|identity| {
            let certificate = identity.credential.certificate.clone();
            key.certified(certificate).is_ok()
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The blocks of the file: key, certificate, and the authorities, at least one.
fn read(bytes: &[u8]) -> Option<Identity> {
    let text = str::from_utf8(bytes).ok()?;
    let mut rest = text;
    let mut blocks = Vec::new();
    while !rest.is_empty() && blocks.len() <= BLOCKS_MAX {
        let end = rest.find("-----END ")?;
        let end = end + rest[end..].find('\n')? + 1;
        blocks.push(&rest.as_bytes()[..end]);
        rest = &rest[end..];
    }
    let [key, certificate, authorities @ ..] = &blocks[..] else {
        return None;
    };
    if authorities.is_empty() || blocks.len() > BLOCKS_MAX {
        return None;
    }
    let key = Key::from_pem(key).ok()?;
    let certificate = pki::certificate_from_pem(certificate).ok()?;
    let authorities = authorities.iter().map(|it| pki::certificate_from_pem(it));
    let authorities = authorities.collect::<Result<_, _>>().ok()?;
    Identity::new(&key, certificate, authorities).ok()
}

/// Key, certificate, the authority that issued it, and those beside it.
const BLOCKS_MAX: usize = 3 + BESIDE_MAX;
const IDENTITY: &str = "identity.pem";
const PENDING: &str = "pending.key";
const TOKEN: &str = "joined-with";

/// An identity has about two thousand bytes, and one more certificate seven hundred.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const TOKEN_ID_BYTES_MAX: u64 = 64;
