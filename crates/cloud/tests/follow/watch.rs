//! The cache is the cluster, whatever happens in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloud::cache::{Cache, Keep, Limits, Relisted, State, Wanted};
use cloud::cluster::{Paging, Served, canonical};
use cloud::watch::{self, Told, Watch};
use host::{Clock, Shutdown, Tasks};
use object::{ObjectName, Resource, Scope};
use parking_lot::{Mutex, RwLock};
use store::Retention;
use tokio::sync::{Notify, watch as channel};

use crate::stage::{DEADLINE, Stage, config_maps};

/// A loop that follows config maps, and what it told.
struct Hub {
    cache: Arc<RwLock<Cache>>,
    told: Arc<Mutex<Vec<Told>>>,
    woken: Arc<Notify>,
    epochs: channel::Sender<u64>,
    watch: Watch,
    tasks: Tasks,
}

impl Hub {
    fn start(stage: &mut Stage, served: Served, keep: Keep) -> Self {
        let mut cache = Cache::new(1, Limits::default());
        cache.open(&served.resource, keep);
        let cache = Arc::new(RwLock::new(cache));
        let (epochs, begun) = channel::channel(1);
        let told = Arc::new(Mutex::new(Vec::new()));
        let woken = Arc::new(Notify::new());
        let (heard, wake) = (told.clone(), woken.clone());
        let mut tasks = Tasks::new(Shutdown::new());
        let watch = Watch {
            client: stage.hub(),
            served,
            cache: cache.clone(),
            epochs: begun,
            clock: Clock::machine(),
            shutdown: tasks.shutdown().clone(),
            tell: Arc::new(move |told| {
                heard.lock().push(told);
                wake.notify_one();
            }),
        };
        tasks.add("watch", watch::run(watch.clone()));
        Self {
            cache,
            told,
            woken,
            epochs,
            watch,
            tasks,
        }
    }

    /// Waits until something holds that the loop tells of.
    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waited = tokio::time::timeout(DEADLINE, async {
            while !holds(self) {
                self.woken.notified().await;
            }
        });
        let told = || self.told.lock().clone();
        assert!(waited.await.is_ok(), "never {what}: {:?}", told());
    }

    fn resource(&self) -> &Resource {
        &self.watch.served.resource
    }

    fn state(&self) -> State {
        self.cache.read().state(self.resource())
    }

    fn has_told(&self, what: impl Fn(&Told) -> bool) -> bool {
        self.told.lock().iter().any(what)
    }

    /// The text of a config map in the cache.
    fn text(&self, name: &str) -> Option<String> {
        let name = ObjectName::new("default", name);
        let (_, bytes) = self.cache.read().object(self.resource(), &name)?;
        let object: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        Some(
            object["data"]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    /// Everything in the cache.
    fn held(&self) -> BTreeMap<String, Bytes> {
        let cache = self.cache.read();
        let headers = cache.headers(self.resource(), &[Scope::all()]);
        let held = headers.iter().map(|header| {
            let (_, bytes) = cache.object(self.resource(), &header.name).unwrap();
            (header.name.to_string(), bytes)
        });
        held.collect()
    }

    async fn stop(self) {
        self.tasks.shutdown().trigger();
        self.tasks.join(DEADLINE).await.unwrap();
    }
}

/// Everything in the cluster, as it is kept.
async fn there(stage: &Stage, served: &Served) -> BTreeMap<String, Bytes> {
    let mut listing = stage.client.list(served, Paging::Pages);
    let mut all = BTreeMap::new();
    while let Some(item) = listing.next().await.unwrap() {
        let object = canonical(served, &item).unwrap();
        all.insert(object.header.name.to_string(), object.bytes);
    }
    all
}

#[tokio::test]
async fn what_changes_in_the_cluster_changes_in_the_cache() {
    let mut stage = Stage::open().await;
    stage.create("old", "one").await;
    let hub = Hub::start(&mut stage, config_maps(), Keep::All);
    hub.until("listed", |hub| hub.text("old").as_deref() == Some("one"))
        .await;
    stage.change("old", "two").await;
    stage.create("new", "three").await;
    stage.create("gone", "four").await;
    stage.delete("gone").await;
    stage.create("last", "five").await;
    hub.until("followed", |hub| hub.text("last").is_some())
        .await;
    assert_eq!(hub.text("old").as_deref(), Some("two"));
    assert_eq!((hub.text("gone"), hub.state()), (None, State::Complete));
    assert_eq!(hub.held(), there(&stage, &config_maps()).await);
    let deleted = |told: &Told| match told {
        Told::Changed(_, changes) => changes.iter().any(|change| change.after.is_none()),
        _ => false,
    };
    assert!(hub.has_told(deleted));
    hub.stop().await;
}

#[tokio::test]
async fn a_cut_freezes_and_what_changed_meanwhile_comes_without_a_list() {
    let mut stage = Stage::open().await;
    stage.create("a", "one").await;
    stage.create("b", "one").await;
    let hub = Hub::start(&mut stage, config_maps(), Keep::All);
    hub.until("listed", |hub| hub.text("b").is_some()).await;
    stage.cut().await;
    hub.until("frozen", |hub| matches!(hub.state(), State::Frozen(_)))
        .await;
    assert_eq!(hub.text("a").as_deref(), Some("one"), "nothing is emptied");
    stage.change("a", "two").await;
    stage.delete("b").await;
    stage.create("c", "three").await;
    stage.heal().await;
    hub.until("caught up", |hub| hub.text("c").is_some()).await;
    assert_eq!(hub.held(), there(&stage, &config_maps()).await);
    assert_eq!(hub.state(), State::Complete);
    let listed =
        |told: &Told| matches!(told, Told::Listed(_, relisted) if *relisted != Relisted::First);
    assert!(!hub.has_told(listed));
    assert!(hub.has_told(|told| matches!(told, Told::Thawed(_))));
    hub.stop().await;
}

#[tokio::test]
async fn a_cluster_that_forgot_is_listed_anew_and_what_is_missing_goes() {
    let retention = Retention {
        events_max: 4,
        events_min: 0,
        age_max: Duration::ZERO,
        ..Retention::default()
    };
    let mut stage = Stage::open_with(retention).await;
    for number in 0..6 {
        stage.create(&format!("m{number}"), "one").await;
    }
    let hub = Hub::start(&mut stage, config_maps(), Keep::All);
    hub.until("listed", |hub| hub.text("m5").is_some()).await;
    stage.cut().await;
    hub.until("frozen", |hub| matches!(hub.state(), State::Frozen(_)))
        .await;
    stage.delete("m3").await;
    for number in 0..20 {
        stage.change("m1", &format!("change {number}")).await;
    }
    stage.heal().await;
    hub.until("caught up", |hub| {
        hub.text("m1").as_deref() == Some("change 19")
    })
    .await;
    assert_eq!(hub.held(), there(&stage, &config_maps()).await);
    assert_eq!(hub.text("m3"), None);
    let anew = |told: &Told| matches!(told, Told::Listed(_, Relisted::Anew(_)));
    assert!(hub.has_told(anew), "{:?}", hub.told.lock());
    hub.stop().await;
}

#[tokio::test]
async fn a_cluster_that_went_back_begins_a_new_epoch_and_nothing_is_deleted_before() {
    let mut stage = Stage::open().await;
    for number in 0..30 {
        stage.create(&format!("m{number}"), "one").await;
    }
    let hub = Hub::start(&mut stage, config_maps(), Keep::All);
    hub.until("listed", |hub| hub.text("m29").is_some()).await;
    stage.restore_empty().await;
    let rewound = |told: &Told| matches!(told, Told::Rewound { .. });
    hub.until("rewound", |hub| hub.has_told(rewound)).await;
    assert_eq!(
        hub.text("m29").as_deref(),
        Some("one"),
        "not before somebody decides"
    );
    stage.create("fresh", "two").await;
    hub.cache.write().begin(2);
    hub.epochs.send(2).unwrap();
    hub.until("listed", |hub| hub.text("fresh").is_some()).await;
    assert_eq!(hub.held(), there(&stage, &config_maps()).await);
    assert_eq!(hub.text("m29"), None);
    hub.stop().await;
}

#[tokio::test]
async fn what_may_not_be_listed_is_said_and_tried_again() {
    let mut stage = Stage::open().await;
    let nothing = Served::new(
        Resource::new("no.such.group", "things"),
        "no.such.group/v1",
        "Thing",
    );
    let hub = Hub::start(&mut stage, nothing, Keep::All);
    let frozen = |told: &Told| matches!(told, Told::Frozen(_));
    hub.until("told", |hub| hub.has_told(frozen)).await;
    assert_eq!(hub.state(), State::Unlisted);
    let trouble = hub.cache.read().trouble(hub.resource()).cloned();
    let why = trouble.unwrap().why;
    assert!(why.contains("404"), "{why}");
    hub.stop().await;
}

#[tokio::test]
async fn bytes_that_somebody_wants_are_fetched() {
    let mut stage = Stage::open().await;
    stage.create("a", "one").await;
    let hub = Hub::start(&mut stage, config_maps(), Keep::Wanted);
    let name = ObjectName::new("default", "a");
    let listed = |hub: &Hub| hub.cache.read().header(hub.resource(), &name).is_some();
    hub.until("listed", listed).await;
    assert_eq!(hub.text("a"), None);
    let wanted = hub.cache.write().want(hub.resource(), &name);
    assert_eq!(wanted, Wanted::Lacking);
    assert!(watch::fetch(&hub.watch, &name).await.unwrap());
    assert_eq!(hub.text("a").as_deref(), Some("one"));
    stage.change("a", "two").await;
    hub.until("followed", |hub| hub.text("a").as_deref() == Some("two"))
        .await;
    let gone = ObjectName::new("default", "gone");
    assert!(
        watch::fetch(&hub.watch, &gone).await.unwrap(),
        "it is of no more use"
    );
    hub.stop().await;
}
