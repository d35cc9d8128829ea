//! Volumes, claims, classes and drivers; and the versions that objects are stored in.

use serde_json::Value;

use super::super::quantity::canonical;
use super::super::subject::{Part, Subject, word, words};
use super::{
    AGE, Column, NAME, Printer, SPEC, SPEC_AND_STATUS, first_few, flag, number, or, or_none,
    qualified, text, wide,
};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "PersistentVolume" => &VOLUME,
        "PersistentVolumeClaim" => &CLAIM,
        "StorageClass" => &STORAGE_CLASS,
        "VolumeAttributesClass" => &ATTRIBUTES_CLASS,
        "VolumeAttachment" => &ATTACHMENT,
        "CSINode" => &CSI_NODE,
        "CSIDriver" => &CSI_DRIVER,
        "StorageVersion" => &STORAGE_VERSION,
        "StorageVersionMigration" => &MIGRATION,
        // CSIStorageCapacity has no columns of its own.
        _ => return None,
    })
}

const VOLUME_MODE: Column<'static> = wide(text(
    "VolumeMode",
    "Whether it is a file system or a block device.",
));
const ACCESS_MODES: Column<'static> = text("Access Modes", "Who may use it at once, and how.");
const STORAGE_CLASS_NAME: Column<'static> = text("StorageClass", "The class it is of.");
const ATTRIBUTES_CLASS_NAME: Column<'static> = text(
    "VolumeAttributesClass",
    "The class of attributes that can be changed.",
);

static VOLUME: Printer = Printer {
    columns: &[
        NAME,
        text("Capacity", "Its size."),
        ACCESS_MODES,
        text("Reclaim Policy", "What becomes of it when its claim goes."),
        text(
            "Status",
            "Whether it is available, bound, released or failed.",
        ),
        text("Claim", "The claim that has it."),
        STORAGE_CLASS_NAME,
        ATTRIBUTES_CLASS_NAME,
        text("Reason", "Why it is in this status."),
        AGE,
        VOLUME_MODE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let claim = match subject.at("/spec/claimRef") {
            Value::Null => String::new(),
            found => format!("{}/{}", word(found, "namespace"), word(found, "name")),
        };
        vec![
            subject.name().into(),
            canonical(subject.at("/spec/capacity/storage")).into(),
            access_modes(subject.list("/spec/accessModes")).into(),
            subject.text("/spec/persistentVolumeReclaimPolicy").into(),
            phase(subject).into(),
            claim.into(),
            storage_class(subject).into(),
            subject
                .text_or("/spec/volumeAttributesClassName", "<unset>")
                .into(),
            subject.text("/status/reason").into(),
            subject.age().into(),
            subject.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
    outcome: None,
};

static CLAIM: Printer = Printer {
    columns: &[
        NAME,
        text("Status", "Whether it is pending, bound or lost."),
        text("Volume", "The volume it has."),
        text("Capacity", "The size of the volume."),
        ACCESS_MODES,
        STORAGE_CLASS_NAME,
        ATTRIBUTES_CLASS_NAME,
        AGE,
        VOLUME_MODE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let volume = subject.text("/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                canonical(subject.at("/status/capacity/storage")),
                access_modes(subject.list("/status/accessModes")),
            ),
        };
        vec![
            subject.name().into(),
            phase(subject).into(),
            volume.into(),
            capacity.into(),
            modes.into(),
            storage_class(subject).into(),
            subject
                .text_or("/spec/volumeAttributesClassName", "<unset>")
                .into(),
            subject.age().into(),
            subject.text_or("/spec/volumeMode", "<unset>").into(),
        ]
    },
    outcome: None,
};

static STORAGE_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Provisioner", "Who makes volumes of the class."),
        text(
            "ReclaimPolicy",
            "What becomes of a volume when its claim goes.",
        ),
        text("VolumeBindingMode", "When a volume is made and bound."),
        text("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    keep: &[
        Part::Whole("provisioner"),
        Part::Whole("reclaimPolicy"),
        Part::Whole("volumeBindingMode"),
        Part::Whole("allowVolumeExpansion"),
    ],
    cells: |subject| {
        let marked = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        let is_default = marked
            .iter()
            .any(|mark| word(subject.meta("annotations"), mark) == "true");
        let name = match is_default {
            true => format!("{} (default)", subject.name()),
            false => subject.name().to_owned(),
        };
        vec![
            name.into(),
            subject.text("/provisioner").into(),
            subject.text_or("/reclaimPolicy", "Delete").into(),
            subject.text_or("/volumeBindingMode", "Immediate").into(),
            subject.flag("/allowVolumeExpansion", false).into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static ATTRIBUTES_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("DriverName", "The driver that knows the attributes."),
        AGE,
    ],
    keep: &[Part::Whole("driverName")],
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/driverName").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static ATTACHMENT: Printer = Printer {
    columns: &[
        NAME,
        Column {
            format: "name",
            ..text("Attacher", "The driver that attaches it.")
        },
        text("PV", "The volume."),
        text("Node", "The node it is attached to."),
        flag("Attached", "Whether it is."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        vec![
            subject.name().into(),
            subject.text("/spec/attacher").into(),
            subject.text("/spec/source/persistentVolumeName").into(),
            subject.text("/spec/nodeName").into(),
            subject.flag("/status/attached", false).into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static CSI_NODE: Printer = Printer {
    columns: &[
        NAME,
        number("Drivers", "How many storage drivers the node has."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let drivers = subject.list("/spec/drivers").len();
        vec![subject.name().into(), drivers.into(), subject.age().into()]
    },
    outcome: None,
};

static CSI_DRIVER: Printer = Printer {
    columns: &[
        NAME,
        flag(
            "AttachRequired",
            "Whether volumes are attached before they are mounted.",
        ),
        flag(
            "PodInfoOnMount",
            "Whether the driver is told about the pod.",
        ),
        flag(
            "StorageCapacity",
            "Whether the scheduler looks at free capacity.",
        ),
        text(
            "TokenRequests",
            "The audiences of the tokens that the driver gets.",
        ),
        flag(
            "RequiresRepublish",
            "Whether the driver is called again and again.",
        ),
        text("Modes", "Whether volumes outlive their pods."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let tokens = match subject.at("/spec/tokenRequests").as_array() {
            None => "<unset>".to_owned(),
            Some(requests) => requests
                .iter()
                .map(|one| word(one, "audience"))
                .collect::<Vec<_>>()
                .join(","),
        };
        vec![
            subject.name().into(),
            subject.flag("/spec/attachRequired", true).into(),
            subject.flag("/spec/podInfoOnMount", false).into(),
            subject.flag("/spec/storageCapacity", false).into(),
            tokens.into(),
            subject.flag("/spec/requiresRepublish", false).into(),
            or_none(&words(subject.list("/spec/volumeLifecycleModes")).join(",")).into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static STORAGE_VERSION: Printer = Printer {
    columns: &[
        NAME,
        text(
            "CommonEncodingVersion",
            "The version that all servers write.",
        ),
        text(
            "StorageVersions",
            "The version that each of the first servers writes.",
        ),
        AGE,
    ],
    keep: &[Part::Whole("status")],
    cells: |subject| {
        let servers = subject.list("/status/storageVersions").iter();
        let servers: Vec<String> = servers
            .map(|one| {
                format!(
                    "{}={}",
                    word(one, "apiServerID"),
                    word(one, "encodingVersion")
                )
            })
            .collect();
        vec![
            subject.name().into(),
            subject
                .text_or("/status/commonEncodingVersion", "<unset>")
                .into(),
            or(&first_few(&servers, 3, ","), "<unset>").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static MIGRATION: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        text("Resource", "What is stored anew."),
        text("Status", "How far it is."),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let resource = subject.at("/spec/resource");
        let resource = qualified(word(resource, "resource"), word(resource, "group"));
        let known = ["Running", "Failed", "Succeeded"];
        let status = subject
            .list("/status/conditions")
            .iter()
            .filter(|condition| word(condition, "status") == "True")
            .map(|condition| word(condition, "type"))
            .rfind(|kind| known.contains(kind));
        vec![
            subject.name().into(),
            resource.into(),
            status.unwrap_or("Unknown").into(),
        ]
    },
    outcome: None,
};

fn phase<'s>(subject: &'s Subject<'_>) -> &'s str {
    match subject.is_terminating() {
        true => "Terminating",
        false => subject.text("/status/phase"),
    }
}

/// The class's name; an annotation from before the field existed goes first.
fn storage_class<'s>(subject: &'s Subject<'_>) -> &'s str {
    let annotation = subject
        .meta("annotations")
        .get("volume.beta.kubernetes.io/storage-class");
    let annotation = annotation.and_then(Value::as_str);
    annotation.unwrap_or_else(|| subject.text("/spec/storageClassName"))
}

/// Access modes by their short names, each once, in a fixed order.
fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = words(modes);
    let short = known
        .iter()
        .filter(|(mode, _)| modes.contains(mode))
        .map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}
