//! What can be seen in one side's values without the other's: times, tokens, addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use regex_lite::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::times::Moment;
use super::{Kind, Side};

/// What the rules need to know of one side.
pub(super) struct Circumstances<'a> {
    kind: Kind,
    /// The conversation's own words.
    said: &'a str,
    /// The server's address with its port.
    server: String,
    /// When the conversation began.
    began: Timestamp,
    /// When the answer was there.
    pub(super) at: Timestamp,
    /// Names that the server made up, and what is written for them.
    generated: BTreeMap<String, String>,
}

impl<'a> Circumstances<'a> {
    pub(super) fn new(side: &Side, said: &'a str) -> Self {
        let mut generated = BTreeMap::new();
        for (_, answer) in &side.answers {
            gather_generated(answer, said, &mut generated);
        }
        Self {
            kind: side.kind,
            said,
            server: side.server.clone(),
            began: side.began,
            at: side.began,
            generated,
        }
    }

    /// Applies every rule of this module to a value.
    pub(super) fn apply(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(self.fields(fields)),
            Value::Array(items) => items.into_iter().map(|item| self.apply(item)).collect(),
            Value::String(text) => match self.token(&text) {
                Some(token) => token,
                None => Value::String(self.text(&text)),
            },
            plain => plain,
        }
    }

    fn fields(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        leave_out_custom_groups(&mut fields);
        let mut result = Map::new();
        for (key, value) in fields {
            let value = match (key.as_str(), value) {
                // Who set which field is bookkeeping for server-side apply, which we do not serve;
                // the list of differences has it.
                ("metadata", Value::Object(mut metadata)) => {
                    metadata.remove("managedFields");
                    Value::Object(self.metadata(metadata))
                }
                ("columnDefinitions", Value::Array(columns)) => columns
                    .into_iter()
                    .map(|column| self.column(column))
                    .collect(),
                // Upstream finds some faults several times and names them as often; the list of
                // differences has it. We do not.
                ("causes", Value::Array(causes)) if self.kind == Kind::Real => {
                    let mut once: Vec<Value> = Vec::new();
                    for cause in causes.into_iter().map(|cause| self.apply(cause)) {
                        if !once.contains(&cause) {
                            once.push(cause);
                        }
                    }
                    Value::Array(once)
                }
                ("cells", Value::Array(cells)) => cells.into_iter().map(|c| self.cell(c)).collect(),
                ("clusterIP" | "clusterIPs", value) => self.address(value),
                ("nodePort" | "healthCheckNodePort", Value::Number(port)) => self.port(port),
                ("message", Value::String(text)) => Value::String(message(&self.text(&text))),
                // Prose for people is each server's own; the list of differences has it.
                ("kubernetes.io/description", Value::String(prose))
                    if !self.said.contains(&prose) =>
                {
                    "<description>".into()
                }
                // Times in a token.
                ("exp" | "iat" | "nbf" | "warnafter", Value::Number(time)) => self.seconds(time),
                // Where a server says it can be reached.
                ("serverAddress", Value::String(_)) => Value::String("<server>".to_owned()),
                (_, value) => self.apply(value),
            };
            result.insert(key, value);
        }
        result
    }

    fn metadata(&self, mut metadata: Map<String, Value>) -> Map<String, Value> {
        // A token says how its server goes on; only that there is one means anything to a client.
        if let Some(Value::String(token)) = metadata.get_mut("continue")
            && !token.is_empty()
        {
            "<continue>".clone_into(token);
        }
        self.fields(metadata)
    }

    /// What a column means is prose for people, unless the conversation wrote it.
    fn column(&self, mut column: Value) -> Value {
        if let Some(Value::String(prose)) = column.get_mut("description")
            && !(prose.is_empty() || self.described(prose))
        {
            "<description>".clone_into(prose);
        }
        self.apply(column)
    }

    fn described(&self, prose: &str) -> bool {
        let [close, apart] = [":", ": "].map(|colon| format!("\"description\"{colon}\"{prose}\""));
        self.said.contains(&close) || self.said.contains(&apart)
    }

    /// A cell of a table may say how long ago something was, or what was drawn by lot.
    fn cell(&self, cell: Value) -> Value {
        match cell {
            Value::String(text) if AGE.is_match(&text) => Value::String("<age>".to_owned()),
            Value::String(text) => {
                let port = |found: &Captures<'_>| match self.said.contains(&found["port"]) {
                    true => found[0].to_owned(),
                    false => ":<port>/".to_owned(),
                };
                let text = NODE_PORT.replace_all(&text, port).into_owned();
                self.address(Value::String(self.text(&text)))
            }
            other => self.apply(other),
        }
    }

    /// Addresses of services are drawn by lot from a range.
    fn address(&self, value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(|item| self.address(item)).collect(),
            Value::String(text) if text.parse::<IpAddr>().is_ok() && !self.said.contains(&text) => {
                Value::String("<ip>".to_owned())
            }
            other => other,
        }
    }

    /// Ports on nodes are drawn by lot from a range.
    fn port(&self, port: serde_json::Number) -> Value {
        let drawn = port.as_u64().is_some_and(|port| NODE_PORTS.contains(&port));
        match drawn && !self.said.contains(&port.to_string()) {
            true => Value::String("<port>".to_owned()),
            false => Value::Number(port),
        }
    }

    /// What a service account's token says. Each cluster has a key of its own, and signs with it.
    fn token(&self, text: &str) -> Option<Value> {
        let whole = TOKEN.find(text)?.as_str() == text;
        if !whole || self.said.contains(text) {
            return None;
        }
        let decoded = |part: &str| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok()
        };
        let mut parts = text.split('.');
        let mut head = decoded(parts.next()?)?;
        if let Some(key) = head.get_mut("kid") {
            *key = "<key>".into();
        }
        let claims = decoded(parts.next()?)?;
        Some(json!({"<token>": {"head": head, "claims": self.apply(claims)}}))
    }

    fn text(&self, text: &str) -> String {
        // Each cluster has an authority of its own; its certificate is text or base64 of it.
        if (text.starts_with(PEM) || text.starts_with(PEM_IN_BASE64)) && !self.said.contains(text) {
            return "<certificate>".to_owned();
        }
        let mut text = text.replace(&self.server, "<server>");
        for (name, written) in &self.generated {
            text = text.replace(name.as_str(), written);
        }
        let unless_said = |found: &Captures<'_>, word: &str| match self.said.contains(&found[0]) {
            true => found[0].to_owned(),
            false => word.to_owned(),
        };
        let text = TOKEN_VOLUME.replace_all(&text, |found: &Captures<'_>| {
            unless_said(found, "kube-api-access-<suffix>")
        });
        let text = TOKEN.replace_all(&text, |found: &Captures<'_>| unless_said(found, "<token>"));
        let time = |found: &Captures<'_>| self.time(&found[0]);
        TIME.replace_all(&text, time).into_owned()
    }

    /// A time of the server's clock, with its form: whole seconds and parts of them are different
    /// types, and clients parse them as such.
    fn time(&self, text: &str) -> String {
        let word = text.parse::<Timestamp>().ok().and_then(|time| {
            let moment = Moment::of(time, self.began, self.at)?;
            (!self.said.contains(text)).then_some(moment)
        });
        let Some(word) = word else {
            return text.to_owned();
        };
        let form: String = text[TIME_LETTERS..]
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        match form.as_str() {
            "Z" => format!("<{word}>"),
            form => format!("<{word} {form}>"),
        }
    }

    /// A time of the server's clock in seconds since 1970.
    fn seconds(&self, time: serde_json::Number) -> Value {
        let read = time.as_i64().and_then(|s| Timestamp::from_second(s).ok());
        match read.and_then(|time| Moment::of(time, self.began, self.at)) {
            Some(moment) => Value::String(format!("<{moment}>")),
            None => Value::Number(time),
        }
    }
}

/// Lists of all groups have those of custom kinds that other conversations make meanwhile. Those of
/// this one are asked for by name.
fn leave_out_custom_groups(fields: &mut Map<String, Value>) {
    let kind = fields
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let lists = match kind {
        "APIGroupList" => "groups",
        "APIGroupDiscoveryList" => "items",
        "" => "paths",
        _ => return,
    };
    let custom = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.contains(CUSTOM_GROUPS)
    };
    match fields.get_mut(lists) {
        Some(Value::Array(entries)) => entries.retain(|entry| {
            let names = [
                Some(entry),
                entry.get("name"),
                entry.pointer("/metadata/name"),
            ];
            !names.into_iter().flatten().any(custom)
        }),
        Some(Value::Object(entries)) => entries.retain(|name, _| !name.contains(CUSTOM_GROUPS)),
        _ => {}
    }
}

/// The groups that conversations make end in this.
const CUSTOM_GROUPS: &str = ".example.com";

/// Names that were made of `metadata.generateName`: of objects, and of those that were refused.
fn gather_generated(value: &Value, said: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Array(items) => {
            items
                .iter()
                .for_each(|item| gather_generated(item, said, found));
        }
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            if let Some(name) = text("name")
                && let Some((prefix, suffix)) = ending(name)
                && (text("generateName") == Some(prefix) || said.contains(&format!("{prefix:?}")))
                && SUFFIX.is_match(suffix)
            {
                found.insert(name.to_owned(), format!("{prefix}<suffix>"));
            }
            let values = fields.values();
            values.for_each(|value| gather_generated(value, said, found));
        }
        _ => {}
    }
}

/// A name's last five letters, and those before them.
fn ending(name: &str) -> Option<(&str, &str)> {
    name.split_at_checked(name.len().checked_sub(5)?)
}

/// Versions in the words of an error; what they are is said by the request.
fn message(text: &str) -> String {
    let text = VERSION_IN_WORDS.replace_all(text, "$words<n>");
    TOO_OLD.replace_all(&text, "<n> (<n>)").into_owned()
}

/// Ports that a service may get on every node; above 32,767 only in a dry run, where a real server
/// counts on from the end of its range.
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_999;
/// The letters of a time before its parts of a second and its zone.
const TIME_LETTERS: usize = "2006-01-02T15:04:05".len();
const PEM: &str = "-----BEGIN CERTIFICATE-----";
const PEM_IN_BASE64: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t";

static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"));
/// The letters that a server draws from: no vowels, so that it draws no words.
static SUFFIX: LazyLock<Regex> = LazyLock::new(|| pattern("^[bcdfghjklmnpqrstvwxz2456789]{5}$"));
/// The volume that admission adds to a pod, for its service account's token.
static TOKEN_VOLUME: LazyLock<Regex> =
    LazyLock::new(|| pattern("kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}"));
/// A conversation is played in less than five minutes.
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d{1,3}s|[1-5]m(\d{1,2}s)?)$"));
/// A port on nodes, in the words of a table: `80:30123/TCP`.
static NODE_PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r":(?P<port>3[0-2]\d\d\d)/"));
static VERSION_IN_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        "(?P<words>resource version: |current: |",
        r"ResourceVersion in the precondition \(|ResourceVersion in record \(|",
        r"ResourceVersion in (?:precondition|object meta): )\d+",
    ))
});
static TOO_OLD: LazyLock<Regex> = LazyLock::new(|| pattern(r"<n> \(\d+\)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of ours")
}
