//! What a cluster tells of the keys that its tokens are signed with: enough to know a token of its
//! own without asking it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claims::Audience;
use super::{Bound, Verifier, VerifyingKey};

/// Keys that are read of a cluster. It has two while it changes them.
const KEYS_MAX: usize = 64;

/// The issuer of a cluster's tokens, and its keys as they are published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    issuer: String,
    keys: Vec<Value>,
    /// Whom tokens for the API are meant for; its issuer, where nothing else is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<String>,
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
        Ok(Self {
            issuer,
            keys,
            audiences: Vec::new(),
        })
    }

    /// The same, where somebody is known to the cluster by this token: if it is one of the
    /// cluster's own, those whom it is meant for are those whom the API answers to. An API server
    /// need not answer to its issuer (`--api-audiences`), and tells nobody.
    #[must_use]
    pub fn as_told_by(mut self, token: &str) -> Self {
        #[derive(Deserialize)]
        struct Claims {
            iss: String,
            aud: Audience,
        }
        let claims = token.split('.').nth(1);
        let claims = claims.and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
        let claims = claims.and_then(|bytes| serde_json::from_slice::<Claims>(&bytes).ok());
        if let Some(claims) = claims.filter(|claims| claims.iss == self.issuer) {
            self.audiences = claims.aud.as_slice().to_vec();
        }
        self
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

    /// What knows the cluster's tokens. Keys of a kind that we do not verify are left out.
    pub fn verifier(&self, bound: Bound) -> Verifier {
        let audiences = match &self.audiences[..] {
            [] => vec![self.issuer.clone()],
            known => known.to_vec(),
        };
        let keys = self.keys.iter().take(KEYS_MAX);
        Verifier {
            keys: keys.filter_map(VerifyingKey::from_jwk).collect(),
            issuers: vec![self.issuer.clone()],
            audiences,
            bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audiences(claims: &str) -> Vec<String> {
        let token = format!("e30.{}.AA", BASE64_URL_SAFE_NO_PAD.encode(claims));
        let published = Published::read(br#"{"issuer":"https://i"}"#, br#"{"keys":[]}"#).unwrap();
        let told = published.as_told_by(&token);
        let told = Published::parse(told.text().as_bytes()).unwrap();
        told.verifier(Bound::Any).audiences
    }

    #[test]
    fn whom_an_api_answers_to_is_known_from_a_token_that_it_takes() {
        assert_eq!(
            audiences(r#"{"iss":"https://i","aud":["api","b"]}"#),
            ["api", "b"]
        );
        assert_eq!(audiences(r#"{"iss":"https://i","aud":"api"}"#), ["api"]);
        for none in [r#"{"iss":"https://other","aud":"api"}"#, "{}", "no claims"] {
            assert_eq!(audiences(none), ["https://i"], "{none}");
        }
    }
}
