//! Which node has a session here, and who is woken when something changes.
//!
//! The node counts its sessions, on its disk: the one with the highest number is the node's, and
//! one with a lower number ends. Two agents with one identity would take it from each other for
//! ever; that they do so is seen here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::digest::content_hash;

/// A node's name.
pub type NodeName = Arc<str>;

/// Takeovers within this time that mean more than a node that comes back.
const CLONE_WINDOW: Duration = Duration::from_secs(300);
/// How many of them.
const CLONE_TAKEOVERS: usize = 5;

/// All sessions of a hub.
#[derive(Debug, Default)]
pub struct Sessions {
    live: Mutex<HashMap<NodeName, Live>>,
}

#[derive(Debug)]
struct Live {
    number: u64,
    bell: Arc<Bell>,
    /// When it was taken over, lately.
    takeovers: VecDeque<Duration>,
}

/// How a session is woken. Several words become one.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Notify,
    words: AtomicU16,
}

/// What a session is woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Something changed that it may have to send.
    Changed = 1,
    /// What the node is to hold changed.
    View = 2,
    /// The node has a newer session.
    Superseded = 4,
    /// The node may not be here any more.
    Revoked = 8,
    /// The node is to be told how far it is.
    Progress = 16,
    /// The history of the cluster is another one.
    Epoch = 32,
    /// Something is to be sent on a stream.
    Stream = 64,
    /// The documents that the node is to have changed.
    Papers = 128,
    /// Something that the node reported is done.
    Reported = 256,
}

/// The words that were said since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words(u16);

impl Words {
    /// Whether this one is among them.
    pub fn has(self, word: Word) -> bool {
        self.0 & word as u16 != 0
    }
}

impl Bell {
    /// Wakes the session, now or when it next waits.
    pub fn ring(&self, word: Word) {
        self.words.fetch_or(word as u16, Ordering::AcqRel);
        self.rung.notify_one();
    }

    /// Waits until it is rung.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    /// What was said since the last look.
    pub fn words(&self) -> Words {
        Words(self.words.swap(0, Ordering::AcqRel))
    }
}

/// What becomes of a session that wants to begin.
#[derive(Debug)]
pub enum Begun {
    /// It is the node's session. `clone` says that it looks as if two agents had one identity.
    Yes {
        /// How it is woken.
        bell: Arc<Bell>,
        /// Whether the node's sessions take over from each other all the time.
        clone: bool,
    },
    /// The node has a newer one.
    Older {
        /// Its number.
        number: u64,
    },
}

impl Sessions {
    /// A session wants to begin: the one that the node had ends.
    pub fn begin(&self, node: &NodeName, number: u64, now: Duration) -> Begun {
        let mut live = self.live.lock();
        let before = live.get(node).filter(|before| before.number >= number);
        if let Some(before) = before {
            return Begun::Older {
                number: before.number,
            };
        }
        let bell = Arc::new(Bell::default());
        let mut takeovers = VecDeque::new();
        if let Some(before) = live.remove(node) {
            before.bell.ring(Word::Superseded);
            takeovers = before.takeovers;
            takeovers.push_back(now);
            takeovers.retain(|at| now.saturating_sub(*at) < CLONE_WINDOW);
        }
        let clone = takeovers.len() >= CLONE_TAKEOVERS;
        if clone {
            takeovers.clear();
        }
        let entry = Live {
            number,
            bell: Arc::clone(&bell),
            takeovers,
        };
        live.insert(Arc::clone(node), entry);
        Begun::Yes { bell, clone }
    }

    /// A session is over.
    pub fn end(&self, node: &NodeName, number: u64) {
        let mut live = self.live.lock();
        if live.get(node).is_some_and(|live| live.number == number) {
            live.remove(node);
        }
    }

    /// Wakes a node's session, if it has one here.
    pub fn ring(&self, node: &str, word: Word) {
        if let Some(live) = self.live.lock().get(node) {
            live.bell.ring(word);
        }
    }

    /// Wakes all sessions.
    pub fn ring_all(&self, word: Word) {
        self.live
            .lock()
            .values()
            .for_each(|live| live.bell.ring(word));
    }

    /// Wakes those sessions whose turn it is, of so many turns.
    pub fn ring_some(&self, word: Word, turn: u64, turns: u64) {
        let live = self.live.lock();
        let its = |node: &str| content_hash(node.as_bytes()) % turns;
        let some = live.iter().filter(|(node, _)| its(node) == turn);
        some.for_each(|(_, live)| live.bell.ring(word));
    }

    /// A node has a session elsewhere: with a higher number, the one here ends.
    pub fn elsewhere(&self, node: &str, number: u64) {
        let live = self.live.lock();
        if let Some(live) = live.get(node).filter(|live| live.number < number) {
            live.bell.ring(Word::Superseded);
        }
    }

    /// The nodes that have a session here, and their numbers.
    pub fn all(&self) -> Vec<(NodeName, u64)> {
        let live = self.live.lock();
        live.iter()
            .map(|(node, live)| (Arc::clone(node), live.number))
            .collect()
    }

    /// Whether a node has the one with this number here.
    pub fn is(&self, node: &str, number: u64) -> bool {
        let live = self.live.lock();
        live.get(node).is_some_and(|live| live.number == number)
    }

    /// Whether a node has one here.
    pub fn has(&self, node: &str) -> bool {
        self.live.lock().contains_key(node)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.live.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeName {
        "n".into()
    }

    fn begun(sessions: &Sessions, number: u64, at: u64) -> (Arc<Bell>, bool) {
        match sessions.begin(&node(), number, Duration::from_secs(at)) {
            Begun::Yes { bell, clone } => (bell, clone),
            Begun::Older { number } => panic!("{number} is newer"),
        }
    }

    #[test]
    fn the_highest_number_has_the_node() {
        let sessions = Sessions::default();
        let (first, _) = begun(&sessions, 5, 0);
        for older in [3, 5] {
            let begun = sessions.begin(&node(), older, Duration::ZERO);
            assert!(matches!(begun, Begun::Older { number: 5 }));
        }
        assert!(!first.words().has(Word::Superseded));
        assert!(sessions.is("n", 5));
        begun(&sessions, 6, 1);
        assert!(!sessions.is("n", 5) && sessions.is("n", 6));
        assert!(first.words().has(Word::Superseded));
        // The old one says that it is over: the new one stays.
        sessions.end(&node(), 5);
        assert_eq!(sessions.all(), [(node(), 6)]);
        sessions.end(&node(), 6);
        assert!(sessions.is_empty());
    }

    #[test]
    fn words_add_up_until_they_are_heard() {
        let sessions = Sessions::default();
        let (bell, _) = begun(&sessions, 1, 0);
        sessions.ring("n", Word::Changed);
        sessions.ring_all(Word::View);
        sessions.ring("other", Word::Revoked);
        let words = bell.words();
        assert!(words.has(Word::Changed) && words.has(Word::View));
        assert!(!words.has(Word::Revoked));
        assert!(!bell.words().has(Word::Changed));
    }

    #[test]
    fn two_agents_with_one_identity_are_noticed_and_a_node_that_comes_back_is_not() {
        let sessions = Sessions::default();
        let noticed = (1..=7).filter(|number| begun(&sessions, *number, number * 20).1);
        assert_eq!(noticed.count(), 1);
        let calm = Sessions::default();
        let noticed = (1..=20).filter(|number| begun(&calm, *number, number * 120).1);
        assert_eq!(noticed.count(), 0);
    }

    #[test]
    fn in_a_round_of_turns_each_session_is_woken_once() {
        let sessions = Sessions::default();
        let bells: Vec<Arc<Bell>> = (0..50)
            .map(|number| {
                let node: NodeName = format!("node-{number}").into();
                match sessions.begin(&node, 1, Duration::ZERO) {
                    Begun::Yes { bell, .. } => bell,
                    Begun::Older { .. } => panic!("it is the first"),
                }
            })
            .collect();
        let mut woken = 0;
        for turn in 0..8 {
            sessions.ring_some(Word::Progress, turn, 8);
            let rung = bells.iter().filter(|bell| bell.words().has(Word::Progress));
            let rung = rung.count();
            assert!(rung < 25, "{rung} at once");
            woken += rung;
        }
        assert_eq!(woken, 50);
    }

    #[test]
    fn a_higher_number_elsewhere_ends_the_session_here() {
        let sessions = Sessions::default();
        let (bell, _) = begun(&sessions, 4, 0);
        sessions.elsewhere("n", 4);
        assert!(!bell.words().has(Word::Superseded));
        sessions.elsewhere("n", 5);
        assert!(bell.words().has(Word::Superseded));
    }
}
