//! What a hub says of one node, for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ago, by_class, bytes, seconds, table};

/// What a hub says of a node.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    pub(super) node: String,
    pub(super) connected: bool,
    pub(super) since: Option<Timestamp>,
    ended: Option<String>,
    session: Option<u64>,
    remote: Option<String>,
    transport: Option<String>,
    program: Option<String>,
    silent_seconds: Option<u64>,
    sessions: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    received_by_class: BTreeMap<String, u64>,
    sent_by_class: BTreeMap<String, u64>,
    even: Option<bool>,
    even_since: Option<Timestamp>,
    pub(super) in_flight: usize,
    sending_since: Option<Timestamp>,
    pub(super) lacks: Option<u64>,
    queued: Option<u64>,
    pub(super) lag_seconds: Option<u64>,
    sent: u64,
    again: u64,
    rejected: u64,
    void: u64,
    #[serde(default)]
    resources: Vec<Standing>,
    set_aside: Vec<Aside>,
    set_aside_more: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    resource: String,
    version: Option<String>,
    cluster_version: Option<String>,
    objects: Option<u64>,
    lacks: u64,
    lag_seconds: Option<u64>,
    digest_equal: Option<bool>,
    digest_since: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Aside {
    resource: String,
    name: String,
    why: String,
}

/// Seconds without an answer to what is on its way that are worth a word: it takes less over any
/// link that works.
const SILENT_LONG: u64 = 3;

impl Node {
    /// Over what it is connected, if it is.
    pub(super) fn link(&self) -> &str {
        match (self.connected, &self.transport) {
            (true, Some(transport)) => transport,
            (true, None) => "connected",
            (false, _) => "away",
        }
    }

    /// Whether it holds what it should, in a word.
    pub(super) fn sync(&self) -> &'static str {
        match (self.even, self.in_flight) {
            _ if !self.connected => "unknown",
            (_, 1..) => "sending",
            (Some(false), _) => "differs",
            _ if !self.set_aside.is_empty() => "lacks",
            (Some(true), _) => "equal",
            (None, _) => "sent",
        }
    }

    /// For how many seconds something is on its way and nothing was heard.
    fn waits(&self, now: Timestamp) -> Option<u64> {
        let since = self.sending_since.filter(|_| self.in_flight > 0)?;
        let sending = u64::try_from(now.as_second() - since.as_second()).ok()?;
        Some(sending.min(self.silent_seconds?))
    }

    /// Objects that it could not take.
    pub(super) fn aside(&self) -> u64 {
        self.set_aside.len() as u64 + self.set_aside_more
    }

    /// What is wrong with it, if anything is.
    pub(super) fn trouble(&self, now: Timestamp) -> Option<String> {
        let name = &self.node;
        if !self.connected {
            let why = self.ended.as_deref().unwrap_or("never connected here");
            return Some(format!("{name} is away: {why}"));
        }
        if let Some(waits) = self.waits(now).filter(|waits| *waits >= SILENT_LONG) {
            let (waits, flight) = (seconds(waits), self.in_flight);
            return Some(format!(
                "{name} does not answer for {waits}: {flight} deliveries on their way"
            ));
        }
        if let Some(aside) = self.set_aside.first() {
            let Aside {
                resource,
                name: object,
                why,
            } = aside;
            let more = match self.aside() {
                1 => String::new(),
                all => format!(" (and {} more, see --node {name})", all - 1),
            };
            return Some(format!("{name} lacks {resource} {object}: {why}{more}"));
        }
        let differs = self.even == Some(false) && self.in_flight == 0;
        differs.then(|| format!("{name} does not hold what it should: it is being compared"))
    }
}

/// Tells of one node.
pub(super) fn text(out: &mut String, node: &Node, now: Timestamp) -> std::fmt::Result {
    let link = match (node.connected, &node.transport) {
        (true, Some(transport)) => format!("connected over {transport}"),
        (true, None) => "connected".to_owned(),
        (false, _) => "away".to_owned(),
    };
    let since = ago(node.since, now);
    writeln!(out, "Node {}: {link} for {since}", node.node)?;
    if let Some(trouble) = node.trouble(now) {
        writeln!(out, "  {trouble}")?;
    }
    table(out, &facts(node, now))?;
    writeln!(out)?;
    table(out, &standings(node, now))?;
    if !node.set_aside.is_empty() {
        writeln!(out, "\nSet aside:")?;
        for aside in &node.set_aside {
            writeln!(out, "  {} {}: {}", aside.resource, aside.name, aside.why)?;
        }
        if node.set_aside_more > 0 {
            writeln!(out, "  and {} more", node.set_aside_more)?;
        }
    }
    Ok(())
}

fn facts(node: &Node, now: Timestamp) -> Vec<Vec<String>> {
    let heard = node.silent_seconds;
    let heard = heard.map(|silent| format!("{} ago", seconds(silent)));
    let told = |total, classes| format!("{} ({})", bytes(total), by_class(classes));
    [
        ("session", node.session.map(|number| number.to_string())),
        ("sessions", Some(format!("{} so far", node.sessions))),
        ("last end", node.ended.clone().filter(|_| node.connected)),
        ("from", node.remote.clone()),
        ("agent", node.program.clone()),
        ("heard", heard),
        ("sync", Some(sync(node, now))),
        ("lacks", Some(lacks(node, now))),
        ("deliveries", Some(deliveries(node))),
        ("sent", Some(told(node.sent_bytes, &node.sent_by_class))),
        (
            "received",
            Some(told(node.received_bytes, &node.received_by_class)),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(vec![format!("  {name}"), value?]))
    .collect()
}

fn standings(node: &Node, now: Timestamp) -> Vec<Vec<String>> {
    let head = [
        "RESOURCE", "OBJECTS", "VERSION", "CLUSTER", "LACKS", "LAG", "DIGEST",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    // What it has nothing of and is to have nothing of says nothing.
    let told = |it: &&Standing| it.version.is_some() || it.lacks > 0 || it.objects != Some(0);
    for it in node.resources.iter().filter(told) {
        let digest = match it.digest_equal {
            Some(true) => format!("equal for {}", ago(it.digest_since, now)),
            Some(false) => format!("differs for {}", ago(it.digest_since, now)),
            None => "not compared".to_owned(),
        };
        rows.push(vec![
            it.resource.clone(),
            or_dash(&it.objects.map(|objects| objects.to_string())),
            or_dash(&it.version),
            or_dash(&it.cluster_version),
            it.lacks.to_string(),
            or_dash(&it.lag_seconds.map(seconds)),
            digest,
        ]);
    }
    rows
}

fn sync(node: &Node, now: Timestamp) -> String {
    let compared = match (node.even, node.even_since) {
        (Some(true), Some(since)) => format!("equal for {}", ago(Some(since), now)),
        (Some(false), Some(since)) => format!("different for {}", ago(Some(since), now)),
        _ => "not compared yet".to_owned(),
    };
    match (node.sync(), node.even) {
        ("equal" | "differs", _) => compared,
        ("unknown", Some(_)) => format!("unknown ({compared} when it was last compared)"),
        (state, _) => format!("{state} ({compared})"),
    }
}

fn lacks(node: &Node, now: Timestamp) -> String {
    let (lacks, queued) = (
        node.lacks.unwrap_or_default(),
        node.queued.unwrap_or_default(),
    );
    let mut words = match lacks {
        0 => "nothing".to_owned(),
        1 => "1 object".to_owned(),
        lacks => format!("{lacks} objects"),
    };
    if let Some(lag) = node.lag_seconds {
        words += &format!(", for {}", seconds(lag));
    }
    words += &format!("; {} deliveries in flight", node.in_flight);
    if let Some(since) = node.sending_since.filter(|_| node.in_flight > 0) {
        words += &format!(" for {}", ago(Some(since), now));
    }
    words + &format!(", {queued} objects queued")
}

fn deliveries(node: &Node) -> String {
    let Node {
        sent,
        again,
        rejected,
        void,
        ..
    } = node;
    format!("{sent} sent, {again} sent again, {rejected} rejected, {void} given up")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T00:00:30Z".parse().unwrap()
    }

    /// A node that is connected and has all, and what is to be said instead.
    fn node(other: &Value) -> Node {
        let mut node = json!({
            "node": "shop-1", "connected": true, "since": "2026-01-02T00:00:00Z", "session": 3,
            "transport": "quic", "sessions": 2, "receivedBytes": 10, "sentBytes": 20_000,
            "receivedByClass": {"control": 10}, "sentByClass": {"configuration": 20_000},
            "even": true, "evenSince": "2026-01-02T00:00:20Z", "inFlight": 0, "lacks": 0,
            "queued": 0, "sent": 5, "again": 1, "rejected": 0, "void": 0, "setAside": [],
            "setAsideMore": 0,
            "resources": [{"resource": "pods", "version": "7", "clusterVersion": "9",
                "objects": 4, "lacks": 0, "digestEqual": true,
                "digestSince": "2026-01-02T00:00:20Z"}]
        });
        let changes = other.as_object().unwrap();
        node.as_object_mut().unwrap().extend(changes.clone());
        serde_json::from_value(node).unwrap()
    }

    fn told(node: &Node) -> String {
        let mut out = String::new();
        text(&mut out, node, now()).unwrap();
        out
    }

    #[test]
    fn a_node_that_has_all_is_told_with_its_versions_and_without_trouble() {
        let node = node(&json!({}));
        assert_eq!(node.trouble(now()), None);
        let text = told(&node);
        assert!(text.starts_with("Node shop-1: connected over quic for 30s\n"));
        for words in [
            "equal for 10s",
            "nothing; 0 deliveries in flight, 0 objects queued",
            "5 sent, 1 sent again",
            "20 kB (configuration 20 kB)",
            "pods      4        7        9        0      -    equal for 10s",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }

    #[test]
    fn a_node_that_does_not_answer_is_told_of_before_its_session_ends() {
        let node = node(
            &json!({"inFlight": 2, "silentSeconds": 6, "lacks": 9, "queued": 7,
            "lagSeconds": 6, "sendingSince": "2026-01-02T00:00:24Z"}),
        );
        let trouble = node.trouble(now()).unwrap();
        assert_eq!(
            trouble,
            "shop-1 does not answer for 6s: 2 deliveries on their way"
        );
        let words = "9 objects, for 6s; 2 deliveries in flight for 6s, 7 objects queued";
        assert!(told(&node).contains(words));
        // A link that was quiet for long, and on which something was just sent, is no trouble.
        let fresh = json!({"inFlight": 1, "silentSeconds": 25,
            "sendingSince": "2026-01-02T00:00:29Z"});
        assert_eq!(self::node(&fresh).trouble(now()), None);
    }

    #[test]
    fn what_is_wrong_is_told_in_words() {
        let away = json!({"connected": false, "ended": "silent for 10 s", "transport": null});
        let trouble = node(&away).trouble(now()).unwrap();
        assert_eq!(trouble, "shop-1 is away: silent for 10 s");
        let aside = json!({"resource": "secrets", "name": "a/b", "why": "it is too large"});
        let trouble = node(&json!({"setAside": [aside], "setAsideMore": 2})).trouble(now());
        let words = "shop-1 lacks secrets a/b: it is too large (and 2 more, see --node shop-1)";
        assert_eq!(trouble.unwrap(), words);
        let differs = json!({"even": false});
        assert!(node(&differs).trouble(now()).unwrap().contains("compared"));
    }
}
