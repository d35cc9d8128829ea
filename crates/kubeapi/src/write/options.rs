//! What a client may say about a write: the options of a deletion, in the body or in the query, and
//! those of a create, an update or a patch.

use serde_json::Value;

use super::fault::{Faults, Path};
use super::field;
use super::order::Verb;
use crate::Status;
use crate::request::{Query, query};
use crate::schema::fields::FieldValidation;

/// How an object should go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// How long a pod may take to stop; 0 means at once. Absent, the pod decides.
    pub grace_seconds: Option<i64>,
    /// Only an object of this uid.
    pub uid: Option<String>,
    /// Only this version of the object.
    pub resource_version: Option<String>,
    /// The old way of saying orphan (true) or background (false).
    pub orphan_dependents: Option<bool>,
    /// What becomes of objects that this one owns.
    pub propagation: Option<Propagation>,
    /// Whether anything is stored.
    pub dry_run: DryRun,
}

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are let go.
    Orphan,
    /// They go later.
    Background,
    /// They go first.
    Foreground,
}

/// Whether a request only asks what would happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It is done.
    #[default]
    No,
    /// Everything but the storing is done.
    All,
}

impl DeleteOptions {
    /// From a body of kind DeleteOptions.
    pub fn from_body(body: &Value) -> Result<Self, Status> {
        let kind = field::text(body, "kind");
        if !body.is_object() || !matches!(kind, "" | "DeleteOptions") {
            let why = "decoded object cannot be converted to DeleteOptions";
            return Err(Status::bad_request(why));
        }
        let conditions = field::child(body, "preconditions");
        let condition = |key| {
            conditions
                .get(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut faults = Faults::default();
        let options = Self {
            grace_seconds: whole_number(body, "gracePeriodSeconds")?,
            uid: condition("uid"),
            resource_version: condition("resourceVersion"),
            orphan_dependents: field::child(body, "orphanDependents").as_bool(),
            propagation: propagation(body.get("propagationPolicy"), &mut faults),
            dry_run: dry_run(&field::texts(body, "dryRun"), &mut faults),
        };
        options.checked(body.get("propagationPolicy"), faults)
    }

    /// From the query of a request without a body: pairs of key and decoded value.
    pub fn from_query<'a>(
        query: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Status> {
        let mut options = Self::default();
        let mut faults = Faults::default();
        let mut policy = None;
        let mut dry_runs = Vec::new();
        for (key, value) in query {
            match key {
                "gracePeriodSeconds" => options.grace_seconds = Some(query::number(value)?),
                "orphanDependents" => options.orphan_dependents = Some(truth(value)),
                "propagationPolicy" => policy = Some(Value::from(value)),
                "dryRun" => dry_runs.push(value),
                _ => {}
            }
        }
        options.propagation = propagation(policy.as_ref(), &mut faults);
        options.dry_run = dry_run(&dry_runs, &mut faults);
        options.checked(policy.as_ref(), faults)
    }

    fn checked(self, policy: Option<&Value>, mut faults: Faults) -> Result<Self, Status> {
        if self.orphan_dependents.is_some() && policy.is_some_and(|policy| !policy.is_null()) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let policy = policy.cloned().unwrap_or_default();
            faults.invalid(&Path::new("propagationPolicy"), policy, why);
        }
        match faults.causes() {
            causes if causes.is_empty() => Ok(self),
            causes => Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", causes)),
        }
    }
}

/// What a client may say about a create, an update or a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether anything is stored.
    pub dry_run: DryRun,
    /// What to do about unknown fields.
    pub fields: FieldValidation,
}

impl WriteOptions {
    /// From the query of a request.
    pub fn from_query(query: &Query, verb: Verb) -> Result<Self, Status> {
        let kind = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch | Verb::Delete | Verb::DeleteCollection => "PatchOptions",
        };
        let mut faults = Faults::default();
        if verb == Verb::Patch && query.value("force").is_some() {
            let why = "may not be specified for non-apply patch";
            faults.forbidden(&Path::new("force"), why);
        }
        check_manager(query.text("fieldManager"), &mut faults);
        let dry_runs: Vec<&str> = query.values("dryRun").collect();
        let dry_run = dry_run(&dry_runs, &mut faults);
        let wanted = query.text("fieldValidation");
        let fields = FieldValidation::parse(wanted);
        if fields.is_none() {
            let known = ["", "Ignore", "Strict", "Warn"];
            faults.unsupported(&Path::new("fieldValidation"), wanted, &known);
        }
        match faults.causes() {
            causes if causes.is_empty() => Ok(Self {
                dry_run,
                fields: fields.unwrap_or_default(),
            }),
            causes => Err(Status::invalid("meta.k8s.io", kind, "", causes)),
        }
    }
}

/// The name of whoever manages fields. It is not kept, but a name that is none is refused.
fn check_manager(name: &str, faults: &mut Faults) {
    let path = Path::new("fieldManager");
    if name.len() > MANAGER_BYTES_MAX {
        // What else is wrong with it is not looked for: there may be much of it.
        faults.too_long(&path, MANAGER_BYTES_MAX);
        return;
    }
    for (position, letter) in name
        .char_indices()
        .filter(|(_, letter)| letter.is_control())
    {
        let code = u32::from(letter);
        let why = format!("invalid character U+{code:04X} (at position {position})");
        faults.invalid(&path, name, why);
    }
}

const MANAGER_BYTES_MAX: usize = 128;

fn dry_run(values: &[&str], faults: &mut Faults) -> DryRun {
    if values.iter().any(|value| *value != "All") {
        faults.unsupported(&Path::new("dryRun"), values.to_vec(), &["All"]);
    }
    match values {
        [] => DryRun::No,
        _ => DryRun::All,
    }
}

fn propagation(policy: Option<&Value>, faults: &mut Faults) -> Option<Propagation> {
    match policy?.as_str()? {
        "Orphan" => Some(Propagation::Orphan),
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        other => {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            faults.unsupported(&Path::new("propagationPolicy"), other, &known);
            None
        }
    }
}

fn whole_number(body: &Value, key: &str) -> Result<Option<i64>, Status> {
    match field::child(body, key) {
        Value::Null => Ok(None),
        value => match value.as_i64() {
            Some(number) => Ok(Some(number)),
            None => Err(Status::bad_request(format!("{key} must be a whole number"))),
        },
    }
}

/// Query parameters are true unless they say otherwise, as Kubernetes reads them.
fn truth(value: &str) -> bool {
    !matches!(value, "false" | "False" | "FALSE" | "0" | "f" | "F")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_and_a_query_say_the_same() {
        let body = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground", "dryRun": ["All"]
        });
        let query = [
            ("gracePeriodSeconds", "0"),
            ("propagationPolicy", "Foreground"),
            ("dryRun", "All"),
        ];
        let options = DeleteOptions::from_body(&body).unwrap();
        assert_eq!(options, DeleteOptions::from_query(query).unwrap());
        assert_eq!(options.grace_seconds, Some(0));
        assert_eq!(options.dry_run, DryRun::All);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_field() {
        let wrong = json!({"propagationPolicy": "Later"});
        let status = DeleteOptions::from_body(&wrong).unwrap_err();
        assert_eq!(
            status.message,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
             \"Later\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
        let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
        assert_eq!(DeleteOptions::from_body(&both).unwrap_err().code, 422);
        let pod = json!({"kind": "Pod"});
        assert_eq!(DeleteOptions::from_body(&pod).unwrap_err().code, 400);
        let half = json!({"gracePeriodSeconds": 1.5});
        assert_eq!(DeleteOptions::from_body(&half).unwrap_err().code, 400);
        assert_eq!(
            DeleteOptions::from_query([("dryRun", "Some")])
                .unwrap_err()
                .code,
            422
        );
    }

    #[test]
    fn a_manager_whose_name_is_too_long_is_told_so_and_nothing_more() {
        let name = "%01".repeat(20_000);
        let query = Query::parse(&format!("fieldManager={name}")).unwrap();
        let status = WriteOptions::from_query(&query, Verb::Create).unwrap_err();
        assert!(status.message.ends_with("may not be more than 128 bytes"));
    }
}
