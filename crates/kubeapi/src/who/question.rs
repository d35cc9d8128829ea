//! What is asked of the authorizer, and what it answers.

use std::sync::Arc;

use super::User;
use crate::Status;

/// One question: may this user do this?
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes {
    /// Who asks.
    pub user: Arc<User>,
    /// `get`, `list`, `watch`, `create`, …; for a path the HTTP method in lower case.
    pub verb: String,
    /// What it is asked of.
    pub target: Target,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Objects.
    Resource(Place),
    /// A path that is not one of objects: `/version`.
    Path(String),
}

/// Where the objects of a question stand. What is not narrowed down is empty.
///
/// A list or watch with the field selector `metadata.name=x` has the name `x`, as a get has.
/// Label selectors are left out: neither RBAC nor the rules for nodes look at them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// The API group; the core group is empty.
    pub group: String,
    /// The version of the group. No rule looks at it; it is part of the question all the same.
    pub version: String,
    /// The resource, in plural.
    pub resource: String,
    /// `status`, `log`, …
    pub subresource: String,
    /// The namespace; empty for all of them and for objects that have none.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// What the field selector demands; all of it at once.
    pub fields: Vec<FieldRequirement>,
}

/// One demand of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// `spec.nodeName`.
    pub field: String,
    /// Whether the value must be this one or any other.
    pub operator: FieldOperator,
    /// The value.
    pub value: String,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes. The reason is for logs and reviews, and may be empty.
    Allow {
        /// Which binding allowed it.
        reason: Arc<str>,
    },
    /// Nothing allows it. The request is refused unless someone else is asked and allows it.
    NoOpinion {
        /// What stood in the way, as far as it is worth saying; may be empty.
        reason: Arc<str>,
    },
    /// No, whatever anyone else says.
    Deny {
        /// Why.
        reason: Arc<str>,
    },
}

impl Attributes {
    /// A question about objects.
    pub fn resource(user: &Arc<User>, verb: &str, place: Place) -> Self {
        Self {
            user: Arc::clone(user),
            verb: verb.to_owned(),
            target: Target::Resource(place),
        }
    }

    /// A question about a path.
    pub fn path(user: &Arc<User>, verb: &str, path: &str) -> Self {
        Self {
            user: Arc::clone(user),
            verb: verb.to_owned(),
            target: Target::Path(path.to_owned()),
        }
    }

    /// The 403 that a refused question gets, word for word as Kubernetes says it.
    pub fn forbidden(&self, reason: &str) -> Status {
        let mut words = without_markup(&self.refusal());
        if !reason.is_empty() {
            words = format!("{words}: {reason}");
        }
        match &self.target {
            Target::Resource(place) => {
                Status::forbidden(&place.group, &place.resource, &place.name, &words)
            }
            // The details are empty, and still there.
            Target::Path(_) => {
                Status::new(403, "Forbidden", format!("forbidden: {words}")).about("", "", "")
            }
        }
    }

    fn refusal(&self) -> String {
        let (user, verb) = (&self.user.name, &self.verb);
        let place = match &self.target {
            Target::Path(path) => return format!("User {user:?} cannot {verb} path {path:?}"),
            Target::Resource(place) => place,
        };
        let (what, group) = (place.resource_path(), &place.group);
        let asked = format!("User {user:?} cannot {verb} resource {what:?} in API group {group:?}");
        match place.namespace.as_str() {
            "" => format!("{asked} at the cluster scope"),
            namespace => format!("{asked} in the namespace {namespace:?}"),
        }
    }
}

impl Place {
    /// Objects of a resource, in a namespace or in none.
    pub fn new(group: &str, resource: &str, namespace: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// Only the object of this name.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Only this part of the objects.
    pub fn part(mut self, subresource: &str) -> Self {
        self.subresource = subresource.to_owned();
        self
    }

    /// The one name that the field selector leaves, if it leaves one. What it leaves out is none.
    pub fn selected_name(&self) -> Option<&str> {
        let mut demands = self.fields.iter();
        let named = demands.find(|demand| {
            demand.field == "metadata.name" && demand.operator == FieldOperator::Equals
        });
        named.map(|demand| demand.value.as_str())
    }

    /// Whether the field selector leaves nothing but objects whose `field` is `value`.
    pub fn narrowed_to(&self, field: &str, value: &str) -> bool {
        self.fields.iter().any(|demand| {
            demand.field == field
                && demand.operator == FieldOperator::Equals
                && demand.value == value
        })
    }

    /// `pods`, or `pods/log`.
    pub fn resource_path(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            part => format!("{}/{part}", self.resource),
        }
    }
}

impl Decision {
    /// Yes, for a reason that nobody needs.
    pub fn allow() -> Self {
        Self::Allow { reason: "".into() }
    }

    /// Nothing to say.
    pub fn no_opinion() -> Self {
        Self::NoOpinion { reason: "".into() }
    }

    /// Nothing allows it, and here is what stood in the way.
    pub fn unrelated(reason: impl Into<Arc<str>>) -> Self {
        Self::NoOpinion {
            reason: reason.into(),
        }
    }

    /// Whether the answer is yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// The reason, whatever the answer.
    pub fn reason(&self) -> &Arc<str> {
        match self {
            Self::Allow { reason } | Self::NoOpinion { reason } | Self::Deny { reason } => reason,
        }
    }
}

/// The demands of a field selector as it stands in a query: `spec.nodeName=a,status.phase!=Failed`.
/// None where it cannot be read.
pub fn field_requirements(selector: &str) -> Option<Vec<FieldRequirement>> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for character in selector.chars() {
        match character {
            ',' if !escaped => terms.push(String::new()),
            _ => terms.last_mut()?.push(character),
        }
        escaped = character == '\\' && !escaped;
    }
    terms.retain(|term| !term.is_empty());
    terms.iter().map(|term| field_requirement(term)).collect()
}

fn field_requirement(term: &str) -> Option<FieldRequirement> {
    let split = term.find(['!', '='])?;
    let (field, rest) = term.split_at(split);
    let (operator, value) = if let Some(value) = rest.strip_prefix("!=") {
        (FieldOperator::NotEquals, value)
    } else {
        let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
        (FieldOperator::Equals, value)
    };
    Some(FieldRequirement {
        field: field.to_owned(),
        operator,
        value: unescaped(value)?,
    })
}

/// A value in which `\\`, `\,` and `\=` stand for themselves; anything else after a backslash, and
/// a bare comma or equals sign, is a mistake.
fn unescaped(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next().filter(|next| "\\,=".contains(*next))?),
            ',' | '=' => return None,
            plain => text.push(plain),
        }
    }
    Some(text)
}

/// A browser must not take a refusal for a page. Quotes are harmless.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(target: Target) -> String {
        let attributes = Attributes {
            user: Arc::new(User::new("NAME", ["g"])),
            verb: "get".into(),
            target,
        };
        attributes.forbidden("").message
    }

    #[test]
    fn a_refusal_reads_as_kubernetes_words_it() {
        let pods = Place::new("", "pods", "");
        assert_eq!(
            message(Target::Resource(pods.clone())),
            "pods is forbidden: User \"NAME\" cannot get resource \"pods\" in API group \"\" at \
             the cluster scope"
        );
        assert_eq!(
            message(Target::Resource(pods.named("mypod"))),
            "pods \"mypod\" is forbidden: User \"NAME\" cannot get resource \"pods\" in API group \
             \"\" at the cluster scope"
        );
        assert_eq!(
            message(Target::Resource(
                Place::new("v2", "pod", "test").part("quota")
            )),
            "pod.v2 is forbidden: User \"NAME\" cannot get resource \"pod/quota\" in API group \
             \"v2\" in the namespace \"test\""
        );
        assert_eq!(
            message(Target::Path("/whatever".into())),
            r#"forbidden: User "NAME" cannot get path "/whatever""#
        );
    }

    #[test]
    fn a_refused_path_cannot_smuggle_markup_into_the_answer() {
        assert_eq!(
            message(Target::Path("/<script>".into())),
            r#"forbidden: User "NAME" cannot get path "/&lt;script&gt;""#
        );
    }

    #[test]
    fn the_details_of_a_refused_path_are_empty_but_there() {
        let user = Arc::new(User::anonymous());
        let body = Attributes::path(&user, "get", "/api")
            .forbidden("why")
            .to_json();
        assert_eq!(body["details"], serde_json::json!({}));
        assert_eq!(body["reason"], "Forbidden");
        assert!(body["message"].as_str().unwrap().ends_with(": why"));
    }

    #[test]
    fn a_field_selector_is_read_as_it_stands_in_a_query() {
        let read = |text: &str| {
            let found = field_requirements(text)?;
            let shown = found
                .iter()
                .map(|one| format!("{:?} {}|{}", one.operator, one.field, one.value));
            Some(shown.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(read("").as_deref(), Some(""));
        assert_eq!(
            read("spec.nodeName=a,status.phase!=Failed,x==y,").as_deref(),
            Some("Equals spec.nodeName|a NotEquals status.phase|Failed Equals x|y")
        );
        assert_eq!(read(r"a=x\,y\=z\\").as_deref(), Some(r"Equals a|x,y=z\"));
        assert_eq!(read("a=").as_deref(), Some("Equals a|"));
        for wrong in ["a", "a=b=c", r"a=\n", r"a=b\", "a!b", "a=b,c"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_is_selected_by_an_equality_alone() {
        let selected = |fields: &str| {
            let mut place = Place::new("", "secrets", "a");
            place.fields = field_requirements(fields).unwrap();
            place.selected_name().map(str::to_owned)
        };
        assert_eq!(selected("metadata.name=x").as_deref(), Some("x"));
        assert_eq!(selected("type=y,metadata.name==x").as_deref(), Some("x"));
        assert_eq!(
            selected("metadata.name!=y,metadata.name=x").as_deref(),
            Some("x")
        );
        for more in ["metadata.name!=x", "metadata.namespace=x", ""] {
            assert_eq!(selected(more), None, "{more}");
        }
    }

    #[test]
    fn only_an_equality_narrows() {
        let mut place = Place::new("", "pods", "");
        place.fields.push(FieldRequirement {
            field: "spec.nodeName".into(),
            operator: FieldOperator::NotEquals,
            value: "a".into(),
        });
        assert!(!place.narrowed_to("spec.nodeName", "a"));
        place.fields[0].operator = FieldOperator::Equals;
        assert!(place.narrowed_to("spec.nodeName", "a"));
        assert!(!place.narrowed_to("spec.nodeName", "b"));
        assert!(!place.narrowed_to("metadata.name", "a"));
    }
}
