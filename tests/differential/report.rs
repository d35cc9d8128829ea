//! Findings in words: where, what was asked, and both sides' values.

use std::fmt::Write;

use serde_json::Value;

use crate::compare::{Difference, Finding, Turn, What, Whose};
use crate::conversation::Conversation;

/// The most letters of a value that are shown; the rest is in `DIFFERENTIAL_SHOW=1`.
const LETTERS_MAX: usize = 400;

/// How many findings, and in words.
pub(crate) fn findings(conversation: &Conversation, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let step = &conversation.steps[finding.step];
        let (path, line, title) = (&conversation.path, step.line, &step.title);
        put(&mut text, format_args!("{path}:{line} {title}"));
        put(&mut text, format_args!("  {}", shortened(&finding.request)));
        match &finding.what {
            What::Listed(why) => put(&mut text, format_args!("    {why}")),
            What::Failed { whose, why } => {
                let whose = match whose {
                    Whose::Both => "both servers",
                    Whose::Real => "the real server",
                    Whose::One => "its namespace",
                };
                put(&mut text, format_args!("    {whose}: {why}"));
            }
            What::Differs(differences) => {
                for difference in differences {
                    put_difference(&mut text, difference);
                }
            }
        }
    }
    text
}

/// All answers of a conversation; what is alike is shown once.
pub(crate) fn transcript(conversation: &Conversation, turns: &[Turn<'_>]) -> String {
    let mut text = String::new();
    for turn in turns {
        let step = &conversation.steps[turn.step];
        put(
            &mut text,
            format_args!("{}:{} {}", conversation.path, step.line, step.title),
        );
        put(&mut text, format_args!("  {}", turn.request));
        match turn.real == turn.ours {
            true => put(&mut text, format_args!("  both {:#}", turn.real)),
            false => {
                put(&mut text, format_args!("  real {:#}", turn.real));
                put(&mut text, format_args!("  ours {:#}", turn.ours));
            }
        }
    }
    text
}

fn put_difference(text: &mut String, difference: &Difference) {
    put(text, format_args!("    {}", difference.path));
    for (side, value) in [("real", &difference.real), ("ours", &difference.ours)] {
        let value = value.as_ref().map_or("absent".to_owned(), Value::to_string);
        put(text, format_args!("      {side}  {}", shortened(&value)));
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes everything");
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LETTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} letters)", &text[..end], text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finding_names_its_place_its_request_and_both_values() {
        let conversation = Conversation::parse("a/b.http", "### it is read\nGET /x\n").unwrap();
        let difference = Difference {
            path: "body.kind".to_owned(),
            real: Some(json!("Pod")),
            ours: None,
        };
        let found = Finding {
            step: 0,
            request: "GET /x".to_owned(),
            what: What::Differs(vec![difference]),
        };
        let expected = "a/b.http:1 it is read\n  GET /x\n    body.kind\n      \
                        real  \"Pod\"\n      ours  absent\n";
        assert_eq!(findings(&conversation, &[found]), expected);
    }

    #[test]
    fn long_values_are_cut() {
        let long = "é".repeat(LETTERS_MAX + 1);
        assert!(shortened(&long).ends_with("é… (401 letters)"));
        assert_eq!(shortened("é"), "é");
    }
}
