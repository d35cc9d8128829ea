//! Creates, updates and deletions.

use serde_json::{Value, json};

use super::kinds::{Kind, LABEL_SELECTORS};
use super::maker::{Maker, Said, State, Weighted};
use super::patching::{MERGE, patch};
use super::reading::encoded;

/// A finalizer of ours.
const HOLD: &str = "example.com/hold";

/// Whether a write is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    Yes,
    /// With `dryRun=All`.
    No,
}

/// Adds one write.
pub(super) fn step(maker: &mut Maker) {
    let writes: [Weighted; 8] = [
        (22, create),
        (4, create_and_delete),
        (18, update),
        (22, patch),
        (6, hold),
        (6, status),
        (14, delete),
        (4, delete_many),
    ];
    maker.lot.weighted(&writes)(maker);
}

/// Some query of a write, and whether it is meant. Managers of fields are not among them: a second
/// one is a change to a real server, which keeps account of them, and nothing to ours.
pub(super) fn query(maker: &mut Maker) -> (&'static str, Meant) {
    maker.lot.weighted(&[
        (80, ("", Meant::Yes)),
        (8, ("?dryRun=All", Meant::No)),
        (4, ("?fieldValidation=Strict", Meant::Yes)),
        (4, ("?fieldValidation=Ignore", Meant::Yes)),
        (1, ("?dryRun=Some", Meant::No)),
        (1, ("?fieldValidation=Maybe", Meant::No)),
    ])
}

/// Remembers that a step answers with an object.
pub(super) fn stored(maker: &mut Maker, (kind, name): (Kind, &'static str), answer: String) {
    maker.learn_version(kind, answer.clone());
    maker.belief(kind, name).answers.push(answer);
}

fn create(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state == State::Absent);
    let mut body = kind.object(name, &mut maker.lot);
    let wrong = maker.lot.percent(6);
    if wrong {
        spoil(maker, &mut body);
    }
    let held = maker.lot.percent(12);
    if held {
        body["metadata"]["finalizers"] = json!([HOLD]);
        maker.belief(kind, name).was_held = true;
    }
    let (query, meant) = query(maker);
    let answer = maker.say(Said {
        title: format!("{} {name} is made", kind.word()),
        method: "POST",
        target: format!("{}{query}", kind.collection()),
        headers: &[],
        body: Some(body),
    });
    let absent = maker.belief(kind, name).state == State::Absent;
    if absent && meant == Meant::Yes && !wrong {
        maker.belief(kind, name).state = match held {
            true => State::Held,
            false => State::Present,
        };
        maker.belief(kind, name).answers.clear();
        stored(maker, (kind, name), answer);
    }
}

/// Makes an object whose name the server chooses, and deletes it: lists would have it in a place
/// that is left to chance.
fn create_and_delete(maker: &mut Maker) {
    let kind = maker.kind();
    let mut body = kind.object("a", &mut maker.lot);
    body["metadata"]["generateName"] = json!("made-");
    body["metadata"]["name"] = Value::Null;
    let answer = maker.say(Said {
        title: format!("a {} without a name is made", kind.word()),
        method: "POST",
        target: kind.collection().to_owned(),
        headers: &[],
        body: Some(body),
    });
    maker.learn_version(kind, answer.clone());
    let grace = json!({"gracePeriodSeconds": 0});
    maker.say(Said {
        title: "and deleted".to_owned(),
        method: "DELETE",
        target: format!("{}/{{{{{answer}.metadata.name}}}}", kind.collection()),
        headers: &[],
        body: Some(grace),
    });
}

/// Makes a body wrong, in a way that the answer must explain.
fn spoil(maker: &mut Maker, body: &mut Value) {
    match maker.lot.below(5) {
        0 => body["metadata"]["name"] = json!("Not_A_Name"),
        1 => body["metadata"]["labels"] = json!({"color": "not a value"}),
        2 => body["metadata"]["namespace"] = json!("elsewhere"),
        3 => body["stray"] = json!({"a": 1}),
        _ => body["metadata"]["finalizers"] = json!(["no-slash"]),
    }
}

fn update(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state != State::Absent);
    // Hardly anything of a pod can be replaced, and a real server says so by printing both pods.
    if kind == Kind::Pod {
        return patch(maker);
    }
    let mut body = kind.object(name, &mut maker.lot);
    let belief = maker.belief(kind, name).clone();
    if belief.state == State::Held {
        body["metadata"]["finalizers"] = json!([HOLD]);
    }
    let known = belief.answers.last().cloned();
    let stale = belief
        .answers
        .first()
        .cloned()
        .filter(|first| Some(first) != known.as_ref());
    let version = match maker.lot.below(10) {
        0..=5 => known.clone(),
        6 | 7 => stale.clone(),
        _ => None,
    };
    if let Some(answer) = &version {
        let version = format!("{{{{{answer}.metadata.resourceVersion}}}}");
        body["metadata"]["resourceVersion"] = json!(version);
    }
    let (query, meant) = query(maker);
    let answer = maker.say(Said {
        title: format!("{} {name} is replaced", kind.word()),
        method: "PUT",
        target: format!("{}/{name}{query}", kind.collection()),
        headers: &[],
        body: Some(body),
    });
    let fits = match &version {
        Some(version) => known.as_ref() == Some(version),
        None => kind.takes_any_version(),
    };
    if belief.state != State::Absent && fits && meant == Meant::Yes {
        stored(maker, (kind, name), answer);
    }
}

/// Puts a finalizer on an object, or takes it off: then a deletion that waited is done.
fn hold(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state != State::Absent);
    let state = maker.belief(kind, name).state;
    let finalizers = match state {
        State::Held => Value::Null,
        _ => json!([HOLD]),
    };
    let answer = maker.say(Said {
        title: format!("{} {name} is held or let go", kind.word()),
        method: "PATCH",
        target: format!("{}/{name}", kind.collection()),
        headers: &[MERGE],
        body: Some(json!({"metadata": {"finalizers": finalizers}})),
    });
    let belief = maker.belief(kind, name);
    belief.was_held = true;
    match state {
        State::Absent => {}
        State::Held => belief.state = State::Present,
        State::Present => {
            belief.state = State::Held;
            stored(maker, (kind, name), answer);
        }
    }
}

fn status(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state != State::Absent);
    let Some(body) = kind.status(&mut maker.lot) else {
        return patch(maker);
    };
    let answer = maker.say(Said {
        title: format!("{} {name} has another status", kind.word()),
        method: "PATCH",
        target: format!("{}/{name}/status", kind.collection()),
        headers: &[MERGE],
        body: Some(body),
    });
    if maker.belief(kind, name).state != State::Absent {
        stored(maker, (kind, name), answer);
    }
}

fn delete(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state != State::Absent);
    let belief = maker.belief(kind, name).clone();
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let mut fits = true;
    match maker.lot.below(8) {
        0 => options["propagationPolicy"] = json!("Background"),
        1 => options["gracePeriodSeconds"] = json!(0),
        2 => options["gracePeriodSeconds"] = json!(7),
        3 => {
            options["dryRun"] = json!(["All"]);
            fits = false;
        }
        4 | 5 => {
            let first = maker.lot.percent(50);
            let answers = &belief.answers;
            let answer = if first {
                answers.first()
            } else {
                answers.last()
            };
            if let Some(answer) = answer {
                let field = maker.lot.one_of(&["uid", "resourceVersion"]);
                let value = format!("{{{{{answer}.metadata.{field}}}}}");
                options["preconditions"] = json!({field: value});
                fits = field == "uid" || Some(answer) == answers.last();
            }
        }
        _ => {}
    }
    let bare = maker.lot.percent(40);
    maker.say(Said {
        title: format!("{} {name} is deleted", kind.word()),
        method: "DELETE",
        target: format!("{}/{name}", kind.collection()),
        headers: &[],
        body: (!bare || !fits).then_some(options),
    });
    if fits && belief.state == State::Present {
        maker.belief(kind, name).state = State::Absent;
    }
}

fn delete_many(maker: &mut Maker) {
    let kind = maker.kind();
    let label = maker.lot.one_of(&LABEL_SELECTORS);
    let field = maker.lot.one_of(kind.field_selectors());
    let choice = match kind {
        // Every namespace has a config map of its own, which a controller would make again.
        Kind::ConfigMap => 0,
        _ => maker.lot.below(4),
    };
    let query = match choice {
        0 => "?labelSelector=color%3Dred".to_owned(),
        1 => format!("?labelSelector={}", encoded(label)),
        2 => format!("?fieldSelector={}", encoded(field)),
        _ => String::new(),
    };
    let body = match maker.lot.below(6) {
        0 => Some(json!({"dryRun": ["All"]})),
        1 => Some(json!({"gracePeriodSeconds": 0})),
        _ => None,
    };
    let all = choice == 3 && body.as_ref().is_none_or(|body| body["dryRun"].is_null());
    maker.say(Said {
        title: format!("every {} that fits is deleted", kind.word()),
        method: "DELETE",
        target: format!("{}{query}", kind.collection()),
        headers: &[],
        body,
    });
    if all {
        maker.believe_gone(kind);
    }
}
