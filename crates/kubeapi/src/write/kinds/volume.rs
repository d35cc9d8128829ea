//! The volumes of a pod: named once, with one source each.

use std::collections::HashSet;

use serde_json::Value;

use super::container::check_below;
use crate::write::fault::{Faults, Path};
use crate::write::quantity::Quantity;
use crate::write::{field, names};

/// The names that a container can mount.
#[derive(Debug, Default)]
pub(super) struct Volumes<'a>(HashSet<&'a str>);

impl Volumes<'_> {
    /// Whether there is a volume `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Checks the volumes of a pod spec. `claimed` names volumes that come from elsewhere.
pub(super) fn check_all<'a>(
    spec: &'a Value,
    path: &Path,
    claimed: &[&'a str],
    faults: &mut Faults,
) -> Volumes<'a> {
    let mut seen = Volumes(claimed.iter().copied().collect());
    for (index, volume) in field::list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let name = field::text(volume, "name");
        let wrong = match name {
            "" => {
                faults.required(&path.child("name"), "");
                true
            }
            name => {
                let wrong = names::label_faults(name);
                let any = !wrong.is_empty();
                faults.invalid_each(&path.child("name"), name, wrong);
                any
            }
        };
        let before = faults.len();
        check_source(volume, &path, faults);
        // A volume that is wrong in itself takes nobody's name.
        if faults.len() > before {
            continue;
        }
        if !wrong && !seen.0.insert(name) && !claimed.contains(&name) {
            faults.duplicate(&path.child("name"), name);
        }
    }
    seen
}

fn check_source(volume: &Value, path: &Path, faults: &mut Faults) {
    let sources = volume.as_object().into_iter().flatten();
    let sources = sources.filter(|(key, value)| *key != "name" && !value.is_null());
    let mut sources: Vec<_> = sources.collect();
    // The one that is looked at first is the one that counts, and it is not the first field.
    sources.sort_by_key(|(key, _)| *key != "emptyDir");
    let mut sources = sources.into_iter();
    let Some((first, source)) = sources.next() else {
        faults.required(path, "must specify a volume type");
        return;
    };
    for (extra, _) in sources {
        faults.forbidden(
            &path.child(extra),
            "may not specify more than 1 volume type",
        );
    }
    let path = path.child(first);
    let mut require = |keys: &[&str]| {
        for key in keys
            .iter()
            .filter(|key| field::text(source, key).is_empty())
        {
            faults.required(&path.child(key), "");
        }
    };
    match first.as_str() {
        "secret" => require(&["secretName"]),
        "configMap" => require(&["name"]),
        "persistentVolumeClaim" => require(&["claimName"]),
        "nfs" => require(&["server", "path"]),
        "hostPath" => {
            require(&["path"]);
            check_host_path(source, &path, faults);
        }
        "csi" => require(&["driver"]),
        "emptyDir" => {
            let limit = field::child(source, "sizeLimit");
            let wrong = Quantity::from_value(limit).is_none_or(Quantity::is_negative);
            if !limit.is_null() && wrong {
                let why = "SizeLimit field must be a valid resource quantity";
                faults.forbidden(&path.child("sizeLimit"), why);
            }
        }
        _ => {}
    }
    if matches!(
        first.as_str(),
        "secret" | "configMap" | "downwardAPI" | "projected"
    ) {
        check_files(source, &path, faults);
    }
}

fn check_host_path(source: &Value, path: &Path, faults: &mut Faults) {
    let place = field::text(source, "path");
    if place.split('/').any(|part| part == "..") {
        faults.invalid(&path.child("path"), place, "must not contain '..'");
    }
    let kinds = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let kind = field::text(source, "type");
    if !kinds.contains(&kind) {
        faults.unsupported(&path.child("type"), kind, &kinds);
    }
}

fn check_files(source: &Value, path: &Path, faults: &mut Faults) {
    let mode = field::number(source, "defaultMode");
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        faults.invalid(&path.child("defaultMode"), mode, why);
    }
    for (index, item) in field::list(source, "items").iter().enumerate() {
        let path = path.child("items").index(index);
        match field::text(item, "path") {
            "" => faults.required(&path.child("path"), ""),
            place => check_below(place, &path.child("path"), faults),
        }
    }
}
