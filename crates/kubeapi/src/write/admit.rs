//! Who may write what into an object, beyond whether he may write it at all: nodes only what is
//! theirs, and nobody grants permissions that he does not have.

use object::{ObjectName, Resource};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::Value;

use super::order::Order;
use super::perform::Writes;
use crate::Status;
use crate::who::node::restrict::{self, Operation, Surroundings, Write};
use crate::who::rbac::{self, Binding, ClusterRole, cover};
use crate::who::{Authorizer, User};

/// Looks at every write before it is stored, with the object as it was at that moment. Two lives: a
/// client's order, and the cluster's own upkeep.
pub trait Admit: Sync {
    /// An object comes into being.
    fn create(&self, object: &Value) -> Result<(), Status>;
    /// An object changes, perhaps for the last time.
    fn update(&self, object: &Value, old: &Value) -> Result<(), Status>;
    /// Somebody asks that an object goes.
    fn delete(&self, old: &Value) -> Result<(), Status>;
    /// Who it is; nobody where it is the cluster itself.
    fn user(&self) -> Option<&User>;
}

/// The cluster itself writes: nothing is held against it.
pub struct Trusted;

impl Admit for Trusted {
    fn create(&self, _: &Value) -> Result<(), Status> {
        Ok(())
    }

    fn update(&self, _: &Value, _: &Value) -> Result<(), Status> {
        Ok(())
    }

    fn delete(&self, _: &Value) -> Result<(), Status> {
        Ok(())
    }

    fn user(&self) -> Option<&User> {
        None
    }
}

/// A client's order.
pub struct Admission<'a> {
    pub(super) order: &'a Order,
    pub(super) authorizer: &'a RwLock<Authorizer>,
    pub(super) writes: &'a Writes,
}

impl Admit for Admission<'_> {
    fn create(&self, object: &Value) -> Result<(), Status> {
        self.look(Operation::Create, object, &Value::Null)
    }

    fn update(&self, object: &Value, old: &Value) -> Result<(), Status> {
        self.look(Operation::Update, object, old)
    }

    fn delete(&self, old: &Value) -> Result<(), Status> {
        self.look(Operation::Delete, &Value::Null, old)
    }

    fn user(&self) -> Option<&User> {
        Some(&self.order.user)
    }
}

impl Admission<'_> {
    /// A token is given out.
    pub(super) fn token(&self, request: &Value) -> Result<(), Status> {
        self.look(Operation::Create, request, &Value::Null)
    }

    /// A pod is asked to go, by an object of its own.
    pub(super) fn eviction(&self, eviction: &Value) -> Result<(), Status> {
        self.look(Operation::Create, eviction, &Value::Null)
    }

    fn look(&self, operation: Operation, object: &Value, old: &Value) -> Result<(), Status> {
        let Order {
            kind, path, user, ..
        } = self.order;
        let authorizer = self.authorizer.read();
        let write = Write {
            user,
            operation,
            group: &kind.group,
            resource: &kind.plural,
            subresource: &path.subresource,
            namespace: &path.namespace,
            name: &path.name,
            object,
            old,
        };
        let new_pod = operation == Operation::Create && write.is_pod();
        if let Some(why) = restrict::mirror_fault(object).filter(|_| new_pod) {
            return Err(Status::forbidden("", "pods", write.name_in_object(), why));
        }
        let find = |resource: &Resource, name: &ObjectName| self.find(resource, name);
        let decide = |question: &_| authorizer.decide(question);
        restrict::check(
            &write,
            &Surroundings {
                find: &find,
                decide: &decide,
            },
        )?;
        if &*kind.group == rbac::GROUP && operation != Operation::Delete {
            self.grants(&authorizer, object, old)?;
        }
        Ok(())
    }

    fn find(&self, resource: &Resource, name: &ObjectName) -> Option<Value> {
        let object = self.writes.object(resource, name).ok()??;
        serde_json::from_slice(&object.bytes).ok()
    }

    /// Nobody grants what he does not have. What grants nothing new is let through: who may update
    /// may also keep.
    fn grants(&self, authorizer: &Authorizer, object: &Value, old: &Value) -> Result<(), Status> {
        let (user, plural) = (&self.order.user, &*self.order.kind.plural);
        let same = |key: &str| object.get(key) == old.get(key);
        let unreadable = |error| Status::bad_request(format!("the object cannot be read: {error}"));
        match plural {
            "roles" | "clusterroles" => {
                if same("rules") && same("aggregationRule") {
                    return Ok(());
                }
                let role = ClusterRole::deserialize(object).map_err(unreadable)?;
                let before = match old.is_null() {
                    true => None,
                    false => Some(ClusterRole::deserialize(old).map_err(unreadable)?),
                };
                cover::may_write_role(authorizer, user, &role, before.as_ref())
            }
            _ if same("roleRef") && same("subjects") => Ok(()),
            _ => {
                let binding = Binding::deserialize(object).map_err(unreadable)?;
                cover::may_write_binding(authorizer, user, &binding)
            }
        }
    }
}
