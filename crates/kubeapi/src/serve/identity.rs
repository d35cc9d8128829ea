//! A connection and its headers -> a user. The certificate comes first, then a bearer token; who
//! has neither is anonymous. On a socket of the machine's own a token comes first.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use object::{ObjectName, Resource};

use super::Api;
use super::connection::{Peer, Token};
use crate::Status;
use crate::who::User;
use crate::who::token::{Record, Referent};

/// Who sends a request.
pub(super) fn user(api: &Api, peer: &Peer, headers: &HeaderMap) -> Result<Arc<User>, Status> {
    let header = headers.get(AUTHORIZATION);
    if let Some(user) = &peer.user
        && (header.is_none() || peer.token == Token::Nothing)
    {
        return Ok(user.clone());
    }
    let Some(header) = header else {
        return Ok(Arc::new(User::anonymous()));
    };
    let Some(token) = header.to_str().ok().and_then(bearer) else {
        return Ok(Arc::new(User::anonymous()));
    };
    let now = api.clock.wall().as_second();
    let verifier = api.verifier.now();
    let verified = verifier.verify(token, now, &|referent| exists(api, referent));
    match verified {
        Ok(verified) => Ok(Arc::new(verified.user.authenticated())),
        Err(why) => {
            tracing::debug!(%why, "a token was refused");
            Err(why.status())
        }
    }
}

/// The token of an Authorization header. Whoever shows something else shows nothing.
fn bearer(header: &str) -> Option<&str> {
    let mut words = header.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// What is known of an object that a token depends on.
pub(super) fn exists(api: &Api, referent: Referent<'_>) -> Option<Record> {
    let (plural, namespace, name) = match referent {
        Referent::ServiceAccount { namespace, name } => ("serviceaccounts", namespace, name),
        Referent::Pod { namespace, name } => ("pods", namespace, name),
        Referent::Secret { namespace, name } => ("secrets", namespace, name),
        Referent::Node { name } => ("nodes", "", name),
    };
    let row = api.reader.row(
        &Resource::new("", plural),
        &ObjectName::new(namespace, name),
    )?;
    let deleted = row
        .header
        .lifecycle
        .as_ref()
        .and_then(|life| life.deletion_timestamp.as_ref());
    let deleted_at = deleted.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Some(Record {
        uid: row.header.uid.to_string(),
        deleted_at: deleted_at.map(|moment| moment.as_second()),
        node: row.header.field("spec.nodeName").into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_s_token_is_a_credential() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer(" bearer abc def"), Some("abc"));
        for other in ["", "Bearer", "Bearer  abc", "Basic YTpi", "abc"] {
            assert_eq!(bearer(other), None, "{other}");
        }
    }
}
