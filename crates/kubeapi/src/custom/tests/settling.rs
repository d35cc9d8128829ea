//! Names that are given and names that are not, and the kinds that follow.

use super::settle::{Settled, settle};
use super::*;

/// Type, status and reason of each condition.
fn conditions(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array().unwrap().iter();
    let told = conditions
        .map(|one| format!("{}={} {}", one["type"], one["status"], one["reason"]).replace('"', ""));
    told.collect()
}

fn accepted(object: &Value) -> definition::Names {
    Definition::read(object).unwrap().status.accepted_names
}

#[test]
fn a_definition_gets_its_names_and_is_established_at_once() {
    let mut object = definition();
    admit_create(&mut object).unwrap();
    assert_eq!(settle(&mut object, &[], now()), Ok(Settled::Changed));
    assert_eq!(
        object["status"]["acceptedNames"],
        json!({"plural": "crontabs", "singular": "crontab", "kind": "CronTab",
            "listKind": "CronTabList",
               "shortNames": ["ct"], "categories": ["all"]})
    );
    assert_eq!(
        object["status"]["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "True",
                "lastTransitionTime": "2026-03-01T12:00:00Z",
             "reason": "NoConflicts", "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z",
             "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
        ])
    );
    let later = "2026-03-02T12:00:00Z".parse().unwrap();
    let before = object.clone();
    assert_eq!(settle(&mut object, &[], later), Ok(Settled::Unchanged));
    assert_eq!(object, before);
}

#[test]
fn a_name_that_another_has_is_not_given_until_it_is_free() {
    let first = stored(|_| {});
    let mut second = definition();
    second["metadata"]["name"] = json!("tabs.stable.example.com");
    second["spec"]["names"] =
        json!({"plural": "tabs", "kind": "CronTab", "shortNames": ["t", "ct"]});
    admit_create(&mut second).unwrap();
    settle(&mut second, &[accepted(&first)], now()).unwrap();
    assert_eq!(
        conditions(&second),
        [
            "NamesAccepted=False ListKindConflict",
            "Established=False NotAccepted"
        ]
    );
    assert_eq!(
        second["status"]["conditions"][0]["message"],
        "\"CronTabList\" is already in use"
    );
    assert_eq!(
        second["status"]["acceptedNames"],
        json!({"plural": "tabs", "kind": ""})
    );
    assert!(
        kinds::kinds(&Definition::read(&second).unwrap())
            .unwrap()
            .is_empty()
    );

    let later = "2026-03-01T13:00:00Z".parse().unwrap();
    assert_eq!(settle(&mut second, &[], later), Ok(Settled::Changed));
    assert_eq!(
        conditions(&second),
        [
            "NamesAccepted=True NoConflicts",
            "Established=True InitialNamesAccepted"
        ]
    );
    assert_eq!(
        second["status"]["conditions"][1]["lastTransitionTime"],
        "2026-03-01T13:00:00Z"
    );
}

#[test]
fn each_kind_of_conflict_has_its_own_reason() {
    let first = accepted(&stored(|_| {}));
    let reason = |names: Value| {
        let mut object = definition();
        object["spec"]["names"] = names;
        object["metadata"]["name"] = json!(format!(
            "{}.stable.example.com",
            object["spec"]["names"]["plural"].as_str().unwrap()
        ));
        admit_create(&mut object).unwrap();
        settle(&mut object, std::slice::from_ref(&first), now()).unwrap();
        let condition = object["status"]["conditions"][0].clone();
        format!(
            "{} {}",
            condition["reason"].as_str().unwrap(),
            condition["message"].as_str().unwrap()
        )
    };
    assert_eq!(
        reason(json!({"plural": "ct", "kind": "Other"})),
        "PluralConflict \"ct\" is already in use"
    );
    assert_eq!(
        reason(json!({"plural": "others", "kind": "Other", "singular": "crontab"})),
        "SingularConflict \"crontab\" is already in use"
    );
    assert_eq!(
        reason(json!({"plural": "others", "kind": "Other", "shortNames": ["ct", "o", "crontab"]})),
        "ShortNamesConflict [\"ct\" is already in use, \"crontab\" is already in use]"
    );
    assert_eq!(
        reason(
            json!({"plural": "others", "kind": "CronTab", "singular": "o", "listKind": "OtherList"})
        ),
        "KindConflict \"CronTab\" is already in use"
    );
}

#[test]
fn what_is_established_stays_so_when_a_new_name_is_taken() {
    let other = stored(|object| {
        object["metadata"]["name"] = json!("others.stable.example.com");
        object["spec"]["names"] = json!({"plural": "others", "kind": "Other", "shortNames": ["o"]});
    });
    let old = stored(|_| {});
    let mut object = old.clone();
    object["spec"]["names"]["shortNames"] = json!(["ct", "o"]);
    admit_update(&mut object, &old).unwrap();
    settle(&mut object, &[accepted(&other)], now()).unwrap();
    assert_eq!(
        conditions(&object),
        [
            "NamesAccepted=False ShortNamesConflict",
            "Established=True InitialNamesAccepted"
        ]
    );
    assert_eq!(
        object["status"]["acceptedNames"]["shortNames"],
        json!(["ct"])
    );
}

#[test]
fn a_protected_group_shows_who_approved_it() {
    let approved = |annotation: &str| {
        stored(|object| {
            object["spec"]["group"] = json!("stable.k8s.io");
            object["metadata"]["name"] = json!("crontabs.stable.k8s.io");
            object["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": annotation});
        })
    };
    let told = conditions(&approved("https://example.com/1"));
    assert_eq!(
        told[2],
        "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation"
    );
    let told = conditions(&approved("unapproved, a test"));
    assert_eq!(
        told[2],
        "KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation"
    );
}

#[test]
fn each_served_version_becomes_a_kind() {
    let object = stored(|object| {
        let mut second = version("v2");
        second["subresources"] = json!({"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
        second["selectableFields"] = json!([{"jsonPath": ".spec.cron"}]);
        second["additionalPrinterColumns"] =
            json!([{"name": "Cron", "type": "string", "jsonPath": ".spec.cron", "priority": 1}]);
        let mut hidden = version("v3");
        hidden["served"] = json!(false);
        object["spec"]["versions"] = json!([version("v1"), second, hidden]);
    });
    let kinds = kinds::kinds(&Definition::read(&object).unwrap()).unwrap();
    let [first, second] = kinds.as_slice() else {
        panic!("{} kinds", kinds.len())
    };
    assert_eq!(
        (&*first.group, &*first.version),
        ("stable.example.com", "v1")
    );
    assert_eq!(
        (&*first.kind, &*first.list_kind),
        ("CronTab", "CronTabList")
    );
    assert_eq!((&*first.plural, &*first.singular), ("crontabs", "crontab"));
    assert!(first.namespaced && first.schema.is_some() && first.subresources.is_empty());
    assert_eq!(first.verbs.len(), 8);
    let custom = first.custom.as_ref().unwrap();
    assert!(custom.storage && custom.columns.is_empty() && !custom.preserve_unknown);

    let status = second.subresource("status").unwrap();
    assert_eq!(
        (&*status.kind, &*status.group, &*status.version),
        ("CronTab", "stable.example.com", "v2")
    );
    let scale = second.subresource("scale").unwrap();
    assert_eq!(
        (&*scale.kind, &*scale.group, &*scale.version),
        ("Scale", "autoscaling", "v1")
    );
    let custom = second.custom.as_ref().unwrap();
    assert!(!custom.storage);
    assert_eq!(&*custom.selectable[0], ".spec.cron");
    assert_eq!(
        (custom.columns[0].name.as_str(), custom.columns[0].priority),
        ("Cron", 1)
    );
}

#[test]
fn a_deprecated_version_tells_its_users() {
    let object = stored(|object| {
        let (mut second, mut third) = (version("v2"), version("v3"));
        second["deprecated"] = json!(true);
        third["deprecated"] = json!(true);
        third["deprecationWarning"] = json!("v3 was a mistake");
        object["spec"]["versions"] = json!([version("v1"), second, third]);
    });
    let definition = Definition::read(&object).unwrap();
    assert_eq!(definition.deprecation("v1"), None);
    assert_eq!(
        definition.deprecation("v2").unwrap(),
        "stable.example.com/v2 CronTab is deprecated"
    );
    assert_eq!(definition.deprecation("v3").unwrap(), "v3 was a mistake");
    assert_eq!(definition.deprecation("v9"), None);
}
