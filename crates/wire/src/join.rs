//! How a node gets the certificate that makes it a node: names, tokens, and what the two ends say.
//!
//! It is said over HTTPS, before there is a link: `POST` to [`JOIN_PATH`] with a token, or to
//! [`RENEW_PATH`] with the certificate that is to be renewed. Bodies are JSON.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where a node with a token asks for its first certificate.
pub const JOIN_PATH: &str = "/join";
/// Where a node with a certificate asks for the next one.
pub const RENEW_PATH: &str = "/renew";

/// Bytes of a request or an answer. A request with the longest key has about four thousand.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The group of every node, as Kubernetes names it.
pub const NODES_GROUP: &str = "system:nodes";

const USER_PREFIX: &str = "system:node:";
const NAME_BYTES_MAX: usize = 253;

/// The name of a node: labels of RFC 1123 joined by dots, at most 253 characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(Arc<str>);

/// A text that cannot be the name of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a node's name has lower-case letters, digits, '-' and '.', begins and ends with a letter or \
     digit, and has at most 253 characters"
)]
pub struct NotANodeName;

impl NodeName {
    /// The node whose user this is, if it is one: `system:node:NAME`.
    pub fn of_user(user: &str) -> Option<Self> {
        user.strip_prefix(USER_PREFIX)?.parse().ok()
    }

    /// The user that the node is to the cluster.
    pub fn user(&self) -> String {
        format!("{USER_PREFIX}{}", self.0)
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = NotANodeName;

    fn from_str(text: &str) -> Result<Self, NotANodeName> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        match text.len() <= NAME_BYTES_MAX && text.split('.').all(is_label) {
            true => Ok(Self(text.into())),
            false => Err(NotANodeName),
        }
    }
}

impl From<NodeName> for Arc<str> {
    fn from(name: NodeName) -> Self {
        name.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A token to join with: `ID.SECRET`. The id may be known to everyone; nothing but [`Token::text`]
/// gives the secret away.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: String,
    secret: String,
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a join token: 8 and 32 lower-case letters or digits with a dot between them")]
pub struct NotAToken;

impl Token {
    /// A new token from random bytes, each asked for once.
    pub fn draw(mut random: impl FnMut() -> u8) -> Self {
        let mut text = |length: usize| {
            let mut symbols = String::with_capacity(length);
            while symbols.len() < length {
                let byte = usize::from(random());
                // The last few values would make some symbols likelier than others.
                if byte < 256 / SYMBOLS.len() * SYMBOLS.len() {
                    symbols.push(char::from(SYMBOLS[byte % SYMBOLS.len()]));
                }
            }
            symbols
        };
        Self {
            id: text(ID_BYTES),
            secret: text(SECRET_BYTES),
        }
    }

    /// The public half.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The secret half.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The whole token. A secret.
    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// Whether a text could be the public half of a token.
    pub fn is_id(text: &str) -> bool {
        is_symbols(text, ID_BYTES)
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let (id, secret) = text.split_once('.').ok_or(NotAToken)?;
        match is_symbols(id, ID_BYTES) && is_symbols(secret, SECRET_BYTES) {
            true => Ok(Self {
                id: id.to_owned(),
                secret: secret.to_owned(),
            }),
            false => Err(NotAToken),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}.…)", self.id)
    }
}

fn is_symbols(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| SYMBOLS.contains(&byte))
}

const ID_BYTES: usize = 8;
/// 36^32 is more than 2^165: not to be guessed.
const SECRET_BYTES: usize = 32;
const SYMBOLS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// What a node with a token says.
#[derive(Clone, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The token. None at all is as good as a wrong one.
    #[serde(default)]
    pub token: String,
    /// The name that it wants to have.
    pub node: String,
    /// A request for a certificate of that name, as PEM.
    pub csr: String,
}

/// What a node with a certificate says.
#[derive(Clone, Serialize, Deserialize)]
pub struct RenewRequest {
    /// A request for a certificate of the same name, as PEM.
    pub csr: String,
}

/// The answer to both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The certificate of the authority that issued it and the hubs', as PEM.
    pub ca: String,
    /// Certificates of authorities that hubs may be of as well, while one takes over from another,
    /// as PEM. At most [`BESIDE_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// Authorities that a node trusts beside the one that issued its certificate. An answer with more
/// makes no sense.
pub const BESIDE_MAX: usize = 4;

/// The answer that says no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why, for people.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_a_subdomain_in_lower_case() {
        for good in ["n1", "edge-7.site.example", "0", &"a".repeat(253)] {
            let name: NodeName = good.parse().unwrap();
            assert_eq!(NodeName::of_user(&name.user()), Some(name));
        }
        let long = "a".repeat(254);
        let wrong = [
            "", ".", "a..b", "-a", "a-", "A", "a_b", "a/b", "..", "a\0", "a\nb", "é", &long,
        ];
        for wrong in wrong {
            assert_eq!(wrong.parse::<NodeName>(), Err(NotANodeName), "{wrong:?}");
        }
        for user in ["n1", "system:node:", "system:nodes:n1", "system:node:N1"] {
            assert_eq!(NodeName::of_user(user), None, "{user}");
        }
    }

    #[test]
    fn a_token_has_one_form() {
        let good = "abcdefgh.abcdefghijklmnopqrstuvwxyz012345";
        let token: Token = good.parse().unwrap();
        assert_eq!((token.id(), token.text().as_str()), ("abcdefgh", good));
        assert_eq!(format!("{token:?}"), "Token(abcdefgh.…)");
        let megabyte = "a".repeat(1024 * 1024);
        let wrong = [
            "",
            ".",
            "abcdefgh",
            &good.to_uppercase(),
            &good[1..],
            &good[..40],
            &format!("{good}a"),
            &format!("{good}\n"),
            &format!("{good}.a"),
            &good.replace('a', "é"),
            &megabyte,
        ];
        for wrong in wrong {
            assert_eq!(wrong.parse::<Token>(), Err(NotAToken));
        }
    }

    proptest! {
        #[test]
        fn any_random_bytes_make_a_token(seed in any::<u8>(), step in 0_u8..100) {
            let mut byte = seed;
            let token = Token::draw(|| {
                byte = byte.wrapping_add(step * 2 + 1);
                byte
            });
            prop_assert_eq!(token.text().parse::<Token>().unwrap(), token);
        }
    }
}
