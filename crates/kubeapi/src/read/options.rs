//! resourceVersion, resourceVersionMatch, limit, continue, sendInitialEvents: which combinations
//! are legal, and what they mean.

use std::time::Duration;

use object::Version;

use super::token::Token;
use crate::Status;
use crate::request::Query;
use crate::status::Cause;

/// From which state a list or a get is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// The newest there is. What the store holds is the newest: it shows nothing that is not
    /// durable and hides nothing that is.
    Newest,
    /// Whatever is at hand.
    Any,
    /// This version or a later one.
    AtLeast(Version),
    /// This version and no other.
    Exactly(Version),
}

/// What a list asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// From which state.
    pub freshness: Freshness,
    /// At most this many.
    pub limit: Option<usize>,
    /// From here on.
    pub token: Option<Token>,
}

/// What a watch asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Where it starts.
    pub start: Start,
    /// Whether the client understands bookmarks.
    pub bookmarks: bool,
    /// How long it may last; as long as we like where the client does not say.
    pub time: Option<Duration>,
}

/// Where a watch starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With the objects there are, once they are at least this new; then what comes. For a client
    /// that understands bookmarks, one ends the objects.
    State(Option<Version>),
    /// With what comes after now.
    Now,
    /// With what came after this version.
    After(Version),
}

impl ListOptions {
    /// Reads and checks the options of a list.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        let (version, matching) = (
            query.text("resourceVersion"),
            query.text("resourceVersionMatch"),
        );
        let token = query.text("continue");
        let mut causes = Vec::new();
        if !matching.is_empty() {
            list_match_causes(version, matching, token, &mut causes);
        }
        if query.value("sendInitialEvents").is_some() {
            causes.push(forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        refuse(causes)?;
        let limit = limit(query)?;
        if !token.is_empty() {
            if !version.is_empty() && version != "0" {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Status::bad_request(message));
            }
            let token = Some(Token::decode(token)?);
            return Ok(Self {
                freshness: Freshness::Newest,
                limit,
                token,
            });
        }
        let asked = parse_version(version)
            .map_err(|wrong| Status::bad_request(format!("invalid resource version: {wrong}")))?;
        let freshness = match (asked, matching) {
            (Asked::Unset, _) => Freshness::Newest,
            (Asked::Any, _) => Freshness::Any,
            (Asked::Version(version), "Exact") => Freshness::Exactly(version),
            // Before there was a match parameter, a limit made the version exact.
            (Asked::Version(version), "") if limit.is_some() => Freshness::Exactly(version),
            (Asked::Version(version), _) => Freshness::AtLeast(version),
        };
        Ok(Self {
            freshness,
            limit,
            token: None,
        })
    }
}

impl WatchOptions {
    /// Reads and checks the options of a watch.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        let matching = query.text("resourceVersionMatch");
        let initial = query.optional_switch("sendInitialEvents");
        let mut causes = Vec::new();
        watch_match_causes(query, matching, initial, &mut causes);
        refuse(causes)?;
        let time = match query.number("timeoutSeconds")? {
            None | Some(0) => None,
            // Who gives it less than no time has it end at once.
            Some(seconds) => Some(Duration::from_secs(seconds.try_into().unwrap_or(0))),
        };
        let version = parse_version(query.text("resourceVersion")).map_err(unreadable)?;
        let start = match (version, initial) {
            (Asked::Unset | Asked::Any, None | Some(true)) => Start::State(None),
            (Asked::Unset | Asked::Any, Some(false)) => Start::Now,
            (Asked::Version(version), Some(true)) => Start::State(Some(version)),
            (Asked::Version(version), None | Some(false)) => Start::After(version),
        };
        Ok(Self {
            start,
            bookmarks: query.switch("allowWatchBookmarks"),
            time,
        })
    }
}

/// The freshness of a get.
pub fn get_freshness(query: &Query) -> Result<Freshness, Status> {
    let asked = parse_version(query.text("resourceVersion")).map_err(unreadable)?;
    Ok(match asked {
        Asked::Unset => Freshness::Newest,
        Asked::Any => Freshness::Any,
        Asked::Version(version) => Freshness::AtLeast(version),
    })
}

enum Asked {
    Unset,
    Any,
    Version(Version),
}

/// A version as a client writes it, or what is wrong with it in the words of a kube-apiserver.
fn parse_version(text: &str) -> Result<Asked, String> {
    let wrong = |why: &str| {
        let parsing = format!("strconv.ParseUint: parsing {text:?}: {why}");
        format!("resourceVersion: Invalid value: {text:?}: {parsing}")
    };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    match (text, text.trim_start_matches('0')) {
        ("", _) => Ok(Asked::Unset),
        (_, "") => Ok(Asked::Any),
        (_, digits) => match digits.parse() {
            Ok(version) => Ok(Asked::Version(version)),
            Err(_) => Err(wrong("value out of range")),
        },
    }
}

/// A version that makes no sense is the client's fault, but of a get and a watch this is how
/// clients know it: without a reason, and with the code of a fault of ours.
fn unreadable(wrong: String) -> Status {
    Status::new(500, "", wrong)
}

/// A limit of 0 is none, and so is a negative one.
pub(crate) fn limit(query: &Query) -> Result<Option<usize>, Status> {
    let limit = query.number("limit")?.filter(|limit| *limit > 0);
    Ok(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
}

const EXACT: &str = "Exact";
const NOT_OLDER: &str = "NotOlderThan";

fn list_match_causes(version: &str, matching: &str, token: &str, causes: &mut Vec<Cause>) {
    let field = "resourceVersionMatch";
    if version.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        causes.push(forbidden(field, why));
    }
    if !token.is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(forbidden(field, why));
    }
    if matching != EXACT && matching != NOT_OLDER {
        causes.push(unsupported(
            field,
            matching,
            "\"Exact\", \"NotOlderThan\", \"\"",
        ));
    }
    if matching == EXACT && version == "0" {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        causes.push(forbidden(field, why));
    }
}

fn watch_match_causes(
    query: &Query,
    matching: &str,
    initial: Option<bool>,
    causes: &mut Vec<Cause>,
) {
    let field = "resourceVersionMatch";
    if initial.is_some() && matching != NOT_OLDER {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(forbidden(field, why));
    }
    let continued = "resourceVersionMatch is forbidden when continue is provided";
    let continued = (!query.text("continue").is_empty()).then(|| forbidden(field, continued));
    if matching.is_empty() {
        // A watch that starts as clients have always started it is taken for one that asked for
        // its initial events, match and all.
        let customary = initial.is_none() && matches!(query.text("resourceVersion"), "" | "0");
        causes.extend(continued.filter(|_| customary));
        return;
    }
    if initial.is_none() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(forbidden(field, why));
    }
    if matching != NOT_OLDER {
        causes.push(unsupported(field, matching, "\"NotOlderThan\""));
    }
    causes.extend(continued);
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
}

fn unsupported(field: &str, value: &str, supported: &str) -> Cause {
    let message = format!("Unsupported value: {value:?}: supported values: {supported}");
    Cause::new("FieldValueNotSupported", field, message)
}

fn refuse(causes: Vec<Cause>) -> Result<(), Status> {
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid("meta.k8s.io", "ListOptions", "", causes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<ListOptions, Status> {
        ListOptions::parse(&Query::parse(query).unwrap())
    }

    fn watch(query: &str) -> Result<WatchOptions, Status> {
        WatchOptions::parse(&Query::parse(query).unwrap())
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn every_legal_combination_of_a_list_has_its_meaning() {
        let cases = [
            ("", Freshness::Newest),
            ("limit=5", Freshness::Newest),
            ("resourceVersion=0", Freshness::Any),
            ("resourceVersion=0&limit=5", Freshness::Any),
            ("resourceVersion=00", Freshness::Any),
            ("resourceVersion=007", Freshness::AtLeast(version("7"))),
            ("limit=-1", Freshness::Newest),
            (
                "resourceVersion=0&resourceVersionMatch=NotOlderThan",
                Freshness::Any,
            ),
            ("resourceVersion=7", Freshness::AtLeast(version("7"))),
            (
                "resourceVersion=7&limit=5",
                Freshness::Exactly(version("7")),
            ),
            (
                "resourceVersion=7&resourceVersionMatch=Exact",
                Freshness::Exactly(version("7")),
            ),
            (
                "resourceVersion=7&resourceVersionMatch=NotOlderThan&limit=5",
                Freshness::AtLeast(version("7")),
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(list(query).unwrap().freshness, expected, "{query}");
        }
    }

    #[test]
    fn every_illegal_combination_of_a_list_is_refused() {
        let invalid = [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=7&resourceVersionMatch=Newer",
            "resourceVersion=7&resourceVersionMatch=Exact&continue=x",
            "sendInitialEvents=true",
            "sendInitialEvents=false",
        ];
        for query in invalid {
            assert_eq!(list(query).unwrap_err().code, 422, "{query}");
        }
        let token = Token::after(Some(version("5")), "a").encode();
        let bad = [
            "resourceVersion=-1".to_owned(),
            "resourceVersion=abc".to_owned(),
            format!("resourceVersion={}", "9".repeat(100)),
            "limit=many".to_owned(),
            "limit=".to_owned(),
            "continue=garbage".to_owned(),
            format!("continue={token}&resourceVersion=7"),
        ];
        for query in bad {
            assert_eq!(list(&query).unwrap_err().code, 400, "{query}");
        }
        assert!(list(&format!("continue={token}&resourceVersion=0&limit=2")).is_ok());
    }

    #[test]
    fn a_watch_starts_where_kubernetes_starts_it() {
        let same = "resourceVersionMatch=NotOlderThan&sendInitialEvents";
        let cases = [
            (String::new(), Start::State(None)),
            ("resourceVersion=0".into(), Start::State(None)),
            ("resourceVersion=7".into(), Start::After(version("7"))),
            (format!("{same}=true"), Start::State(None)),
            (format!("{same}=true&resourceVersion=0"), Start::State(None)),
            (
                format!("{same}=true&resourceVersion=7"),
                Start::State(Some(version("7"))),
            ),
            (format!("{same}=false"), Start::Now),
            (format!("{same}=false&resourceVersion=0"), Start::Now),
            (
                format!("{same}=false&resourceVersion=7"),
                Start::After(version("7")),
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(watch(&query).unwrap().start, expected, "{query}");
        }
    }

    #[test]
    fn an_illegal_watch_is_refused() {
        let invalid = [
            "sendInitialEvents=true",
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=x",
            "continue=x",
            "continue=x&resourceVersion=0",
        ];
        for query in invalid {
            assert_eq!(watch(query).unwrap_err().code, 422, "{query}");
        }
        assert!(watch("continue=x&resourceVersion=7").is_ok());
        assert_eq!(watch("timeoutSeconds=").unwrap_err().code, 400);
        assert_eq!(
            watch("timeoutSeconds=-1").unwrap().time,
            Some(Duration::ZERO)
        );
        assert_eq!(watch("timeoutSeconds=0").unwrap().time, None);
        assert_eq!(
            watch("timeoutSeconds=9").unwrap().time,
            Some(Duration::from_secs(9))
        );
    }

    #[test]
    fn a_version_that_is_none_is_refused_in_the_words_of_a_kube_apiserver() {
        let words = "resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \"-1\": \
                     invalid syntax";
        let listed = list("resourceVersion=-1").unwrap_err();
        assert_eq!((listed.code, listed.reason), (400, "BadRequest"));
        assert_eq!(listed.message, format!("invalid resource version: {words}"));
        let query = Query::parse("resourceVersion=-1").unwrap();
        for refused in [
            watch("resourceVersion=-1").unwrap_err(),
            get_freshness(&query).unwrap_err(),
        ] {
            assert_eq!((refused.code, refused.reason), (500, ""));
            assert_eq!(refused.message, words);
        }
    }
}
