//! Secrets: strings become data, types have keys that must be there, and some cannot change.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

/// Bytes of all values of a secret or config map together.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// Moves `stringData` into `data`, over what is there under the same key.
pub(super) fn fold_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = field::remove(secret, "stringData") else {
        return;
    };
    if strings.is_empty() {
        return;
    }
    let data = field::object_mut(secret, "data");
    for (key, value) in strings {
        let text = value.as_str().unwrap_or_default();
        field::set(data, &key, STANDARD.encode(text));
    }
}

pub(super) fn check(secret: &Value, faults: &mut Faults) {
    let path = Path::new("data");
    let mut bytes = 0_usize;
    for (key, value) in field::entries(secret, "data") {
        faults.invalid_each(&path.key(key), key, names::config_key_faults(key));
        bytes = bytes.saturating_add(decoded_length(value.as_str().unwrap_or_default()));
    }
    if bytes > BYTES_MAX {
        faults.too_long(&path, BYTES_MAX);
    }
    check_type(secret, &path, faults);
}

pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (kind, was) = (field::child(new, "type"), field::child(old, "type"));
    if !field::same(kind, was) {
        faults.invalid(&Path::new("type"), kind.clone(), "field is immutable");
    }
    check_frozen(new, old, &["data"], faults);
}

/// An object with `immutable: true` keeps that, and the fields under it.
pub(super) fn check_frozen(new: &Value, old: &Value, keys: &[&str], faults: &mut Faults) {
    if !field::flag(old, "immutable") {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if !field::flag(new, "immutable") {
        faults.forbidden(&Path::new("immutable"), why);
    }
    for key in keys {
        if !field::same(field::child(new, key), field::child(old, key)) {
            faults.forbidden(&Path::new(key), why);
        }
    }
}

fn check_type(secret: &Value, path: &Path, faults: &mut Faults) {
    let data = field::child(secret, "data");
    let mut require = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !field::is_set(data, key)) {
            faults.required(&path.key(key), "");
        }
    };
    match field::text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            let annotations = field::at(secret, &["metadata", "annotations"]);
            let key = "kubernetes.io/service-account.name";
            if field::text(annotations, key).is_empty() {
                let path = Path::new("metadata").child("annotations").key(key);
                faults.required(&path, "");
            }
        }
        "kubernetes.io/dockercfg" => {
            require(&[".dockercfg"]);
            check_json(data, ".dockercfg", path, faults);
        }
        "kubernetes.io/dockerconfigjson" => {
            require(&[".dockerconfigjson"]);
            check_json(data, ".dockerconfigjson", path, faults);
        }
        "kubernetes.io/basic-auth"
            if !field::is_set(data, "username") && !field::is_set(data, "password") =>
        {
            require(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if field::text(data, "ssh-privatekey").is_empty() => {
            faults.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

fn check_json(data: &Value, key: &str, path: &Path, faults: &mut Faults) {
    let Some(text) = data.get(key).and_then(Value::as_str) else {
        return;
    };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        // The parser's own words could repeat a part of the secret; its place and kind cannot.
        let why = format!("not a JSON object ({:?} error)", error.classify());
        faults.invalid(&path.key(key), "<secret contents redacted>", why);
    }
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() / 4 * 3 + base64.trim_end_matches('=').len() % 4 * 3 / 4
}
