//! Deliveries and requests share a link: a large answer, and one that nobody reads, hold up neither
//! deliveries nor small requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::cluster::client::{Client, Protocol};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::timeout;

use crate::accounts::{Pod, bind, client, token_of_nobody};
use crate::driver::{config_map, service};
use crate::inside::made_up;
use crate::links::through_a_proxy;
use crate::local::Local;
use crate::proxy::Weather;
use crate::watching::{expect, from, version};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// What is listed, and how fast the link is: half a minute of it.
const MADE: usize = 40;
const MADE_BYTES: usize = 150_000;
const BYTES_PER_SECOND: u64 = 256 * 1024;
/// How long anything else may take meanwhile. Behind the list it would take longer.
const SOON: Duration = Duration::from_secs(10);

/// A list of everything that has begun to come.
async fn begun(pod: &Pod) -> (Client, Incoming) {
    let mut client = pod.door.connect(Protocol::Http2).await.unwrap();
    let request = pod.local.request("GET", CONFIG_MAPS, None);
    let mut answer = client.ask(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
        .body_mut()
        .frame()
        .await
        .expect("a beginning")
        .unwrap();
    (client, answer.into_body())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_large_answer_and_one_that_nobody_reads_hold_up_no_delivery_and_no_request() {
    let (world, proxy) = through_a_proxy().await;
    let driver = &world.driver;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    bind(&world, &rules).await;
    let bytes = made_up(MADE * MADE_BYTES);
    for (number, bytes) in bytes.chunks(MADE_BYTES).enumerate() {
        let made = config_map(&format!("large-{number}"), &BASE64_STANDARD.encode(bytes));
        driver.create("configmaps", &made).await;
    }
    let seen = driver.create("services", &service("seen", "0")).await;
    let pod = client(&world, 0, token_of_nobody(&world).await).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    world.settled(SOON).await;
    let mut witness = local.watch(&from(&version(&seen), "")).await;
    let mut slow = Weather::far(Duration::from_millis(100));
    slow.down.bytes_per_second = Some(BYTES_PER_SECOND);
    proxy.weather(slow);
    let _unread = begun(&pod).await;
    let (_client, mut body) = begun(&pod).await;
    let ended = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let ended = ended.clone();
        async move {
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame.unwrap().into_data().unwrap().len();
            }
            ended.store(true, Ordering::SeqCst);
            bytes
        }
    });
    for number in 0..5 {
        let patch = json!({"metadata": {"annotations": {"note": format!("change {number}")}}});
        let changed = driver.patch("services", "seen", &patch).await;
        let told = expect(&mut witness, "MODIFIED", &changed);
        timeout(SOON, told).await.expect("a delivery in time");
        let path = format!("{CONFIG_MAPS}/one");
        let asked = timeout(SOON, pod.get(&path)).await;
        assert_eq!(asked.expect("an answer in time").status, 200);
    }
    assert!(
        !ended.load(Ordering::SeqCst),
        "the list was too fast to hold up anything"
    );
    assert_eq!(world.nodes[0].sessions().await, 1);
    // The list comes to its end, with the other one still unread.
    let came = reader.await.unwrap();
    assert!(came > MADE * MADE_BYTES, "{came} bytes came");
    world.settled(SOON).await;
}
