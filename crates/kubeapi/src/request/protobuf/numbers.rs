//! Which field a number means: facts compiled in as text, read type by type when needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use crate::schema::builtin;

/// The file that `data/protobuf/main.go` makes and explains.
const FACTS: &str = include_str!("../../../data/protobuf.txt");

/// What a number means in a message.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// A field of the object.
    Field {
        name: &'static str,
        zero: Zero,
        lists: Lists,
    },
    /// A struct of this type, whose fields are the object's own in JSON.
    Inlined(String),
}

/// What a value of zero means: Go writes it in protobuf although JSON would leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    /// It was not set.
    Unset,
    /// It was set to zero.
    Meant,
}

/// How the lists in a field are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// One field for each entry.
    Plain,
    /// In a message of their own, whose field 1 is repeated.
    Wrapped,
}

/// The meaning of each number in messages of this type (`io.k8s.api.core.v1.PodSpec`).
pub(super) fn of(name: &str) -> Option<&'static BTreeMap<u64, Meaning>> {
    let message = INDEX.get(name)?;
    Some(message.meanings.get_or_init(|| parse(message.text)))
}

struct Message {
    text: &'static str,
    meanings: OnceLock<BTreeMap<u64, Meaning>>,
}

static INDEX: LazyLock<HashMap<String, Message>> = LazyLock::new(|| {
    let lines = FACTS.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &'static str| {
        let (short, text) = line.split_once(' ')?;
        let meanings = OnceLock::new();
        Some((builtin::long_name(short), Message { text, meanings }))
    };
    lines.filter_map(entry).collect()
});

fn parse(text: &'static str) -> BTreeMap<u64, Meaning> {
    text.split(' ').filter_map(parse_word).collect()
}

/// `hostname=16?`, `extra=5*`, `=2:core.v1.VolumeSource`
fn parse_word(word: &'static str) -> Option<(u64, Meaning)> {
    let (name, rest) = word.split_once('=')?;
    if let Some((number, short)) = rest.split_once(':') {
        let inlined = Meaning::Inlined(builtin::long_name(short));
        return Some((number.parse().ok()?, inlined));
    }
    let number = rest.trim_end_matches(['?', '*']);
    let zero = if rest.contains('?') {
        Zero::Unset
    } else {
        Zero::Meant
    };
    let lists = if rest.contains('*') {
        Lists::Wrapped
    } else {
        Lists::Plain
    };
    Some((number.parse().ok()?, Meaning::Field { name, zero, lists }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Shape;

    #[test]
    fn every_field_of_every_built_in_type_has_a_number() {
        let mut checked = 0;
        for name in builtin::names() {
            let schema = builtin::definition(name).unwrap();
            let Shape::Object { properties, .. } = &schema.shape else {
                continue;
            };
            let mut known: Vec<&str> = vec!["apiVersion", "kind"];
            let mut open: Vec<&str> = vec![name];
            while let Some(name) = open.pop() {
                for meaning in of(name).into_iter().flat_map(BTreeMap::values) {
                    match meaning {
                        Meaning::Field { name, .. } => known.push(name),
                        Meaning::Inlined(name) => open.push(name),
                    }
                }
            }
            for field in properties.keys() {
                checked += 1;
                assert!(known.contains(&&**field), "{name}: {field} has no number");
            }
        }
        assert!(checked > 2000, "the facts were read");
    }

    #[test]
    fn marks_are_read() {
        let spec = of("io.k8s.api.authorization.v1.SubjectAccessReviewSpec").unwrap();
        let extra = Meaning::Field {
            name: "extra",
            zero: Zero::Meant,
            lists: Lists::Wrapped,
        };
        assert_eq!(spec[&5], extra);
        let user = Meaning::Field {
            name: "user",
            zero: Zero::Unset,
            lists: Lists::Plain,
        };
        assert_eq!(spec[&3], user);
        let volume = of("io.k8s.api.core.v1.Volume").unwrap();
        let source = "io.k8s.api.core.v1.VolumeSource".to_owned();
        assert_eq!(volume[&2], Meaning::Inlined(source));
    }
}
