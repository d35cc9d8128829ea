//! An object's bytes as they came -> as they are kept, made once and for all.

use bytes::Bytes;
use object::header::BadObject;
use object::splice::{self, BadSplice};
use object::{Change, Object, ObjectName, Version};
use serde::Deserialize;

use super::Served;

/// Why an object cannot be kept. It is left out; the others go on.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// Its bytes cannot be put into their form.
    #[error("the object's bytes cannot be edited")]
    Form(#[from] BadSplice),
    /// It is not an object as a cluster has them.
    #[error("the object cannot be read")]
    Object(#[from] BadObject),
}

/// The object as it is kept: apiVersion and kind first (a list's items come without), managed
/// fields left out, otherwise as it came; and its header.
pub fn canonical(served: &Served, bytes: &Bytes) -> Result<Object, Unkept> {
    let bytes = splice::canonical_as(bytes, &served.api_version, &served.kind)?;
    Ok(Object::parse(&served.resource, bytes, &served.fields)?)
}

/// The word that an object went. What it was does not matter for that, however large it had become:
/// a delete is never left out.
pub fn gone(bytes: &[u8]) -> Result<Change, serde_json::Error> {
    #[derive(Deserialize)]
    struct Gone {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: String,
        #[serde(default)]
        namespace: String,
        uid: Box<str>,
        resource_version: String,
    }
    let Gone { metadata } = serde_json::from_slice(bytes)?;
    let version = metadata.resource_version.parse::<Version>();
    Ok(Change::Delete {
        name: ObjectName::new(&metadata.namespace, &metadata.name),
        uid: metadata.uid,
        version: version.map_err(serde::de::Error::custom)?,
    })
}

#[cfg(test)]
mod tests {
    use object::header::OBJECT_BYTES_MAX;

    use super::*;

    #[test]
    fn that_something_went_is_read_however_large_it_was() {
        let large = "<".repeat(OBJECT_BYTES_MAX);
        for (namespace, name) in [(r#""namespace":"a","#, "a/x"), ("", "x")] {
            let text = format!(
                r#"{{"kind":"ConfigMap","data":{{"k":"{large}"}},"metadata":{{{namespace}"name":"x",
                "uid":"u","resourceVersion":"7","labels":{{"l":"m"}}}}}}"#
            );
            let Change::Delete {
                name: gone,
                uid,
                version,
            } = gone(text.as_bytes()).unwrap()
            else {
                panic!("it went");
            };
            assert_eq!((gone.as_str(), &*uid), (name, "u"));
            assert_eq!(version.to_string(), "7");
        }
        for none in [
            "{}",
            "[]",
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"v"}}"#,
        ] {
            assert!(gone(none.as_bytes()).is_err(), "{none}");
        }
    }
}
