//! Tokens that the cluster gave to the node's kubelet, for when it cannot be asked. None is ever
//! made here. They lie on the node's disk, sealed as its secrets are: a kubelet that is started
//! anew starts no container again without the tokens of its pod.

use std::collections::BTreeMap;

use bytes::Bytes;
use host::{chain, secret};
use jiff::{SignedDuration, Timestamp};
use object::codec::{Malformed, Taker, put_bytes, put_text};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::keep::Keep;

/// Where the documents are that have them.
const FOLDER: &str = "tokens/";

/// Answers that are remembered: one for each volume with a token. Of more, the one that ends first
/// is forgotten.
const ANSWERS_MAX: usize = 512;
/// How much of its life a token that is given again must have left. A kubelet asks for another one
/// long before that, and keeps the one that it has if there is none.
const LEFT_MIN: SignedDuration = SignedDuration::from_mins(10);

/// The tokens of a node, in memory and on its disk.
pub(super) struct Tokens {
    keep: Keep,
    remembered: Mutex<Remembered>,
}

impl Tokens {
    /// Those on disk. What cannot be read is left out: it is damaged, or of a later release.
    pub(super) fn open(keep: Keep) -> Self {
        let reader = keep.reader();
        let names = reader.documents().into_iter();
        let found = names.filter(|name| name.as_str().starts_with(FOLDER));
        let read = found.filter_map(|name| reader.document(name.as_str()).ok().flatten());
        let mut remembered = Remembered::default();
        for (key, sealed) in read.filter_map(|bytes| decode(&bytes).ok()) {
            let opened = keep.keys().map(|keys| keys.open(&place(&key), &sealed));
            if let Some(Ok(answer)) = opened {
                remembered.insert(key, answer.into());
            }
        }
        Self {
            keep,
            remembered: Mutex::new(remembered),
        }
    }

    /// Remembers an answer. On a disk that does not take it, it is remembered until a restart.
    pub(super) async fn put(&self, key: String, bytes: Bytes, now: Timestamp) {
        let sealed = self.keep.keys().map(|keys| keys.seal(&place(&key), &bytes));
        let Some(gone) = self.remembered.lock().put(&key, bytes, now) else {
            return;
        };
        match sealed {
            Some(Ok(sealed)) => {
                let document = encode(&key, &sealed);
                if let Err(error) = self.keep.put_own(&name(&key), Some(document)).await {
                    not_kept(&error);
                }
            }
            Some(Err(error)) => not_kept(&error),
            // What cannot be sealed is not on the disk.
            None => {}
        }
        for key in gone {
            // What stays is looked at again after a restart.
            drop(self.keep.put_own(&name(&key), None).await);
        }
    }

    /// An answer whose token is good for long enough.
    pub(super) fn get(&self, key: &str, now: Timestamp) -> Option<Bytes> {
        self.remembered.lock().get(key, now)
    }
}

fn not_kept(error: &(dyn std::error::Error + 'static)) {
    let error = chain(error);
    tracing::warn!(error, "a token is not there any more after a restart");
}

/// What a token is sealed for.
fn place(key: &str) -> [&[u8]; 2] {
    [b"token", key.as_bytes()]
}

fn name(key: &str) -> String {
    format!("{FOLDER}{}", secret::hex(&secret::sha256(key.as_bytes())))
}

fn encode(key: &str, bytes: &[u8]) -> Bytes {
    let mut out = Vec::new();
    put_text(&mut out, key);
    put_bytes(&mut out, bytes);
    out.into()
}

fn decode(bytes: &Bytes) -> Result<(String, Bytes), Malformed> {
    let mut taker = Taker::new(bytes);
    let key = taker.text()?.to_owned();
    let answer = Bytes::copy_from_slice(taker.bytes()?);
    taker.end()?;
    Ok((key, answer))
}

/// What the cluster answered to requests for tokens.
#[derive(Debug, Default)]
struct Remembered(BTreeMap<String, Answer>);

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
    fn insert(&mut self, key: String, bytes: Bytes) -> Option<()> {
        let ends = ends(&bytes)?;
        self.0.insert(key, Answer { bytes, ends });
        Some(())
    }

    /// Remembers an answer with a token, and gives the keys of what is forgotten by now.
    fn put(&mut self, key: &str, bytes: Bytes, now: Timestamp) -> Option<Vec<String>> {
        self.insert(key.to_owned(), bytes)?;
        let ended = self.0.extract_if(.., |_, answer| answer.ends <= now);
        let mut gone: Vec<String> = ended.map(|(key, _)| key).collect();
        while self.0.len() > ANSWERS_MAX {
            let first = self.0.iter().min_by_key(|(_, answer)| answer.ends);
            let first = first.map(|(key, _)| key.clone())?;
            self.0.remove(&first);
            gone.push(first);
        }
        Some(gone)
    }

    fn get(&self, key: &str, now: Timestamp) -> Option<Bytes> {
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
    use std::sync::Arc;

    use host::Clock;
    use host::seal::Keys;
    use store::disk::memory::MemoryDisk;
    use store::{Options, Replica};

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
        let early = at("2026-11-16T10:00:00Z");
        all.put("k", answer("2026-11-16T11:00:00Z"), early).unwrap();
        assert!(all.get("k", at("2026-11-16T10:50:00Z")).is_some());
        assert!(all.get("other", at("2026-11-16T10:50:00Z")).is_none());
        assert!(all.get("k", at("2026-11-16T10:50:01Z")).is_none());
        let late = at("2026-11-16T11:00:00Z");
        assert!(all.get("k", late).is_none());
        let none = Bytes::from_static(b"{\"status\":{}}");
        assert_eq!(all.put("l", none, late), None);
        let gone = all.put("m", answer("2026-11-16T12:00:00Z"), late);
        assert_eq!(gone, Some(vec!["k".to_owned()]));
        assert_eq!(all.0.len(), 1);
    }

    #[tokio::test]
    async fn a_token_is_there_after_a_restart_and_gone_from_disk_after_its_end() {
        let (disk, options) = (Arc::new(MemoryDisk::default()), Options::new("n"));
        let replica = Replica::open_here(disk, options, Clock::machine()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::make(&folder.path().join("key")).unwrap();
        let keep = Keep::new(replica.clone()).with_keys(Arc::new(keys));
        let documents = || {
            let names = keep.reader().documents().into_iter();
            names.filter(|it| it.as_str().starts_with(FOLDER)).count()
        };
        let early = at("2026-11-16T10:00:00Z");
        let tokens = Tokens::open(keep.clone());
        let given = answer("2026-11-16T11:00:00Z");
        tokens.put("k".to_owned(), given.clone(), early).await;
        let again = Tokens::open(keep.clone());
        assert_eq!(again.get("k", early), Some(given));
        assert_eq!((again.get("l", early), documents()), (None, 1));
        let names = keep.reader().documents().into_iter();
        let texts = names.map(|name| keep.reader().document(name.as_str()).unwrap().unwrap());
        let bare = |text: Bytes| text.windows(7).any(|part| part == b"\"token\"");
        assert!(!texts.into_iter().any(bare), "it lies there as it is");
        let others = Tokens::open(Keep::new(replica));
        assert_eq!(
            others.get("k", early),
            None,
            "nobody without the key has it"
        );
        let late = at("2026-11-16T11:00:00Z");
        let next = answer("2026-11-16T12:00:00Z");
        again.put("l".to_owned(), next, late).await;
        let left = Tokens::open(keep.clone());
        assert_eq!((left.get("k", early), documents()), (None, 1));
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
            let now = Timestamp::UNIX_EPOCH;
            all.put(&format!("{number}"), answer(&ends.to_string()), now);
        }
        assert_eq!(all.0.len(), ANSWERS_MAX);
        assert!(!all.0.contains_key("0"));
    }
}
