//! Views against a model that keeps nothing but what was said, and works everything out anew.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Clone)]
enum Operation {
    Pod(u8, Option<PodSays>),
    OddPod(u8),
    Volume(u8, Option<VolumeSays>),
    Attachment(u8, Option<u8>),
    Input(u8, bool),
}

#[derive(Debug, Clone)]
struct PodSays {
    node: u8,
    mirror: bool,
    secrets: Vec<u8>,
    claims: Vec<u8>,
    account: u8,
}

#[derive(Debug, Clone)]
struct VolumeSays {
    claim: u8,
    secret: u8,
}

type Need = (NodeName, Kind, String);

#[derive(Default)]
struct Model {
    pods: BTreeMap<u8, PodSays>,
    volumes: BTreeMap<u8, VolumeSays>,
    attachments: BTreeMap<u8, u8>,
    complete: [bool; 3],
    held: BTreeSet<Need>,
}

impl Model {
    fn follow(&mut self, operation: &Operation) {
        match operation.clone() {
            Operation::Pod(name, Some(says)) if says.node > 0 => {
                self.pods.insert(name, says);
            }
            Operation::Pod(name, _) => {
                self.pods.remove(&name);
            }
            Operation::OddPod(_) => {}
            Operation::Volume(name, Some(says)) => {
                self.volumes.insert(name, says);
            }
            Operation::Volume(name, None) => {
                self.volumes.remove(&name);
            }
            Operation::Attachment(name, Some(node)) => {
                self.attachments.insert(name, node);
            }
            Operation::Attachment(name, None) => {
                self.attachments.remove(&name);
            }
            Operation::Input(which, complete) => self.complete[which as usize] = complete,
        }
        let reasons = self.reasons();
        let [pods, volumes, attachments] = self.complete;
        self.held.retain(|(_, kind, _)| match kind {
            Kind::Secret | Kind::Volume => !(pods && volumes),
            Kind::Attachment => !attachments,
            _ => !pods,
        });
        self.held.extend(reasons);
    }

    fn reasons(&self) -> BTreeSet<Need> {
        let mut found = BTreeSet::new();
        for pod in self.pods.values().filter(|pod| !pod.mirror) {
            let node = node(pod.node);
            let mut add = |kind, name: String| found.insert((node.clone(), kind, name));
            if pod.account > 0 {
                add(Kind::ServiceAccount, format!("shop/a{}", pod.account));
            }
            for secret in &pod.secrets {
                add(Kind::Secret, format!("shop/s{secret}"));
            }
            for claim in &pod.claims {
                add(Kind::Claim, format!("shop/c{claim}"));
                for (name, volume) in &self.volumes {
                    if volume.claim == *claim {
                        add(Kind::Volume, format!("v{name}"));
                        add(Kind::Secret, format!("shop/s{}", volume.secret));
                    }
                }
            }
        }
        for (name, owner) in &self.attachments {
            found.insert((node(*owner), Kind::Attachment, format!("t{name}")));
        }
        found
    }
}

fn node(number: u8) -> NodeName {
    format!("n{number}").as_str().into()
}

fn pod_text(says: &PodSays) -> Value {
    let node = match says.node {
        0 => String::new(),
        number => node(number).to_string(),
    };
    let account = match says.account {
        0 => Value::Null,
        number => format!("a{number}").into(),
    };
    let secrets = says.secrets.iter();
    let from: Vec<Value> = secrets
        .map(|secret| json!({"secretRef": {"name": format!("s{secret}")}}))
        .collect();
    let claims = says.claims.iter();
    let volumes: Vec<Value> = claims
        .map(|claim| json!({"persistentVolumeClaim": {"claimName": format!("c{claim}")}}))
        .collect();
    let mut text = json!({"spec": {"nodeName": node, "serviceAccountName": account,
        "containers": [{"envFrom": from}], "volumes": volumes}});
    if says.mirror {
        text["metadata"]["annotations"] = json!({object::references::MIRROR: ""});
    }
    text
}

fn carry_out(views: &mut Views, operation: &Operation) -> Changed {
    match operation {
        Operation::Pod(name, Some(says)) => {
            put(views, Kind::Pod, &format!("p{name}"), pod_text(says))
        }
        Operation::Pod(name, None) => delete(views, Kind::Pod, &format!("shop/p{name}")),
        Operation::OddPod(name) => {
            let pods = of_kind(Kind::Pod);
            let odd = json!({"spec": {"nodeName": "n1", "containers": {}}});
            let odd = object(&pods, "shop", &format!("p{name}"), odd);
            assert!(views.put(&pods, &odd.header, &odd.bytes).is_err());
            Changed::default()
        }
        Operation::Volume(name, Some(says)) => {
            let text = json!({"spec": {
                "claimRef": {"namespace": "shop", "name": format!("c{}", says.claim)},
                "rbd": {"secretRef": {"name": format!("s{}", says.secret)}}}});
            put(views, Kind::Volume, &format!("v{name}"), text)
        }
        Operation::Volume(name, None) => delete(views, Kind::Volume, &format!("v{name}")),
        Operation::Attachment(name, Some(owner)) => {
            let text = json!({"spec": {"nodeName": *node(*owner)}});
            put(views, Kind::Attachment, &format!("t{name}"), text)
        }
        Operation::Attachment(name, None) => delete(views, Kind::Attachment, &format!("t{name}")),
        Operation::Input(which, complete) => {
            let kind = [Kind::Pod, Kind::Volume, Kind::Attachment][*which as usize];
            let input = match complete {
                true => Input::Complete,
                false => Input::Frozen,
            };
            views.input(&of_kind(kind), input)
        }
    }
}

fn held(views: &Views) -> BTreeSet<Need> {
    let mut found = BTreeSet::new();
    for number in 1..=3 {
        for kind in NAMED {
            let names = names(views, &node(number), kind).unwrap();
            found.extend(names.into_iter().map(|name| (node(number), kind, name)));
        }
    }
    found
}

fn objects(needs: &BTreeSet<Need>) -> BTreeSet<(Resource, String)> {
    let needs = needs.iter();
    needs
        .map(|(_, kind, name)| (of_kind(*kind), name.clone()))
        .collect()
}

fn check(views: &Views, before: &BTreeSet<Need>, model: &Model, changed: &Changed) {
    let after = held(views);
    assert_eq!(after, model.held);
    let moved = before.symmetric_difference(&after);
    let nodes: BTreeSet<NodeName> = moved.map(|(node, ..)| node.clone()).collect();
    assert_eq!(changed.nodes, nodes);
    let (old, new) = (objects(before), objects(&after));
    let named = |(resource, name): (Resource, &ObjectName)| (resource, name.to_string());
    let needed: BTreeSet<_> = changed.needed().map(named).collect();
    let released: BTreeSet<_> = changed.released().map(named).collect();
    assert!(needed.iter().eq(new.difference(&old)));
    assert!(released.iter().eq(old.difference(&new)));
    for (resource, name) in old.union(&new) {
        let path = ObjectName::from_path(name);
        let is_needed = new.contains(&(resource.clone(), name.clone()));
        assert_eq!(views.is_needed(resource, &path), is_needed);
        let header = object(resource, path.namespace(), path.name(), json!({})).header;
        let holds = |(_, kind, held): &&Need| of_kind(*kind) == *resource && held == name;
        let holders = after.iter().filter(holds).map(|(node, ..)| node.clone());
        let expected = Holders::These(holders.collect());
        assert_eq!(views.holders(resource, &header), expected);
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let few = || prop::collection::vec(0..3u8, 0..3);
    let pod = (0..4u8, prop::bool::weighted(0.1), few(), few(), 0..3u8);
    let pod = pod.prop_map(|(node, mirror, secrets, claims, account)| PodSays {
        node,
        mirror,
        secrets,
        claims,
        account,
    });
    let volume = (0..3u8, 0..3u8).prop_map(|(claim, secret)| VolumeSays { claim, secret });
    prop_oneof![
        8 => (0..5u8, prop::option::weighted(0.7, pod)).prop_map(|(n, s)| Operation::Pod(n, s)),
        1 => (0..5u8).prop_map(Operation::OddPod),
        4 => (0..3u8, prop::option::weighted(0.7, volume))
            .prop_map(|(n, s)| Operation::Volume(n, s)),
        2 => (0..2u8, prop::option::of(1..4u8)).prop_map(|(n, s)| Operation::Attachment(n, s)),
        3 => (0..3u8, prop::bool::weighted(0.7)).prop_map(|(n, s)| Operation::Input(n, s)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn views_agree_with_a_model_that_works_everything_out_anew(
        operations in prop::collection::vec(operation(), 1..60)
    ) {
        let mut views = complete();
        let mut model = Model { complete: [true; 3], ..Model::default() };
        for operation in &operations {
            let before = held(&views);
            let changed = carry_out(&mut views, operation);
            model.follow(operation);
            check(&views, &before, &model, &changed);
        }
        for kind in [Kind::Pod, Kind::Volume, Kind::Attachment] {
            views.input(&of_kind(kind), Input::Complete);
        }
        prop_assert_eq!(held(&views), model.reasons());
    }
}
