//! What is written here though there is a link, and what is not.

use host::Times;
use kubeapi::catalog::Catalog;
use kubeapi::request::Target;
use kubeapi::serve::{Entrusted, Seen};

use super::*;
use crate::tunnel::{Answers, REQUESTS_MAX, Tunnel};

/// What sees to writes on a link that others have all the room of.
fn crowded(node: &mut Node) -> Desk {
    let crowd = node.tasks.crowd("requests", REQUESTS_MAX);
    let times = Times::new(node.clock.clone());
    let tunnel = Tunnel::new(crowd, times.clone(), Arc::default());
    let none = wire::stream::Limits {
        streams: 0,
        ..Default::default()
    };
    let board = tunnel::Board::new(wire::stream::Side::Agent, none, || {});
    tunnel.begin(Some(board.opener()), Answers::Plain);
    let (name, overlay) = ("n1".parse().unwrap(), node.overlay.clone());
    Desk::new(&name, (tunnel, node.reports.clone()), overlay, times)
}

/// A merge patch.
fn patched(plural: &str, uri: &str, body: &'static [u8]) -> Entrusted {
    let Ok(Target::Resource(path)) = Target::parse(uri) else {
        panic!("{uri}");
    };
    let request = http::Request::patch(uri).header("content-type", "application/merge-patch+json");
    Entrusted {
        head: request.body(()).unwrap().into_parts().0,
        path,
        kind: Catalog::new().find("", "v1", plural).unwrap(),
        body: Bytes::from_static(body),
    }
}

/// A status of the pod.
fn status() -> Entrusted {
    let uri = "/api/v1/namespaces/default/pods/p/status";
    patched("pods", uri, br#"{"status":{"message":"here"}}"#)
}

#[tokio::test]
async fn while_others_have_the_whole_link_a_status_is_written_here() {
    let mut node = Node::new().await;
    let desk = crowded(&mut node);
    let seen = desk.see_to(status()).await.unwrap();
    assert!(matches!(seen, Seen::Object(200, _)));
    assert_eq!(node.shown().unwrap()["status"]["message"], "here");
    assert_eq!(node.reports.counts().0, 1);
}

#[tokio::test]
async fn nothing_joins_a_queue_that_the_hub_takes_nothing_of() {
    let mut node = Node::new().await;
    let desk = crowded(&mut node);
    node.write(json!({"reason": "before"})).await.unwrap();
    node.reports.begin(Hub::TakesNone);
    let uri = "/api/v1/namespaces/default/events/e";
    let event = || patched("events", uri, br#"{"count":2}"#);
    for entrusted in [status(), event()] {
        let refused = desk.see_to(entrusted).await.map(|_| ()).unwrap_err();
        assert_eq!(refused.code, 503);
    }
    assert_eq!(node.reports.counts().0, 1);
}
