//! What a cluster tells of the keys that its tokens are signed with: enough to know a token of its
//! own without asking it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bound, Verifier, VerifyingKey};

/// Keys that are read of a cluster. It has two while it changes them.
const KEYS_MAX: usize = 64;

/// The issuer of a cluster's tokens, and its keys as they are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    issuer: String,
    keys: Vec<Value>,
}

/// What was to be keys is none.
#[derive(Debug, thiserror::Error)]
#[error("not the keys of a cluster's tokens")]
pub struct Unreadable(#[from] serde_json::Error);

impl Published {
    /// What stands at `/.well-known/openid-configuration` and at `/openid/v1/jwks`.
    pub fn read(configuration: &[u8], keys: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Configuration {
            issuer: String,
        }
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<Value>,
        }
        let Configuration { issuer } = serde_json::from_slice(configuration)?;
        let Keys { mut keys } = serde_json::from_slice(keys)?;
        keys.truncate(KEYS_MAX);
        Ok(Self { issuer, keys })
    }

    /// As [`Published::text`] wrote it.
    pub fn parse(text: &[u8]) -> Result<Self, Unreadable> {
        Ok(serde_json::from_slice(text)?)
    }

    /// All of it, as text.
    ///
    /// # Panics
    /// Never: it is strings and what was read as JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("what was JSON is JSON")
    }

    /// What knows the cluster's tokens. Keys of a kind that we do not verify are left out. A token
    /// for the API is meant for its issuer, where nobody says otherwise.
    pub fn verifier(&self, bound: Bound) -> Verifier {
        let keys = self.keys.iter().take(KEYS_MAX);
        Verifier {
            keys: keys.filter_map(VerifyingKey::from_jwk).collect(),
            issuers: vec![self.issuer.clone()],
            audiences: vec![self.issuer.clone()],
            bound,
        }
    }
}
