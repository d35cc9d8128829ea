//! The cases of upstream's `RunTestList`, one by one: every resource version, match, limit and
//! continue over the same small history.

use serde_json::Value;

use super::token;
use crate::stage::{self, Reply, Stage, item, pod, version};

/// A version that a case names.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Unset,
    Text(&'static str),
    /// Before the first write.
    Initial,
    /// The version of the n-th object at its creation.
    Made(usize),
    /// The version of the update.
    Updated,
    /// The version of the last write, a deletion.
    Last,
    /// The version now, one above the last write: something else happened.
    Now,
    /// A version that has not come yet.
    Future,
}
use At::{Future, Initial, Last, Made, Now, Text, Unset, Updated};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// These objects, as they were created (0 to 5) or updated (`UP`).
    Pods(&'static [usize]),
    /// 400 or 422.
    Refused(u16),
    TooLarge,
    TooOld,
    TokenTooOld,
}

/// The first object after its update.
const UP: usize = 6;

#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    /// The namespace, empty for all.
    place: &'static str,
    rv: At,
    matching: &'static str,
    fields: &'static str,
    limit: u32,
    token: Option<(&'static str, At)>,
    outcome: Outcome,
    /// The version of the list, if the case says so.
    shown: Option<At>,
    /// The token that comes with it: a start and a version.
    next: Option<(&'static str, At)>,
    remaining: Option<u64>,
}

const fn case(name: &'static str, place: &'static str) -> Case {
    Case {
        name,
        place,
        rv: Unset,
        matching: "",
        fields: "",
        limit: 0,
        token: None,
        outcome: Outcome::Pods(&[]),
        shown: None,
        next: None,
        remaining: None,
    }
}

impl Case {
    const fn rv(mut self, rv: At) -> Self {
        self.rv = rv;
        self
    }
    const fn exact(mut self, rv: At) -> Self {
        self.rv = rv;
        self.matching = "Exact";
        self
    }
    const fn not_older(mut self, rv: At) -> Self {
        self.rv = rv;
        self.matching = "NotOlderThan";
        self
    }
    const fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
    const fn fields(mut self, fields: &'static str) -> Self {
        self.fields = fields;
        self
    }
    const fn from(mut self, start: &'static str, rv: At) -> Self {
        self.token = Some((start, rv));
        self
    }
    const fn gives(mut self, pods: &'static [usize]) -> Self {
        self.outcome = Outcome::Pods(pods);
        self
    }
    const fn ends(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }
    const fn at(mut self, shown: At) -> Self {
        self.shown = Some(shown);
        self
    }
    const fn then(mut self, start: &'static str, rv: At, remaining: u64) -> Self {
        self.next = Some((start, rv));
        self.remaining = Some(remaining);
        self
    }
}

use Outcome::{Refused, TokenTooOld, TooLarge, TooOld};

const NOW_ALL: &[usize] = &[UP, 1, 2, 3, 4];

#[rustfmt::skip]
const VERSIONS: &[Case] = &[
    case("rejects invalid resource version", "").rv(Text("abc")).ends(Refused(400)),
    case("rejects resource version and continue token", "")
        .rv(Text("1")).limit(1).from("second/foo", Last).ends(Refused(400)),
    case("rejects resource version set too high", "")
        .rv(Text("9223372036854775807")).ends(TooLarge),
    case("list on existing key", "first").gives(&[UP]),
    case("existing key, version 0", "first").rv(Text("0")).gives(&[UP]),
    case("existing key, before update, Exact", "first")
        .exact(Made(0)).gives(&[0]).at(Made(0)),
    case("existing key, before creation, Exact", "second")
        .exact(Made(0)).gives(&[]).at(Made(0)),
    case("existing key, after creation, Exact", "second")
        .exact(Made(1)).gives(&[1]).at(Made(1)),
    case("existing key, before first write, Exact", "first").exact(Initial).ends(TooOld),
    case("existing key, version 0, NotOlderThan", "first").not_older(Text("0")).gives(&[UP]),
    Case { matching: "Invalid", ..case("existing key, version 0, Invalid", "first") }
        .rv(Text("0")).ends(Refused(422)),
    case("existing key, before first write, NotOlderThan", "first")
        .not_older(Initial).gives(&[UP]),
    Case { matching: "Invalid", ..case("existing key, before first write, Invalid", "first") }
        .rv(Initial).ends(Refused(422)),
    case("existing key, current version", "first").rv(Last).gives(&[UP]),
    case("existing key, current version, Exact", "first").exact(Last).gives(&[UP]).at(Last),
    case("existing key, current version, NotOlderThan", "first").not_older(Last).gives(&[UP]),
    case("non-existing key", "non-existing").gives(&[]),
    case("name matching", "first").fields("metadata.name!=bar").gives(&[]),
    case("name matching, current version, NotOlderThan", "first")
        .fields("metadata.name!=bar").not_older(Last).gives(&[]),
    case("version of first write, Exact", "").exact(Made(0)).gives(&[0]).at(Made(0)),
    case("before first write, Exact", "").exact(Initial).ends(TooOld),
    case("version of second write, Exact", "").exact(Made(1)).gives(&[0, 1]).at(Made(1)),
    case("version of third write, Exact", "").exact(Made(2)).gives(&[0, 1, 2]).at(Made(2)),
    case("version of fourth write, Exact", "")
        .exact(Made(3)).gives(&[0, 1, 2, 3]).at(Made(3)),
    case("version of fifth write, Exact", "")
        .exact(Made(4)).gives(&[0, 1, 2, 3, 4]).at(Made(4)),
    case("version of sixth write, Exact", "")
        .exact(Made(5)).gives(&[0, 1, 5, 2, 3, 4]).at(Made(5)),
    case("version of seventh write, Exact", "")
        .exact(Updated).gives(&[UP, 1, 5, 2, 3, 4]).at(Updated),
    case("version of eighth write, Exact", "").exact(Last).gives(NOW_ALL).at(Last),
    case("version after writes, Exact", "").exact(Now).gives(NOW_ALL).at(Now),
    case("future version, Exact", "").exact(Future).ends(TooLarge),
    case("negative version fails", "").rv(Text("-1")).ends(Refused(400)),
    case("consistent list", "empty").gives(&[]).at(Now),
    case("non-consistent list", "empty").rv(Text("0")).gives(&[]).at(Now),
    case("several levels, flattened", "second").gives(&[1, 2]),
    case("several levels, current version, NotOlderThan", "second")
        .not_older(Last).gives(&[1, 2]),
    case("all items", "").gives(NOW_ALL),
    case("all items, current version, NotOlderThan", "").not_older(Last).gives(NOW_ALL),
];

#[rustfmt::skip]
const LIMITS: &[Case] = &[
    case("limit", "second").limit(1).gives(&[1]).at(Now).then("bar\0", Now, 1),
    case("limit at current version", "second")
        .limit(1).rv(Last).gives(&[1]).at(Last).then("bar\0", Last, 1),
    case("limit at current version, Exact", "second")
        .limit(1).exact(Last).gives(&[1]).at(Last).then("bar\0", Last, 1),
    case("limit at current version, NotOlderThan", "second")
        .limit(1).not_older(Last).gives(&[1]).at(Now).then("bar\0", Now, 1),
    // Who takes any version is given all, as upstream's watch cache gives it.
    case("limit at version 0", "second").limit(1).rv(Text("0")).gives(&[1, 2]),
    case("limit at version 0, NotOlderThan", "second")
        .limit(1).not_older(Text("0")).gives(&[1, 2]),
    case("limit, before creation, Exact", "second")
        .limit(1).exact(Made(0)).gives(&[]).at(Made(0)),
    case("limit, after creation, Exact", "second")
        .limit(1).exact(Made(1)).gives(&[1]).at(Made(1)),
    case("limit, second write, Exact", "")
        .limit(1).exact(Made(1)).gives(&[0]).at(Made(1)).then("first/bar\0", Made(1), 1),
    case("limit, third write, Exact", "")
        .limit(2).exact(Made(2)).gives(&[0, 1]).at(Made(2)).then("second/bar\0", Made(2), 1),
    case("limit, fourth write, Exact", "")
        .limit(4).exact(Made(3)).gives(&[0, 1, 2, 3]).at(Made(3)),
    case("limit, fifth write, Exact", "")
        .limit(1).exact(Made(4)).gives(&[0]).at(Made(4)).then("first/bar\0", Made(4), 4),
    case("limit, sixth write, Exact", "")
        .limit(2).exact(Made(5)).gives(&[0, 1]).at(Made(5)).then("second/bar\0", Made(5), 4),
    case("limit, seventh write, Exact", "").limit(4).exact(Updated)
        .gives(&[UP, 1, 5, 2]).at(Updated).then("second/foo\0", Updated, 2),
    case("limit, eighth write, Exact", "").limit(8).exact(Last).gives(NOW_ALL).at(Last),
    case("limit, after writes, Exact", "")
        .limit(1).exact(Now).gives(&[UP]).at(Now).then("first/bar\0", Now, 4),
];

#[rustfmt::skip]
const TOKENS: &[Case] = &[
    case("pregenerated token", "second").limit(1).from("foo", Last).gives(&[2]),
    case("ignores version 0 with a token", "second")
        .limit(1).rv(Text("0")).from("foo", Last).gives(&[2]),
    case("before first write", "").limit(1).from("first/bar\0", Initial).ends(TokenTooOld),
    case("first write", "").limit(1).from("first/bar\0", Made(0)).gives(&[]).at(Made(0)),
    case("second write", "").limit(1).from("first/bar\0", Made(1)).gives(&[1]).at(Made(1)),
    case("third write", "").limit(2).from("second/bar\0", Made(2)).gives(&[2]).at(Made(2)),
    case("fifth write", "").limit(1).from("first/bar\0", Made(4))
        .gives(&[1]).at(Made(4)).then("second/bar\0", Made(4), 3),
    case("sixth write", "").limit(2).from("second/bar\0", Made(5))
        .gives(&[5, 2]).at(Made(5)).then("second/foo\0", Made(5), 2),
    case("seventh write", "")
        .limit(4).from("second/foo\0", Updated).gives(&[3, 4]).at(Updated),
    case("after writes", "").limit(1).from("first/bar\0", Now)
        .gives(&[1]).at(Now).then("second/bar\0", Now, 3),
    case("from second pod, negative version", "")
        .from("first/bar\0", Text("-1")).gives(&[1, 2, 3, 4]).at(Now),
    case("from second pod, limit, negative version", "").limit(2)
        .from("first/bar\0", Text("-1")).gives(&[1, 2]).at(Now).then("second/foo\0", Now, 2),
    case("from third pod, negative version", "")
        .from("second/foo\0", Text("-1")).gives(&[3, 4]).at(Now),
    case("from empty fails", "").from("", Last).ends(Refused(400)),
    case("version 0 fails", "").from("first/bar\0", Text("0")).ends(Refused(400)),
];

/// Upstream gives a token whenever more keys follow, matching or not; here one means that more
/// objects do.
#[rustfmt::skip]
const FILTERS: &[Case] = &[
    case("one item, a single page", "").fields("metadata.name=barfoo").limit(1).gives(&[3]),
    case("one item, a single page, NotOlderThan", "")
        .fields("metadata.name=barfoo").limit(1).not_older(Last).gives(&[3]).at(Now),
    case("one item, the entire list", "").fields("metadata.name=barfoo").limit(2).gives(&[3]),
    case("one item, the entire list, NotOlderThan", "")
        .fields("metadata.name=barfoo").limit(2).not_older(Last).gives(&[3]).at(Now),
    case("one item, the entire list, version 0", "")
        .fields("metadata.name=barfoo").limit(2).rv(Text("0")).gives(&[3]),
    case("two items, more pages possible", "")
        .fields("metadata.name=bar").limit(2).gives(&[UP, 1]),
    case("two items, more pages possible, NotOlderThan", "")
        .fields("metadata.name=bar").limit(2).not_older(Last).gives(&[UP, 1]),
    case("two items across pages", "").fields("metadata.name=foo").limit(2).gives(&[2, 4]),
    case("two items across pages, NotOlderThan", "")
        .fields("metadata.name=foo").limit(2).not_older(Last).gives(&[2, 4]),
    case("last page, ends on last item, not full", "")
        .fields("metadata.name=foo").limit(2).from("third/barfoo", Last).gives(&[4]),
    case("last page, starts on last item, full", "")
        .fields("metadata.name=foo").limit(1).from("third/barfoo", Last).gives(&[4]),
    case("last page, starts on last item, partial", "")
        .fields("metadata.name=foo").limit(2).from("third/foo", Last).gives(&[4]),
    case("two items, page of the list's size", "")
        .fields("metadata.name=foo").limit(5).gives(&[2, 4]),
    case("two items, page of the list's size, NotOlderThan", "")
        .fields("metadata.name=foo").limit(5).not_older(Last).gives(&[2, 4]),
    case("one item, page of the list's size", "")
        .fields("metadata.name=barfoo").limit(5).gives(&[3]),
    case("one item, page of the list's size, NotOlderThan", "")
        .fields("metadata.name=barfoo").limit(5).not_older(Last).gives(&[3]),
    case("the updated object is found by its new field", "")
        .fields("spec.nodeName=fakeNode").limit(5).not_older(Last).gives(&[UP]),
    case("a deleted object is not found", "")
        .fields("metadata.name=baz").limit(5).not_older(Last).gives(&[]),
];

/// The history that all cases look at.
struct History {
    initial: String,
    /// Six objects as created, and the first as updated.
    pods: Vec<Value>,
    last: String,
    now: String,
}

impl History {
    async fn make(stage: &Stage) -> Self {
        let initial = stage.pods_version().await;
        let first = pod("first", "bar");
        let rest = [
            pod("second", "bar"),
            pod("second", "foo"),
            pod("third", "barfoo"),
            pod("third", "foo"),
            pod("second", "baz"),
        ];
        let mut pods = vec![stage.put(&first).await];
        // What came up to here goes: history starts with the first object.
        stage.age_history();
        for body in &rest {
            pods.push(stage.put(body).await);
        }
        pods.push(stage.put(&first.assigned("fakeNode")).await);
        let last = version(&stage.delete(&rest[4]).await).to_owned();
        let now = stage.pass_elsewhere().await;
        Self {
            initial,
            pods,
            last,
            now,
        }
    }

    fn version(&self, at: At) -> String {
        match at {
            Unset => String::new(),
            Text(text) => text.to_owned(),
            Initial => self.initial.clone(),
            Made(index) => version(&self.pods[index]).to_owned(),
            Updated => version(&self.pods[UP]).to_owned(),
            Last => self.last.clone(),
            Now => self.now.clone(),
            Future => (self.now.parse::<u64>().unwrap() + 1).to_string(),
        }
    }

    fn query(&self, case: &Case) -> String {
        let mut path = match case.place {
            "" => "/api/v1/pods?".to_owned(),
            place => format!("/api/v1/namespaces/{place}/pods?"),
        };
        let token = case
            .token
            .map(|(start, rv)| token::made(start, &self.version(rv)));
        let limit = case.limit.to_string();
        let options = [
            ("resourceVersion", self.version(case.rv)),
            ("resourceVersionMatch", case.matching.to_owned()),
            ("fieldSelector", case.fields.replace('=', "%3D")),
            ("limit", limit),
            ("continue", token.unwrap_or_default()),
        ];
        for (key, value) in options {
            if !value.is_empty() {
                path += &format!("{key}={value}&");
            }
        }
        path
    }

    fn check(&self, case: &Case, reply: &Reply) {
        let body = reply.json();
        let told = format!("{}: {} {body}", case.name, reply.status);
        match case.outcome {
            Outcome::Pods(pods) => self.check_list(case, pods, &body, &told),
            Refused(code) => assert_eq!(reply.status, code, "{told}"),
            TooLarge => {
                assert_eq!(reply.status, 504, "{told}");
                let cause = &body["details"]["causes"][0]["reason"];
                assert_eq!(cause, "ResourceVersionTooLarge", "{told}");
                assert_eq!(reply.header("retry-after"), "1", "{told}");
            }
            TooOld | TokenTooOld => {
                assert_eq!(
                    (reply.status, &body["reason"]),
                    (410, &"Expired".into()),
                    "{told}"
                );
                let words = match case.outcome {
                    TooOld => "The resourceVersion for the provided list is too old",
                    _ => "The provided continue parameter is too old",
                };
                assert!(
                    body["message"].as_str().unwrap().starts_with(words),
                    "{told}"
                );
            }
        }
    }

    fn check_list(&self, case: &Case, pods: &[usize], body: &Value, told: &str) {
        assert_eq!(body["kind"], "PodList", "{told}");
        let expected: Vec<Value> = pods.iter().map(|index| item(&self.pods[*index])).collect();
        assert_eq!(body["items"], Value::from(expected), "{told}");
        if let Some(shown) = case.shown {
            assert_eq!(version(body), self.version(shown), "{told}");
        }
        let next = body["metadata"]["continue"].as_str().unwrap_or("");
        let expected = case
            .next
            .map(|(start, rv)| (start.to_owned(), self.version(rv)));
        assert_eq!(
            (!next.is_empty()).then(|| token::read(next)),
            expected,
            "{told}"
        );
        let remaining = body["metadata"]["remainingItemCount"].as_u64();
        assert_eq!(remaining, case.remaining, "{told}");
    }
}

async fn check_all(cases: &[Case]) {
    stage::both(async |stage| {
        let history = History::make(stage).await;
        for case in cases {
            let reply = stage.client.get(&history.query(case)).await;
            history.check(case, &reply);
        }
    })
    .await;
}

#[tokio::test]
async fn every_resource_version_and_match_gives_the_state_that_it_names() {
    check_all(VERSIONS).await;
}

#[tokio::test]
async fn every_limit_gives_a_part_and_where_it_goes_on() {
    check_all(LIMITS).await;
}

#[tokio::test]
async fn every_token_gives_the_rest() {
    check_all(TOKENS).await;
}

#[tokio::test]
async fn every_filter_is_applied_before_the_limit() {
    check_all(FILTERS).await;
}

#[test]
fn all_cases_of_the_upstream_table_are_here() {
    let count = VERSIONS.len() + LIMITS.len() + TOKENS.len() + FILTERS.len();
    assert_eq!(count, 86);
}
