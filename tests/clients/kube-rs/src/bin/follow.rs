//! Follows services at the server of KUBECONFIG while they are written to the one of E2E_WITNESS,
//! which it is a replica of, for as many seconds as the first word says. The replica may be cut off
//! and restarted meanwhile. No object may go back, and in the end all is as the witness has it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

/// How long a replica that was away may take to have everything.
const PATIENCE: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(30);
/// Few names, so that they are used again and again.
const NAMES: u64 = 20;

/// Versions by name, and with each the uid.
type Held = BTreeMap<String, (String, u64)>;

/// What was seen.
#[derive(Default)]
struct Seen {
    held: Held,
    /// What a list has said so far.
    listed: Option<Held>,
    events: usize,
    lists: usize,
    faults: Vec<String>,
}

fn version(service: &Service) -> (String, u64) {
    let version = service.resource_version().unwrap_or_default();
    (
        service.uid().unwrap_or_default(),
        version.parse().expect("a version"),
    )
}

impl Seen {
    /// An object must not go back.
    fn check(&mut self, service: &Service) {
        let (uid, at) = version(service);
        if let Some((held, before)) = self.held.get(&service.name_any())
            && *held == uid
            && *before > at
        {
            let name = service.name_any();
            self.faults
                .push(format!("{name}: from {before} back to {at}"));
        }
    }

    fn take(&mut self, event: Event<Service>) {
        self.events += 1;
        match event {
            Event::Init => self.listed = Some(Held::new()),
            Event::InitApply(service) => {
                self.check(&service);
                let name = service.name_any();
                let listed = self.listed.get_or_insert_default();
                listed.insert(name, version(&service));
            }
            Event::InitDone => {
                self.lists += 1;
                self.held = self.listed.take().unwrap_or_default();
            }
            Event::Apply(service) => {
                self.check(&service);
                self.held.insert(service.name_any(), version(&service));
            }
            Event::Delete(service) => {
                let name = service.name_any();
                if self.held.remove(&name).is_none() {
                    self.faults.push(format!("{name} went and was not there"));
                }
            }
        }
    }
}

/// Makes, changes and deletes services.
async fn write(services: &Api<Service>, during: Duration) {
    let began = Instant::now();
    let mut dice: u64 = 6;
    while began.elapsed() < during {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("s-{}", (dice >> 33) % NAMES);
        let note = json!({"metadata": {"annotations": {"note": dice.to_string()}}});
        let note = Patch::Merge(note);
        let (make, patch) = (PostParams::default(), PatchParams::default());
        // What is not there, or is there already, is no fault.
        let done = match (dice >> 40) % 4 {
            0 => services.create(&make, &service(&name)).await.map(drop),
            1 => {
                let gone = services.delete(&name, &DeleteParams::default()).await;
                gone.map(drop)
            }
            _ => services.patch(&name, &patch, &note).await.map(drop),
        };
        match done {
            Ok(()) => {}
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409) => {}
            Err(error) => panic!("the witness refuses: {error}"),
        }
        sleep(PAUSE).await;
    }
}

fn service(name: &str) -> Service {
    let metadata = json!({"name": name});
    let spec = json!({"type": "ExternalName", "externalName": "example.test"});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a service")
}

async fn client_of(path: &str) -> Client {
    let read = Kubeconfig::read_from(path).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await;
    Client::try_from(config.expect("a kubeconfig")).expect("a client")
}

async fn namespace(witness: &Client) -> String {
    let name = format!("kube-rs-follow-{}", std::process::id());
    let made = Namespace {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let all: Api<Namespace> = Api::all(witness.clone());
    all.create(&PostParams::default(), &made)
        .await
        .expect("a namespace");
    name
}

#[tokio::main]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let during = Duration::from_secs(seconds.expect("how many seconds"));
    let path = std::env::var("E2E_WITNESS").expect("E2E_WITNESS names a kubeconfig");
    let witness = client_of(&path).await;
    let replica = Client::try_default().await.expect("KUBECONFIG");
    let namespace = namespace(&witness).await;
    let there: Api<Service> = Api::namespaced(witness, &namespace);
    let here: Api<Service> = Api::namespaced(replica, &namespace);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut follower = Box::pin(watcher(here, Config::default()).default_backoff());
    let noted = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(event) = follower.next().await {
            // A replica that is not there for a while is asked again.
            if let Ok(event) = event {
                noted.lock().expect("nobody panicked").take(event);
            }
        }
    });
    write(&there, during).await;
    let list = there.list(&ListParams::default()).await.expect("a list");
    let wanted: Held = list.iter().map(|it| (it.name_any(), version(it))).collect();
    let alike = timeout(PATIENCE, async {
        while seen.lock().expect("nobody panicked").held != wanted {
            sleep(Duration::from_millis(50)).await;
        }
    });
    let alike = alike.await.is_ok();
    let seen = seen.lock().expect("nobody panicked");
    let (events, lists) = (seen.events, seen.lists);
    assert!(alike, "it has {:?} and not {wanted:?}", seen.held);
    assert!(seen.faults.is_empty(), "{:?}", seen.faults);
    println!(
        "ok   kube-rs: {events} events, {lists} lists, {} services = list",
        wanted.len()
    );
}
