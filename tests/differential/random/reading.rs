//! Gets, lists and watches.

use super::kinds::{Kind, LABEL_SELECTORS};
use super::maker::{Maker, Said, Weighted};

const TABLE: (&str, &str) = ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// Adds one read.
pub(super) fn step(maker: &mut Maker) {
    let reads: [Weighted; 5] = [
        (20, get),
        (32, list),
        (12, page),
        (8, next_page),
        (28, watch),
    ];
    maker.lot.weighted(&reads)(maker);
}

/// A query's value as it stands in a target.
pub(super) fn encoded(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            ' ' => text.push_str("%20"),
            '=' => text.push_str("%3D"),
            '!' => text.push_str("%21"),
            ',' => text.push_str("%2C"),
            '(' => text.push_str("%28"),
            ')' => text.push_str("%29"),
            other => text.push(other),
        }
    }
    text
}

/// A list of now. What a server keeps in memory is current after it, so that a read which takes
/// what is older has one answer only.
fn refresh(maker: &mut Maker, kind: Kind) {
    let answer = maker.say(Said {
        title: format!("every {} now", kind.word()),
        method: "GET",
        target: kind.collection().to_owned(),
        headers: &[],
        body: None,
    });
    maker.learn_version(kind, answer);
}

fn get(maker: &mut Maker) {
    let (kind, name) = maker.place();
    let query = match maker.lot.below(5) {
        0 => {
            refresh(maker, kind);
            "?resourceVersion=0".to_owned()
        }
        1 => match maker.version(kind) {
            Some(version) => {
                refresh(maker, kind);
                format!("?resourceVersion={version}")
            }
            None => String::new(),
        },
        _ => String::new(),
    };
    let form = maker.lot.below(8);
    let headers: &[_] = match form {
        0 => &[TABLE],
        1 => &[("Accept", METADATA)],
        _ => &[],
    };
    let answer = maker.say(Said {
        title: format!("{} {name} is read", kind.word()),
        method: "GET",
        target: format!("{}/{name}{query}", kind.collection()),
        headers,
        body: None,
    });
    let there = !maker.belief(kind, name).answers.is_empty();
    if there && form != 0 {
        maker.learn_version(kind, answer);
    }
}

/// A selector, or none.
fn selector(maker: &mut Maker, kind: Kind) -> String {
    match maker.lot.below(6) {
        0 | 1 => format!(
            "&labelSelector={}",
            encoded(maker.lot.one_of(&LABEL_SELECTORS))
        ),
        2 => {
            let all = kind.field_selectors();
            format!("&fieldSelector={}", encoded(maker.lot.one_of(all)))
        }
        _ => String::new(),
    }
}

fn list(maker: &mut Maker) {
    let kind = maker.kind();
    let version = maker.version(kind);
    let choice = maker.lot.below(12);
    let versions = match (choice, version) {
        (0, _) => {
            refresh(maker, kind);
            "&resourceVersion=0".to_owned()
        }
        (1, _) => {
            refresh(maker, kind);
            "&resourceVersion=0&resourceVersionMatch=NotOlderThan".to_owned()
        }
        (2, Some(version)) => {
            refresh(maker, kind);
            format!("&resourceVersion={version}")
        }
        (3, Some(version)) => {
            refresh(maker, kind);
            format!("&resourceVersion={version}&resourceVersionMatch=NotOlderThan")
        }
        (4 | 5, Some(version)) => format!("&resourceVersion={version}&resourceVersionMatch=Exact"),
        (6, _) => maker.lot.one_of(&WRONG_VERSIONS).to_owned(),
        _ => String::new(),
    };
    let selector = selector(maker, kind);
    let headers: &[_] = match maker.lot.below(6) {
        0 => &[TABLE],
        1 => &[("Accept", METADATA_LIST)],
        _ => &[],
    };
    let answer = maker.say(Said {
        title: format!("every {}", kind.word()),
        method: "GET",
        target: with_query(kind, &format!("{versions}{selector}")),
        headers,
        body: None,
    });
    if choice != 6 {
        maker.learn_version(kind, answer);
    }
}

/// The first page of a list.
fn page(maker: &mut Maker) {
    let kind = maker.kind();
    let limit = maker.lot.below(3) + 1;
    let version = maker.version(kind).filter(|_| maker.lot.percent(30));
    let versions = match version {
        Some(version) => format!("&resourceVersion={version}&resourceVersionMatch=Exact"),
        None => String::new(),
    };
    let answer = maker.say(Said {
        title: format!("the first of every {}", kind.word()),
        method: "GET",
        target: with_query(kind, &format!("&limit={limit}{versions}")),
        headers: &[],
        body: None,
    });
    maker.learn_version(kind, answer.clone());
    maker.pages.push((kind, answer));
}

/// A page that goes on after an earlier one.
fn next_page(maker: &mut Maker) {
    if maker.pages.is_empty() {
        return page(maker);
    }
    let index = maker.lot.below(maker.pages.len());
    let (kind, before) = maker.pages[index].clone();
    let limit = match maker.lot.below(3) {
        0 => String::new(),
        limit => format!("&limit={limit}"),
    };
    let answer = maker.say(Said {
        title: format!("more of every {}", kind.word()),
        method: "GET",
        target: with_query(
            kind,
            &format!("&continue={{{{{before}.metadata.continue}}}}{limit}"),
        ),
        headers: &[],
        body: None,
    });
    maker.pages.push((kind, answer));
}

fn watch(maker: &mut Maker) {
    let kind = maker.kind();
    let version = maker.version(kind);
    let initial = maker.lot.percent(25);
    let versions = match (maker.lot.below(8), version) {
        (0..=4, Some(version)) => {
            if initial {
                refresh(maker, kind);
            }
            format!("&resourceVersion={version}")
        }
        (5, _) => {
            refresh(maker, kind);
            "&resourceVersion=0".to_owned()
        }
        _ => {
            refresh(maker, kind);
            String::new()
        }
    };
    let more = match (initial, maker.lot.below(4)) {
        (true, 0) => "&sendInitialEvents=true",
        (true, 1) => "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        (true, _) => {
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        }
        (false, 0) => "&allowWatchBookmarks=true",
        (false, _) => "",
    };
    let selector = selector(maker, kind);
    let (headers, last): (&[_], _) = match maker.lot.below(8) {
        0 if maker.has_no_table_yet(kind) => {
            (&[TABLE], "object.rows.0.object.metadata.labels.last")
        }
        1 => (&[("Accept", METADATA)], "object.metadata.labels.last"),
        _ => (&[], "object.metadata.labels.last"),
    };
    let said = Said {
        title: format!("every {} is watched", kind.word()),
        method: "GET",
        target: with_query(kind, &format!("&watch=1{versions}{more}{selector}")),
        headers,
        body: None,
    };
    maker.watch(said, last);
}

fn with_query(kind: Kind, query: &str) -> String {
    match query.strip_prefix('&') {
        Some(query) => format!("{}?{query}", kind.collection()),
        None => kind.collection().to_owned(),
    }
}

/// Versions that no list can be asked with.
const WRONG_VERSIONS: [&str; 5] = [
    "&resourceVersion=0&resourceVersionMatch=Exact",
    "&resourceVersionMatch=NotOlderThan",
    "&resourceVersion=word",
    "&resourceVersion=5&resourceVersionMatch=Sometimes",
    "&limit=-1",
];
