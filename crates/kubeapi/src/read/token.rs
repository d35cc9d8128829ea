//! Where a list goes on: the version of its first page, and the name from which on the rest comes.
//!
//! The form is Kubernetes' own, so that a client may carry a list over to another server of the
//! same cluster.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use base64::{DecodeError, Engine, alphabet};
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
    #[serde(default)]
    v: String,
    /// As digits: a version may be larger than any machine word.
    #[serde(borrow, default)]
    rv: Option<&'a RawValue>,
    #[serde(default)]
    start: String,
}

impl Wire<'_> {
    /// The version; within it nothing for "whatever is there", which any negative number says.
    fn version(&self) -> Option<Option<Version>> {
        let digits = self.rv?.get();
        match digits.strip_prefix('-') {
            Some(negative) => negative.parse::<Version>().ok().map(|_| None),
            None => digits.parse().ok().map(Some),
        }
    }
}

/// Last bits that stand for nothing may be set, as Go lets them be.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    NO_PAD.with_decode_allow_trailing_bits(true),
);

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
        let bytes = LENIENT.decode(text).map_err(|error| match error {
            DecodeError::InvalidByte(at, _) => {
                bad(&format!("illegal base64 data at input byte {at}"))
            }
            _ => bad("illegal base64 data"),
        })?;
        let wire: Wire = serde_json::from_slice(&bytes).map_err(|_| bad("it is not a token"))?;
        if wire.v != FORM {
            let v = wire.v;
            return Err(bad(&format!(
                "server does not recognize this encoded version {v}"
            )));
        }
        let version = wire.version().ok_or_else(|| {
            bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        })?;
        if wire.start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)"));
        }
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        let name = start.strip_suffix('\0').unwrap_or(start);
        let climbs = name
            .split('/')
            .any(|part| part.is_empty() || part == "." || part == "..");
        if climbs || name.chars().any(char::is_control) {
            return Err(bad(&wire.start));
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

    #[test]
    fn any_negative_version_is_whatever_is_there() {
        let encoded = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":-7,"start":"/a"}"#);
        let token = Token::decode(&encoded).unwrap();
        assert_eq!((token.version, &*token.start), (None, "a"));
    }

    #[test]
    fn what_is_wrong_with_a_token_is_said_in_the_words_of_a_kube_apiserver() {
        let cases = [
            ("{}", "server does not recognize this encoded version "),
            (
                r#"{"v":"meta.k8s.io/v1","start":"a"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1}"#,
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, "../a"),
        ];
        let said = |text: &str| Token::decode(text).unwrap_err().message;
        let words = |why: &str| format!("invalid continue token: continue key is not valid: {why}");
        for (text, why) in cases {
            assert_eq!(said(&URL_SAFE_NO_PAD.encode(text)), words(why), "{text}");
        }
        assert_eq!(said("ab!c"), words("illegal base64 data at input byte 2"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = Token::decode(&text);
            let _ = Token::decode(&URL_SAFE_NO_PAD.encode(&text));
        }
    }
}
