//! Objects with their metadata alone: PartialObjectMetadata and PartialObjectMetadataList.

use serde_json::value::RawValue;

use super::sheet::{EndOfPages, ListMeta, MetaVersion};
use super::subject::metadata;

/// The object's metadata as a PartialObjectMetadata. The metadata's bytes are those of the object.
pub fn object(version: MetaVersion, object: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(object.len().min(4096));
    write_object(&mut out, version, metadata(object)?);
    Ok(out)
}

/// A list of objects as a PartialObjectMetadataList.
pub fn list<'a>(
    version: MetaVersion,
    meta: &ListMeta<'_>,
    objects: impl IntoIterator<Item = &'a [u8]>,
) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(4096);
    begin_list(&mut out, version, meta);
    out.push(b'[');
    for (at, object) in objects.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_object(&mut out, version, metadata(object)?);
    }
    out.extend_from_slice(b"]}");
    Ok(out)
}

/// Writes what stands before the items of a list.
pub fn begin_list(out: &mut Vec<u8>, version: MetaVersion, meta: &ListMeta<'_>) {
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"");
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    meta.write(out, EndOfPages::Omitted);
    out.extend_from_slice(b",\"items\":");
}

/// Writes a PartialObjectMetadata around metadata that was cut out of an object.
pub(super) fn write_object(out: &mut Vec<u8>, version: MetaVersion, metadata: Option<&RawValue>) {
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    out.extend_from_slice(metadata.map_or(b"{}", |raw| raw.get().as_bytes()));
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_is_the_objects_own_bytes() {
        let bytes = br#"{"kind":"Pod","spec":{"metadata":1}, "metadata": {"name":"a",  "x":1}}"#;
        let partial = object(MetaVersion::V1, bytes).unwrap();
        assert_eq!(
            String::from_utf8(partial).unwrap(),
            concat!(
                r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#,
                r#""metadata":{"name":"a",  "x":1}}"#
            )
        );
    }

    #[test]
    fn a_list_carries_where_to_go_on() {
        let meta = ListMeta {
            resource_version: "7",
            continue_token: "on",
            remaining: Some(3),
        };
        let objects: [&[u8]; 2] = [br#"{"metadata":{"name":"a"}}"#, b"{}"];
        let list = list(MetaVersion::V1Beta1, &meta, objects).unwrap();
        assert_eq!(
            String::from_utf8(list).unwrap(),
            concat!(
                r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","#,
                r#""metadata":{"resourceVersion":"7","continue":"on","remainingItemCount":3},"#,
                r#""items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","#,
                r#""metadata":{"name":"a"}},"#,
                r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","#,
                r#""metadata":{}}]}"#
            )
        );
    }

    #[test]
    fn an_empty_list_has_empty_items_and_no_version_no_field() {
        let meta = ListMeta::default();
        let list = list(MetaVersion::V1, &meta, []).unwrap();
        let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(list["metadata"], serde_json::json!({}));
        assert_eq!(list["items"], serde_json::json!([]));
    }

    #[test]
    fn bytes_that_are_no_object_are_refused() {
        assert!(object(MetaVersion::V1, b"[1]").is_err());
        assert!(object(MetaVersion::V1, b"{\"metadata\":").is_err());
    }
}
