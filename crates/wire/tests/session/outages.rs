//! A first sync over a link that is cut all the time: each session brings it a little further.

use std::time::Duration;

use wire::frame::{Frame, MESSAGE_BYTES_MAX, Welcome, frames};
use wire::outbox::Source;
use wire::session::{Patience, Sender};
use wire::window::Limits;

use crate::chance::Chance;
use crate::cluster::{Cluster, resources, scopes};
use crate::node::Node;
use crate::world::view;

/// What happens between two sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// Nothing.
    Nothing,
    /// Some objects change, come and go.
    Changes,
    /// The same, and the hub forgets all that was.
    HubStarts,
}

const OBJECTS: usize = 300;
/// Messages that a session has from the hub before the link is cut.
const MESSAGES: usize = 30;

/// How many sessions it takes until the node has everything.
fn sessions(meanwhile: Meanwhile) -> usize {
    let mut chance = Chance::new(7);
    let mut cluster = Cluster::filled(OBJECTS);
    let mut node = Node::default();
    for session in 1..=OBJECTS {
        if is_complete(&node) {
            return session - 1;
        }
        // Half of the time the power goes, and with it what was not synced.
        match session % 2 {
            0 => node.crash(),
            _ => node.reconnect(),
        }
        one_session((&mut cluster, &mut node), MESSAGES, |_, _| ());
        if meanwhile != Meanwhile::Nothing {
            (0..3).for_each(|_| cluster.change_filled(&mut chance, OBJECTS));
            cluster.advance();
        }
        if meanwhile == Meanwhile::HubStarts {
            cluster.forget();
        }
    }
    panic!("it never ends");
}

/// A session that ends after so many messages, before each of which something happens.
fn one_session(
    (cluster, node): (&mut Cluster, &mut Node),
    messages: usize,
    mut happens: impl FnMut(usize, &mut Cluster),
) {
    let welcome = Welcome {
        protocol: 1,
        features: 1,
        hub: "hub".into(),
        heartbeat_seconds: 30,
        window: 12,
    };
    let limits = Limits {
        deliveries: 12,
        ..Limits::default()
    };
    let staged = node.staged_holdings();
    let holds = (node.holdings(), staged);
    let now = Duration::from_secs(1_000);
    let mut sender = Sender::new(welcome, holds, (limits, Patience::HUB), now);
    sender.view(&view(&scopes()[..1]));
    for message in 0..messages {
        happens(message, cluster);
        let (frame, _) = sender.next(cluster, now).unwrap();
        let mut answers = Vec::new();
        if let Some(frame) = frame {
            answers = node.take(carried(&frame)).unwrap();
        }
        node.flush();
        while node.has_pending() {
            answers.extend(node.sync(cluster));
        }
        for answer in answers {
            sender.take(carried(&answer), cluster, now).unwrap();
        }
    }
}

fn carried(frame: &Frame) -> Frame {
    let mut message = Vec::new();
    frame.encode(&mut message);
    frames(&message, MESSAGE_BYTES_MAX).unwrap().remove(0)
}

/// Whether the node holds the scope of each resource. That it held the cluster's objects at that
/// moment, the disk has seen to.
fn is_complete(node: &Node) -> bool {
    resources().iter().all(|resource| {
        let table = node.disk.tables.get(resource);
        table.is_some_and(|table| !table.held.is_empty())
    })
}

/// Sessions that are needed if each brings a third of what it could: the rest is the answer to the
/// hello, what is asked, and a page's beginning.
const SESSIONS_MAX: usize = 3 * 2 * OBJECTS / MESSAGES;

#[test]
fn a_first_sync_goes_on_where_it_was_cut_off() {
    let sessions = sessions(Meanwhile::Nothing);
    assert!(sessions > 10, "{sessions} sessions show nothing");
    assert!(sessions <= SESSIONS_MAX, "{sessions} sessions");
}

#[test]
fn what_changes_meanwhile_is_put_right_and_the_rest_goes_on() {
    let sessions = sessions(Meanwhile::Changes);
    assert!(sessions <= SESSIONS_MAX, "{sessions} sessions");
}

#[test]
fn a_hub_that_knows_nothing_of_it_goes_on_as_well() {
    let sessions = sessions(Meanwhile::HubStarts);
    assert!(sessions <= SESSIONS_MAX, "{sessions} sessions");
}

#[test]
fn a_first_sync_ends_though_more_changes_meanwhile_than_the_ring_remembers() {
    let mut chance = Chance::new(3);
    let mut cluster = Cluster::filled(OBJECTS);
    let mut node = Node::default();
    let mut lost = 0;
    let both = (&mut cluster, &mut node);
    one_session(both, 20 * OBJECTS, |message, cluster| {
        if message % 4 == 0 {
            let floor = cluster.ring(&resources()[0]).unwrap().floor().clone();
            cluster.change_filled(&mut chance, OBJECTS);
            lost += usize::from(*cluster.ring(&resources()[0]).unwrap().floor() > floor);
        }
    });
    assert!(lost > OBJECTS, "the ring forgot {lost} times");
    assert!(is_complete(&node), "it never ends");
}
