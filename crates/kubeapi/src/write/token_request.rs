//! TokenRequest: a signed token for a service account, bound to what it names.

use host::Clock;
use object::Object;
use serde::Deserialize;
use serde_json::{Value, json};

use super::field;
use super::outcome::fresh_uuid;
use crate::Status;
use crate::status::Cause;
use crate::who::token::{
    BoundTo, Claims, LIFETIME_SECONDS_MIN, Mounted, Reference, SigningKey, lifetime,
};

/// How long a token lives where the client does not say.
const LIFETIME_SECONDS_DEFAULT: i64 = 3600;
/// The longest life that a client may ask for: what Kubernetes allows.
const LIFETIME_SECONDS_MAX: i64 = 1 << 32;

/// Makes service-account tokens.
pub struct TokenMaker {
    /// Signs them.
    pub key: SigningKey,
    /// Who issues them.
    pub issuer: String,
    /// Those that a token is meant for where the client does not say.
    pub audiences: Vec<String>,
    /// The time.
    pub clock: Clock,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<Bound>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Bound {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
}

/// Finds an object of a core resource, in the account's namespace where it has one.
type Find<'a> = dyn Fn(&str, &str) -> Result<Option<Object>, Status> + 'a;

impl TokenMaker {
    /// The request with its token. `account` is the service account's namespace and name.
    pub fn answer(
        &self,
        account: (&str, &str),
        mut request: Value,
        find: &Find<'_>,
    ) -> Result<Value, Status> {
        let (namespace, name) = account;
        let object = find("serviceaccounts", name)?;
        let object = object.ok_or_else(|| Status::not_found("", "serviceaccounts", name))?;
        let spec = match (request.is_object(), field::child(&request, "spec")) {
            (true, Value::Null) => Spec::default(),
            (true, spec @ Value::Object(_)) => Spec::deserialize(spec)
                .map_err(|error| Status::bad_request(format!("spec cannot be read: {error}")))?,
            _ => {
                return Err(Status::bad_request(
                    "the request and its spec must be objects",
                ));
            }
        };
        let seconds = spec.expiration_seconds.unwrap_or(LIFETIME_SECONDS_DEFAULT);
        check_lifetime(seconds)?;
        let audiences = spec.audiences.filter(|audiences| !audiences.is_empty());
        let audiences = audiences.unwrap_or_else(|| self.audiences.clone());
        let mut bound = BoundTo {
            namespace: namespace.to_owned(),
            serviceaccount: Reference {
                name: name.to_owned(),
                uid: object.header.uid.to_string(),
            },
            ..BoundTo::default()
        };
        if let Some(wanted) = &spec.bound_object_ref {
            bind(&mut bound, wanted, find)?;
        }
        let ours = audiences
            .iter()
            .any(|audience| self.audiences.contains(audience));
        let mounted = if bound.pod.is_some() && ours {
            Mounted::Yes
        } else {
            Mounted::No
        };
        let now = self.clock.wall().as_second();
        let life = lifetime(seconds, mounted);
        let claims =
            Claims::new(bound, audiences.clone(), life, now).issued(&self.issuer, &fresh_uuid()?);
        // The client is told the time that it asked for, so that it renews early although the token
        // lives on.
        let ends = jiff::Timestamp::from_second(now + seconds)
            .map_err(|_| Status::bad_request("spec.expirationSeconds is too large"))?;
        let ends = ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let made = jiff::Timestamp::from_second(now)
            .map_err(|_| Status::internal("the clock is out of range"))?;
        request["metadata"] = json!({
            "name": name, "namespace": namespace, "uid": &*object.header.uid,
            "creationTimestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        request["spec"]["audiences"] = audiences.into();
        request["spec"]["expirationSeconds"] = seconds.into();
        if request["spec"]["boundObjectRef"].is_null() {
            request["spec"]["boundObjectRef"] = Value::Null;
        }
        request["status"] = json!({ "token": self.key.sign(&claims), "expirationTimestamp": ends });
        Ok(request)
    }
}

fn check_lifetime(seconds: i64) -> Result<(), Status> {
    let wrong = match seconds {
        seconds if seconds < LIFETIME_SECONDS_MIN => {
            "may not specify a duration less than 10 minutes"
        }
        seconds if seconds > LIFETIME_SECONDS_MAX => {
            "may not specify a duration larger than 2^32 seconds"
        }
        _ => return Ok(()),
    };
    let message = format!("Invalid value: {seconds}: {wrong}");
    let cause = Cause::new("FieldValueInvalid", "spec.expirationSeconds", message);
    Err(Status::invalid(
        "authentication.k8s.io",
        "TokenRequest",
        "",
        vec![cause],
    ))
}

/// Binds the token to an object that must exist, and be the one that is meant.
fn bind(bound: &mut BoundTo, wanted: &Bound, find: &Find<'_>) -> Result<(), Status> {
    let plural = match wanted.kind.as_str() {
        "Pod" => "pods",
        "Secret" => "secrets",
        "Node" => "nodes",
        kind => {
            let (group, version) = match wanted.api_version.split_once('/') {
                Some(parts) => parts,
                None => ("", &*wanted.api_version),
            };
            let of = format!("{group}/{version}, Kind={kind}");
            let message = format!("cannot bind token to object of type {of}");
            return Err(Status::bad_request(message));
        }
    };
    let object = find(plural, &wanted.name)?;
    let object = object.ok_or_else(|| Status::not_found("", plural, &wanted.name))?;
    let uid = object.header.uid.to_string();
    if !wanted.uid.is_empty() && wanted.uid != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. \
             The object might have been deleted and then recreated",
            wanted.uid
        );
        return Err(Status::conflict("", &wanted.kind, &wanted.name, &why));
    }
    let reference = Some(Reference {
        name: wanted.name.clone(),
        uid,
    });
    match plural {
        "secrets" => bound.secret = reference,
        "nodes" => bound.node = reference,
        _ => {
            bind_to_node_of(bound, &object, find)?;
            bound.pod = reference;
        }
    }
    Ok(())
}

/// A pod's token names the node that the pod runs on; and the pod must run as this account.
fn bind_to_node_of(bound: &mut BoundTo, pod: &Object, find: &Find<'_>) -> Result<(), Status> {
    let unreadable = |error| Status::internal(format!("a pod cannot be read: {error}"));
    let value: Value = serde_json::from_slice(&pod.bytes).map_err(unreadable)?;
    let runs_as = value["spec"]["serviceAccountName"].as_str().unwrap_or("");
    let account = &bound.serviceaccount.name;
    if runs_as != account {
        let message = format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different \
             serviceaccount name."
        );
        return Err(Status::bad_request(message));
    }
    let node = value["spec"]["nodeName"].as_str().unwrap_or("");
    if !node.is_empty() {
        let uid = find("nodes", node)?
            .map(|node| node.header.uid.to_string())
            .unwrap_or_default();
        bound.node = Some(Reference {
            name: node.to_owned(),
            uid,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::who::token::SigningKey;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    use bytes::Bytes;
    use object::Resource;

    fn answer(request: Value) -> Result<Value, Status> {
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let maker = TokenMaker {
            key: SigningKey::from_pkcs8(pkcs8.unwrap().as_ref()).unwrap(),
            issuer: "us".into(),
            audiences: vec!["everybody".into()],
            clock: Clock::machine(),
        };
        let account =
            br#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"}}"#;
        let resource = Resource::new("", "serviceaccounts");
        let account = Object::parse(&resource, Bytes::from_static(account), &[]).unwrap();
        maker.answer(("n", "a"), request, &|_, _| Ok(Some(account.clone())))
    }

    #[test]
    fn a_request_that_says_nothing_is_answered_and_one_that_is_none_is_refused() {
        for request in [json!({}), json!({"spec": null}), json!({"spec": {}})] {
            let answered = answer(request).unwrap();
            assert_eq!(answered["spec"]["audiences"], json!(["everybody"]));
        }
        for request in [
            json!([]),
            json!("x"),
            json!({"spec": []}),
            json!({"spec": "x"}),
        ] {
            assert_eq!(answer(request.clone()).unwrap_err().code, 400, "{request}");
        }
    }
}
