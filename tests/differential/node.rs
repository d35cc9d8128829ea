//! Where the API of a node answers otherwise than its cluster, on purpose or because two clusters
//! cannot be alike. Everything else is a fault.

use serde_json::json;

use crate::compare::{Difference, Finding, What};
use crate::conversation::{Conversation, Step, Who};

/// Steps of a file that may differ, by their titles, and why.
struct Except {
    file: &'static str,
    steps: &'static [&'static str],
    why: &'static str,
}

const TWO_CLUSTERS: &str = "two clusters have different keys, and versions in texts and bytes";
const HOW_FAR: &str =
    "the version of a list is how far the node is with that kind, and not with all";
const HEALTH: &str = "how the node is doing it says itself, and to everybody";

const EXCEPT: [Except; 8] = [
    Except {
        file: "access/impersonation.http",
        steps: &[
            "somebody who may not",
            "not even for a group",
            "nor a service account",
            "nor a node",
            "she does",
            "with more",
            "Ivy, who did not yet, may not speak for another",
            "nor with a group",
            "nor with a uid",
            "nor with another value",
        ],
        why: "users are played by a token that speaks for them, so they cannot speak for others",
    },
    Except {
        file: "access/nobody.http",
        steps: &["a bad token counts also where everybody may go"],
        why: HEALTH,
    },
    Except {
        file: "discovery/health.http",
        steps: &[
            "in many words",
            "ready, in many words",
            "for nobody, in parts",
        ],
        why: HEALTH,
    },
    Except {
        file: "discovery/schemas.http",
        steps: &[
            "the key that tokens are signed with is told to those who may know",
            "which is asked for by name, or with anything",
            "who signs",
        ],
        why: TWO_CLUSTERS,
    },
    Except {
        file: "patch/merge.http",
        steps: &[
            "not of another kind",
            "not of another version",
            "a wrong type",
            "an unknown field, strictly",
            "a field twice, strictly",
        ],
        why: TWO_CLUSTERS,
    },
    Except {
        file: "table/accept.http",
        steps: &["protobuf or JSON, as client-go asks", "YAML"],
        why: TWO_CLUSTERS,
    },
    Except {
        file: "table/config.http",
        steps: &["namespaces"],
        why: HOW_FAR,
    },
    Except {
        file: "list/places.http",
        steps: &[
            "the namespaces themselves",
            "one of them, as a list",
            "by their phase",
        ],
        why: HOW_FAR,
    },
];

/// Why a finding is none, if it is none.
pub(crate) fn excuse(conversation: &Conversation, finding: &Finding) -> Option<&'static str> {
    let step = &conversation.steps[finding.step];
    let listed = EXCEPT.iter().find(|except| {
        let of_file = conversation.path.ends_with(except.file);
        of_file && except.steps.contains(&step.title.as_str())
    });
    if let Some(listed) = listed {
        return Some(listed.why);
    }
    let What::Differs(differences) = &finding.what else {
        return None;
    };
    by_rule(step, differences)
}

/// What may differ in any step.
fn by_rule(step: &Step, differences: &[Difference]) -> Option<&'static str> {
    let refused = |difference: &Difference| {
        difference.path == "status" && difference.ours == Some(json!(401))
    };
    if matches!(step.who, Who::Nobody) && differences.iter().any(refused) {
        return Some("a node has no anonymous callers, and takes bearer tokens alone");
    }
    let hash = |difference: &Difference| difference.path.ends_with(".storageVersionHash");
    if differences.iter().all(hash) {
        return Some("discovery in one answer does not say in which version a kind is stored");
    }
    let words = |difference: &Difference| {
        let path = &difference.path;
        path.contains(".columnDefinitions.") && path.ends_with(".description")
    };
    if differences.iter().all(words) {
        return Some("what a column says for people is ours: docs/conformance.md, difference 5");
    }
    None
}

#[test]
fn what_a_node_is_excused_from_is_in_the_corpus() {
    let all = crate::corpus::conversations("");
    for Except { file, steps, .. } in EXCEPT {
        let found = all.iter().find(|found| found.path.ends_with(file));
        let found = found.unwrap_or_else(|| panic!("there is no {file}"));
        for title in steps {
            let is_there = found.steps.iter().any(|step| step.title == *title);
            assert!(is_there, "{file} has no step {title:?}");
        }
    }
}
