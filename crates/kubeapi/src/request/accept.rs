//! The Accept header -> the form of the answer. JSON is what we speak; the question is which shape
//! of it.

use crate::Status;
use crate::table::MetaVersion;

/// Media ranges that an Accept header may list.
const RANGES_MAX: usize = 64;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Which shape of the objects.
    pub shape: Shape,
    /// Indented for people.
    pub pretty: bool,
}

/// Which shape of the objects is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// The objects themselves.
    #[default]
    Whole,
    /// Rows for people.
    Table(MetaVersion),
    /// Only the metadata of an object.
    Metadata(MetaVersion),
    /// Only the metadata of each object of a list.
    MetadataList(MetaVersion),
}

/// What one entry of an Accept header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaRange<'a> {
    /// `application`.
    pub kind: &'a str,
    /// `json`.
    pub subkind: &'a str,
    /// The part after the first semicolon.
    parameters: &'a str,
}

impl<'a> MediaRange<'a> {
    /// A parameter's value, empty if it is absent.
    pub fn parameter(&self, name: &str) -> &'a str {
        let pairs = self
            .parameters
            .split(';')
            .filter_map(|pair| pair.split_once('='));
        let mut found = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found
            .next()
            .map_or("", |(_, value)| value.trim().trim_matches('"'))
    }

    /// Whether JSON fits.
    pub fn takes_json(&self) -> bool {
        self.takes("json")
    }

    /// Whether this form of an application's data fits.
    pub fn takes(&self, subkind: &str) -> bool {
        match (self.kind, self.subkind) {
            ("*", "*") | ("application", "*") => true,
            (kind, own) => kind == "application" && own == subkind,
        }
    }
}

/// The entries of an Accept header, those that the client likes best first.
pub fn ranges(header: &str) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<(u32, MediaRange<'_>)> = Vec::new();
    for entry in header.split(',').take(RANGES_MAX) {
        let (media, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let Some((kind, subkind)) = media.trim().split_once('/') else {
            continue;
        };
        let range = MediaRange {
            kind,
            subkind,
            parameters,
        };
        let quality = match range.parameter("q") {
            "" => 1.0,
            text => text.parse::<f32>().unwrap_or(0.0).clamp(0.0, 1.0),
        };
        if quality > 0.0 {
            ranges.push(((quality * 1000.0) as u32, range));
        }
    }
    // A stable sort keeps the client's own order among equals.
    ranges.sort_by_key(|(quality, _)| std::cmp::Reverse(*quality));
    ranges.into_iter().map(|(_, range)| range).collect()
}

impl Form {
    /// The first form that the client accepts and that we can make. `pretty` is the query's option.
    pub fn negotiate(accept: &str, pretty: bool) -> Result<Self, Status> {
        if accept.trim().is_empty() {
            return Ok(Self {
                shape: Shape::Whole,
                pretty,
            });
        }
        let mut spoken = ranges(accept);
        spoken.retain(MediaRange::takes_json);
        match spoken.iter().copied().find_map(shape_of) {
            Some(shape) => Ok(Self { shape, pretty }),
            None => Err(refusal(&spoken)),
        }
    }
}

impl Form {
    /// The same where there is no other shape than the whole.
    pub fn negotiate_whole(accept: &str, pretty: bool) -> Result<Self, Status> {
        let shape = Shape::Whole;
        let mut spoken = ranges(accept);
        spoken.retain(MediaRange::takes_json);
        let whole = |range: &MediaRange<'_>| range.parameter("as").is_empty();
        match accept.trim().is_empty() || spoken.iter().any(whole) {
            true => Ok(Self { shape, pretty }),
            false => Err(refusal(&spoken)),
        }
    }
}

/// Whether a client that likes protobuf best takes the whole object in JSON as well.
pub fn takes_json_too(accept: &str) -> bool {
    let ranges = ranges(accept);
    let whole = |range: &&MediaRange<'_>| range.parameter("as").is_empty();
    let protobuf = |range: &MediaRange<'_>| {
        (range.kind, range.subkind) == ("application", "vnd.kubernetes.protobuf")
    };
    let likes_protobuf = ranges.first().filter(whole).is_some_and(protobuf);
    likes_protobuf && ranges.iter().filter(whole).any(MediaRange::takes_json)
}

/// A client that does not speak JSON is told so in other words than one that wants a shape of it
/// which we do not make.
fn refusal(spoken: &[MediaRange<'_>]) -> Status {
    match spoken {
        [] => only_as("json"),
        _ => Status::not_acceptable("application/json"),
    }
}

/// 406 for a client that does not take the one form that there is.
fn only_as(subkind: &str) -> Status {
    let message = "406: Not Acceptable\n\nAvailable representations: application";
    Status::unspecific(406, "NotAcceptable", format!("{message}/{subkind}"))
}

/// Refuses a client that does not take this form of an application's data.
pub fn must_take(accept: &str, subkind: &str) -> Result<(), Status> {
    let fits = ranges(accept).iter().any(|range| range.takes(subkind));
    match accept.trim().is_empty() || fits {
        true => Ok(()),
        false => Err(only_as(subkind)),
    }
}

fn shape_of(range: MediaRange<'_>) -> Option<Shape> {
    let version = match (range.parameter("g"), range.parameter("v")) {
        ("meta.k8s.io", "v1") => Some(MetaVersion::V1),
        ("meta.k8s.io", "v1beta1") => Some(MetaVersion::V1Beta1),
        _ => None,
    };
    match range.parameter("as") {
        "" => Some(Shape::Whole),
        "Table" => version.map(Shape::Table),
        "PartialObjectMetadata" => version.map(Shape::Metadata),
        "PartialObjectMetadataList" => version.map(Shape::MetadataList),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(accept: &str) -> Option<Shape> {
        Form::negotiate(accept, false).ok().map(|form| form.shape)
    }

    #[test]
    fn what_kubectl_and_client_go_send_is_understood() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                       application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(shape(kubectl), Some(Shape::Table(MetaVersion::V1)));
        let typed = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(shape(typed), Some(Shape::Whole));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(shape(metadata), Some(Shape::MetadataList(MetaVersion::V1)));
        assert_eq!(shape(""), Some(Shape::Whole));
        assert_eq!(shape("*/*"), Some(Shape::Whole));
    }

    #[test]
    fn the_client_s_preference_counts() {
        let accept = "application/json;q=0.5,application/json;as=Table;g=meta.k8s.io;v=v1;q=0.9";
        assert_eq!(shape(accept), Some(Shape::Table(MetaVersion::V1)));
        assert_eq!(shape("application/json;q=0"), None);
    }

    #[test]
    fn what_we_cannot_make_is_refused() {
        for accept in [
            "application/cbor",
            "application/vnd.kubernetes.protobuf",
            "text/html",
            "x",
        ] {
            assert_eq!(
                Form::negotiate(accept, false).unwrap_err().code,
                406,
                "{accept}"
            );
        }
        let unknown = "application/json;as=Sheet;g=meta.k8s.io;v=v1";
        assert_eq!(Form::negotiate(unknown, false).unwrap_err().code, 406);
    }

    #[test]
    fn who_takes_json_beside_protobuf_is_known() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        for (accept, too) in [
            (format!("{protobuf},application/json"), true),
            (format!("{protobuf}, */*"), true),
            (format!("application/json;q=0.8,{protobuf}"), true),
            (protobuf.to_owned(), false),
            (format!("application/json,{protobuf}"), false),
            (
                format!("{protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"),
                false,
            ),
            (
                format!("{protobuf},application/json;as=Table;g=meta.k8s.io;v=v1"),
                false,
            ),
            (String::new(), false),
        ] {
            assert_eq!(takes_json_too(&accept), too, "{accept}");
        }
    }
}
