//! What is wrong with a new definition, in the words of Kubernetes.

use super::*;

/// What is refused when the definition has this change: each field with what is wrong.
pub(super) fn refused(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut object = definition();
    change(&mut object);
    causes(admit_create(&mut object))
}

pub(super) fn causes<T>(answer: Result<T, Status>) -> Vec<String> {
    match answer {
        Ok(_) => Vec::new(),
        Err(status) => {
            assert_eq!(
                (status.code, status.reason),
                (422, "Invalid"),
                "{}",
                status.message
            );
            let causes = status.details.unwrap().causes;
            causes
                .iter()
                .map(|cause| format!("{}: {}", cause.field, cause.message))
                .collect()
        }
    }
}

#[track_caller]
pub(super) fn assert_refused(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let found = refused(change);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n  is not\n{expected}");
    }
}

/// What a definition begins with: nothing said of it yet, but where its objects are stored.
fn new_status() -> Value {
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"]})
}

#[test]
fn a_right_definition_is_taken_and_filled_in() {
    let mut object = definition();
    assert_eq!(admit_create(&mut object), Ok(Vec::new()));
    assert_eq!(object["spec"]["names"]["singular"], "crontab");
    assert_eq!(object["spec"]["names"]["listKind"], "CronTabList");
    assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(object["status"], new_status());
}

#[test]
fn a_status_that_comes_with_a_new_definition_is_dropped() {
    let mut object = definition();
    object["status"] = json!({"storedVersions": ["v7"], "conditions": null,
        "acceptedNames": {"kind": "", "plural": ""}});
    assert_eq!(admit_create(&mut object), Ok(Vec::new()));
    assert_eq!(object["status"], new_status());
}

#[test]
fn the_refusal_reads_as_kubernetes_words_it() {
    let mut object = definition();
    object["metadata"]["name"] = json!("crontabs");
    let status = admit_create(&mut object).unwrap_err();
    assert_eq!(
        status.message,
        "CustomResourceDefinition.apiextensions.k8s.io \"crontabs\" is invalid: metadata.name: \
         Invalid value: \"crontabs\": must be spec.names.plural+\".\"+spec.group"
    );
}

#[test]
fn a_field_of_the_wrong_type_is_a_bad_request() {
    let mut object = definition();
    object["spec"]["names"]["shortNames"] = json!("ct");
    let status = admit_create(&mut object).unwrap_err();
    assert_eq!(status.code, 400);
    assert!(
        status
            .message
            .contains("cannot be handled as a CustomResourceDefinition")
    );
}

#[test]
fn the_group_is_a_domain() {
    let group = |group: &'static str| {
        move |object: &mut Value| {
            object["spec"]["group"] = json!(group);
            object["metadata"]["name"] = json!(format!("crontabs.{group}"));
        }
    };
    assert_refused(
        group("nodots"),
        &["spec.group: Invalid value: \"nodots\": should be a domain with at least one dot"],
    );
    assert_refused(
        group("Upper.example.com"),
        &[
            "metadata.name: Invalid value: \"crontabs.Upper.example.com\": a lowercase RFC 1123 \
             subdomain",
            "spec.group: Invalid value: \"Upper.example.com\": a lowercase RFC 1123 subdomain",
        ],
    );
    assert_refused(
        |object| object["spec"]["group"] = json!(""),
        &[
            "metadata.name: Invalid value: \"crontabs.stable.example.com\": must be \
             spec.names.plural",
            "spec.group: Required value",
        ],
    );
}

#[test]
fn the_scope_is_one_of_two() {
    assert_refused(
        |object| object["spec"]["scope"] = json!(""),
        &["spec.scope: Required value"],
    );
    assert_refused(
        |object| object["spec"]["scope"] = json!("Galaxy"),
        &[
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \
             \"Namespaced\"",
        ],
    );
}

#[test]
fn names_are_needed_and_are_labels() {
    assert_refused(
        |object| object["spec"]["names"] = json!({}),
        &[
            "metadata.name: Invalid value",
            "spec.names.plural: Required value",
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value",
        ],
    );
    assert_refused(
        |object| {
            object["spec"]["names"]["singular"] = json!("Crontab");
            object["spec"]["names"]["kind"] = json!("Cron_Tab");
            object["spec"]["names"]["listKind"] = json!("CronTabs.List");
            object["spec"]["names"]["shortNames"] = json!(["ct", "c t"]);
            object["spec"]["names"]["categories"] = json!(["All"]);
        },
        &[
            "spec.names.singular: Invalid value: \"Crontab\": a DNS-1035 label must consist of",
            "spec.names.kind: Invalid value: \"Cron_Tab\": may have mixed case, but should \
             otherwise \
             match: a DNS-1035 label",
            "spec.names.listKind: Invalid value: \"CronTabs.List\": may have mixed case",
            "spec.names.shortNames[1]: Invalid value: \"c t\": a DNS-1035 label",
            "spec.names.categories[0]: Invalid value: \"All\": a DNS-1035 label",
        ],
    );
    assert_refused(
        |object| object["spec"]["names"]["listKind"] = json!("CronTab"),
        &["spec.names.listKind: Invalid value: \"CronTab\": kind and listKind may not be the same"],
    );
}

#[test]
fn exactly_one_version_is_stored_and_each_has_its_own_name() {
    assert_refused(
        |object| object["spec"]["versions"][0]["storage"] = json!(false),
        &[
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\
             \"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\
             \"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}]: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    assert_refused(
        |object| object["spec"]["versions"] = json!([version("v1"), version("v1")]),
        &[
            "spec.versions: Invalid value: [{\"Name\":\"v1\"",
            "spec.versions: Invalid value: [{\"Name\":\"v1\"",
        ],
    );
    assert_refused(
        |object| object["spec"]["versions"] = json!([version("v1"), version("v1.5")]),
        &["spec.versions[1].name: Invalid value: \"v1.5\": a DNS-1035 label must consist of"],
    );
    assert_refused(
        |object| object["spec"]["versions"] = json!([]),
        &[
            "spec.versions: Invalid value: null: must have exactly one version",
            "status.storedVersions: Invalid value: null: must have at least one",
        ],
    );
}

#[test]
fn every_version_has_a_schema() {
    assert_refused(
        |object| object["spec"]["versions"][0]["schema"] = Value::Null,
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    assert_refused(
        |object| {
            let mut second = version("v2");
            second["schema"] = json!({});
            object["spec"]["versions"] = json!([version("v1"), second]);
        },
        &["spec.versions[1].schema.openAPIV3Schema: Required value"],
    );
}

#[test]
fn a_schema_that_is_not_structural_is_found_where_kubernetes_finds_it() {
    let break_schema = |version: &mut Value| {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"properties": {}});
    };
    let alone = refused(|object| break_schema(&mut object["spec"]["versions"][0]));
    assert!(
        alone.iter().any(|cause| cause
            .starts_with("spec.validation.openAPIV3Schema.properties[spec].type: Required value")),
        "{alone:#?}"
    );
    let among_others = refused(|object| {
        let mut second = version("v2");
        break_schema(&mut second);
        object["spec"]["versions"] = json!([version("v1"), second]);
    });
    let field = "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value";
    assert!(
        among_others.iter().any(|cause| cause.starts_with(field)),
        "{among_others:#?}"
    );
}

#[test]
fn with_a_separate_status_little_is_allowed_at_the_root_of_the_schema() {
    let with_status = |keyword: &'static str, value: Value| {
        move |object: &mut Value| {
            object["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            object["spec"]["versions"][0]["schema"]["openAPIV3Schema"][keyword] = value;
        }
    };
    assert_eq!(
        refused(with_status("required", json!(["spec"]))),
        Vec::<String>::new()
    );
    let found = refused(with_status("oneOf", json!([{"required": ["spec"]}])));
    assert!(
        found[0].starts_with(
            "spec.validation.openAPIV3Schema: Invalid value: \"oneOf\": only [Description Type \
             Format"
        ),
        "{found:#?}"
    );
    let nullable = refused(|object| {
        object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["nullable"] = json!(true);
    });
    let expected =
        "spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root";
    assert!(
        nullable.iter().any(|cause| cause == expected),
        "{nullable:#?}"
    );
}

#[test]
fn conversion_webhooks_are_refused_with_a_clear_word() {
    let conversion =
        |conversion: Value| move |object: &mut Value| object["spec"]["conversion"] = conversion;
    let found = refused(conversion(
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {}}}),
    ));
    assert_eq!(
        found,
        [
            "spec.conversion.strategy: Unsupported value: \"Webhook\": this server calls no \
             conversion \
          webhooks; supported values: \"None\" (objects of all versions have the same fields)"
        ]
    );
    assert_refused(
        conversion(json!({})),
        &["spec.conversion.strategy: Required value"],
    );
    assert_refused(
        conversion(json!({"strategy": "Magic"})),
        &[
            "spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \
             \"Webhook\"",
        ],
    );
    assert_refused(
        conversion(json!({"strategy": "None", "webhook": {}})),
        &[
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is \
             not set to Webhook",
        ],
    );
}

#[test]
fn unknown_fields_are_not_kept_everywhere_unless_they_were() {
    let expected = "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
                    x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                    instead";
    assert_refused(
        |object| object["spec"]["preserveUnknownFields"] = json!(true),
        &[expected],
    );
    let mut old = stored(|_| {});
    old["spec"]["preserveUnknownFields"] = json!(true);
    assert_eq!(admit_update(&mut old.clone(), &old), Ok(Vec::new()));
}

#[test]
fn only_a_deprecated_version_warns() {
    let warn = |deprecated: bool, words: String| {
        move |object: &mut Value| {
            object["spec"]["versions"][0]["deprecated"] = json!(deprecated);
            object["spec"]["versions"][0]["deprecationWarning"] = json!(words);
        }
    };
    assert_eq!(
        refused(warn(true, "use v2".to_owned())),
        Vec::<String>::new()
    );
    let field = "spec.versions[0].deprecationWarning: Invalid value:";
    assert_refused(
        warn(false, "x".to_owned()),
        &[&format!(
            "{field} \"x\": can only be set for deprecated versions"
        )],
    );
    assert_refused(
        warn(true, String::new()),
        &[&format!("{field} \"\": must not be an empty string")],
    );
    assert_refused(
        warn(true, "a\nb".to_owned()),
        &[&format!(
            "{field} \"a\\nb\": must only contain printable UTF-8 characters; non-printable \
             character found at index 1"
        )],
    );
    let long = refused(warn(true, "a".repeat(257)));
    assert!(long[0].ends_with("must be <= 256 characters long"));
}

#[test]
fn a_group_of_the_community_needs_its_approval() {
    let group = |annotation: &'static str| {
        move |object: &mut Value| {
            object["spec"]["group"] = json!("stable.k8s.io");
            object["metadata"]["name"] = json!("crontabs.stable.k8s.io");
            object["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": annotation});
        }
    };
    let field = "metadata.annotations[api-approved.kubernetes.io]";
    assert_refused(
        group(""),
        &[&format!(
            "{field}: Required value: protected groups must have approval annotation \
         \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        )],
    );
    assert_refused(
        group("sure"),
        &[&format!(
            "{field}: Invalid value: \"sure\": protected groups must have approval annotation"
        )],
    );
    for good in [
        "https://github.com/kubernetes/enhancements/pull/78",
        "unapproved, a test",
    ] {
        assert_eq!(refused(group(good)), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn rules_that_nobody_evaluates_are_kept_and_told() {
    let mut object = definition();
    let schema = &mut object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.replicas > 0"}]);
    let kept = object["spec"]["versions"][0]["schema"].clone();
    let warnings = admit_create(&mut object).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("spec.versions[0].schema.openAPIV3Schema.properties[spec]"));
    assert!(warnings[0].contains("not evaluated"));
    assert_eq!(object["spec"]["versions"][0]["schema"], kept);
}
