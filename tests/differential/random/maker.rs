//! The text of a conversation so far, and what is believed to be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};

use super::kinds::{self, KINDS, Kind, NAMES};
use super::lot::Lot;

/// A conversation in the making.
pub(super) struct Maker {
    pub(super) lot: Lot,
    /// The kinds of this conversation: few, so that its steps have to do with each other.
    kinds: Vec<Kind>,
    text: String,
    steps: usize,
    /// Streams that are read at the end, and where in their events the last label is.
    streams: Vec<(String, &'static str)>,
    /// Kinds of which tables are watched.
    tables: BTreeSet<Kind>,
    beliefs: BTreeMap<(Kind, &'static str), Belief>,
    /// Steps whose answers have a version, by kind.
    versions: BTreeMap<Kind, Vec<String>>,
    /// Steps whose answers may have a token to go on with, and the parameters they were asked with.
    pub(super) pages: Vec<(Kind, String)>,
}

/// What is believed of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Belief {
    pub(super) state: State,
    /// Steps whose answers are this object, oldest first.
    pub(super) answers: Vec<String>,
    /// Whether it ever had a finalizer, and must be freed in the end.
    pub(super) was_held: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Absent,
    Present,
    /// It has a finalizer: a deletion waits for that.
    Held,
}

/// A kind of step, and how often it is taken.
pub(super) type Weighted = (usize, fn(&mut Maker));

/// What is said in a step.
pub(super) struct Said<'a> {
    pub(super) title: String,
    pub(super) method: &'a str,
    pub(super) target: String,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: Option<Value>,
}

impl Maker {
    pub(super) fn new(seed: u64) -> Self {
        let mut lot = Lot::new(seed);
        let mut kinds = vec![lot.one_of(&KINDS)];
        while kinds.len() < 3 {
            let kind = lot.one_of(&KINDS);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let mut maker = Self {
            lot,
            kinds,
            text: format!("# A random conversation, of seed {seed}.\n"),
            steps: 0,
            streams: Vec::new(),
            tables: BTreeSet::new(),
            beliefs: BTreeMap::new(),
            versions: BTreeMap::new(),
            pages: Vec::new(),
        };
        if maker.kinds.contains(&Kind::Thing) {
            maker.define();
        }
        maker
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    pub(super) fn kind(&mut self) -> Kind {
        let kinds = self.kinds.clone();
        self.lot.one_of(&kinds)
    }

    /// A kind and a name.
    pub(super) fn place(&mut self) -> (Kind, &'static str) {
        (self.kind(), self.lot.one_of(&NAMES))
    }

    /// One that is believed to be in this state, or any.
    pub(super) fn place_where(&mut self, wanted: fn(State) -> bool) -> (Kind, &'static str) {
        for _ in 0..6 {
            let (kind, name) = self.place();
            if wanted(self.belief(kind, name).state) {
                return (kind, name);
            }
        }
        self.place()
    }

    pub(super) fn belief(&mut self, kind: Kind, name: &'static str) -> &mut Belief {
        self.beliefs.entry((kind, name)).or_default()
    }

    /// All objects of a kind are believed to be gone, but for those that are held.
    pub(super) fn believe_gone(&mut self, kind: Kind) {
        for ((of, _), belief) in &mut self.beliefs {
            if *of == kind && belief.state == State::Present {
                belief.state = State::Absent;
            }
        }
    }

    /// Whether this kind's table is not watched yet; from now on it is. A real server shares what
    /// it encoded between watchers, so that who of two is told the columns is left to chance.
    pub(super) fn has_no_table_yet(&mut self, kind: Kind) -> bool {
        self.tables.insert(kind)
    }

    /// A step whose answer has a version of this kind.
    pub(super) fn version(&mut self, kind: Kind) -> Option<String> {
        let known = self.versions.get(&kind)?.clone();
        // Rather a late one than an early one: more is still to come after an early one.
        let first = match self.lot.percent(50) {
            true => known.len().saturating_sub(4),
            false => 0,
        };
        let index = first + self.lot.below(known.len() - first);
        Some(format!("{{{{{}.metadata.resourceVersion}}}}", known[index]))
    }

    /// The answer of this step has a version of this kind.
    pub(super) fn learn_version(&mut self, kind: Kind, answer: String) {
        self.versions.entry(kind).or_default().push(answer);
    }

    /// Writes a step; gives the name of its answer.
    pub(super) fn say(&mut self, said: Said<'_>) -> String {
        let name = format!("s{}", self.steps + 1);
        self.write(&format!("# @name {name}\n"), said);
        name
    }

    /// Writes a step that opens a stream.
    pub(super) fn watch(&mut self, said: Said<'_>, last: &'static str) {
        let name = format!("w{}", self.steps + 1);
        self.write(&format!("# @watch {name}\n"), said);
        self.streams.push((name, last));
    }

    fn write(&mut self, directives: &str, said: Said<'_>) {
        self.steps += 1;
        let (title, method, target) = (said.title, said.method, said.target);
        let number = self.steps;
        let mut step = format!("\n### {number}: {title}\n{directives}{method} {target}\n");
        for (name, value) in said.headers {
            writeln!(step, "{name}: {value}").expect("a string takes everything");
        }
        if let Some(body) = said.body {
            writeln!(step, "\n{body}").expect("a string takes everything");
        }
        self.text.push_str(&step);
    }

    fn define(&mut self) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.say(Said {
            title: "a kind of our own".to_owned(),
            method: "POST",
            target: definitions.to_owned(),
            headers: &[],
            body: Some(kinds::definition()),
        });
        let served = Said {
            title: "it is served".to_owned(),
            method: "GET",
            target: Kind::Thing.collection().to_owned(),
            headers: &[],
            body: None,
        };
        self.write("# @until 200\n", served);
    }

    /// Ends the conversation: an object that every watch sees, all events up to it, and nothing
    /// left behind that would hold up the namespace.
    pub(super) fn finish(mut self) -> String {
        for kind in self.kinds.clone() {
            let mut last = kind.object("a", &mut self.lot);
            last["metadata"]["labels"] = kinds::last_labels();
            if kind == Kind::Thing {
                // Others may break the schema; without this one, watches would wait in vain.
                last["spec"] = json!({"size": 1});
            }
            self.say(Said {
                title: format!("the last {}", kind.word()),
                method: "POST",
                target: kind.collection().to_owned(),
                headers: &[],
                body: Some(last),
            });
            self.say(Said {
                title: "or it was there before".to_owned(),
                method: "PATCH",
                target: format!("{}/a", kind.collection()),
                headers: &[("Content-Type", "application/merge-patch+json")],
                body: Some(json!({"metadata": {"labels": kinds::last_labels()}})),
            });
        }
        for (stream, last) in std::mem::take(&mut self.streams) {
            self.steps += 1;
            let step = format!(
                "\n### {}: told\nEVENTS {stream} until {last}=yes\n",
                self.steps
            );
            self.text.push_str(&step);
        }
        let held = self.beliefs.iter().filter(|(_, belief)| belief.was_held);
        let held: Vec<_> = held.map(|(place, _)| *place).collect();
        for (kind, name) in held {
            self.say(Said {
                title: format!("{} {name} is free", kind.word()),
                method: "PATCH",
                target: format!("{}/{name}", kind.collection()),
                headers: &[("Content-Type", "application/merge-patch+json")],
                body: Some(json!({"metadata": {"finalizers": null}})),
            });
        }
        if self.kinds.contains(&Kind::Thing) {
            let name = "things.{{ns}}.example.com";
            self.say(Said {
                title: "the kind goes".to_owned(),
                method: "DELETE",
                target: format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"),
                headers: &[],
                body: None,
            });
        }
        self.text
    }
}
