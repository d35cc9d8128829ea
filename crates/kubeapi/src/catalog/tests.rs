//! Tests of the catalog.

use super::*;

/// A custom kind as its definition would make it.
fn widget(group: &str, version: &str) -> Arc<Kind> {
    Arc::new(Kind {
        group: group.into(),
        version: version.into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        short_names: vec!["wd".into()],
        categories: Vec::new(),
        namespaced: true,
        verbs: vec!["get".into()],
        subresources: Vec::new(),
        schema: None,
        custom: Some(Arc::new(CustomKind::default())),
        told: false,
    })
}

#[test]
fn a_built_in_kind_is_found_by_plural_and_by_kind() {
    let catalog = Catalog::new();
    let deployments = catalog.find("apps", "v1", "deployments").unwrap();
    assert_eq!(&*deployments.kind, "Deployment");
    assert_eq!(deployments.short_names, ["deploy".into()]);
    assert_eq!(deployments.categories, ["all".into()]);
    assert!(deployments.namespaced && deployments.allows("deletecollection"));
    let scale = deployments.subresource("scale").unwrap();
    assert_eq!(
        (&*scale.group, &*scale.version, &*scale.kind),
        ("autoscaling", "v1", "Scale")
    );
    let by_kind = catalog.kind_of("", "v1", "Namespace").unwrap();
    assert_eq!(&*by_kind.plural, "namespaces");
    assert!(!by_kind.allows("deletecollection"));
    assert!(catalog.find("apps", "v1beta1", "deployments").is_none());
}

#[test]
fn every_built_in_kind_has_a_schema_with_metadata() {
    let snapshot = Catalog::new().snapshot();
    let mut count = 0;
    for kind in snapshot.kinds() {
        let schema = kind.schema.as_ref().unwrap().schema();
        assert!(
            schema.field("metadata").is_some(),
            "{} has no metadata",
            kind.kind
        );
        count += 1;
    }
    assert_eq!(count, 58);
}

#[test]
fn what_a_kubelet_must_serve_is_not_offered() {
    let pods = Catalog::new().find("", "v1", "pods").unwrap();
    let names: Vec<&str> = pods.subresources.iter().map(|sub| &*sub.name).collect();
    assert_eq!(names, ["eviction", "status"]);
}

#[test]
fn custom_kinds_come_after_the_built_in_ones_and_go_again() {
    let catalog = Catalog::new();
    let before = catalog.snapshot();
    let kinds = vec![widget("a.example", "v1beta1"), widget("a.example", "v1")];
    catalog.set_custom("widgets.a.example", kinds);
    let during = catalog.snapshot();
    assert!(during.generation() > before.generation());
    let group = during.groups().last().unwrap();
    assert_eq!(&*group.name, "a.example");
    assert_eq!(
        &*group.versions[0].version, "v1",
        "the stable version is preferred"
    );
    assert!(catalog.find("a.example", "v1beta1", "widgets").is_some());
    catalog.remove_custom("widgets.a.example");
    assert!(catalog.find("a.example", "v1", "widgets").is_none());
    assert_eq!(catalog.snapshot().groups().len(), before.groups().len());
}

#[test]
fn a_custom_kind_does_not_enter_a_built_in_version() {
    let catalog = Catalog::new();
    catalog.set_custom(
        "widgets.apps",
        vec![widget("apps", "v1"), widget("apps", "v9")],
    );
    assert!(catalog.find("apps", "v1", "widgets").is_none());
    assert!(catalog.find("apps", "v1", "deployments").is_some());
    assert!(catalog.find("apps", "v9", "widgets").is_some());
    catalog.remove_custom("widgets.apps");
    assert!(catalog.find("apps", "v9", "widgets").is_none());
}

#[test]
fn an_untouched_custom_version_keeps_what_was_derived_from_it() {
    let catalog = Catalog::new();
    catalog.set_custom("widgets.a.example", vec![widget("a.example", "v1")]);
    let first = catalog.snapshot().group("a.example").unwrap().versions[0].clone();
    catalog.set_custom("widgets.b.example", vec![widget("b.example", "v1")]);
    let second = catalog.snapshot().group("a.example").unwrap().versions[0].clone();
    assert!(Arc::ptr_eq(&first, &second));
    catalog.set_custom("widgets.a.example", vec![widget("a.example", "v1")]);
    let third = catalog.snapshot().group("a.example").unwrap().versions[0].clone();
    assert!(!Arc::ptr_eq(&first, &third));
}
