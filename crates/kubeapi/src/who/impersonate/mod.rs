//! A user who wants to be another: which headers say so, and what must be allowed for it.
//!
//! Kubernetes 1.36 knows several ways. In a constrained one, the user needs leave to be the other
//! *and* to do this very thing as the other (`impersonate-on:<way>:<verb>`). The old way needs the
//! first only. They are tried in order; the first that is allowed in full counts, and if none is,
//! the first refusal is the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName};

use super::question::{Attributes, Decision, Place, Target};
use super::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODE_NAME, NODES, UNAUTHENTICATED, User, as_node,
    as_service_account, is_dns_subdomain, service_account_groups,
};
use crate::Status;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom the caller wants to be, as the headers say it and nothing added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted(User);

/// One way to become the other: the questions that must all be allowed, and who the caller is then.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// To be asked in this order.
    pub questions: Vec<Attributes>,
    /// The user that the request goes on as.
    pub user: User,
    /// A refusal that no rule can lift.
    pub barred: Option<Status>,
}

impl Wanted {
    /// Reads the headers. None where there are none; an error where they name no one user.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let mut user = User {
            name: one(headers, USER)?,
            uid: one(headers, UID)?,
            groups: values(headers, GROUP)?,
            extra: BTreeMap::new(),
        };
        for header in headers.keys() {
            if let Some(key) = header.as_str().strip_prefix(EXTRA) {
                let known = user.extra.entry(unescaped(key)).or_default();
                known.extend(values(headers, header.as_str())?);
            }
        }
        match user.name.as_str() {
            "" if user == User::default() => Ok(None),
            "" => Err(nameless(&user)),
            _ => Ok(Some(Self(user))),
        }
    }

    /// Who the caller is for the rest of the request, or why he may not be.
    ///
    /// `asked` is the question of the request itself, with the caller as he came.
    pub fn allowed_user(
        &self,
        asked: &Attributes,
        decide: &dyn Fn(&Attributes) -> Decision,
    ) -> Result<User, Status> {
        let mut first_refusal = None;
        for way in self.ways(asked) {
            match way.refusal(decide) {
                None => return Ok(way.user),
                Some(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        Err(first_refusal.unwrap_or_else(|| asked.forbidden("")))
    }

    /// The ways that there are for this caller and this request, best first.
    pub fn ways(&self, asked: &Attributes) -> Vec<Way> {
        let (caller, wanted) = (&*asked.user, &self.0);
        let name_alone =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = as_node(&wanted.name);
        let account = as_service_account(&wanted.name);
        let mut ways = Vec::new();
        if let Some(node) = node.filter(|_| name_alone) {
            if runs_on(caller, node) {
                ways.push(self.constrained("associated-node", asked));
            }
            ways.push(self.constrained("arbitrary-node", asked));
        }
        if account.is_some() && name_alone {
            ways.push(self.constrained("serviceaccount", asked));
        }
        if node.is_none() && account.is_none() {
            ways.push(self.constrained("user-info", asked));
        }
        ways.push(self.unconstrained(&asked.user));
        ways
    }

    fn constrained(&self, mode: &str, asked: &Attributes) -> Way {
        let wanted = &self.0;
        let mut as_other = asked.clone();
        as_other.verb = format!("impersonate-on:{mode}:{}", asked.verb);
        let mut user = wanted.clone();
        let ask = Ask {
            caller: &asked.user,
            verb: format!("impersonate:{mode}"),
            group: AUTHENTICATION,
        };
        let identity = if let Some(node) = as_node(&wanted.name) {
            user.groups = vec![NODES.to_owned()];
            // A caller who may be the node it runs on may be it on every node.
            let name = match mode {
                "associated-node" => "*",
                _ => node,
            };
            ask.about("nodes", "", name)
        } else if let Some((namespace, name)) = as_service_account(&wanted.name) {
            user.groups = service_account_groups(namespace).to_vec();
            ask.about("serviceaccounts", namespace, name)
        } else {
            ask.about("users", "", &wanted.name)
        };
        let mut questions = vec![as_other, identity];
        questions.extend(ask.about_the_rest(wanted));
        Way {
            questions,
            user: settled(user),
            barred: barred(&ask, wanted),
        }
    }

    fn unconstrained(&self, caller: &Arc<User>) -> Way {
        let wanted = &self.0;
        let mut user = wanted.clone();
        let ask = Ask {
            caller,
            verb: "impersonate".to_owned(),
            group: "",
        };
        let identity = match as_service_account(&wanted.name) {
            Some((namespace, name)) => {
                if wanted.groups.is_empty() {
                    user.groups = service_account_groups(namespace).to_vec();
                }
                ask.about("serviceaccounts", namespace, name)
            }
            None => ask.about("users", "", &wanted.name),
        };
        let mut questions = vec![identity];
        questions.extend(ask.about_the_rest(wanted));
        Way {
            questions,
            user: settled(user),
            barred: None,
        }
    }
}

impl Way {
    fn refusal(&self, decide: &dyn Fn(&Attributes) -> Decision) -> Option<Status> {
        for question in &self.questions {
            let decision = decide(question);
            if !decision.is_allowed() {
                return Some(question.forbidden(decision.reason()));
            }
        }
        self.barred.clone()
    }
}

/// Takes every header of impersonation off the request, so that nothing behind us acts on one.
pub fn strip(headers: &mut HeaderMap) {
    let ours = |name: &HeaderName| {
        let name = name.as_str();
        matches!(name, USER | GROUP | UID) || name.starts_with(EXTRA)
    };
    let found: Vec<HeaderName> = headers.keys().filter(|name| ours(name)).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// How one way asks whether the caller may be this and that.
struct Ask<'a> {
    caller: &'a Arc<User>,
    verb: String,
    /// The group of users and groups: it differs between the ways.
    group: &'static str,
}

impl Ask<'_> {
    fn about(&self, resource: &str, namespace: &str, name: &str) -> Attributes {
        let mut place = Place::new(self.group, resource, namespace).named(name);
        place.version = "v1".to_owned();
        Attributes::resource(self.caller, &self.verb, place)
    }

    fn about_the_rest(&self, wanted: &User) -> Vec<Attributes> {
        let in_authentication = |mut question: Attributes, part: &str| {
            if let Target::Resource(place) = &mut question.target {
                place.group = AUTHENTICATION.to_owned();
                place.subresource = part.to_owned();
            }
            question
        };
        let mut questions = Vec::new();
        if !wanted.uid.is_empty() {
            questions.push(in_authentication(self.about("uids", "", &wanted.uid), ""));
        }
        let groups = wanted.groups.iter();
        questions.extend(groups.map(|group| self.about("groups", "", group)));
        for (key, values) in &wanted.extra {
            questions.extend(
                values
                    .iter()
                    .map(|value| in_authentication(self.about("userextras", "", value), key)),
            );
        }
        questions
    }
}

/// What a constrained way never lets a caller be.
fn barred(ask: &Ask<'_>, wanted: &User) -> Option<Status> {
    if wanted.groups.iter().any(String::is_empty) {
        let why = "impersonating the empty string group is not allowed";
        return Some(ask.about("groups", "", "").forbidden(why));
    }
    if wanted.belongs_to(MASTERS) {
        let why = "impersonating the system:masters group is not allowed";
        return Some(ask.about("groups", "", MASTERS).forbidden(why));
    }
    let odd_key = |key: &str| {
        let prefixed = key.split_once('/').is_some_and(|(domain, path)| {
            is_dns_subdomain(domain) && !path.is_empty() && path.bytes().all(is_path_byte)
        });
        !prefixed || key.bytes().any(|byte| byte.is_ascii_uppercase())
    };
    let odd = wanted
        .extra
        .iter()
        .any(|(key, values)| odd_key(key) || values.iter().any(String::is_empty));
    let why = "impersonating an invalid key or an empty value in extra is not allowed";
    odd.then(|| ask.about("userextras", "", "").forbidden(why))
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/%-._~!$&'()*+,;=:".contains(&byte)
}

/// Whoever is named has shown a credential, in a manner; unless he is nobody.
fn settled(mut user: User) -> User {
    if user.name == ANONYMOUS {
        user.join(UNAUTHENTICATED);
    } else if !user.belongs_to(UNAUTHENTICATED) {
        user.join(AUTHENTICATED);
    }
    user
}

/// Whether the caller is a service account whose token was made for a pod on this node.
fn runs_on(caller: &User, node: &str) -> bool {
    as_service_account(&caller.name).is_some()
        && caller
            .extra
            .get(NODE_NAME)
            .is_some_and(|names| matches!(names.as_slice(), [name] if name == node))
}

/// The refusal of one who wants to be somebody without a name, with what he wants as the real
/// server prints it.
fn nameless(user: &User) -> Status {
    let list = |words: &[String]| format!("[]string{{{}}}", quoted(words));
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, values)| format!("{key:?}:{}", list(values)))
        .collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}} \
         without impersonating a user name",
        user.uid
    ))
}

fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(", ")
}

/// The one value of a header. Two would be one for us and another for whoever stands behind us.
fn one(headers: &HeaderMap, name: &str) -> Result<String, Status> {
    let mut found = values(headers, name)?;
    match found.len() {
        0 | 1 => Ok(found.pop().unwrap_or_default()),
        _ => Err(Status::bad_request(format!(
            "the header {name} may be given once only"
        ))),
    }
}

fn values(headers: &HeaderMap, name: &str) -> Result<Vec<String>, Status> {
    let text = |value: &http::HeaderValue| {
        std::str::from_utf8(value.as_bytes())
            .map(str::to_owned)
            .map_err(|_| Status::bad_request(format!("the header {name} must be UTF-8")))
    };
    headers.get_all(name).iter().map(text).collect()
}

/// A key as it was before it was made fit for a header. One that was not is taken as it is.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(decoded) = digits.and_then(|two| u8::from_str_radix(two, 16).ok()) else {
            return key.to_owned();
        };
        bytes.push(decoded);
        rest = &after[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests;
