//! An object as the authority stores it: bytes with a gap where the version goes, and the header
//! that is indexed.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use object::Header;
use serde_json::{Map, Value};
use store::authority::Draft;

use super::kinds::event;
use crate::Status;
use crate::catalog::Kind;
use crate::protobuf::typed;
use crate::schema::fields;

/// An object as it is stored, from how `kind` shows it.
fn to_stored<'a>(kind: &Kind, object: &'a Value) -> Cow<'a, Value> {
    if kind.is_event_view() {
        let mut event = event::to_core(object.clone());
        typed::settle(("v1", "Event"), &mut event);
        return Cow::Owned(event);
    }
    match &kind.custom {
        Some(custom) if !custom.storage => {
            let stored = format!("{}/{}", kind.group, custom.stored_in);
            let mut object = with_api_version(object.clone(), &stored);
            // What the stored version does not know is not kept, whichever version it came in.
            if let Some(schema) = custom
                .stored_schema
                .as_ref()
                .filter(|_| !custom.preserve_unknown)
            {
                fields::prune(&mut object, schema.schema());
            }
            Cow::Owned(object)
        }
        _ => Cow::Borrowed(object),
    }
}

/// An object as `kind` shows it, from how it is stored.
pub(crate) fn from_stored(kind: &Kind, object: Value) -> Value {
    match (kind.is_event_view(), &kind.custom) {
        (true, _) => {
            let mut event = event::from_core(object);
            typed::settle((&kind.api_version(), &kind.kind), &mut event);
            event
        }
        // What was stored before the storage version changed has the older one.
        (false, Some(_)) => with_api_version(object, &kind.api_version()),
        (false, None) => object,
    }
}

/// Versions of a custom kind differ in nothing but their name.
fn with_api_version(mut object: Value, api_version: &str) -> Value {
    if object["apiVersion"] != api_version {
        object["apiVersion"] = api_version.into();
    }
    object
}

/// Lays `object` out with a gap for its version.
pub(super) fn draft(kind: &Kind, object: &Value) -> Result<Draft, Status> {
    let object = to_stored(kind, object);
    let (head, tail) = split(&object)?;
    let whole = [head.as_slice(), b"1", tail.as_slice()].concat();
    let selectable: &[Arc<str>] = match &kind.custom {
        Some(custom) => &custom.selectable,
        None => &[],
    };
    let header =
        Header::parse(&kind.stored_as(), &whole, selectable).map_err(|wrong| match wrong {
            object::header::BadObject::TooLarge { .. } => Status::too_large(wrong.to_string()),
            wrong => Status::bad_request(wrong.to_string()),
        })?;
    Ok(Draft {
        header,
        head: Bytes::from(head),
        tail: Bytes::from(tail),
    })
}

/// The bytes before and after the version, which stands at the end of the metadata.
fn split(object: &Value) -> Result<(Vec<u8>, Vec<u8>), Status> {
    let empty = Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    let (mut head, mut tail) = (vec![b'{'], Vec::new());
    let mut out = &mut head;
    let mut first = true;
    // The two names come first, whatever order the client chose: readers find them there.
    let names = ["apiVersion", "kind"];
    let named = names.iter().filter_map(|name| fields.get_key_value(*name));
    let rest = fields
        .iter()
        .filter(|(key, _)| !names.contains(&key.as_str()));
    for (key, value) in named.chain(rest) {
        if !first {
            out.push(b',');
        }
        first = false;
        write(out, key)?;
        out.push(b':');
        if key != "metadata" {
            write(out, value)?;
            continue;
        }
        let mut metadata = value.as_object().cloned().unwrap_or_default();
        metadata.shift_remove("resourceVersion");
        write(out, &metadata)?;
        out.pop();
        if !metadata.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        out = &mut tail;
        out.extend_from_slice(b"\"}");
    }
    out.push(b'}');
    Ok((head, tail))
}

fn write(out: &mut Vec<u8>, value: &impl serde::Serialize) -> Result<(), Status> {
    serde_json::to_writer(out, value).map_err(|_| Status::internal("an object was not encoded"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::testing;
    use serde_json::json;

    #[test]
    fn the_gap_is_at_the_end_of_the_metadata() {
        let kind = testing::kind("v1", "ConfigMap", "configmaps");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "resourceVersion": "5", "namespace": "n", "uid": "u"},
            "data": {"a": "}"}
        });
        let draft = draft(&kind, &object).unwrap();
        let text = [&draft.head[..], b"77", &draft.tail[..]].concat();
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("77");
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), expected);
        assert_eq!(draft.header.name.as_str(), "n/m");
        assert_eq!(&*draft.header.uid, "u");
    }

    #[test]
    fn both_kinds_of_events_are_stored_as_one() {
        let kind = testing::plain_kind("events.k8s.io/v1", "Event", "events");
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "e", "namespace": "n", "uid": "u"}, "note": "hi"
        });
        let draft = draft(&kind, &event).unwrap();
        assert_eq!(kind.stored_as().as_str(), "events");
        let text = String::from_utf8(draft.tail.to_vec()).unwrap();
        assert!(text.contains("\"message\":\"hi\""), "{text}");
        assert!(draft.head.starts_with(b"{\"apiVersion\":\"v1\""));
    }
}
