//! resourceVersion, resourceVersionMatch, limit, continue, sendInitialEvents: which combinations
//! are legal, and what they mean.

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
    /// How long it may last.
    pub seconds: Option<u64>,
}

/// Where a watch starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With the objects there are, as clients have always been given them; then what comes.
    State,
    /// The same, once the objects are at least this new, with a bookmark that ends them.
    MarkedState(Option<Version>),
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
        let freshness = match (parse_version(version)?, matching) {
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
    /// Reads and checks the options of a watch of `resource` in `group`.
    pub fn parse(query: &Query, group: &str, resource: &str) -> Result<Self, Status> {
        let matching = query.text("resourceVersionMatch");
        let initial = query.optional_switch("sendInitialEvents");
        let mut causes = Vec::new();
        watch_match_causes(query, matching, initial, &mut causes);
        refuse(causes)?;
        let text = query.text("resourceVersion");
        let version = parse_version(text).map_err(|_| {
            let value = format!("Invalid value: {text:?}: must be a decimal number");
            let cause = Cause::new("FieldValueInvalid", "resourceVersion", value);
            Status::invalid(group, resource, "", vec![cause])
        })?;
        let start = match (version, initial) {
            (Asked::Unset | Asked::Any, None) => Start::State,
            (Asked::Unset | Asked::Any, Some(true)) => Start::MarkedState(None),
            (Asked::Unset | Asked::Any, Some(false)) => Start::Now,
            (Asked::Version(version), Some(true)) => Start::MarkedState(Some(version)),
            (Asked::Version(version), None | Some(false)) => Start::After(version),
        };
        let seconds = match query.number("timeoutSeconds")? {
            None | Some(0) => None,
            Some(seconds) => Some(u64::try_from(seconds).map_err(|_| {
                Status::bad_request("timeoutSeconds: Invalid value: must not be negative")
            })?),
        };
        Ok(Self {
            start,
            bookmarks: query.switch("allowWatchBookmarks"),
            seconds,
        })
    }
}

/// The freshness of a get.
pub fn get_freshness(query: &Query) -> Result<Freshness, Status> {
    Ok(match parse_version(query.text("resourceVersion"))? {
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

fn parse_version(text: &str) -> Result<Asked, Status> {
    match text {
        "" => Ok(Asked::Unset),
        "0" => Ok(Asked::Any),
        text => match text.parse() {
            Ok(version) => Ok(Asked::Version(version)),
            Err(_) => {
                let wrong =
                    format!("resourceVersion: Invalid value: {text:?}: must be a decimal number");
                Err(Status::bad_request(format!(
                    "invalid resource version: {wrong}"
                )))
            }
        },
    }
}

/// A limit of 0 is none, as in Kubernetes; a negative one is refused.
fn limit(query: &Query) -> Result<Option<usize>, Status> {
    match query.number("limit")? {
        None | Some(0) => Ok(None),
        Some(limit) => usize::try_from(limit)
            .map(Some)
            .map_err(|_| Status::bad_request("limit: Invalid value: must not be negative")),
    }
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
    if matching.is_empty() {
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
    if !query.text("continue").is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(forbidden(field, why));
    }
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
        WatchOptions::parse(&Query::parse(query).unwrap(), "", "pods")
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
            "resourceVersion=007".to_owned(),
            "limit=-1".to_owned(),
            "limit=many".to_owned(),
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
            (String::new(), Start::State),
            ("resourceVersion=0".into(), Start::State),
            ("resourceVersion=7".into(), Start::After(version("7"))),
            (format!("{same}=true"), Start::MarkedState(None)),
            (
                format!("{same}=true&resourceVersion=0"),
                Start::MarkedState(None),
            ),
            (
                format!("{same}=true&resourceVersion=7"),
                Start::MarkedState(Some(version("7"))),
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
            "resourceVersion=abc",
        ];
        for query in invalid {
            assert_eq!(watch(query).unwrap_err().code, 422, "{query}");
        }
        assert_eq!(watch("timeoutSeconds=-1").unwrap_err().code, 400);
        assert_eq!(watch("timeoutSeconds=0").unwrap().seconds, None);
        assert_eq!(watch("timeoutSeconds=9").unwrap().seconds, Some(9));
    }
}
