//! Who asks an API that does not have everything, and what he is told who is not passed on.

use std::sync::Arc;

use http::Request;
use http::header::AUTHORIZATION;
use hyper::body::Incoming;

use super::connection::Peer;
use super::{Api, identity};
use crate::Status;
use crate::who::User;
use crate::who::impersonate::Wanted;
use crate::who::user::ANONYMOUS;

/// Who asks.
pub(super) enum Caller {
    /// Somebody who is known here.
    Known(Arc<User>),
    /// Somebody with a token that says nothing here. Elsewhere it may.
    Stranger,
    /// Somebody without any credential, or with one that says nothing anywhere.
    Nobody,
}

impl Caller {
    /// Who sent a request.
    pub(super) fn of(api: &Api, peer: &Peer, request: &Request<Incoming>) -> Self {
        if peer.user.is_none() && !request.headers().contains_key(AUTHORIZATION) {
            return Self::Nobody;
        }
        match identity::user(api, peer, request.headers()) {
            Ok(user) if user.name == ANONYMOUS => Self::Nobody,
            Ok(user) => Self::Known(user),
            Err(_) => Self::Stranger,
        }
    }
}

/// 503 for a token that the cluster alone can look at, while it cannot be asked.
pub(super) fn unknown_token() -> Status {
    let message = "this token is not known on the node, and the cluster cannot be asked now";
    Status::try_again(503, "ServiceUnavailable", message, 1)
}

/// 403 for one without a token who asks in another's name: it would be asked in the lent name, and
/// an answer to that is none to what was asked.
pub(super) fn comes_as_itself(request: &Request<Incoming>) -> Result<(), Status> {
    let headers = request.headers();
    if headers.contains_key(AUTHORIZATION) || Wanted::from_headers(headers)?.is_none() {
        return Ok(());
    }
    let message = "a certificate of this node is good for nobody else; to impersonate, use a token";
    Err(Status::new(403, "Forbidden", message))
}

/// 403 for a certificate that is good for what the node has, and for nothing else.
pub(super) fn good_for_reads(user: &User) -> Status {
    let message = format!(
        "the certificate of {:?} is good for reading what this node holds and for nothing else; \
         use a token, or the credentials of the node",
        user.name
    );
    Status::new(403, "Forbidden", message)
}
