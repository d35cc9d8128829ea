//! Which write of the node's own callers is seen to how: over the link as long as there is one, and
//! here otherwise, as far as that is honest.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use host::{Shutdown, Times};
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use kubeapi::Status;
use kubeapi::catalog::Kind;
use kubeapi::request::ResourcePath;
use kubeapi::serve::{Entrusted, Seen};
use kubeapi::write::patch::Patch;
use kubeapi::write::{Target, meta};
use object::ObjectName;
use parking_lot::Mutex;
use serde_json::Value;
use wire::frame::Queue;
use wire::join::NodeName;
use wire::report::Refused;
use wire::report::statement::{About, EventApi};

use super::Overlay;
use super::events::{self, Answered};
use super::fold::{Change, text};
use super::pulse::Heart;
use super::remembered::{self, Tokens};
use crate::local::refused;
use crate::reports::{Hub, NotKept, Reports};
use crate::tunnel::{NotPassed, Tunnel, Whose};

/// Bytes of an answer with a token.
const TOKEN_BYTES_MAX: usize = 256 * 1024;
/// When a client is to come again whose write found no room.
const WAIT_SECONDS: u32 = 5;

/// What sees to writes. Clones share everything.
#[derive(Clone)]
pub struct Desk(Arc<Shared>);

struct Shared {
    node: NodeName,
    tunnel: Tunnel,
    reports: Reports,
    overlay: Overlay,
    times: Times,
    heart: Heart,
    tokens: Tokens,
    events: Mutex<Answered>,
}

/// What a request is, if it is seen to here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matter {
    Status,
    Lease,
    Event(EventApi),
    NewNode,
    Token,
}

impl Desk {
    /// Sees to writes over this tunnel, or with these reports.
    pub fn new(
        node: &NodeName,
        (tunnel, reports): (Tunnel, Reports),
        overlay: Overlay,
        times: Times,
    ) -> Self {
        let tokens = Tokens::open(overlay.0.keep.clone());
        let heart = Heart::new(reports.clone(), times.clone());
        Self(Arc::new(Shared {
            node: node.clone(),
            tunnel,
            reports,
            overlay,
            times,
            heart,
            tokens,
            events: Mutex::default(),
        }))
    }

    /// What lies over stored objects.
    pub fn overlay(&self) -> &Overlay {
        &self.0.overlay
    }

    /// Whether a request is seen to here.
    pub fn sees_to(&self, method: &Method, path: &ResourcePath) -> bool {
        matter(self.0.node.as_str(), method, path).is_some()
    }

    /// Sees to a request.
    pub async fn see_to(&self, entrusted: Entrusted) -> Result<Seen, Status> {
        let node = self.0.node.as_str();
        match matter(node, &entrusted.head.method, &entrusted.path) {
            // A hub that takes no reports is never sent any: what waited would wait for ever, and
            // hide what is newer.
            Some(Matter::Status | Matter::Event(_)) if self.0.reports.hub() == Hub::TakesNone => {
                self.pass(&entrusted).await.map_err(refusing(&entrusted))
            }
            Some(Matter::Status) => self.status(entrusted).await,
            Some(Matter::Lease) => self.lease(entrusted).await,
            Some(Matter::Event(api)) => self.event(api, entrusted).await,
            Some(Matter::NewNode) => self.new_node(entrusted).await,
            Some(Matter::Token) => self.token(entrusted).await,
            None => self.pass(&entrusted).await.map_err(refusing(&entrusted)),
        }
    }

    /// Tells the hub of each session whether a kubelet lives here, and when it stops.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        self.0.heart.run(shutdown).await
    }

    async fn status(&self, entrusted: Entrusted) -> Result<Seen, Status> {
        let Entrusted { kind, path, .. } = &entrusted;
        let namespace = if kind.namespaced {
            &*path.namespace
        } else {
            ""
        };
        let name = ObjectName::new(namespace, &path.name);
        let about = self.0.overlay.about(&kind.plural, &name);
        // What waits goes first: what follows waits behind it.
        let waits = |about: &About| self.0.reports.waits(about);
        let joins = about.as_ref().is_some_and(waits);
        let mut why = None;
        if !joins {
            match self.pass(&entrusted).await {
                Ok(seen) => return Ok(seen),
                Err(not) if is_kept_out(&not) => why = Some(not),
                Err(not) => return Err(refused(&entrusted.head.method, not)),
            }
        }
        if let Some(about) = about {
            let change = change(kind, &entrusted)?;
            if let Some(bytes) = self.0.overlay.write(&about, &change).await? {
                return Ok(Seen::Object(200, bytes));
            }
        }
        match why {
            Some(why) => Err(refused(&entrusted.head.method, why)),
            None => self.pass(&entrusted).await.map_err(refusing(&entrusted)),
        }
    }

    async fn lease(&self, entrusted: Entrusted) -> Result<Seen, Status> {
        // A hub that keeps no leases leaves them to the kubelet.
        let here = match self.0.reports.hub() {
            Hub::Takes { leases, .. } => leases,
            Hub::Away => true,
            Hub::TakesNone => false,
        };
        if !here {
            return self.pass(&entrusted).await.map_err(refusing(&entrusted));
        }
        let (kind, now) = (&*entrusted.kind, self.0.times.now());
        let method = entrusted.head.method.clone();
        let answer = match method {
            Method::GET => self.0.heart.lease().get().cloned().map(Ok),
            Method::PATCH => {
                let patch = patch(kind, &entrusted)?;
                let mut lease = self.0.heart.lease();
                let patched = lease.patch(&patch, kind, now);
                patched.map(|patched| patched.cloned())
            }
            _ => {
                let object = object(&entrusted)?;
                let named = text(&object["metadata"], "name");
                if named != self.0.node.as_str() {
                    return self.pass(&entrusted).await.map_err(refusing(&entrusted));
                }
                let mut lease = self.0.heart.lease();
                let written = match method {
                    Method::POST => lease.create(object, kind, now),
                    _ => lease.update(object, kind, now),
                };
                Some(written.cloned())
            }
        };
        let Some(answer) = answer else {
            return self.pass(&entrusted).await.map_err(refusing(&entrusted));
        };
        let object = answer?;
        if method != Method::GET {
            self.0.heart.beats().await;
        }
        let code = if method == Method::POST { 201 } else { 200 };
        Ok(Seen::Object(code, object.to_string().into()))
    }

    async fn event(&self, api: EventApi, entrusted: Entrusted) -> Result<Seen, Status> {
        // One that is changed may still wait to be made.
        if !self.0.reports.has(Queue::Events) {
            match self.pass(&entrusted).await {
                Err(NotPassed::Offline { .. } | NotPassed::Broke(_)) => {}
                passed => return passed.map_err(refusing(&entrusted)),
            }
        }
        let (path, kind) = (&entrusted.path, &entrusted.kind);
        let place = (&*path.namespace, &*path.name);
        let (statement, event, code) = match entrusted.head.method {
            Method::POST => {
                let event = object(&entrusted)?;
                let (statement, event) = events::created(api, &path.namespace, event)?;
                (statement, event, 201)
            }
            Method::PUT => {
                let mut event = object(&entrusted)?;
                if let Some(event) = event.as_object_mut() {
                    event.shift_remove("metadata");
                }
                let patch = Patch::Merge(event);
                let event = self.0.events.lock().patched(place, &patch)?;
                (events::changed(api, place, &patch)?, event, 200)
            }
            _ => {
                let patch = patch(kind, &entrusted)?;
                let event = self.0.events.lock().patched(place, &patch)?;
                (events::changed(api, place, &patch)?, event, 200)
            }
        };
        let told = self.0.reports.tell(statement).await;
        told.map_err(|why| not_kept(&why))?;
        let mut event = event;
        event["apiVersion"] = kind.api_version().into();
        event["kind"] = (&*kind.kind).into();
        self.0.events.lock().put(event.clone());
        Ok(Seen::Object(code, event.to_string().into()))
    }

    async fn new_node(&self, entrusted: Entrusted) -> Result<Seen, Status> {
        let not_passed = match self.pass(&entrusted).await {
            Ok(seen) => return Ok(seen),
            Err(not_passed) => not_passed,
        };
        let (kind, node) = (&entrusted.kind, self.0.node.as_str());
        let object = object(&entrusted)?;
        let own = text(&object["metadata"], "name") == node;
        let held = self.0.overlay.about("nodes", &ObjectName::new("", node));
        match (&not_passed, own && held.is_some()) {
            (NotPassed::Offline { .. } | NotPassed::Broke(_), true) => {
                Err(Status::already_exists(&kind.group, &kind.plural, node))
            }
            _ => Err(refused(&entrusted.head.method, not_passed)),
        }
    }

    async fn token(&self, entrusted: Entrusted) -> Result<Seen, Status> {
        let account = (&*entrusted.path.namespace, &*entrusted.path.name);
        // One that cannot be read here is left to the cluster.
        let key = body(&entrusted).map(|request| remembered::key(account, &request));
        let (tokens, now) = (&self.0.tokens, self.0.times.clock().wall());
        match (self.ask_for_token(&entrusted).await, key) {
            (Ok((code, bytes)), key) => {
                if let (201, Ok(key)) = (code, key) {
                    tokens.put(key, bytes.clone(), now).await;
                }
                Ok(Seen::Verbatim(code, bytes))
            }
            (Err(not_passed), Ok(key)) if is_kept_out(&not_passed) => match tokens.get(&key, now) {
                Some(bytes) => Ok(Seen::Verbatim(201, bytes)),
                None => Err(refused(&entrusted.head.method, not_passed)),
            },
            (Err(not_passed), _) => Err(refused(&entrusted.head.method, not_passed)),
        }
    }

    /// Asks the cluster for a token, and takes the answer whole, in JSON.
    async fn ask_for_token(&self, entrusted: &Entrusted) -> Result<(u16, Bytes), NotPassed> {
        let mut request = request(entrusted);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.remove(ACCEPT_ENCODING);
        let answer = self.0.tunnel.pass(request, Whose::Node).await?;
        let code = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), TOKEN_BYTES_MAX).collect();
        let body = body
            .await
            .map_err(|error| NotPassed::Broke(error.to_string()))?;
        Ok((code, body.to_bytes()))
    }

    async fn pass(&self, entrusted: &Entrusted) -> Result<Seen, NotPassed> {
        let passed = self.0.tunnel.pass(request(entrusted), Whose::Node).await?;
        Ok(Seen::Passed(passed))
    }
}

/// What a request is, if it is seen to here.
fn matter(node: &str, method: &Method, path: &ResourcePath) -> Option<Matter> {
    let group = (&*path.group, &*path.version, &*path.resource);
    let named = !path.name.is_empty();
    let own = path.name == node;
    let changes = *method == Method::PUT || *method == Method::PATCH;
    match (group, &*path.subresource) {
        (("", "v1", "nodes"), "status") if changes && own => Some(Matter::Status),
        (("", "v1", "pods"), "status") if changes && named => Some(Matter::Status),
        (("", "v1", "nodes"), "") if *method == Method::POST && !named => Some(Matter::NewNode),
        (("", "v1", "serviceaccounts"), "token") if *method == Method::POST && named => {
            Some(Matter::Token)
        }
        (("coordination.k8s.io", "v1", "leases"), "") if path.namespace == LEASES => {
            let makes = *method == Method::POST && !named;
            let asks = own && (changes || *method == Method::GET);
            (makes || asks).then_some(Matter::Lease)
        }
        (("" | "events.k8s.io", "v1", "events"), "") if !path.namespace.is_empty() => {
            let api = match &*path.group {
                "" => EventApi::Core,
                _ => EventApi::Events,
            };
            let makes = *method == Method::POST && !named;
            (makes || (changes && named)).then_some(Matter::Event(api))
        }
        _ => None,
    }
}

/// What whoever asked this is told if it did not get through.
fn refusing(entrusted: &Entrusted) -> impl Fn(NotPassed) -> Status + '_ {
    |why| refused(&entrusted.head.method, why)
}

/// Whether the cluster cannot be asked now: without a link, or where others have all its room.
fn is_kept_out(why: &NotPassed) -> bool {
    match why {
        NotPassed::Offline { .. } | NotPassed::Busy | NotPassed::Broke(_) => true,
        NotPassed::NotServed | NotPassed::Body(_) | NotPassed::Late(_) => false,
    }
}

/// Where the leases of nodes are.
pub(super) const LEASES: &str = "kube-node-lease";

fn request(entrusted: &Entrusted) -> Request<Full<Bytes>> {
    let body = Full::new(entrusted.body.clone());
    Request::from_parts(entrusted.head.clone(), body)
}

/// The body of a request, whatever it is.
fn body(entrusted: &Entrusted) -> Result<Value, Status> {
    let json = entrusted.json()?;
    serde_json::from_slice(&json)
        .map_err(|error| Status::bad_request(format!("the body cannot be read: {error}")))
}

/// The body of a request that is an object of its kind, and has the name that the request has.
fn object(entrusted: &Entrusted) -> Result<Value, Status> {
    let mut object = body(entrusted)?;
    let Entrusted { kind, path, .. } = entrusted;
    let target = Target {
        kind,
        namespace: &path.namespace,
        name: &path.name,
    };
    meta::check_kind(&target, &object)?;
    if !path.name.is_empty() {
        meta::settle_name(&target, &mut object)?;
    }
    Ok(object)
}

fn patch(kind: &Kind, entrusted: &Entrusted) -> Result<Patch, Status> {
    Patch::parse(kind, &entrusted.content_type()?, &entrusted.body)
}

fn change(kind: &Kind, entrusted: &Entrusted) -> Result<Change, Status> {
    Ok(match entrusted.head.method {
        Method::PATCH => Change::Patch(patch(kind, entrusted)?),
        _ => Change::Put(object(entrusted)?),
    })
}

/// What a client is told whose write cannot be kept here.
pub(super) fn not_kept(why: &NotKept) -> Status {
    match why {
        NotKept::Refused(Refused::TooLarge { .. }) => Status::too_large(why.to_string()),
        NotKept::Refused(_) | NotKept::Store(_) | NotKept::Stopping => {
            let message = format!(
                "the cluster cannot be reached, and this node cannot keep what is written: {why}"
            );
            Status::try_again(503, "ServiceUnavailable", message, WAIT_SECONDS)
        }
    }
}

#[cfg(test)]
mod tests {
    use kubeapi::request::Target;

    use super::*;

    fn is(method: &str, path: &str) -> Option<Matter> {
        let Ok(Target::Resource(path)) = Target::parse(path) else {
            panic!("{path}");
        };
        matter("n1", &method.parse().unwrap(), &path)
    }

    #[test]
    fn what_a_kubelet_cannot_live_without_is_seen_to_and_nothing_else() {
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let pod = "/api/v1/namespaces/a/pods/p";
        let seen = [
            (
                "PATCH",
                "/api/v1/nodes/n1/status".to_owned(),
                Matter::Status,
            ),
            ("PUT", format!("{pod}/status"), Matter::Status),
            ("GET", format!("{lease}/n1"), Matter::Lease),
            ("PUT", format!("{lease}/n1"), Matter::Lease),
            ("POST", lease.to_owned(), Matter::Lease),
            ("POST", "/api/v1/nodes".to_owned(), Matter::NewNode),
            (
                "POST",
                "/api/v1/namespaces/a/serviceaccounts/b/token".to_owned(),
                Matter::Token,
            ),
            (
                "POST",
                "/api/v1/namespaces/a/events".to_owned(),
                Matter::Event(EventApi::Core),
            ),
            (
                "PATCH",
                "/apis/events.k8s.io/v1/namespaces/a/events/e".to_owned(),
                Matter::Event(EventApi::Events),
            ),
        ];
        for (method, path, matter) in seen {
            assert_eq!(is(method, &path), Some(matter), "{method} {path}");
        }
        for (method, path) in [
            ("PATCH", "/api/v1/nodes/n2/status".to_owned()),
            ("PATCH", "/api/v1/nodes/n1".to_owned()),
            ("DELETE", pod.to_owned()),
            ("POST", "/api/v1/namespaces/a/pods".to_owned()),
            ("POST", format!("{pod}/eviction")),
            ("GET", format!("{pod}/status")),
            ("PUT", format!("{lease}/n2")),
            ("GET", lease.to_owned()),
            ("DELETE", format!("{lease}/n1")),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/n1".to_owned(),
            ),
            ("DELETE", "/api/v1/namespaces/a/events/e".to_owned()),
            ("GET", "/api/v1/namespaces/a/events".to_owned()),
        ] {
            assert_eq!(is(method, &path), None, "{method} {path}");
        }
    }
}
