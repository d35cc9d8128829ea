//! Which documents a node has of those that it is to have. Of each, at most one word is on its way:
//! what is newer waits until the node has answered to that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Outbox, Settled};
use crate::content::Content;
use crate::documents::Documents;
use crate::frame::{Delivery, Noted};
use crate::window::{Fate, Why};

impl Outbox {
    /// The node has these documents, and takes others.
    pub fn has_documents(&mut self, held: Vec<Noted>) {
        self.copies.has(held);
    }

    /// The node is to have these documents, and no others.
    pub fn want_documents(&mut self, wanted: &Arc<Documents>) {
        self.copies.want(wanted);
    }

    /// Whether the node has the documents that it is to have, and no others. One that takes none
    /// is to have none.
    pub fn documents_are_even(&self) -> bool {
        self.copies.is_even()
    }
}

/// The documents of a node.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// What it is to have, once that is known.
    wanted: Option<Arc<Documents>>,
    /// What it has on its disk, by hash; nothing from a node that takes no documents.
    held: Option<BTreeMap<Box<str>, u64>>,
    flying: BTreeSet<Box<str>>,
    /// What it could not take, and until when it is not sent again unless it is another one.
    aside: BTreeMap<Box<str>, (Option<u64>, Duration)>,
}

/// How long a node is spared a document that it could not take.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// A document on its way: as it is to be, or that it goes.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    name: Box<str>,
    is: Option<(u64, Bytes)>,
}

impl Copies {
    /// The node has these.
    pub(super) fn has(&mut self, held: Vec<Noted>) {
        let held = held.into_iter().map(|noted| (noted.name, noted.hash));
        self.held = Some(held.collect());
    }

    /// The node is to have these, and no others.
    pub(super) fn want(&mut self, wanted: &Arc<Documents>) {
        self.wanted = Some(Arc::clone(wanted));
    }

    /// The next that is to be sent. It counts as sent.
    pub(super) fn next(&mut self, now: Duration) -> Option<Copy> {
        let (wanted, held) = (self.wanted.as_ref()?, self.held.as_ref()?);
        let free = |name: &str, hash: Option<u64>| {
            let aside = self.aside.get(name);
            let spared = aside.is_some_and(|(of, until)| *of == hash && now < *until);
            !self.flying.contains(name) && !spared
        };
        let differs = |(name, hash): (&str, u64)| held.get(name) != Some(&hash);
        let mut wrong = wanted.iter().filter(|(name, document)| {
            differs((name, document.hash)) && free(name, Some(document.hash))
        });
        let put = wrong.next().map(|(name, document)| Copy {
            name: name.into(),
            is: Some((document.hash, document.bytes.clone())),
        });
        let mut left = held.keys();
        let gone = left.find(|name| wanted.ends(name) && free(name, None));
        // What goes makes room for what comes.
        let gone = gone.map(|name| Copy {
            name: name.clone(),
            is: None,
        });
        let copy = gone.or(put)?;
        self.flying.insert(copy.name.clone());
        Some(copy)
    }

    /// The node answered to what was to be settled by now.
    pub(super) fn settle(&mut self, copy: Copy, fate: Fate, now: Duration) -> Option<Settled> {
        self.flying.remove(&copy.name);
        let hash = copy.is.as_ref().map(|(hash, _)| *hash);
        let held = self.held.as_mut()?;
        match (fate, hash) {
            (Fate::Delivered, hash) => {
                self.aside.remove(&copy.name);
                match hash {
                    Some(hash) => held.insert(copy.name, hash),
                    None => held.remove(&copy.name),
                };
            }
            (Fate::Void(Why::Gone), _) => {}
            (Fate::Void(why), hash) => {
                self.aside
                    .insert(copy.name.clone(), (hash, now + AGAIN_AFTER));
                let name = copy.name;
                return Some(Settled::DocumentAside { name, why });
            }
        }
        None
    }

    /// Whether the node has what it is to have, and nothing else.
    pub(super) fn is_even(&self) -> bool {
        let (Some(wanted), Some(held)) = (&self.wanted, &self.held) else {
            return true;
        };
        let mut all = wanted.iter();
        all.all(|(name, document)| held.get(name) == Some(&document.hash))
            && !held.keys().any(|name| wanted.ends(name))
    }
}

impl Copy {
    /// As it is sent.
    pub(super) fn delivery(&self) -> Delivery {
        let name = self.name.clone();
        match &self.is {
            Some((_, bytes)) => Delivery::Document {
                name,
                content: Content::new(bytes, None),
            },
            None => Delivery::DocumentGone { name },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Fault;

    const NOW: Duration = Duration::from_secs(100);

    fn documents(all: &[(&str, &'static str)]) -> Arc<Documents> {
        let all = all
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()));
        Arc::new(Documents::new(all).unwrap())
    }

    fn noted(name: &str, text: &str) -> Noted {
        Noted {
            name: name.into(),
            hash: crate::digest::content_hash(text.as_bytes()),
        }
    }

    fn told(copy: &Copy) -> String {
        match &copy.is {
            Some((_, bytes)) => format!("{}={}", copy.name, String::from_utf8_lossy(bytes)),
            None => format!("-{}", copy.name),
        }
    }

    fn all(copies: &mut Copies) -> Vec<String> {
        std::iter::from_fn(|| copies.next(NOW).map(|copy| told(&copy))).collect()
    }

    #[test]
    fn what_differs_is_sent_and_what_is_not_wanted_goes() {
        let mut copies = Copies::default();
        copies.has(vec![noted("a", "1"), noted("b", "old"), noted("x", "9")]);
        // Nothing goes before it is known what is wanted.
        assert_eq!(all(&mut copies), [""; 0]);
        copies.want(&documents(&[("a", "1"), ("b", "2"), ("c", "3")]));
        assert!(!copies.is_even());
        assert_eq!(all(&mut copies), ["-x", "b=2", "c=3"]);
    }

    #[test]
    fn of_what_nothing_is_known_stays_as_it_is() {
        let mut copies = Copies::default();
        copies.has(vec![noted("a", "1"), noted("b", "2"), noted("c", "3")]);
        let wanted = Documents::new([("a".into(), Bytes::from("1"))]).unwrap();
        copies.want(&Arc::new(wanted.with_unknown(["b".into()])));
        assert!(!copies.is_even());
        let gone = copies.next(NOW).unwrap();
        assert_eq!((&*gone.name, gone.is.is_none()), ("c", true));
        assert!(copies.next(NOW).is_none());
        copies.settle(gone, Fate::Delivered, NOW);
        assert!(copies.is_even());
    }

    #[test]
    fn a_node_that_takes_no_documents_is_sent_none() {
        let mut copies = Copies::default();
        copies.want(&documents(&[("a", "1")]));
        assert_eq!(all(&mut copies), [""; 0]);
        assert!(copies.is_even());
    }

    #[test]
    fn what_is_newer_waits_for_the_answer_to_what_is_on_its_way() {
        let mut copies = Copies::default();
        copies.has(Vec::new());
        copies.want(&documents(&[("a", "1")]));
        let first = copies.next(NOW).unwrap();
        copies.want(&documents(&[("a", "2")]));
        assert_eq!(all(&mut copies), [""; 0]);
        assert_eq!(copies.settle(first, Fate::Delivered, NOW), None);
        let second = copies.next(NOW).unwrap();
        assert_eq!(told(&second), "a=2");
        // It is not wanted at all any more, and goes once it is there.
        copies.want(&documents(&[]));
        copies.settle(second, Fate::Delivered, NOW);
        assert_eq!(all(&mut copies), ["-a"]);
    }

    #[test]
    fn what_the_node_cannot_take_is_set_aside_until_it_is_another_one_or_time_has_passed() {
        let mut copies = Copies::default();
        copies.has(Vec::new());
        copies.want(&documents(&[("a", "1")]));
        let first = copies.next(NOW).unwrap();
        let why = Why::Rejected(Fault::TooLarge);
        let name = "a".into();
        let aside = Some(Settled::DocumentAside { name, why });
        assert_eq!(copies.settle(first, Fate::Void(why), NOW), aside);
        assert!(copies.next(NOW).is_none());
        copies.want(&documents(&[("a", "2")]));
        let second = copies.next(NOW).unwrap();
        copies.settle(second, Fate::Void(Why::Unanswered), NOW);
        assert!(copies.next(NOW + AGAIN_AFTER / 2).is_none());
        let third = copies.next(NOW + AGAIN_AFTER).unwrap();
        copies.settle(third, Fate::Delivered, NOW + AGAIN_AFTER);
        assert!(copies.is_even());
    }
}
