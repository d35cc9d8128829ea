//! The objects of the load: config maps of a known size, made through the API or put into a store.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use object::{Header, ObjectName, Resource};
use serde_json::Value;
use store::authority::{Action, Draft, Expect, Swap};
use store::disk::real::RealDisk;
use store::{Authority, Options};

use crate::client::Client;

/// Where the config maps of a namespace are.
pub(crate) fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// A config map that is about so many bytes long when it is stored.
pub(crate) fn config_map(name: &str, change: usize, bytes: usize) -> Bytes {
    let data = data(change, bytes);
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{data}}}"#
    );
    body.into()
}

/// What is in a config map. The number of the change stands last, where a watcher finds it without
/// reading the rest.
fn data(change: usize, bytes: usize) -> String {
    let filling = filling(change, bytes.saturating_sub(BARE_BYTES));
    format!(r#"{{"a":"{filling}","change":"{change:010}"}}"#)
}

/// Text that is different each time and shrinks by about half, as real configuration does.
fn filling(seed: usize, bytes: usize) -> String {
    let mut state = seed as u64;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        text.push_str(&format!("{:08x}", state >> 32));
    }
    text.truncate(bytes);
    text
}

/// What a config map without filling takes with its metadata.
const BARE_BYTES: usize = 270;

/// Makes a namespace, and waits until the cluster has put its own config map there.
pub(crate) async fn make_namespace(client: &mut Client, name: &str) {
    let body = namespace(name);
    client.call("POST", "/api/v1/namespaces", body).await;
    loop {
        let list = client.read(&collection(name)).await;
        if items(&list) > 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A namespace, to be made.
pub(crate) fn namespace(name: &str) -> Bytes {
    let body =
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    body.into()
}

/// How many items a list has.
pub(crate) fn items(list: &[u8]) -> usize {
    let list: Value = serde_json::from_slice(list).expect("JSON");
    list["items"].as_array().expect("items").len()
}

/// The version of an object or a list.
pub(crate) fn version(object: &[u8]) -> u64 {
    let object: Value = serde_json::from_slice(object).expect("JSON");
    let version = object["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    version.parse().expect("a number")
}

/// Puts config maps into the store of a cluster that does not run: quicker than through its API.
pub(crate) fn seed(home: &Path, namespace: &str, count: usize, bytes: usize) {
    let disk = RealDisk::open(&home.join("store")).expect("the store's folder");
    let options = Options::new("cluster");
    let authority = Authority::open(Arc::new(disk), options, Clock::machine()).expect("a store");
    let resource = Resource::new("", "configmaps");
    authority
        .open_tables_blocking(vec![resource.clone()])
        .expect("a table");
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(512) {
        let swaps = some
            .iter()
            .map(|number| create(&resource, namespace, *number, bytes));
        authority
            .swap_blocking(swaps.collect())
            .expect("room on the disk");
    }
    authority.close();
}

/// The name of an object by its number; names in order are numbers in order.
pub(crate) fn name(number: usize) -> String {
    format!("object-{number:06}")
}

fn create(resource: &Resource, namespace: &str, number: usize, bytes: usize) -> Swap {
    let name = name(number);
    let uid = format!("00000000-0000-4000-8000-{number:012}");
    let head = [
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":""#,
        &name,
        r#"","namespace":""#,
        namespace,
        r#"","uid":""#,
        &uid,
        r#"","creationTimestamp":"2026-01-01T00:00:00Z","resourceVersion":""#,
    ]
    .concat();
    let tail = format!(r#""}},"data":{}}}"#, data(number, bytes));
    let whole = format!("{head}1{tail}");
    let header = Header::parse(resource, whole.as_bytes(), &[]).expect("an object");
    let draft = Draft {
        header,
        head: head.into(),
        tail: tail.into(),
    };
    Swap {
        resource: resource.clone(),
        name: ObjectName::new(namespace, &name),
        expect: Expect::Absent,
        action: Action::Put(Box::new(draft)),
    }
}
