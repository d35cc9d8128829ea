//! Tests of the rules by which a resource is followed: no cluster, no clock that moves by itself.

use host::Clock;
use object::Scope;

use super::*;
use crate::cache::{Keep, Limits, State};
use crate::cluster::{Paging, Status};
use std::time::Instant;

pub(super) fn pods() -> Resource {
    Resource::new("", "pods")
}

pub(super) fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

pub(super) fn pod(name: &str, node: &str, at: u64) -> Object {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a",
        "uid":"{name}-uid","resourceVersion":"{at}"}},"spec":{{"nodeName":"{node}"}}}}"#
    );
    Object::parse(&pods(), text.into(), &[]).unwrap()
}

/// A follower, its cache, and a time that the test moves.
pub(super) struct Play {
    pub(super) follower: Follower,
    pub(super) cache: Cache,
    pub(super) now: Instant,
}

impl Play {
    pub(super) fn new() -> Self {
        let mut cache = Cache::new(1, Limits::default());
        cache.open(&pods(), Keep::All);
        Self {
            follower: Follower::new(pods(), 1, Dice::seeded(1)),
            cache,
            now: Clock::machine().now(),
        }
    }

    /// One that has listed so many pods at version 100, and watches.
    fn watching(count: usize) -> Self {
        let mut play = Self::new();
        let all: Vec<Object> = (0..count)
            .map(|i| pod(&format!("p{i:02}"), "n1", 5))
            .collect();
        assert_eq!(play.next(), Act::List(Paging::Pages));
        play.list(&all, 100);
        assert_eq!(play.next(), Act::Watch(version(100)));
        play.follower.watch_started(&mut play.cache, play.now);
        play
    }

    fn next(&mut self) -> Act {
        self.follower.next(&self.cache, self.now)
    }

    /// What comes after every wait.
    pub(super) fn next_act(&mut self) -> Act {
        match self.next() {
            Act::Wait(until) => {
                assert!(until > self.now, "a wait that is over");
                self.now = until;
                self.next()
            }
            act => act,
        }
    }

    pub(super) fn list(&mut self, all: &[Object], at: u64) -> Option<Told> {
        self.follower.list_started(&mut self.cache);
        for object in all {
            self.follower.listed(&mut self.cache, object.clone());
        }
        self.follower
            .list_done(&mut self.cache, &version(at), self.now)
    }

    pub(super) fn fail(&mut self, failure: Failure) -> Option<Told> {
        self.follower.failed(&mut self.cache, failure, self.now)
    }

    fn held(&self) -> usize {
        self.cache.headers(&pods(), &[Scope::all()]).len()
    }
}

pub(super) fn broken() -> Failure {
    Failure::Broken("the connection broke".into())
}

pub(super) fn forbidden() -> Failure {
    Failure::Refused("403".into())
}

#[test]
fn a_list_and_then_a_watch_from_its_version() {
    let mut play = Play::watching(3);
    let told = play.follower.put(&mut play.cache, pod("new", "n1", 101));
    assert!(matches!(told, Some(Told::Changed(_, changes)) if changes.len() == 1));
    let gone = pod("p00", "n1", 102);
    play.follower.delete(&mut play.cache, &gone.header);
    let told = play.follower.bookmark(&mut play.cache, &version(120));
    assert_eq!(told, Some(Told::Advanced(pods())));
    assert_eq!(play.held(), 3);
    play.now += Duration::from_secs(300);
    play.follower.watch_ended(play.now);
    assert_eq!(
        play.next(),
        Act::Watch(version(120)),
        "at once, where it stood"
    );
}

#[test]
fn a_watch_that_breaks_is_taken_up_again_after_a_look() {
    let mut play = Play::watching(3);
    let told = play.fail(broken());
    assert_eq!(told, Some(Told::Frozen(pods())));
    assert!(matches!(play.cache.state(&pods()), State::Frozen(_)));
    assert_eq!(play.next_act(), Act::Look);
    play.follower.looked(&play.cache, &version(130));
    assert_eq!(play.next(), Act::Watch(version(100)));
    let told = play.follower.watch_started(&mut play.cache, play.now);
    assert_eq!(told, Some(Told::Thawed(pods())));
    assert_eq!(
        (play.cache.state(&pods()), play.held()),
        (State::Complete, 3)
    );
}

#[test]
fn what_the_cluster_forgot_is_listed_anew_and_what_is_missing_is_gone() {
    let mut play = Play::watching(3);
    play.fail(Failure::Expired);
    assert_eq!(play.next_act(), Act::List(Paging::Pages));
    let told = play.list(&[pod("p01", "n1", 5), pod("p02", "n1", 150)], 200);
    let Some(Told::Listed(_, Relisted::Anew(changes))) = told else {
        panic!("{told:?}");
    };
    assert_eq!(changes.len(), 2);
    assert_eq!(play.held(), 2);
    assert_eq!(play.next(), Act::Watch(version(200)));
}

#[test]
fn a_list_that_takes_longer_than_the_cluster_remembers_is_asked_for_at_once() {
    let mut play = Play::new();
    play.follower.list_started(&mut play.cache);
    play.follower.listed(&mut play.cache, pod("half", "n1", 5));
    play.fail(Failure::Expired);
    assert_eq!(play.next_act(), Act::List(Paging::Whole));
    play.list(&[pod("other", "n1", 6)], 100);
    assert_eq!(play.held(), 1, "nothing is left of the half list");
    play.fail(Failure::Expired);
    assert_eq!(
        play.next_act(),
        Act::List(Paging::Pages),
        "the next one in pages again"
    );
}

#[test]
fn what_is_forbidden_is_frozen_and_never_emptied() {
    let mut play = Play::watching(3);
    let since = play.now;
    for _ in 0..5 {
        play.fail(forbidden());
        let Act::Wait(until) = play.next() else {
            panic!("no wait");
        };
        assert!(until - play.now >= Duration::from_secs(30));
        play.now = until;
        assert_eq!(play.next(), Act::Look);
    }
    let State::Frozen(trouble) = play.cache.state(&pods()) else {
        panic!("not frozen");
    };
    assert_eq!((trouble.since, play.held()), (since, 3));
}

#[test]
fn failures_in_a_row_are_tried_again_later_and_later() {
    let mut play = Play::watching(1);
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        play.fail(broken());
        let Act::Wait(until) = play.next() else {
            panic!("no wait");
        };
        longest = longest.max(until - play.now);
        play.now = until;
    }
    assert!(longest > Duration::from_secs(10) && longest <= Duration::from_secs(30));
    play.follower.looked(&play.cache, &version(100));
    play.follower.watch_started(&mut play.cache, play.now);
    play.follower.bookmark(&mut play.cache, &version(101));
    play.fail(broken());
    let Act::Wait(until) = play.next() else {
        panic!("no wait");
    };
    assert!(
        until - play.now <= Duration::from_millis(500),
        "it had worked in between"
    );
}

#[test]
fn a_watch_that_is_ended_at_once_is_not_asked_for_without_a_breath() {
    let mut play = Play::watching(1);
    let began = play.now;
    for _ in 0..20 {
        play.follower.watch_ended(play.now);
        assert_eq!(play.next_act(), Act::Look);
        play.follower.looked(&play.cache, &version(100));
        assert_eq!(play.next_act(), Act::Watch(version(100)));
        play.follower.watch_started(&mut play.cache, play.now);
    }
    assert!(play.now - began > Duration::from_secs(20));
}

#[test]
fn a_server_that_ends_a_watch_before_its_time_may_come_back_with_another_history() {
    let mut play = Play::watching(3);
    play.now += Duration::from_secs(20);
    play.follower.watch_ended(play.now);
    assert_eq!(play.next_act(), Act::Look);
    play.follower.looked(&play.cache, &version(60));
    assert_eq!(play.next_act(), Act::List(Paging::Pages));
    assert!(matches!(play.list(&[], 60), Some(Told::Rewound { .. })));
}

#[test]
fn the_servers_own_word_on_when_to_come_again_is_heeded_within_reason() {
    let mut play = Play::watching(1);
    for (told, least, most) in [(5, 5, 6), (100_000, 60, 63)] {
        play.fail(Failure::Later(Duration::from_secs(told), "busy".into()));
        let Act::Wait(until) = play.next() else {
            panic!("no wait");
        };
        let wait = until - play.now;
        assert!(wait >= Duration::from_secs(least) && wait < Duration::from_secs(most));
        play.now = until;
    }
}

#[test]
fn a_list_that_lacks_more_than_half_is_believed_the_second_time() {
    let mut play = Play::watching(20);
    play.fail(Failure::Expired);
    let few: Vec<Object> = (0..9).map(|i| pod(&format!("p{i:02}"), "n1", 5)).collect();
    play.next_act();
    assert_eq!(play.list(&few, 200), Some(Told::Frozen(pods())));
    assert_eq!(
        (play.held(), play.cache.version(&pods())),
        (20, Some(&version(100)))
    );
    assert_eq!(play.next_act(), Act::List(Paging::Pages));
    let told = play.list(&few, 210);
    assert!(
        matches!(told, Some(Told::Listed(_, Relisted::Anew(_)))),
        "{told:?}"
    );
    assert_eq!(play.held(), 9);
}

#[test]
fn a_second_list_that_lacks_others_is_not_believed_either() {
    let mut play = Play::watching(20);
    play.fail(Failure::Expired);
    let some = |range: std::ops::Range<usize>| -> Vec<Object> {
        range.map(|i| pod(&format!("p{i:02}"), "n1", 5)).collect()
    };
    play.next_act();
    assert_eq!(play.list(&some(0..5), 200), Some(Told::Frozen(pods())));
    play.next_act();
    assert_eq!(play.list(&some(15..20), 210).unwrap(), Told::Frozen(pods()));
    assert_eq!(play.held(), 20);
    play.next_act();
    let told = play.list(&some(0..20), 220);
    assert!(
        matches!(told, Some(Told::Listed(_, Relisted::InOrder(_)))),
        "{told:?}"
    );
    assert_eq!(
        play.held(),
        20,
        "it was a mistake, and nothing was lost by it"
    );
}

#[test]
fn a_node_that_would_lose_half_its_pods_counts_by_itself() {
    let mut play = Play::new();
    let mut all: Vec<Object> = (0..90).map(|i| pod(&format!("p{i:02}"), "n1", 5)).collect();
    all.extend((0..10).map(|i| pod(&format!("q{i:02}"), "n2", 5)));
    play.next();
    play.list(&all, 100);
    play.fail(Failure::Expired);
    play.next_act();
    assert_eq!(play.list(&all[..94], 200), Some(Told::Frozen(pods())));
    play.next_act();
    assert!(matches!(play.list(&all[..94], 210), Some(Told::Listed(..))));
    // A few of few are nothing to wonder at.
    let mut small = Play::watching(9);
    small.fail(Failure::Expired);
    small.next_act();
    assert!(matches!(small.list(&[], 200), Some(Told::Listed(..))));
}

#[test]
fn a_cluster_that_went_back_is_told_of_after_a_second_read() {
    let mut play = Play::watching(3);
    play.fail(Failure::Expired);
    play.next_act();
    assert_eq!(play.list(&[pod("p00", "n1", 5)], 60), None);
    assert_eq!(
        (play.next_act(), play.held()),
        (Act::List(Paging::Pages), 3)
    );
    let told = play.list(&[pod("p00", "n1", 5)], 61);
    let rewound = Told::Rewound {
        resource: pods(),
        known: version(100),
        found: version(61),
    };
    assert_eq!((told, play.held()), (Some(rewound), 3));
    assert!(
        matches!(play.next(), Act::Wait(_)),
        "until a new epoch begins"
    );
    play.cache.begin(2);
    assert_eq!(play.next(), Act::List(Paging::Pages), "which ends the wait");
    let told = play.list(&[pod("p00", "n1", 5)], 62);
    assert_eq!(told, Some(Told::Listed(pods(), Relisted::First)));
    assert_eq!(play.next(), Act::Watch(version(62)));
}

#[test]
fn a_look_counts_as_the_first_of_two_reads() {
    let mut play = Play::watching(3);
    play.fail(broken());
    assert_eq!(play.next_act(), Act::Look);
    play.follower.looked(&play.cache, &version(60));
    assert_eq!(play.next(), Act::List(Paging::Pages));
    assert!(matches!(play.list(&[], 60), Some(Told::Rewound { .. })));
}

#[test]
fn one_read_that_is_behind_is_only_a_read_that_is_behind() {
    let mut play = Play::watching(3);
    play.fail(Failure::Expired);
    play.next_act();
    assert_eq!(play.list(&[], 60), None);
    play.next_act();
    let all: Vec<Object> = (0..3).map(|i| pod(&format!("p{i:02}"), "n1", 5)).collect();
    let told = play.list(&all, 110);
    assert!(matches!(told, Some(Told::Listed(_, Relisted::InOrder(_)))));
    play.fail(Failure::Expired);
    play.next_act();
    assert_eq!(play.list(&all, 60), None, "counting begins anew");
}

#[test]
fn a_watch_that_goes_back_is_given_up_for_a_list() {
    for event in 0..2 {
        let mut play = Play::watching(3);
        let told = match event {
            0 => play.follower.put(&mut play.cache, pod("new", "n1", 100)),
            _ => play.follower.bookmark(&mut play.cache, &version(99)),
        };
        assert_eq!((told, play.follower.is_watching()), (None, false));
        play.fail(broken());
        assert_eq!(play.next_act(), Act::List(Paging::Pages));
        assert_eq!(play.held(), 3);
    }
}

#[test]
fn errors_are_told_apart_by_what_they_mean() {
    let refused = |code, reason: &str, retry_after| {
        Failure::of(&cluster::Error::Refused(Status {
            code,
            reason: reason.into(),
            message: "no".into(),
            retry_after,
            is_ahead: false,
        }))
    };
    assert_eq!(refused(410, "Gone", None), Failure::Expired);
    assert_eq!(refused(500, "Expired", None), Failure::Expired);
    for code in [401, 403, 404] {
        assert!(matches!(refused(code, "", None), Failure::Refused(_)));
    }
    let later = refused(429, "", Some(Duration::from_secs(3)));
    assert!(matches!(later, Failure::Later(after, _) if after == Duration::from_secs(3)));
    assert!(matches!(refused(500, "", None), Failure::Broken(_)));
    let odd = Failure::of(&cluster::Error::Malformed("odd"));
    assert!(matches!(odd, Failure::Broken(_)));
}

#[test]
fn changes_that_follow_each_other_are_told_of_at_once() {
    let change = |at| {
        let after = Some(Arc::new(pod("x", "n1", at).header));
        Applied {
            before: None,
            after,
        }
    };
    let told = vec![
        Told::Advanced(pods()),
        Told::Changed(pods(), vec![change(1)]),
        Told::Changed(pods(), vec![change(2)]),
        Told::Advanced(pods()),
    ];
    let merged = merged(told);
    assert_eq!(
        merged,
        [
            Told::Advanced(pods()),
            Told::Changed(pods(), vec![change(1), change(2)]),
        ]
    );
}

#[test]
fn an_object_that_goes_back_is_of_another_history_whatever_version_the_list_has() {
    let mut play = Play::watching(2);
    let newer = pod("p00", "n1", 150);
    play.follower.put(&mut play.cache, newer);
    play.fail(Failure::Expired);
    play.next_act();
    let restored = [pod("p00", "n1", 5), pod("p01", "n1", 5)];
    assert_eq!(play.list(&restored, 9_000), None, "looked at twice");
    play.next_act();
    let told = play.list(&restored, 9_000);
    assert!(matches!(told, Some(Told::Rewound { .. })), "{told:?}");
    assert_eq!(play.cache.version(&pods()), Some(&version(150)));
}

#[test]
fn a_server_that_is_behind_what_is_known_is_asked_for_everything() {
    let mut play = Play::watching(2);
    let newer = pod("p00", "n1", 150);
    play.follower.put(&mut play.cache, newer);
    play.fail(Failure::Ahead("too large a version".into()));
    // However late that is: by now the cluster is beyond the version again.
    for _ in 0..2 {
        assert_eq!(play.next_act(), Act::List(Paging::Pages));
        play.list(&[pod("p00", "n1", 5), pod("p01", "n1", 160)], 170);
    }
    assert_eq!(play.cache.version(&pods()), Some(&version(150)));
}

#[test]
fn a_list_is_asked_for_now_and_then_though_nothing_went_wrong() {
    let mut play = Play::watching(2);
    let mut watches = 0;
    while play.follower.is_watching() {
        play.now += WATCH_TIME_MIN;
        play.follower.watch_ended(play.now);
        if play.next() == Act::Watch(version(100)) {
            play.follower.watch_started(&mut play.cache, play.now);
            watches += 1;
        }
    }
    // Six hours at least, twelve at most.
    assert!((74..150).contains(&watches), "{watches}");
    // What a watch left out is seen now.
    let told = play.list(&[pod("p00", "n1", 5), pod("p01", "n1", 90)], 100);
    assert!(
        matches!(&told, Some(Told::Listed(_, relisted)) if *relisted != Relisted::First),
        "{told:?}"
    );
    assert_eq!(play.next(), Act::Watch(version(100)));
    let held = play.cache.headers(&pods(), &[Scope::all()]);
    assert!(held.iter().any(|held| held.version == version(90)));
}
