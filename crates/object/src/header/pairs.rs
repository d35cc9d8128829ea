//! A small sorted map from string to string in one allocation: labels, or field values.

use std::fmt;

use super::known;

/// A small sorted map from string to string: labels, or field values.
///
/// Tens of thousands of these stay in memory, so all pairs of one map share one string: for each
/// pair the key (its number in a table of frequent keys, or its length and its characters), then
/// the value's length and the value. Lengths are ASCII digits of base 64, so that the whole is
/// text and a lookup hands out slices of it. A map has one form only, so equality is that of the
/// string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(Box<str>);

impl Pairs {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter()
            .take_while(|(candidate, _)| *candidate <= key)
            .find_map(|(candidate, value)| (candidate == key).then_some(value))
    }

    /// All pairs, by key.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.0 }
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Packs pairs that are sorted by key, each key once. The caller has made sure of that.
    pub(super) fn pack<'a>(sorted: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut packed = String::new();
        for (key, value) in sorted {
            match known::number(key) {
                Some(number) => push_length(&mut packed, number * 2),
                None => {
                    push_length(&mut packed, key.len() * 2 + 1);
                    packed.push_str(key);
                }
            }
            push_length(&mut packed, value.len());
            packed.push_str(value);
        }
        Self(packed.into_boxed_str())
    }

    /// The bytes that the map takes on the heap.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len()
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Pairs {
    /// Of two pairs with the same key the later one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut sorted = std::collections::BTreeMap::<Box<str>, Box<str>>::new();
        sorted.extend(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value.into())),
        );
        Self::pack(sorted.iter().map(|(key, value)| (&**key, &**value)))
    }
}

impl<'a> IntoIterator for &'a Pairs {
    type Item = (&'a str, &'a str);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The pairs of a map, by key.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let packed = "only `pack` makes the string";
        let (head, rest) = split_length(self.rest)?;
        let (key, rest) = match head % 2 {
            0 => (known::KEYS[head / 2], rest),
            _ => rest.split_at(head / 2),
        };
        let (length, rest) = split_length(rest).expect(packed);
        let (value, rest) = rest.split_at(length);
        self.rest = rest;
        Some((key, value))
    }
}

/// Six bits a byte, the lowest first; the bit 0x40 says that more follow.
fn push_length(packed: &mut String, mut length: usize) {
    while length >= 0x40 {
        packed.push(char::from(0x40 | (length & 0x3f) as u8));
        length >>= 6;
    }
    packed.push(char::from(length as u8));
}

fn split_length(packed: &str) -> Option<(usize, &str)> {
    let mut length = 0;
    for (at, byte) in packed.bytes().enumerate() {
        length |= usize::from(byte & 0x3f) << (6 * at);
        if byte & 0x40 == 0 {
            return Some((length, &packed[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frequent_key_costs_one_byte_or_two() {
        let pairs: Pairs = [("app.kubernetes.io/name", "web")].into_iter().collect();
        assert!(pairs.heap_bytes() <= 2 + 1 + 3);
        assert_eq!(pairs.get("app.kubernetes.io/name"), Some("web"));
        assert_eq!(pairs.get("app.kubernetes.io/nam"), None);
    }

    #[test]
    fn of_two_pairs_with_one_key_the_later_stays() {
        let pairs: Pairs = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        assert_eq!(pairs.iter().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn long_values_keep_their_length() {
        let long = "é".repeat(100_000);
        let pairs: Pairs = [("k", long.as_str()), ("l", "")].into_iter().collect();
        assert_eq!(pairs.get("k"), Some(long.as_str()));
        assert_eq!(pairs.get("l"), Some(""));
        assert!(Pairs::default().is_empty());
    }

    fn key() -> impl Strategy<Value = String> {
        prop_oneof![
            "\\PC{0,80}",
            proptest::sample::select(known::KEYS).prop_map(str::to_owned)
        ]
    }

    proptest! {
        #[test]
        fn pairs_are_a_sorted_map(
            map in proptest::collection::btree_map(key(), "\\PC{0,80}", 0..12),
            absent in key(),
        ) {
            let pairs: Pairs = map.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let seen: Vec<_> = pairs.iter().collect();
            let expected: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            prop_assert_eq!(seen, expected);
            for (key, value) in &map {
                prop_assert_eq!(pairs.get(key), Some(value.as_str()));
            }
            prop_assert_eq!(pairs.get(&absent), map.get(&absent).map(String::as_str));
        }
    }
}
