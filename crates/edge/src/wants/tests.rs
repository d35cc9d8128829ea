//! What is asked for, what goes, and what hubs are told.

use host::clock::Hands;
use host::{Clock, Tasks};
use object::ObjectName;
use store::disk::lossy::{Fault, LossyDisk};
use store::{Options, Replica};
use wire::frame::Reported;

use super::*;
use crate::reports::LIMITS;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn wanted(plural: &str, range: Range) -> Wanted {
    let resource = Resource::new("example.com", plural);
    Wanted { resource, range }
}

/// What is told of a node to its hubs, on a disk that can fail.
struct Told {
    disk: LossyDisk,
    hands: Hands,
    reports: Reports,
    wants: Wants,
    _tasks: Tasks,
}

impl Told {
    fn new() -> Self {
        let (disk, options) = (LossyDisk::default(), Options::new("n"));
        let (clock, hands) = Clock::manual("2026-11-16T10:00:00Z".parse().unwrap());
        let replica = Replica::open_here(Arc::new(disk.clone()), options, clock.clone()).unwrap();
        let keep = Keep::new(replica);
        let reports = Reports::open(keep.clone(), LIMITS);
        let wants = Wants::open(keep, reports.clone(), Times::new(clock));
        let mut tasks = Tasks::new(Shutdown::new());
        let shutdown = tasks.shutdown().clone();
        tasks.add("reports", reports.clone().run(shutdown.clone()));
        tasks.add("wants", wants.clone().run(shutdown));
        Self {
            disk,
            hands,
            reports,
            wants,
            _tasks: tasks,
        }
    }

    /// A session begins.
    fn begin(&self) {
        let (leases, scopes) = (true, true);
        self.reports.begin(Hub::Takes { leases, scopes });
        for queue in Queue::ALL {
            let (series, number) = (0, 0);
            self.reports.reported(Reported {
                queue,
                series,
                number,
            });
        }
    }

    /// What the hub is told next. It takes it.
    async fn said(&self) -> Option<Statement> {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let report = self.reports.next()?;
        let (queue, series, number) = (report.queue, report.series, report.number);
        self.reports.reported(Reported {
            queue,
            series,
            number,
        });
        Some(Statement::decode(report.queue, &report.bytes).unwrap())
    }
}

#[tokio::test]
async fn each_hub_is_told_what_is_asked_for_and_also_that_it_is_nothing() {
    let told = Told::new();
    // The tasks begin, and wait for a session.
    assert_eq!(told.said().await, None);
    for _ in 0..2 {
        told.begin();
        assert_eq!(told.said().await, Some(Statement::Wants(Vec::new())));
        assert_eq!(told.said().await, None, "once");
        told.reports.end();
    }
}

#[tokio::test]
async fn a_hub_that_could_not_be_told_is_told_a_little_later() {
    let told = Told::new();
    told.begin();
    while told.said().await.is_some() {}
    told.disk.fail_at(told.disk.calls(), Fault::Full);
    let widgets = wanted("widgets", Range::All);
    assert!(told.wants.brings(&widgets.resource, &widgets.range));
    assert_eq!(told.said().await, None);
    told.disk.heal();
    told.hands.advance(AGAIN);
    assert_eq!(told.said().await, Some(Statement::Wants(vec![widgets])));
}

#[test]
fn what_does_not_come_is_asked_of_the_cluster_and_tried_again_later() {
    let mut state = State::default();
    let mut ask = |now| state.ask(wanted("widgets", Range::All), at(now));
    assert_eq!(ask(100), Comes::Now);
    assert_eq!(ask(114), Comes::Soon);
    assert_eq!(ask(115), Comes::Not);
    assert_eq!(ask(699), Comes::Not);
    assert_eq!(ask(700), Comes::Now);
}

#[test]
fn what_is_used_stays_and_the_rest_goes() {
    let widgets = wanted("widgets", Range::Namespace("a".into()));
    let gadgets = wanted("gadgets", Range::All);
    let mut state = State::of(&[widgets.clone(), gadgets], at(0));
    let name = Range::Name(ObjectName::new("a", "x"));
    state.touch(&widgets.resource, &name, at(3000));
    let other = Range::Name(ObjectName::new("b", "x"));
    state.touch(&widgets.resource, &other, at(9000));
    assert!(!state.end_unused(at(7199)));
    assert!(state.end_unused(at(7200)));
    assert_eq!(state.list(), [widgets]);
    assert!(state.end_unused(at(10200)));
    assert!(state.list().is_empty());
}

#[test]
fn what_did_not_go_is_asked_for_again_and_what_is_gone_is_forgotten() {
    let (widgets, gadgets) = (wanted("widgets", Range::All), wanted("gadgets", Range::All));
    let mut state = State::of(&[widgets.clone(), gadgets.clone()], at(0));
    assert!(state.end_unused(at(7200)));
    assert!(state.list().is_empty());
    assert_eq!(state.kept(), [gadgets.clone(), widgets.clone()]);
    // The hub follows gadgets, and has taken them away.
    let held = |it: &Wanted| it.resource == widgets.resource;
    assert!(!state.look_at_left(at(7200), held));
    assert_eq!(state.kept(), std::slice::from_ref(&widgets));
    assert!(state.look_at_left(at(7500), held));
    assert_eq!(state.list(), std::slice::from_ref(&widgets));
    assert!(state.left.is_empty());
    // Whoever uses what is about to go has it asked for at once.
    assert!(state.end_unused(at(15_000)));
    assert!(!state.touch(&gadgets.resource, &Range::All, at(15_001)));
    assert!(state.touch(&widgets.resource, &Range::All, at(15_001)));
    assert_eq!(state.list(), [widgets]);
}

#[test]
fn what_is_watched_stays_however_long_that_lasts() {
    let widgets = wanted("widgets", Range::All);
    let mut state = State::of(std::slice::from_ref(&widgets), at(0));
    let part = Range::Namespace("a".into());
    assert_eq!(
        state.begin_watch(&wanted("gadgets", Range::All).resource, &part),
        []
    );
    let first = state.begin_watch(&widgets.resource, &part);
    let second = state.begin_watch(&widgets.resource, &Range::All);
    assert_eq!(
        (&*first, &*second),
        (&[widgets.clone()][..], &[widgets][..])
    );
    state.end_watch(&first, at(10));
    // A day later, the second is open.
    assert!(!state.end_unused(at(86_400)) && !state.make_room(at(86_400)));
    state.end_watch(&second, at(86_400));
    assert!(!state.end_unused(at(86_400 + 7199)));
    assert!(state.end_unused(at(86_400 + 7200)));
}

#[test]
fn there_is_room_for_so_many_and_what_lies_idle_makes_room() {
    let mut state = State::default();
    for number in 0..WANTED_MAX {
        let name = format!("k{number}");
        let comes = state.ask(wanted(&name, Range::All), at(number as u64));
        assert_eq!(comes, Comes::Now);
    }
    let one_more = || wanted("more", Range::All);
    assert_eq!(state.ask(one_more(), at(599)), Comes::Not);
    assert_eq!(state.ask(one_more(), at(600)), Comes::Now);
    assert_eq!(state.all.len(), WANTED_MAX);
    assert!(!state.all.contains_key(&wanted("k0", Range::All)));
}
