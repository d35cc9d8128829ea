//! What is not answered on the node -> the tunnel. Without a link it is refused, and it is said
//! since when there is none.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use jiff::Timestamp;
use kubeapi::Status;
use kubeapi::catalog::Kind;
use kubeapi::read::{Lens, Overlay};
use kubeapi::request::ResourcePath;
use kubeapi::serve::{Beyond, Entrusted, InUse, Name, Passing, Seeing};
use kubeapi::who::User;
use kubeapi::who::user::LOCAL_ADMINS;
use object::{Range, Resource};
use wire::join::NodeName;

use super::copies::Copies;
use super::pods::Leading;
use super::rights::user_of;
use crate::overlay::Desk;
use crate::tunnel::{NotPassed, Tunnel, Whose};
use crate::wants::Wants;

/// When a client is to come again that was not let through. Clients of Kubernetes try ten times
/// before they say so: with more than a second, a person would wait for minutes.
const WAIT_SECONDS: u32 = 1;

/// The way from the node's API to the cluster.
pub(super) struct Gate {
    tunnel: Tunnel,
    /// The node as a user of its cluster.
    user: String,
    copies: Copies,
    beside: Beside,
    /// Leads pods here, where they are to be.
    leading: Option<Leading>,
}

/// What is beside the way to the cluster, of an agent that has it.
#[derive(Clone, Default)]
pub struct Beside {
    /// What sees to the node's own writes, with or without a link.
    pub desk: Option<Desk>,
    /// What has things carried to the node that clients ask for.
    pub wants: Option<Wants>,
}

impl Gate {
    pub(super) fn new(tunnel: Tunnel, node: &NodeName, (copies, beside): (Copies, Beside)) -> Self {
        Self {
            tunnel,
            user: user_of(node),
            copies,
            beside,
            leading: None,
        }
    }

    /// The same, where pods are led to it.
    pub(super) fn leading(self, leading: Option<Leading>) -> Self {
        Self { leading, ..self }
    }

    fn is_node(&self, user: &User) -> bool {
        user.name == self.user && user.node().is_some()
    }
}

impl Beyond for Gate {
    fn is_open(&self) -> bool {
        self.tunnel.is_open()
    }

    fn lends_itself_to(&self, user: &User) -> bool {
        // The hub acts as the node for whoever comes without a token: nobody else may be taken for
        // it.
        user.belongs_to(LOCAL_ADMINS) || self.is_node(user)
    }

    fn pass(&self, request: Request<Incoming>, name: Name, by: Option<&User>) -> Passing<'_> {
        let whose = match by {
            Some(user) if self.is_node(user) => Whose::Node,
            Some(user) => Whose::Account(user.name.as_str().into()),
            None => Whose::Stranger,
        };
        Box::pin(async move {
            if name == Name::Token && !keeps_its_token(request.headers()) {
                let message = "the Connection header must not name Authorization";
                return Err(Status::bad_request(message));
            }
            let method = request.method().clone();
            let asked = self.ask(request, whose).await;
            asked.map_err(|why| refused(&method, why))
        })
    }

    fn keep(&self, name: &str, bytes: Bytes) {
        self.copies.put(name, &bytes);
    }

    fn kept(&self, name: &str) -> Option<Bytes> {
        self.copies.get(name)
    }

    fn sees_to(&self, method: &Method, path: &ResourcePath) -> bool {
        let desk = self.beside.desk.as_ref();
        desk.is_some_and(|desk| desk.sees_to(method, path))
    }

    fn see_to(&self, entrusted: Entrusted) -> Seeing<'_> {
        Box::pin(async move {
            match &self.beside.desk {
                Some(desk) => desk.see_to(entrusted).await,
                None => Err(Status::method_not_allowed()),
            }
        })
    }

    fn brings(&self, resource: &Resource, range: &Range) -> bool {
        let wants = self.beside.wants.as_ref();
        wants.is_some_and(|wants| wants.brings(resource, range))
    }

    fn uses(&self, resource: &Resource, range: &Range) {
        if let Some(wants) = &self.beside.wants {
            wants.uses(resource, range);
        }
    }

    fn watches(&self, resource: &Resource, range: &Range) -> Option<InUse> {
        let wants = self.beside.wants.as_ref()?;
        let watched = wants.watches(resource, range)?;
        Some(Box::new(watched))
    }

    fn awaits(&self, user: &User, path: &ResourcePath, fields: &str) -> bool {
        let leading = self.leading.as_ref().filter(|_| self.is_node(user));
        leading.is_some() && Leading::awaits(path, fields)
    }

    fn lens(&self, user: &User, kind: &Kind) -> Option<Arc<dyn Lens>> {
        let leading = self.leading.as_ref().filter(|_| self.is_node(user));
        leading.and_then(|leading| leading.lens(kind))
    }

    fn overlay(&self) -> Option<Arc<dyn Overlay>> {
        let desk = self.beside.desk.as_ref()?;
        Some(Arc::new(desk.overlay().clone()))
    }
}

impl Gate {
    async fn ask(
        &self,
        mut request: Request<Incoming>,
        whose: Whose,
    ) -> Result<Response<Incoming>, NotPassed> {
        let local = hyper::upgrade::on(&mut request);
        let mut answer = self.tunnel.pass(request, whose).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let cluster = hyper::upgrade::on(&mut answer);
            self.tunnel.splice(local, cluster)?;
        }
        Ok(answer)
    }
}

/// Whether a token is still there when what concerns the client's connection alone is gone. A
/// request that loses its token on the way would arrive as the node's own.
fn keeps_its_token(headers: &HeaderMap) -> bool {
    let mut headers = headers.clone();
    tunnel::hops::strip(&mut headers);
    headers.contains_key(AUTHORIZATION)
}

/// What a client is told whose request did not get through. Clients of Kubernetes send again
/// whatever they are told to come again with, so nobody is told so whose write may have been done.
pub(crate) fn refused(method: &Method, why: NotPassed) -> Status {
    match why {
        NotPassed::Offline { since } => offline(method, since),
        NotPassed::Busy => {
            let message = "as many requests are on their way to the cluster as this caller may \
                           have, or all together";
            Status::try_again(429, "TooManyRequests", message, WAIT_SECONDS)
        }
        NotPassed::NotServed => {
            let message = "this node's hub is too old to ask the cluster for it; update the hub";
            Status::try_again(503, "ServiceUnavailable", message, WAIT_SECONDS)
        }
        NotPassed::Body(why) => Status::bad_request(format!("the body cannot be read: {why}")),
        NotPassed::Late(_) => Status::new(408, "Timeout", why.to_string()),
        NotPassed::Broke(why) => {
            let message = format!("the link broke while the cluster was asked: {why}");
            if matches!(*method, Method::GET | Method::HEAD) {
                return Status::try_again(503, "ServiceUnavailable", message, WAIT_SECONDS);
            }
            let message =
                format!("{message}; the cluster may have done it, see before you repeat it");
            Status::new(504, "Timeout", message)
        }
    }
}

fn offline(method: &Method, since: Option<Timestamp>) -> Status {
    let since = match since {
        Some(since) => format!("the cluster cannot be reached since {since:.0}"),
        None => "the cluster was not reached since this node started".to_owned(),
    };
    let message = match *method {
        Method::GET | Method::HEAD => format!(
            "{since}; this node answers what it holds to those of whom it knows that they may read \
             it, and this only the cluster can answer"
        ),
        _ => format!("{since}; this node answers what it holds, and this only the cluster can do"),
    };
    Status::try_again(503, "ServiceUnavailable", message, WAIT_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_cannot_be_lost_on_the_way() {
        let kept = |all: &[(&'static str, &str)]| {
            let pair = |(name, value): &(&'static str, &str)| {
                (http::HeaderName::from_static(name), value.parse().unwrap())
            };
            keeps_its_token(&all.iter().map(pair).collect())
        };
        let token = ("authorization", "Bearer x");
        assert!(kept(&[token]));
        assert!(kept(&[token, ("connection", "keep-alive, upgrade")]));
        for named in ["authorization", "close, Authorization", " AUTHORIZATION "] {
            assert!(!kept(&[token, ("connection", named)]), "{named}");
        }
    }

    #[test]
    fn who_comes_without_a_link_is_told_since_when_and_when_to_come_again() {
        let since = "2026-11-16T10:00:00Z".parse().unwrap();
        let told = refused(&Method::POST, NotPassed::Offline { since: Some(since) });
        assert_eq!((told.code, told.retry_after_seconds()), (503, Some(1)));
        assert!(
            told.message.contains("since 2026-11-16T10:00:00Z"),
            "{told}"
        );
        let told = refused(&Method::POST, NotPassed::Offline { since: None });
        assert!(told.message.contains("since this node started"), "{told}");
    }

    #[test]
    fn whose_body_makes_no_sense_is_not_told_to_come_again() {
        let told = refused(&Method::POST, NotPassed::Body("no chunk".to_owned()));
        assert_eq!((told.code, told.retry_after_seconds()), (400, None));
    }

    #[test]
    fn a_write_that_may_have_been_done_is_not_to_be_sent_again() {
        let told = |method, why| refused(&method, why).retry_after_seconds();
        let broke = || NotPassed::Broke("the hub was silent".to_owned());
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(told(method, broke()), Some(1));
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(told(method.clone(), broke()), None);
            assert_eq!(told(method.clone(), NotPassed::Busy), Some(1));
            assert_eq!(told(method, NotPassed::NotServed), Some(1));
        }
        let told = refused(&Method::POST, broke());
        assert_eq!(told.code, 504);
        assert!(told.message.contains("may have done it"), "{told}");
    }
}
