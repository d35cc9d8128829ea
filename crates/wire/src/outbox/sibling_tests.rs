//! New objects that are like the one before them.

use super::tests::{Shelf, all, complete, version};
use super::*;
use crate::inbox::{Action, Held, Inbox};

/// A node that has nothing.
struct Empty;

impl Held for Empty {
    fn object(&self, _: &Resource, _: &ObjectName) -> Option<Bytes> {
        None
    }
    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        Vec::new()
    }
    fn document(&self, _: &str) -> Option<Bytes> {
        None
    }
    fn covers(&self, _: &Resource, _: &Header) -> bool {
        true
    }
    fn fits(&self, _: &Header, _: usize) -> bool {
        true
    }
}

/// Three secrets of 3 KiB that hardly differ, and one that is like nothing.
fn shelf() -> Shelf {
    let mut shelf = Shelf::default();
    for (name, at) in [("a", 5), ("b", 6), ("c", 7), ("d", 8)] {
        shelf.put("secrets", name, at);
    }
    for ((_, name, _), bytes) in &mut shelf.bytes {
        let seed: u64 = if name.name() == "d" { 10_000 } else { 1 };
        let filling = (0..150_u64).map(|number| {
            let noise = content_hash(&(number + seed).to_le_bytes());
            format!("{noise:016x}")
        });
        let filling: Vec<String> = filling.collect();
        let text = std::str::from_utf8(bytes).unwrap();
        let end = format!(r#","filling":"{}"}}"#, filling.concat());
        let start = text.strip_suffix('}').unwrap();
        *bytes = format!("{start}{end}").into();
    }
    shelf
}

/// The forms in which objects are sent, and how many bytes each takes.
fn forms(outbox: &mut Outbox, shelf: &Shelf, inbox: &mut Inbox) -> Vec<(String, usize)> {
    let mut forms = Vec::new();
    while let Some(frame) = outbox.next(shelf, Duration::ZERO) {
        let Frame::Deliver { number, delivery } = frame else {
            panic!("{frame:?}");
        };
        if let Delivery::Put { content, .. } = &delivery {
            let form = match &content.form {
                Form::Like(name, _) => format!("like {}", name.name()),
                other => format!("{other:?}"),
            };
            forms.push((form, content.bytes.len()));
        }
        let actions = inbox.take(number, delivery, &Empty).unwrap();
        let refused = |action: &Action| matches!(action, Action::Reject { .. });
        assert!(!actions.iter().any(refused), "{actions:?}");
        // What came is on the disk before the next comes.
        drop(inbox.flush());
        inbox.stored(number);
    }
    forms
}

#[test]
fn what_is_like_the_one_before_is_sent_as_that_and_what_is_not_is_packed() {
    let shelf = shelf();
    let secrets = Resource::new("", "secrets");
    let mut outbox = Outbox::new(Limits::default());
    outbox.want(&secrets, [all()]);
    let forms = forms(&mut outbox, &shelf, &mut Inbox::default());
    let words: Vec<&str> = forms.iter().map(|(form, _)| &**form).collect();
    assert_eq!(words, ["Packed", "like a", "like b", "Packed"]);
    assert!(forms[1].1 * 10 < forms[0].1, "{forms:?}");
}

#[test]
fn the_same_in_a_cut_and_nothing_is_relied_on_from_one_to_the_next() {
    let mut shelf = shelf();
    let mut outbox = complete(&["secrets"]);
    let mut inbox = Inbox::default();
    let first = forms(&mut outbox, &shelf, &mut inbox);
    assert_eq!(first[1].0, "like a");
    let old: Vec<Bytes> = shelf.bytes.values().cloned().collect();
    shelf.put("secrets", "e", 20);
    let key = (
        Resource::new("", "secrets"),
        ObjectName::new("n", "e"),
        version(20),
    );
    let text = std::str::from_utf8(&old[0]).unwrap();
    let text = text.replace(r#""a""#, r#""e""#);
    let text = text.replace(r#"Version":"5""#, r#"Version":"20""#);
    shelf.bytes.insert(key, text.into());
    let later = forms(&mut outbox, &shelf, &mut inbox);
    assert_eq!(later[0].0, "Packed");
}
