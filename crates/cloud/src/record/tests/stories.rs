//! What is written, when, and what becomes of it.

use super::cluster::Nodes;
use super::*;

fn one(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(path, version)| ((*path).to_owned(), (*version).to_owned()))
        .collect()
}

#[test]
fn a_record_is_made_after_a_while_and_tells_the_newest_version() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let node = NodeName::from("edge-1");
    records.holds(&node, &pod("u1", 5), NOW);
    assert_eq!(cluster.write(&mut records, seconds(4)), Some(seconds(5)));
    records.holds(&node, &pod("u1", 6), seconds(4));
    cluster.write(&mut records, seconds(5));
    let path = "namespaces/shop/objectsyncs/edge-1.u1";
    assert_eq!(cluster.told(), one(&[(path, "6")]));
    let verbs: Vec<Verb> = cluster.requests.iter().map(|(verb, _)| *verb).collect();
    assert_eq!(verbs, [Verb::Patch, Verb::Create, Verb::Patch]);
    let record = cluster.records.values().next().unwrap();
    assert_eq!(record["kind"], "ObjectSync");
    assert_eq!(record["metadata"]["namespace"], "shop");
    let spec = serde_json::json!({"objectAPIVersion": "v1", "objectKind": "Pod",
        "objectName": "web"});
    assert_eq!(record["spec"], spec);

    records.holds(&node, &pod("u1", 9), seconds(10));
    cluster.write(&mut records, seconds(15));
    assert_eq!(cluster.requests.len(), 4);
    assert_eq!(cluster.told(), one(&[(path, "9")]));
    records.dropped(&node, &pod("u1", 9), seconds(24));
    cluster.write(&mut records, seconds(29));
    assert!(cluster.records.is_empty());
    assert_eq!(records.waiting(), 0);
}

#[test]
fn an_object_in_no_namespace_has_a_record_in_none() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let held = holding("nodes", "edge-1", "u2", 3);
    records.holds(&"edge-1".into(), &held, NOW);
    cluster.write(&mut records, seconds(5));
    assert_eq!(
        cluster.told(),
        one(&[("clusterobjectsyncs/edge-1.u2", "3")])
    );
}

#[test]
fn the_mode_decides_which_objects_have_records() {
    let service = holding("services", "shop/api", "u3", 1);
    for (mode, expected) in [(Mode::All, 2), (Mode::Node, 1), (Mode::Off, 0)] {
        let mut records = records(mode);
        records.holds(&"n".into(), &service, NOW);
        records.holds(&"n".into(), &pod("u1", 1), NOW);
        assert_eq!(records.waiting(), expected, "{mode:?}");
    }
    let mut off = records(Mode::Off);
    off.summary(&"n".into(), summary(1), NOW);
    off.node_gone(&"n".into(), NOW);
    assert_eq!(off.next(seconds(1_000_000)), Next::Wait(None));
    assert_eq!("node".parse(), Ok(Mode::Node));
    assert_eq!("some".parse::<Mode>(), Err(UnknownMode));
}

#[test]
fn what_is_replaced_while_it_is_written_is_written_again() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let node = NodeName::from("n");
    records.holds(&node, &pod("u1", 5), NOW);
    cluster.write(&mut records, seconds(5));
    records.holds(&node, &pod("u1", 6), seconds(10));
    let Next::Write(write) = records.next(seconds(15)) else {
        panic!("nothing to write");
    };
    records.holds(&node, &pod("u1", 7), seconds(15));
    let outcome = cluster.answer(&write);
    records.done(&write, outcome, seconds(15));
    assert_eq!(cluster.write(&mut records, seconds(15)), Some(seconds(20)));
    cluster.write(&mut records, seconds(20));
    let path = "namespaces/shop/objectsyncs/n.u1";
    assert_eq!(cluster.told(), one(&[(path, "7")]));

    records.holds(&node, &pod("u1", 8), seconds(21));
    let Next::Write(write) = records.next(seconds(26)) else {
        panic!("nothing to write");
    };
    records.dropped(&node, &pod("u1", 8), seconds(26));
    let outcome = cluster.answer(&write);
    records.done(&write, outcome, seconds(26));
    cluster.write(&mut records, seconds(29));
    assert_eq!(cluster.told(), one(&[(path, "8")]));
}

#[test]
fn requests_are_few_each_second() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    for number in 0..1000 {
        records.holds(&"n".into(), &pod(&format!("u{number}"), 1), NOW);
    }
    cluster.write(&mut records, seconds(5));
    assert_eq!(cluster.requests.len(), 20);
    let mut now = seconds(5);
    while now < seconds(15) {
        now = cluster.write(&mut records, now).unwrap();
    }
    assert!((215..=225).contains(&cluster.requests.len()));
}

#[test]
fn a_cluster_that_takes_nothing_for_minutes_gets_the_newest_words_later() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let (node, nobody) = (NodeName::from("n"), Nodes::default());
    cluster.broken = true;
    for second in 1..300 {
        records.holds(&node, &pod("u1", second), seconds(second));
        cluster.run(&mut records, &nobody, seconds(second), seconds(second));
    }
    assert_eq!(records.waiting(), 1);
    assert!(
        cluster.requests.len() < 15,
        "it pauses: {}",
        cluster.requests.len()
    );
    assert_eq!(records.counts().written, 0);
    cluster.broken = false;
    let truth = Nodes {
        here: [(node, vec![pod("u1", 299)])].into(),
        ..Nodes::default()
    };
    cluster.run(&mut records, &truth, seconds(300), seconds(361));
    assert_eq!(
        cluster.told(),
        one(&[("namespaces/shop/objectsyncs/n.u1", "299")])
    );
}

#[test]
fn what_does_not_fit_is_forgotten_and_found_by_a_survey() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let count = OBJECTS_MAX + 500;
    let held: Vec<Holding> = (0..count).map(|n| pod(&format!("u{n}"), 1)).collect();
    let node = NodeName::from("n");
    for holding in &held {
        records.holds(&node, holding, NOW);
    }
    assert_eq!(records.waiting(), OBJECTS_MAX);
    assert_eq!(records.counts().forgotten, 500);
    let truth = Nodes {
        here: [(node, held)].into(),
        ..Nodes::default()
    };
    cluster.run(&mut records, &truth, NOW, seconds(3 * 60 * 60));
    assert_eq!(cluster.records.len(), count);
    assert!(cluster.told().iter().all(|(_, version)| version == "1"));
    assert_eq!(records.waiting(), 0);
}

#[test]
fn a_survey_mends_collects_and_makes() {
    let (mut records, mut cluster) = (records(Mode::All), Cluster::default());
    let here = NodeName::from("here");
    let before = [
        ("here", pod("right", 1)),
        ("here", pod("old", 1)),
        ("here", pod("gone", 1)),
        ("gone", pod("right", 1)),
        ("elsewhere", pod("old", 1)),
        ("here", holding("services", "shop/api", "svc", 1)),
    ];
    for (node, holding) in &before {
        records.holds(&(*node).into(), holding, NOW);
    }
    records.summary(&"gone".into(), summary(1), NOW);
    records.summary(&here, summary(1), NOW);
    cluster.write(&mut records, seconds(12));
    cluster.write(&mut records, seconds(20));

    let mut records = self::records(Mode::Node);
    let truth = Nodes {
        here: [(here, vec![pod("right", 1), pod("old", 2), pod("new", 3)])].into(),
        elsewhere: ["elsewhere".into()].into(),
    };
    let requests = cluster.requests.len();
    cluster.run(&mut records, &truth, NOW, seconds(60));
    let path = |name: &str| format!("namespaces/shop/objectsyncs/{name}");
    let expected = [
        (path("elsewhere.old"), "1"),
        (path("here.new"), "3"),
        (path("here.old"), "2"),
        (path("here.right"), "1"),
        ("nodesyncs/here".into(), "none"),
    ];
    let expected = expected.map(|(path, version)| (path, version.to_owned()));
    assert_eq!(cluster.told(), expected);
    assert_eq!(
        cluster.requests.len() - requests,
        7,
        "what is right costs nothing"
    );
}

#[test]
fn the_records_of_a_deleted_node_are_collected() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let node = NodeName::from("n");
    let mut truth = Nodes {
        here: [(node.clone(), vec![pod("u1", 1), pod("u2", 1)])].into(),
        ..Nodes::default()
    };
    records.summary(&node, summary(2), NOW);
    cluster.run(&mut records, &truth, NOW, seconds(100));
    assert_eq!(cluster.records.len(), 3);
    truth.here.clear();
    records.holds(&node, &pod("u1", 2), seconds(100));
    records.node_gone(&node, seconds(100));
    cluster.run(&mut records, &truth, seconds(100), seconds(1000));
    assert_eq!(cluster.told(), one(&[]));
}

#[test]
fn a_place_that_takes_no_records_does_not_hold_up_the_others() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    let closed = "/apis/holdfast.dev/v1alpha1/namespaces/shop/objectsyncs";
    cluster.closed.insert(closed.to_owned());
    records.holds(&"n".into(), &pod("u1", 1), NOW);
    records.holds(&"n".into(), &holding("pods", "bank/web", "u2", 1), NOW);
    cluster.write(&mut records, seconds(5));
    assert_eq!(
        cluster.told(),
        one(&[("namespaces/bank/objectsyncs/n.u2", "1")])
    );
    assert_eq!(records.waiting(), 0);
}

#[test]
fn what_is_refused_is_dropped_and_counted() {
    let mut records = records(Mode::Node);
    for outcome in [Outcome::Refused, Outcome::Forbidden] {
        records.holds(&"n".into(), &pod("u1", 1), NOW);
        let Next::Write(write) = records.next(seconds(5)) else {
            panic!("nothing to write");
        };
        records.done(&write, outcome, seconds(5));
    }
    assert_eq!(records.waiting(), 0);
    assert_eq!(records.counts().refused, 2);
}

#[test]
fn answers_that_go_in_a_circle_come_to_an_end() {
    let mut records = records(Mode::Node);
    records.holds(&"n".into(), &pod("u1", 1), NOW);
    let mut requests = 0;
    while let Next::Write(write) = records.next(seconds(10)) {
        requests += 1;
        let outcome = match write.verb {
            Verb::Create => Outcome::Exists,
            Verb::Patch | Verb::Delete => Outcome::Missing,
        };
        records.done(&write, outcome, seconds(10));
    }
    assert_eq!((requests, records.waiting()), (8, 0));
}

#[test]
fn an_object_whose_uid_makes_no_name_has_no_record() {
    let mut records = records(Mode::Node);
    for uid in ["", "a.b", "UID", "../x"] {
        records.holds(&"n".into(), &pod(uid, 1), NOW);
    }
    let unknown = holding("widgets", "shop/w", "u1", 1);
    records.holds(&"n".into(), &unknown, NOW);
    assert_eq!((records.waiting(), records.counts().unnamed), (0, 5));
}

#[test]
fn a_summary_says_what_kubectl_shows() {
    let (mut records, mut cluster) = (records(Mode::Node), Cluster::default());
    records.summary(&"n".into(), summary(1), NOW);
    records.summary(&"n".into(), summary(2), seconds(9));
    cluster.write(&mut records, seconds(10));
    let record = &cluster.records["/apis/holdfast.dev/v1alpha1/nodesyncs/n"];
    let expected = serde_json::json!({
        "hub": "hub-1", "session": 7, "connected": true, "since": "2026-01-01T12:00:00Z",
        "connectedSince": "2026-01-01T12:00:00Z", "disconnectedSince": null, "inSync": true,
        "objects": 2, "setAside": [], "setAsideTotal": 0, "bytes": {"sent": 10, "received": 20},
        "resources": [{"resource": "pods", "version": "41", "objects": 2, "digestEqual": true,
            "since": "2026-01-01T12:00:01Z"}],
    });
    assert_eq!(record["status"], expected);

    let mut many = summary(1);
    let why = "ö".repeat(1000);
    many.set_aside = (0..150)
        .map(|number| SetAside {
            resource: Resource::new("", "pods"),
            name: ObjectName::new("shop", &format!("p{number}")),
            why: why.as_str().into(),
        })
        .collect();
    let status = many.to_json();
    assert_eq!(status["setAside"].as_array().unwrap().len(), 100);
    assert_eq!(status["setAside"][0]["why"].as_str().unwrap().len(), 1024);
    assert_eq!(
        (&status["setAsideTotal"], &status["inSync"]),
        (&150.into(), &false.into())
    );
}
