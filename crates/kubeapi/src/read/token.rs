//! Where a list goes on: the version of its first page, and the name from which on the rest comes.
//!
//! The form is Kubernetes' own, so that a client may carry a list over to another server of the
//! same cluster.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use object::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Status;

/// Bytes of a token that are read.
const TOKEN_BYTES_MAX: usize = 2048;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The version of the list; nothing for one that may be of several moments.
    pub version: Option<Version>,
    /// The rest starts here. The name is relative to what is listed: in a list of one namespace it
    /// does not name the namespace.
    pub start: String,
}

#[derive(Deserialize)]
struct Wire<'a> {
    v: String,
    /// As digits: a version may be larger than any machine word.
    #[serde(borrow)]
    rv: &'a RawValue,
    start: String,
}

const FORM: &str = "meta.k8s.io/v1";

impl Token {
    /// The list goes on after this name.
    pub fn after(version: Option<Version>, name: &str) -> Self {
        // The name that comes directly after: no name can lie between the two.
        let start = format!("{name}\0");
        Self { version, start }
    }

    /// The token as a client carries it.
    pub fn encode(&self) -> String {
        let version = match &self.version {
            Some(version) => version.to_string(),
            None => "-1".to_owned(),
        };
        let start = serde_json::Value::from(self.start.as_str());
        URL_SAFE_NO_PAD.encode(format!(
            "{{\"v\":{FORM:?},\"rv\":{version},\"start\":{start}}}"
        ))
    }

    /// Reads a token, which may be anything: it comes from a client.
    pub fn decode(text: &str) -> Result<Self, Status> {
        let bad = |why: &str| {
            let why = format!("invalid continue token: continue key is not valid: {why}");
            Status::bad_request(why)
        };
        if text.len() > TOKEN_BYTES_MAX {
            return Err(bad("it is too long"));
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| bad("it is not base64"))?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|_| bad("it is not a token"))?;
        if wire.v != FORM {
            return Err(bad("server does not recognize this encoded version"));
        }
        let version = match wire.rv.get() {
            "-1" => None,
            digits => {
                let wrong = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
                Some(digits.parse().map_err(|_| bad(wrong))?)
            }
        };
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        let name = start.strip_suffix('\0').unwrap_or(start);
        let climbs = name
            .split('/')
            .any(|part| part.is_empty() || part == "." || part == "..");
        if climbs || name.chars().any(char::is_control) {
            return Err(bad("its start is not a name"));
        }
        let start = start.to_owned();
        Ok(Self { version, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_comes_back_as_it_went() {
        let long = "123456789012345678901234567890";
        for version in [
            Some("12".parse().unwrap()),
            Some(long.parse().unwrap()),
            None,
        ] {
            let token = Token::after(version, "ns/name");
            assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        }
    }

    #[test]
    fn a_token_that_was_tampered_with_is_refused() {
        let wrong = [
            r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":-7,"start":"a"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#,
            r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/x"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#,
            r#"{"v":"meta.k8s.io/v1","rv":1}"#,
            "null",
        ];
        for text in wrong {
            let encoded = URL_SAFE_NO_PAD.encode(text);
            assert_eq!(Token::decode(&encoded).unwrap_err().code, 400, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = Token::decode(&text);
            let _ = Token::decode(&URL_SAFE_NO_PAD.encode(&text));
        }
    }
}
