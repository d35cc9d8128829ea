//! Files as they are read, and as they are refused.

use super::*;

fn parse(text: &str) -> Conversation {
    Conversation::parse("tests/conversations/core/Some file.http", text).unwrap()
}

fn refusal(text: &str) -> String {
    let refused = Conversation::parse("x.http", text).unwrap_err();
    refused.to_string()
}

const LIFE: &str = r#"# A life.

### it is made
# It has one key.
# @name made
# @differs 3 status=422 body.message
POST /api/v1/namespaces/{{ns}}/configmaps
Content-Type: application/json
Warning: {{ns}}

{"a": {
  "b": {}}}

### it is watched
# @watch w
# @bookmarks
# @as node {{ns}}-n
GET /x?watch=1&resourceVersion={{made.metadata.resourceVersion}}

### it goes, in the end
# @until status.phase=Gone
# @repeat 2
DELETE /x

### told
EVENTS w end
"#;

#[test]
fn a_step_is_its_title_its_directives_and_its_request() {
    let read = parse(LIFE);
    assert_eq!(read.steps.len(), 4);
    let made = &read.steps[0];
    assert_eq!((made.line, made.title.as_str()), (3, "it is made"));
    assert_eq!(made.name.as_deref(), Some("made"));
    assert_eq!(made.differs[0].entry, 3);
    let mark = |path: &str, ours: Option<&str>| Mark {
        path: path.to_owned(),
        ours: ours.map(str::to_owned),
    };
    let marks = [mark("status", Some("422")), mark("body.message", None)];
    assert_eq!(made.differs[0].marks, marks);
    let Act::Ask(ask) = &made.act else {
        panic!("{:?}", made.act)
    };
    assert_eq!((ask.method.as_str(), ask.headers.len()), ("POST", 2));
    assert_eq!(ask.headers[1].0, "Warning");
    assert!(ask.body.is_some());
}

#[test]
fn watches_events_and_repeats_are_told_apart() {
    let read = parse(LIFE);
    let Act::Watch {
        stream, bookmarks, ..
    } = &read.steps[1].act
    else {
        panic!("{:?}", read.steps[1].act)
    };
    assert_eq!((stream.as_str(), *bookmarks), ("w", Bookmarks::Counted));
    assert!(matches!(&read.steps[1].who, Who::User { groups, .. } if groups.len() == 1));
    assert_eq!(read.steps[2].repeat, 2);
    assert!(
        matches!(&read.steps[2].until, Some(Until::Field { path, .. }) if path == "status.phase")
    );
    assert!(matches!(
        read.steps[3].act,
        Act::Events {
            count: Count::End,
            ..
        }
    ));
    let until = "### a\n# @watch w\nGET /\n### b\nEVENTS w until object.metadata.name=x\n";
    let until = parse(until);
    let Act::Events { count, .. } = &until.steps[1].act else {
        panic!("{:?}", until.steps[1].act)
    };
    assert!(matches!(count, Count::Until { path, .. } if path == "object.metadata.name"));
    let size = Size {
        requests: 3,
        streams: 1,
    };
    assert_eq!(read.size(), size);
}

#[test]
fn the_source_of_the_steps_is_the_file() {
    let read = parse(LIFE);
    let again: String = read.steps.iter().map(|step| step.source.as_str()).collect();
    assert_eq!(read.preface + &again, LIFE);
    assert_eq!(read.text, LIFE);
}

#[test]
fn the_namespace_is_made_of_the_files_name() {
    assert_eq!(parse(LIFE).namespace(), "core-some-file");
    let long = format!("{}.http", "a".repeat(90));
    let long = Conversation::parse(&long, "### a\nGET /\n").unwrap();
    assert_eq!(long.namespace(), "a".repeat(40));
}

#[test]
fn what_a_file_says_wrong_is_named_with_its_line() {
    for (text, line, why) in [
        ("GET /\n", 1, "no step"),
        ("GET /\n### a\nGET /\n", 1, "before the first ###"),
        ("### a\n\n", 1, "without a request"),
        ("### a\nfetch /\n", 2, "neither EVENTS"),
        ("### a\n# @nam x\nGET /\n", 2, "no directive @nam"),
        ("### a\n# @name a.b\nGET /\n", 2, "letters, digits"),
        ("### a\n# @repeat x\nGET /\n", 2, "not a number"),
        ("### a\n# @differs 3\nGET /\n", 2, "no directive @differs"),
        ("### a\n# @differs 3 status\nGET /\n", 2, "status=CODE"),
        (
            "### a\n# @subset 3 body.items\nGET /\n",
            2,
            "no directive @subset",
        ),
        (
            "### a\n# @subset 3 body.items name\nGET /\n",
            2,
            "not a number",
        ),
        ("### a\n# @as root\nGET /\n", 2, "@as admin"),
        (
            "### a\n# @watch w\n# @repeat 2\nGET /\n",
            4,
            "goes with none",
        ),
        ("### a\nEVENTS w 1\n", 2, "# @watch w"),
        (
            "### a\n# @watch w\nGET /\n### b\nEVENTS w\n",
            5,
            "EVENTS W COUNT",
        ),
        (
            "### a\n# @watch w\nGET /\n### b\nEVENTS w until 5\n",
            5,
            "PATH=VALUE",
        ),
        ("### a\nGET /{{x.y}}\n", 2, "@name x"),
        ("### a\nGET /\nnot a header\n", 3, "neither a header"),
        ("### a\nPUT /\n\n{{x.y}}\n", 4, "@name x"),
        (
            "### a\n# @name a\nGET /\n### b\n# @name a\nGET /\n",
            4,
            "earlier answer",
        ),
    ] {
        let said = refusal(text);
        assert!(
            said.starts_with(&format!("x.http:{line}: ")),
            "{text:?}: {said}"
        );
        assert!(said.contains(why), "{text:?}: {said}");
    }
}
