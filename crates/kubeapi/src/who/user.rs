//! Who asks: a name, the groups it belongs to, and what else its credential said of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The group that may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";
/// The group of every node.
pub const NODES: &str = "system:nodes";
/// The group of those who read metrics and health in detail.
pub const MONITORING: &str = "system:monitoring";
/// The group of everyone who has shown a credential.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone who has not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of whoever shows no credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// The name that kube-proxy runs under.
pub const KUBE_PROXY: &str = "system:kube-proxy";
/// The name that the controller manager runs under.
pub const KUBE_CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The name that the scheduler runs under.
pub const KUBE_SCHEDULER: &str = "system:kube-scheduler";
/// The group of every service account.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The group of those who look after one node, on the node itself. It means nothing elsewhere.
pub const LOCAL_ADMINS: &str = "holdfast:local-admins";

/// The key of `extra` that names the credential itself.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The key of `extra` that names the pod a token is bound to.
pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// The key of `extra` that gives that pod's uid.
pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// The key of `extra` that names the node a token is bound to, or its pod runs on.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// The key of `extra` that gives that node's uid.
pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

const NODE_PREFIX: &str = "system:node:";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Someone who asks something of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name that rules are written for.
    pub name: String,
    /// Tells two users apart that had the same name one after the other; often empty.
    pub uid: String,
    /// The groups that rules are written for.
    pub groups: Vec<String>,
    /// What else the credential said.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of this name in these groups.
    pub fn new<G: Into<String>>(
        name: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        Self {
            name: name.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Whoever showed no credential.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// The service account `name` of `namespace`, with the groups that follow from that.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            service_account_name(namespace, name),
            service_account_groups(namespace),
        )
    }

    /// The same user as one who has shown a credential: a member of `system:authenticated`.
    pub fn authenticated(mut self) -> Self {
        self.join(AUTHENTICATED);
        self
    }

    /// Whether the user is in the group.
    pub fn belongs_to(&self, group: &str) -> bool {
        self.groups.iter().any(|candidate| candidate == group)
    }

    /// Adds the group, once.
    pub fn join(&mut self, group: &str) {
        if !self.belongs_to(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// The name of the node that this user is, if it is one. The name may be empty: such a user is
    /// a node that cannot be told apart, and must get nothing.
    pub fn node(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        self.belongs_to(NODES).then_some(name)
    }

    /// The `UserInfo` object of reviews.
    pub fn to_json(&self) -> Value {
        let mut body = Map::new();
        if !self.name.is_empty() {
            body.insert("username".into(), self.name.clone().into());
        }
        if !self.uid.is_empty() {
            body.insert("uid".into(), self.uid.clone().into());
        }
        if !self.groups.is_empty() {
            body.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            body.insert("extra".into(), json!(self.extra));
        }
        Value::Object(body)
    }
}

/// The user name of a service account.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that every service account of a namespace is in.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    [
        SERVICE_ACCOUNTS.to_owned(),
        format!("{SERVICE_ACCOUNTS}:{namespace}"),
    ]
}

/// Namespace and name of the service account that a user name stands for, if it stands for one.
pub fn as_service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username
        .strip_prefix(SERVICE_ACCOUNT_PREFIX)?
        .split_once(':')?;
    (is_dns_label(namespace) && is_dns_subdomain(name)).then_some((namespace, name))
}

/// The node that a user name stands for, if it stands for one.
pub fn as_node(username: &str) -> Option<&str> {
    let name = username.strip_prefix(NODE_PREFIX)?;
    is_dns_subdomain(name).then_some(name)
}

/// Whether the text is a label of a DNS name: what a namespace is called.
fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let letter_or_digit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes
            .iter()
            .all(|byte| letter_or_digit(byte) || *byte == b'-')
        && bytes.first().is_some_and(letter_or_digit)
        && bytes.last().is_some_and(letter_or_digit)
}

/// Whether the text is a DNS name in lower case: what most objects are called.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    let letters = |part: &str| {
        let bytes = part.as_bytes();
        let letter_or_digit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes
            .iter()
            .all(|byte| letter_or_digit(byte) || *byte == b'-')
            && bytes.first().is_some_and(letter_or_digit)
            && bytes.last().is_some_and(letter_or_digit)
    };
    text.len() <= 253 && text.split('.').all(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_its_name_and_its_group_together() {
        assert_eq!(User::new("system:node:a", [NODES]).node(), Some("a"));
        assert_eq!(User::new("system:node:a", ["other"]).node(), None);
        assert_eq!(User::new("system:nodes", [NODES]).node(), None);
        assert_eq!(User::new("system:node:", [NODES]).node(), Some(""));
    }

    #[test]
    fn only_two_valid_names_make_a_service_account() {
        assert_eq!(
            as_service_account("system:serviceaccount:kube-system:dns"),
            Some(("kube-system", "dns"))
        );
        let wrong = [
            "system:serviceaccount:ns",
            "system:serviceaccount::name",
            "system:serviceaccount:ns:",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount:a.b:name",
            "system:serviceaccount:Ns:name",
            "system:serviceaccount:-ns:name",
            "serviceaccount:ns:name",
        ];
        for name in wrong {
            assert_eq!(as_service_account(name), None, "{name}");
        }
    }

    #[test]
    fn node_names_are_dns_names() {
        assert_eq!(
            as_node("system:node:edge-1.example"),
            Some("edge-1.example")
        );
        for name in [
            "system:node:",
            "system:node:A",
            "system:node:a..b",
            "system:node:*",
        ] {
            assert_eq!(as_node(name), None, "{name}");
        }
    }

    #[test]
    fn joining_a_group_twice_changes_nothing() {
        let user = User::new("x", ["g"]).authenticated().authenticated();
        assert_eq!(user.groups, ["g", AUTHENTICATED]);
    }
}
