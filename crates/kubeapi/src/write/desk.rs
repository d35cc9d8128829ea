//! The desk of an embedded cluster: takes orders, and has them carried out by the rules over the
//! authority.

use std::sync::Arc;

use bytes::Bytes;
use object::{ObjectName, Resource};
use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::admit::{Admission, Trusted};
use super::options::{DeleteOptions, DryRun, WriteOptions};
use super::order::{Order, Verb, Writes as OrderWrites, Writing, Written, WrittenBody};
use super::patch::Patch;
use super::perform::{Ask, Done, Writes};
use super::token_request::TokenMaker;
use super::{Part, Target, field, meta};
use crate::Status;
use crate::custom::scale::ScalePaths;
use crate::protobuf;
use crate::read::{self, question};
use crate::schema::builtin;
use crate::schema::fields::{self, FieldValidation};
use crate::who::Authorizer;

/// Takes orders for an embedded cluster.
pub struct Desk {
    /// Carries out writes.
    pub writes: Arc<Writes>,
    /// Who may what: some writes grant permissions, and nobody grants what he does not have.
    pub authorizer: Arc<RwLock<Authorizer>>,
    /// Makes service-account tokens.
    pub tokens: TokenMaker,
}

impl OrderWrites for Desk {
    fn write(&self, order: Order) -> Writing<'_> {
        Box::pin(async move { self.take(&order).await })
    }
}

impl Desk {
    async fn take(&self, order: &Order) -> Result<Written, Status> {
        match (order.verb, order.path.subresource.as_str()) {
            (Verb::Create, "token") => self.token(order),
            (Verb::Create, "eviction") => self.evict(order).await,
            (Verb::Update | Verb::Patch, "scale") => self.scale(order).await,
            (Verb::Delete, "") => self.delete(order).await,
            (Verb::DeleteCollection, "") => self.delete_collection(order).await,
            (_, part) => self.store(order, part_of(part)?).await,
        }
    }

    async fn store(&self, order: &Order, part: Part) -> Result<Written, Status> {
        let WriteOptions { dry_run, fields } = WriteOptions::from_query(&order.query, order.verb)?;
        let repeated = fields::repeated(&order.body);
        let admission = self.admission(order);
        let ask = Ask {
            target: target(order),
            part,
            dry_run,
            fields,
            repeated: &repeated,
            admission: &admission,
        };
        let done = match order.verb {
            Verb::Create => self.writes.create(&ask, json(order)?).await?,
            Verb::Update => self.writes.update(&ask, json(order)?).await?,
            Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                let patch = self.patch(order)?;
                self.writes.patch(&ask, &patch).await?
            }
        };
        Ok(written(done, WrittenBody::Object))
    }

    async fn delete(&self, order: &Order) -> Result<Written, Status> {
        let options = delete_options(order)?;
        let admission = self.admission(order);
        let done = self
            .writes
            .delete(&target(order), &options, &admission)
            .await?;
        // What went away in this step is answered with a Status, what stays for a while with
        // itself.
        let is_status = done.body.starts_with(b"{\"kind\":\"Status\"");
        let body = if is_status {
            WrittenBody::Verbatim
        } else {
            WrittenBody::Object
        };
        Ok(written(done, body))
    }

    async fn delete_collection(&self, order: &Order) -> Result<Written, Status> {
        let options = delete_options(order)?;
        let selector = question::selector(&order.kind, &order.query).map_err(|mut status| {
            // Of the same fault a list says in addition what it was doing.
            let words = status.message.strip_prefix("unable to parse requirement: ");
            status.message = words.map_or(status.message.clone(), str::to_owned);
            status
        })?;
        let limit = read::options::limit(&order.query)?;
        let admission = self.admission(order);
        let (target, writes) = (target(order), &self.writes);
        let found = writes
            .delete_collection(&target, (selector, limit), &options, &admission)
            .await?;
        Ok(Written {
            code: 200,
            body: WrittenBody::List(found),
            warnings: Vec::new(),
        })
    }

    async fn scale(&self, order: &Order) -> Result<Written, Status> {
        let paths = ScalePaths::of_kind(&order.kind).ok_or_else(Status::no_such_path)?;
        let admission = self.admission(order);
        let ask = Ask {
            target: target(order),
            part: Part::Whole,
            dry_run: WriteOptions::from_query(&order.query, order.verb)?.dry_run,
            fields: FieldValidation::Ignore,
            repeated: &[],
            admission: &admission,
        };
        let resource = (&*order.kind.group, &*order.kind.plural);
        let schema = builtin::type_of("autoscaling", "v1", "Scale");
        let schema = schema.as_ref().map(|schema| schema.schema());
        let sent = match order.verb {
            Verb::Update => Sent::Whole(json(order)?),
            _ => Sent::Patch(self.patch(order)?),
        };
        let rule = |current: &Value| {
            let scale = match &sent {
                Sent::Whole(scale) => scale.clone(),
                Sent::Patch(patch) => patch.applied_to(paths.read(current)?, schema)?,
            };
            settle_scale(order, &scale)?;
            let mut object = current.clone();
            paths.write(&mut object, &scale, resource)?;
            Ok(object)
        };
        let done = self.writes.change_with(&ask, rule).await?;
        let object = serde_json::from_slice(&done.body)
            .map_err(|error| Status::internal(format!("an object cannot be read: {error}")))?;
        let scale = paths.read(&object)?;
        Ok(written(done, |_| {
            WrittenBody::Verbatim(Bytes::from(scale.to_string()))
        }))
    }

    /// An eviction is a deletion that a disruption budget may refuse. No controller counts
    /// disruptions here: what somebody wrote into a budget's status counts.
    async fn evict(&self, order: &Order) -> Result<Written, Status> {
        let eviction = json(order)?;
        let mut options = match &eviction["deleteOptions"] {
            Value::Null => DeleteOptions::default(),
            options => DeleteOptions::from_body(options)?,
        };
        if WriteOptions::from_query(&order.query, order.verb)?.dry_run == DryRun::All {
            options.dry_run = DryRun::All;
        }
        if meta::name(&eviction) != order.path.name {
            let why = "name in URL does not match name in Eviction object";
            return Err(Status::bad_request(why));
        }
        self.admission(order).eviction(&eviction)?;
        self.writes.check_budgets(&target(order))?;
        self.writes
            .delete(&target(order), &options, &Trusted)
            .await?;
        let mut status = Status::new(201, "", "");
        status.details = None;
        let body = Bytes::from(status.to_json().to_string());
        Ok(Written {
            code: 201,
            body: WrittenBody::Verbatim(body),
            warnings: Vec::new(),
        })
    }

    fn token(&self, order: &Order) -> Result<Written, Status> {
        let request = json(order)?;
        let path = &order.path;
        let find = |plural: &str, name: &str| {
            let namespace = if plural == "nodes" {
                ""
            } else {
                path.namespace.as_str()
            };
            self.writes.object(
                &Resource::new("", plural),
                &ObjectName::new(namespace, name),
            )
        };
        let account = (&*path.namespace, &*path.name);
        let answered = self.tokens.answer(account, request.clone(), &find)?;
        // What was asked for is looked at, and not what it became: who names no audience wants the
        // one of the cluster, as a pod does that names none.
        self.admission(order).token(&request)?;
        let body = WrittenBody::Verbatim(Bytes::from(answered.to_string()));
        Ok(Written {
            code: 201,
            body,
            warnings: Vec::new(),
        })
    }

    /// The patch that was sent. That there is something to patch comes before what is wrong with
    /// it.
    fn patch(&self, order: &Order) -> Result<Patch, Status> {
        match Patch::parse(&order.kind, &order.content_type, &order.body) {
            Err(status) if status.code != 415 => {
                self.writes.must_read(&target(order))?;
                Err(status)
            }
            parsed => parsed,
        }
    }

    fn admission<'a>(&'a self, order: &'a Order) -> Admission<'a> {
        Admission {
            order,
            authorizer: &self.authorizer,
            writes: &self.writes,
        }
    }
}

/// What a client sent for a scale.
enum Sent {
    Whole(Value),
    Patch(Patch),
}

/// A Scale is one, and that of the object in the URL.
fn settle_scale(order: &Order, scale: &Value) -> Result<(), Status> {
    let (version, kind) = (field::text(scale, "apiVersion"), field::text(scale, "kind"));
    if !matches!(version, "" | "autoscaling/v1") || !matches!(kind, "" | "Scale") {
        let version = version.rsplit('/').next().unwrap_or_default();
        return Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Scale"
        )));
    }
    meta::settle_name(&target(order), &mut scale.clone())
}

fn target(order: &Order) -> Target<'_> {
    let namespace = if order.kind.namespaced {
        order.path.namespace.as_str()
    } else {
        ""
    };
    Target {
        kind: &order.kind,
        namespace,
        name: &order.path.name,
    }
}

fn part_of(subresource: &str) -> Result<Part, Status> {
    match subresource {
        "" => Ok(Part::Whole),
        "status" => Ok(Part::Status),
        "finalize" => Ok(Part::Finalize),
        "approval" => Ok(Part::Approval),
        _ => Err(Status::no_such_path()),
    }
}

fn json(order: &Order) -> Result<Value, Status> {
    if !matches!(order.content_type.as_str(), "" | "application/json") {
        let read = match order.kind.custom {
            Some(_) => "application/json".to_owned(),
            None => format!("application/json, {}", protobuf::MEDIA_TYPE),
        };
        return Err(Status::unsupported_media_type(&read));
    }
    let value = serde_json::from_slice(&order.body).map_err(|error| {
        let kind = &order.kind.kind;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error}"
        ))
    })?;
    // To a typed server null is an object in which nothing is set.
    Ok(match value {
        Value::Null => Value::Object(Map::new()),
        value => value,
    })
}

/// The options of a deletion: in the body, or in the query where there is no body.
fn delete_options(order: &Order) -> Result<DeleteOptions, Status> {
    if !order.body.is_empty() {
        return DeleteOptions::from_body(&json(order)?);
    }
    let names = [
        "gracePeriodSeconds",
        "orphanDependents",
        "propagationPolicy",
    ];
    let single = names
        .iter()
        .filter_map(|name| Some((*name, order.query.value(name)?)));
    let dry_runs = order.query.values("dryRun").map(|value| ("dryRun", value));
    DeleteOptions::from_query(single.chain(dry_runs))
}

fn written(done: Done, body: impl FnOnce(Bytes) -> WrittenBody) -> Written {
    Written {
        code: done.code,
        body: body(done.body),
        warnings: done.warnings,
    }
}
