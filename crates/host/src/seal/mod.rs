//! Sealing: bytes that lie on a disk and that only who has the key can read or make.
//!
//! ```text
//! form ─ 1 byte │ key ─ 4 bytes │ nonce ─ 12 bytes │ as many bytes as were sealed │ tag ─ 16 bytes
//! ```
//!
//! The cipher is AES-256-GCM-SIV: two values that by chance get the same nonce under one key give
//! away no more than whether they are the same, so a key may seal as much as it likes. What is
//! sealed is bound to its place: it does not open at another one.

use std::fmt;
use std::io;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;

use crate::files::{self, Audience};
use crate::secret;

#[cfg(test)]
mod tests;

/// How many bytes more a sealed value has than what is in it.
pub const SEAL_BYTES: usize = HEAD_BYTES + TAG_BYTES;

/// Keys in one file, at most: the one that seals, and those that still open something.
pub const KEYS_MAX: usize = 16;

/// The only form there is so far. Another cipher gets another number.
const FORM: u8 = 1;
const ID_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + ID_BYTES + NONCE_LEN;
const TAG_BYTES: usize = 16;
/// Bytes of a file with keys: there is room for a remark beside each.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Keys: the first one seals, each of them opens.
pub struct Keys(Vec<Key>);

struct Key {
    id: KeyId,
    cipher: LessSafeKey,
}

/// What a key is called: it tells keys apart and nothing about them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; ID_BYTES]);

/// Why a sealed value was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// It was sealed with a key that is not here. Nothing is lost if the key is found.
    #[error("it is sealed with the key {0}, which is not here")]
    OtherKey(KeyId),
    /// It is not what was sealed, or not where it was sealed.
    #[error("it is not what was sealed here")]
    Broken,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum NoKeys {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] files::Error),
    /// What is in the file are no keys. What stands there is not repeated: it may be a secret.
    #[error(
        "line {line} of {path} is no key: a key is 64 hexadecimal digits, such as \
         `openssl rand -hex 32` prints"
    )]
    NoKey {
        /// The file.
        path: String,
        /// Which line, from 1.
        line: usize,
    },
    /// The file has none, or more than it may.
    #[error("{path} has {count} keys: there must be 1 to {KEYS_MAX}, one on each line")]
    Count {
        /// The file.
        path: String,
        /// How many.
        count: usize,
    },
    /// The machine has no random bytes.
    #[error("no key can be made")]
    Random(#[source] io::Error),
}

/// Whose a file with keys is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Ours: it is no link.
    Own,
    /// Somebody else's, who told us where it is.
    Given,
}

impl Keys {
    /// Reads keys from a file that its owner alone may read: one on each line, the first of which
    /// seals. Empty lines, and what follows a `#`, do not count.
    pub fn read(path: &Path, whose: Whose) -> Result<Self, NoKeys> {
        let bytes = match whose {
            Whose::Own => files::read_private(path, FILE_BYTES_MAX),
            Whose::Given => files::read_secret(path, FILE_BYTES_MAX),
        };
        Self::parse(&String::from_utf8_lossy(&bytes?), path)
    }

    /// Makes a key and a file for it. Returns when it is on disk.
    pub fn make(path: &Path) -> Result<Self, NoKeys> {
        let key = secret::random::<32>().map_err(NoKeys::Random)?;
        let text = format!("{}\n", secret::hex(&key));
        files::write(path, text.as_bytes(), Audience::Owner)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, NoKeys> {
        let path = || path.display().to_string();
        let mut keys: Vec<Key> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            if word.is_empty() {
                continue;
            }
            let key = secret::from_hex(&word.to_ascii_lowercase());
            let key = key.ok_or_else(|| NoKeys::NoKey {
                path: path(),
                line: number + 1,
            })?;
            keys.push(Key::new(&key));
        }
        let count = keys.len();
        match (1..=KEYS_MAX).contains(&count) {
            true => Ok(Self(keys)),
            false => Err(NoKeys::Count {
                path: path(),
                count,
            }),
        }
    }

    /// Seals bytes for a place.
    pub fn seal(&self, place: &[&[u8]], bytes: &[u8]) -> io::Result<Vec<u8>> {
        let key = &self.0[0];
        let nonce = secret::random::<NONCE_LEN>()?;
        let mut sealed = Vec::with_capacity(bytes.len() + SEAL_BYTES);
        sealed.push(FORM);
        sealed.extend_from_slice(&key.id.0);
        sealed.extend_from_slice(&nonce);
        let mut body = bytes.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(bound(&sealed[..1], place));
        let tag = key
            .cipher
            .seal_in_place_separate_tag(nonce, aad, &mut body)
            .map_err(|_| io::Error::other("the value is too large to be sealed"))?;
        sealed.extend_from_slice(&body);
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Opens what was sealed for this place.
    pub fn open(&self, place: &[&[u8]], sealed: &[u8]) -> Result<Vec<u8>, NotOpened> {
        let id = id_of(sealed).ok_or(NotOpened::Broken)?;
        let key = self.0.iter().find(|key| key.id == id);
        let key = key.ok_or(NotOpened::OtherKey(id))?;
        let (head, body) = sealed.split_at(HEAD_BYTES);
        let nonce = Nonce::try_assume_unique_for_key(&head[1 + ID_BYTES..]);
        let nonce = nonce.map_err(|_| NotOpened::Broken)?;
        let aad = Aad::from(bound(&head[..1], place));
        let mut bytes = body.to_vec();
        let length = key.cipher.open_in_place(nonce, aad, &mut bytes);
        let length = length.map_err(|_| NotOpened::Broken)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Whether a value is sealed with the key that seals now.
    pub fn is_newest(&self, sealed: &[u8]) -> bool {
        id_of(sealed) == Some(self.0[0].id)
    }
}

/// The key that a value was sealed with; nothing if it is no sealed value.
pub fn id_of(sealed: &[u8]) -> Option<KeyId> {
    if sealed.len() < SEAL_BYTES || sealed[0] != FORM {
        return None;
    }
    sealed[1..].first_chunk().copied().map(KeyId)
}

impl Key {
    fn new(bytes: &[u8; 32]) -> Self {
        let unbound = UnboundKey::new(&AES_256_GCM_SIV, bytes);
        let cipher = LessSafeKey::new(unbound.expect("a key of the cipher has 32 bytes"));
        let named = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), b"name of a key");
        let id = named.as_ref().first_chunk().copied();
        let id = KeyId(id.expect("a hash has more bytes than that"));
        Self { id, cipher }
    }
}

/// What a value is bound to: its form, and its place.
fn bound(form: &[u8], place: &[&[u8]]) -> [u8; 32] {
    let parts: Vec<&[u8]> = std::iter::once(form).chain(place.iter().copied()).collect();
    secret::hash(&parts)
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::hex(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Keys {
    /// Names, never keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|key| key.id))
            .finish()
    }
}
