//! What was packed lately, to be sent: what one node is sent goes to others as well, and is made
//! once for all of them.

use std::collections::{HashMap, VecDeque};

use object::{Header, ObjectName, Resource, Version};
use wire::content::Content;

/// What was packed lately, within a number of bytes. What was made first goes first: nodes that are
/// awake send a change at about the same time.
#[derive(Debug)]
pub(super) struct Made {
    bytes: usize,
    bytes_max: usize,
    held: HashMap<Key, Content>,
    order: VecDeque<Key>,
}

/// An object, the version that is sent, and the one that it is a difference from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    resource: Resource,
    name: ObjectName,
    version: Version,
    base: Option<(ObjectName, Version)>,
}

impl Key {
    pub(super) fn new(resource: &Resource, header: &Header, base: Option<&Header>) -> Self {
        Self {
            resource: resource.clone(),
            name: header.name.clone(),
            version: header.version.clone(),
            base: base.map(|base| (base.name.clone(), base.version.clone())),
        }
    }
}

/// What an entry takes beside the bytes that are sent, about.
const ENTRY_BYTES: usize = 256;

impl Made {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: 0,
            bytes_max,
            held: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// What was made, if it is still here.
    pub(super) fn find(&self, key: &Key) -> Option<Content> {
        self.held.get(key).cloned()
    }

    /// Notes what was made. What is larger than everything is not kept.
    pub(super) fn put(&mut self, key: Key, content: &Content) {
        let bytes = size(content);
        // Two may make the same at once.
        if bytes > self.bytes_max || self.held.contains_key(&key) {
            return;
        }
        self.bytes += bytes;
        self.order.push_back(key.clone());
        self.held.insert(key, content.clone());
        while self.bytes > self.bytes_max
            && let Some(first) = self.order.pop_front()
        {
            let gone = self.held.remove(&first);
            self.bytes -= gone.map_or(0, |content| size(&content));
        }
    }

    /// Forgets all that was made of an object.
    pub(super) fn forget(&mut self, resource: &Resource, name: &ObjectName) {
        let of_it = |key: &Key| key.resource == *resource && key.name == *name;
        self.order.retain(|key| !of_it(key));
        let gone = self.held.extract_if(|key, _| of_it(key));
        self.bytes -= gone.map(|(_, content)| size(&content)).sum::<usize>();
    }
}

fn size(content: &Content) -> usize {
    content.bytes.len() + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn key(name: &str, version: u64) -> Key {
        Key {
            resource: Resource::new("", "pods"),
            name: ObjectName::new("n", name),
            version: version.to_string().parse().unwrap(),
            base: None,
        }
    }

    fn content() -> Content {
        Content::new(&Bytes::from_static(b"{}"), None)
    }

    #[test]
    fn what_was_made_first_goes_first() {
        let mut made = Made::new(3 * (ENTRY_BYTES + 2));
        for version in 1..=4 {
            made.put(key("a", version), &content());
            made.put(key("a", version), &content());
        }
        assert_eq!(made.find(&key("a", 1)), None);
        for version in 2..=4 {
            assert_eq!(made.find(&key("a", version)), Some(content()));
        }
        assert_eq!(made.bytes, 3 * (ENTRY_BYTES + 2));
    }

    #[test]
    fn what_is_forgotten_is_gone_with_all_its_versions() {
        let mut made = Made::new(1 << 20);
        made.put(key("a", 1), &content());
        made.put(key("a", 2), &content());
        made.put(key("b", 1), &content());
        made.forget(&Resource::new("", "pods"), &ObjectName::new("n", "a"));
        assert_eq!(made.find(&key("a", 1)), None);
        assert_eq!(made.find(&key("a", 2)), None);
        assert_eq!(made.find(&key("b", 1)), Some(content()));
        assert_eq!((made.bytes, made.order.len()), (ENTRY_BYTES + 2, 1));
    }

    #[test]
    fn what_is_larger_than_everything_is_not_kept() {
        let mut made = Made::new(100);
        made.put(key("a", 1), &content());
        assert_eq!(made.find(&key("a", 1)), None);
        assert_eq!(made.bytes, 0);
    }
}
