//! Objects with their metadata alone: PartialObjectMetadata and PartialObjectMetadataList.

use serde_json::value::RawValue;

use super::sheet::{EndOfPages, ListMeta, MetaVersion};

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
    fn an_object_is_its_metadata_and_nothing_is_an_empty_one() {
        let metadata = RawValue::from_string(r#"{"name":"a",  "x":1}"#.into()).unwrap();
        let mut out = Vec::new();
        write_object(&mut out, MetaVersion::V1, Some(&metadata));
        write_object(&mut out, MetaVersion::V1Beta1, None);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#,
                r#""metadata":{"name":"a",  "x":1}}"#,
                r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","#,
                r#""metadata":{}}"#
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
        let mut out = Vec::new();
        begin_list(&mut out, MetaVersion::V1Beta1, &meta);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","#,
                r#""metadata":{"resourceVersion":"7","continue":"on","remainingItemCount":3},"#,
                r#""items":"#
            )
        );
    }
}
