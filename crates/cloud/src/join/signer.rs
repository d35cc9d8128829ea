//! A request -> a certificate of a node, under the rules of Kubernetes' kubelet-client signer.
//!
//! Subject `O=system:nodes, CN=system:node:NAME`, no other names, for client authentication alone.
//! It is issued by Holdfast's own authority, so it is worth nothing to the cluster itself.

use host::pki::{BACKDATED, Error, Leaf, Request, Validity, Wanted};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use wire::join::{NODES_GROUP, NodeName};

use super::authority::Authorities;

/// How long a node's certificate lives if nobody says otherwise.
pub const LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The longest that it may be set to. Revocations are kept a little longer than this.
pub const LIFE_MAX: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The shortest that it may be set to: twice as long as it is backdated.
pub const LIFE_MIN: SignedDuration = SignedDuration::from_hours(2);

/// Issues certificates of nodes.
#[derive(Clone)]
pub struct Signer {
    authorities: Authorities,
    life: SignedDuration,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum NotIssued {
    /// The request is not for this node.
    #[error("the certificate request must be for O=system:nodes, CN=system:node:{0}")]
    OtherSubject(NodeName),
    /// The node was revoked later than now: one of two clocks is wrong. This passes by itself.
    #[error("the node was revoked at {0}, which is yet to come by this hub's clock")]
    RevokedAhead(Timestamp),
    /// It could not be made.
    #[error("cannot make the certificate")]
    Failed(#[source] Error),
}

impl Signer {
    /// A signer of the authority that issues. Certificates live for `life`, within the limits.
    pub fn new(authorities: impl Into<Authorities>, life: SignedDuration) -> Self {
        Self {
            authorities: authorities.into(),
            life: life.clamp(LIFE_MIN, LIFE_MAX),
        }
    }

    /// The authority's certificate as PEM.
    pub fn authority_pem(&self) -> String {
        self.authorities.issuing().certificate_pem()
    }

    /// The certificates of authorities that are trusted beside it, as PEM.
    pub fn beside_pem(&self) -> Vec<String> {
        let beside = self.authorities.beside().iter();
        beside.map(|it| host::pki::certificate_pem(it)).collect()
    }

    /// Whether a request is for this node and nothing else.
    pub fn check(request: &Request, node: &NodeName) -> Result<(), NotIssued> {
        let right = NodeName::of_user(&request.common_name).as_ref() == Some(node)
            && request.organizations == [NODES_GROUP];
        match right {
            true => Ok(()),
            false => Err(NotIssued::OtherSubject(node.clone())),
        }
    }

    /// From when to when a certificate issued now is valid. It begins before now, for hubs whose
    /// clocks are behind, but after the node was revoked: otherwise it would be void at once.
    pub fn validity(
        &self,
        revoked: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Validity, NotIssued> {
        let mut not_before = now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN);
        if let Some(at) = revoked {
            let after = Timestamp::from_second(at.as_second().saturating_add(1));
            let after = after.unwrap_or(Timestamp::MAX);
            if after > now {
                return Err(NotIssued::RevokedAhead(at));
            }
            not_before = not_before.max(after);
        }
        Ok(Validity {
            not_before,
            not_after: now.checked_add(self.life).unwrap_or(Timestamp::MAX),
        })
    }

    /// Issues the certificate, as PEM.
    pub fn issue(
        &self,
        request: &Request,
        node: &NodeName,
        validity: Validity,
    ) -> Result<String, NotIssued> {
        Self::check(request, node)?;
        let wanted = Wanted::Client {
            user: node.user(),
            groups: vec![NODES_GROUP.to_owned()],
        };
        let issued = self
            .authorities
            .issuing()
            .certify(request, &wanted, validity);
        let certificate = issued.map_err(NotIssued::Failed)?;
        Ok(host::pki::certificate_pem(&certificate))
    }
}

/// A node, as its verified certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who it is.
    pub node: NodeName,
    /// When the certificate is valid.
    pub validity: Validity,
}

/// A certificate of ours that is no node's.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is not one of a node")]
pub struct NotANode;

impl Peer {
    /// Reads a certificate that TLS has verified.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Self, NotANode> {
        let leaf = Leaf::read(certificate).map_err(|_| NotANode)?;
        let node = NodeName::of_user(&leaf.common_name).ok_or(NotANode)?;
        match leaf.organizations == [NODES_GROUP] {
            true => Ok(Self {
                node,
                validity: leaf.validity,
            }),
            false => Err(NotANode),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use host::pki::{Authority, Key};

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn signer(life: SignedDuration) -> Signer {
        let authority = Authority::create("link-ca", now()).unwrap();
        Signer::new(Arc::new(authority), life)
    }

    fn request(user: &str, group: &str) -> Request {
        let key = Key::create().unwrap();
        Request::read(&key.request(user, group).unwrap()).unwrap()
    }

    fn node(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    #[test]
    fn a_node_gets_its_own_name_and_no_other() {
        let signer = signer(LIFE);
        let validity = signer.validity(None, now()).unwrap();
        let right = request("system:node:n1", "system:nodes");
        let issued = signer.issue(&right, &node("n1"), validity).unwrap();
        let certificate = host::pki::certificate_from_pem(issued.as_bytes()).unwrap();
        let peer = Peer::read(&certificate).unwrap();
        assert_eq!(peer.node, node("n1"));
        assert_eq!(peer.validity.not_after, now() + LIFE);
        for (user, group) in [
            ("system:node:n2", "system:nodes"),
            ("system:node:n1", "system:masters"),
            ("n1", "system:nodes"),
            ("system:node:N1", "system:nodes"),
            ("admin", "system:masters"),
        ] {
            let wrong = signer.issue(&request(user, group), &node("n1"), validity);
            assert!(
                matches!(wrong, Err(NotIssued::OtherSubject(_))),
                "{user} {group}"
            );
        }
    }

    #[test]
    fn a_certificate_begins_after_the_revocation_before_it() {
        let signer = signer(LIFE);
        let plain = signer.validity(None, now()).unwrap();
        assert_eq!(plain.not_before, now() - BACKDATED);
        let at = now() - SignedDuration::from_millis(90_500);
        let after = signer.validity(Some(at), now()).unwrap();
        assert!(after.not_before > at && after.not_before <= now());
        let ahead = signer.validity(Some(now() + SignedDuration::from_secs(60)), now());
        assert!(matches!(ahead, Err(NotIssued::RevokedAhead(_))));
    }

    #[test]
    fn a_life_beyond_the_limits_is_cut_to_them() {
        let long = signer(SignedDuration::from_hours(10 * 365 * 24));
        assert_eq!(
            long.validity(None, now()).unwrap().not_after,
            now() + LIFE_MAX
        );
        let short = signer(SignedDuration::ZERO);
        assert_eq!(
            short.validity(None, now()).unwrap().not_after,
            now() + LIFE_MIN
        );
    }

    #[test]
    fn a_certificate_of_something_else_is_no_node() {
        let authority = Authority::create("link-ca", now()).unwrap();
        assert!(Peer::read(authority.certificate()).is_err());
        let wanted = Wanted::Client {
            user: "system:node:n1".into(),
            groups: vec![NODES_GROUP.into(), "system:masters".into()],
        };
        let issued = authority.issue(&wanted, now()).unwrap();
        assert!(Peer::read(&issued.certificate).is_err());
    }
}
