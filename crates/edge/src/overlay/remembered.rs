//! Tokens that the cluster gave to the node's kubelet, for when it cannot be asked. They are in
//! memory alone, and none is ever made here.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Answers that are remembered: one for each volume with a token. Of more, the one that ends first
/// is forgotten.
const ANSWERS_MAX: usize = 512;
/// How much of its life a token that is given again must have left. A kubelet asks for another one
/// long before that, and keeps the one that it has if there is none.
const LEFT_MIN: SignedDuration = SignedDuration::from_mins(10);

/// What the cluster answered to requests for tokens.
#[derive(Debug, Default)]
pub(super) struct Remembered(BTreeMap<String, Answer>);

#[derive(Debug)]
struct Answer {
    bytes: Bytes,
    ends: Timestamp,
}

/// What a request for a token asks for: the account, and everything that is in its spec.
pub(super) fn key((namespace, account): (&str, &str), request: &Value) -> String {
    let spec = &request["spec"];
    let bound = &spec["boundObjectRef"];
    let asked = json!([
        namespace,
        account,
        spec["audiences"],
        spec["expirationSeconds"],
        [
            bound["apiVersion"],
            bound["kind"],
            bound["name"],
            bound["uid"]
        ],
    ]);
    asked.to_string()
}

impl Remembered {
    /// Remembers an answer.
    pub(super) fn put(&mut self, key: String, bytes: Bytes) {
        let Some(ends) = ends(&bytes) else { return };
        self.0.insert(key, Answer { bytes, ends });
        if self.0.len() > ANSWERS_MAX {
            let first = self.0.iter().min_by_key(|(_, answer)| answer.ends);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                self.0.remove(&first);
            }
        }
    }

    /// An answer whose token is good for long enough.
    pub(super) fn get(&mut self, key: &str, now: Timestamp) -> Option<Bytes> {
        self.0.retain(|_, answer| answer.ends > now);
        let answer = self.0.get(key)?;
        let left = answer.ends.duration_since(now);
        (left >= LEFT_MIN).then(|| answer.bytes.clone())
    }
}

fn ends(bytes: &Bytes) -> Option<Timestamp> {
    let answer: Value = serde_json::from_slice(bytes).ok()?;
    let status = &answer["status"];
    status["token"].as_str().filter(|token| !token.is_empty())?;
    status["expirationTimestamp"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn answer(ends: &str) -> Bytes {
        let answer = json!({"status": {"token": "t", "expirationTimestamp": ends}});
        answer.to_string().into()
    }

    #[test]
    fn a_token_is_given_again_while_it_is_good_for_long_enough() {
        let mut all = Remembered::default();
        all.put("k".into(), answer("2026-11-16T11:00:00Z"));
        assert!(all.get("k", at("2026-11-16T10:50:00Z")).is_some());
        assert!(all.get("other", at("2026-11-16T10:50:00Z")).is_none());
        assert!(all.get("k", at("2026-11-16T10:50:01Z")).is_none());
        assert!(all.get("k", at("2026-11-16T11:00:00Z")).is_none());
        assert!(all.0.is_empty());
        all.put("k".into(), Bytes::from_static(b"{\"status\":{}}"));
        assert!(all.0.is_empty());
    }

    #[test]
    fn a_token_is_given_for_the_same_pod_audience_and_life_alone() {
        let request = |uid: &str, audience: &str, seconds: u64| {
            json!({"spec": {
                "audiences": [audience], "expirationSeconds": seconds,
                "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": uid}
            }})
        };
        let account = ("default", "a");
        let same = key(account, &request("u", "x", 3607));
        assert_eq!(same, key(account, &request("u", "x", 3607)));
        assert_ne!(same, key(account, &request("v", "x", 3607)));
        assert_ne!(same, key(account, &request("u", "y", 3607)));
        assert_ne!(same, key(account, &request("u", "x", 600)));
        assert_ne!(same, key(("other", "a"), &request("u", "x", 3607)));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut all = Remembered::default();
        for number in 0..=ANSWERS_MAX {
            let ends = Timestamp::from_second(1_000_000 + number as i64).unwrap();
            all.put(format!("{number}"), answer(&ends.to_string()));
        }
        assert_eq!(all.0.len(), ANSWERS_MAX);
        assert!(!all.0.contains_key("0"));
    }
}
