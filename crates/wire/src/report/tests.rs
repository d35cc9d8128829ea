//! Each rule of the queues that go up, at the node, at the hub and between the two.

use super::*;

const SERIES: u64 = 77;

fn limits() -> Limits {
    Limits {
        entries: 4,
        bytes: 40,
        flight: 3,
        flight_bytes: 20,
    }
}

/// Empty queues and a hub that collects them.
fn reports() -> Reports {
    let mut reports = Reports::new(SERIES, limits());
    opened(&mut reports);
    reports
}

fn opened(reports: &mut Reports) {
    for queue in Queue::ALL {
        let nothing = told(queue, 0, 0);
        assert_eq!(reports.reported(nothing), Ok(None));
    }
}

fn told(queue: Queue, series: u64, number: u64) -> Reported {
    Reported {
        queue,
        series,
        number,
    }
}

fn push(reports: &mut Reports, queue: Queue, key: &str, text: &'static str) -> Persist {
    let bytes = Bytes::from_static(text.as_bytes());
    reports.push(queue, key, bytes).unwrap()
}

/// Pushes and stores.
fn add(reports: &mut Reports, queue: Queue, key: &str, text: &'static str) -> u64 {
    let persist = push(reports, queue, key, text);
    reports.stored(persist.write);
    persist.report.number
}

fn sent(reports: &mut Reports) -> Vec<(u64, String)> {
    let text = |report: Report| String::from_utf8(report.bytes.to_vec()).unwrap();
    std::iter::from_fn(|| reports.send())
        .map(|report| (report.number, text(report)))
        .collect()
}

fn is(all: &[(u64, &str)]) -> Vec<(u64, String)> {
    let owned = |(number, text): &(u64, &str)| (*number, (*text).to_owned());
    all.iter().map(owned).collect()
}

fn report(queue: Queue, series: u64, number: u64) -> Report {
    Report {
        queue,
        series,
        number,
        key: "k".into(),
        bytes: Bytes::new(),
    }
}

#[test]
fn nothing_is_sent_before_it_is_on_disk() {
    let mut reports = reports();
    let first = push(&mut reports, Queue::Events, "a", "1");
    let second = push(&mut reports, Queue::Events, "a", "2");
    assert_eq!(sent(&mut reports), is(&[]));
    reports.stored(first.write);
    assert_eq!(sent(&mut reports), is(&[(1, "1")]));
    reports.stored(second.write);
    assert_eq!(sent(&mut reports), is(&[(2, "2")]));
    // A word on writes that were never given out says nothing.
    reports.stored(u64::MAX);
    push(&mut reports, Queue::Events, "a", "3");
    assert_eq!(sent(&mut reports), is(&[]));
}

#[test]
fn nothing_is_sent_to_a_hub_that_does_not_collect_the_queue() {
    let mut reports = Reports::new(SERIES, limits());
    add(&mut reports, Queue::Events, "a", "event");
    add(&mut reports, Queue::Messages, "a", "message");
    reports.reported(told(Queue::Messages, 0, 0)).unwrap();
    reports.reported(told(Queue::Other(9), 0, 0)).unwrap();
    assert_eq!(sent(&mut reports), is(&[(1, "message")]));
}

#[test]
fn what_is_not_sent_yet_is_replaced_in_its_place_by_the_newest_of_its_key() {
    let mut reports = Reports::new(SERIES, limits());
    add(&mut reports, Queue::Statuses, "a", "a1");
    add(&mut reports, Queue::Statuses, "b", "b1");
    let again = push(&mut reports, Queue::Statuses, "a", "a2");
    assert_eq!((again.report.number, again.instead_of), (1, None));
    reports.stored(again.write);
    opened(&mut reports);
    assert_eq!(sent(&mut reports), is(&[(1, "a2"), (2, "b1")]));
    assert_eq!(reports.counts().replaced, 1);
}

#[test]
fn what_is_on_its_way_and_replaced_is_sent_again_under_a_new_number() {
    let mut reports = reports();
    add(&mut reports, Queue::Statuses, "a", "a1");
    add(&mut reports, Queue::Statuses, "b", "b1");
    assert_eq!(sent(&mut reports).len(), 2);
    let newer = push(&mut reports, Queue::Statuses, "a", "a2");
    assert_eq!((newer.report.number, newer.instead_of), (3, Some(1)));
    reports.stored(newer.write);
    // The ack of the older one does not touch the newer one.
    let forget = reports.reported(told(Queue::Statuses, SERIES, 1)).unwrap();
    let upto = 1;
    assert_eq!(
        forget,
        Some(Forget {
            queue: Queue::Statuses,
            upto
        })
    );
    assert_eq!((reports.len(), reports.held()), (2, 2));
    assert_eq!(sent(&mut reports), is(&[(3, "a2")]));
    reports.reported(told(Queue::Statuses, SERIES, 3)).unwrap();
    assert!(reports.is_empty() && reports.bytes() == 0);
}

#[test]
fn a_key_that_changes_faster_than_the_disk_writes_is_sent_all_the_same() {
    let mut reports = reports();
    let mut writes = std::collections::VecDeque::new();
    let mut seen = 0;
    for _ in 0..100 {
        writes.push_back(push(&mut reports, Queue::Leases, "node", "now").write);
        // The disk is always three writes behind.
        if writes.len() > 3 {
            reports.stored(writes.pop_front().unwrap());
        }
        if let Some(report) = reports.send() {
            seen += 1;
            let ack = told(Queue::Leases, SERIES, report.number);
            reports.reported(ack).unwrap();
        }
        assert!(reports.held() <= 2);
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn of_a_queue_where_every_entry_counts_nothing_is_replaced_and_too_much_is_refused() {
    let mut reports = reports();
    for text in ["1", "2", "3", "4"] {
        add(&mut reports, Queue::Events, "same", text);
    }
    let more = reports.push(Queue::Events, "same", Bytes::new());
    assert_eq!(more, Err(Refused::Full));
    assert_eq!((reports.counts().taken, reports.counts().refused), (4, 1));
    sent(&mut reports);
    reports.reported(told(Queue::Events, SERIES, 1)).unwrap();
    assert_eq!(add(&mut reports, Queue::Events, "same", "5"), 5);
}

#[test]
fn a_full_queue_takes_the_newest_of_a_key_that_it_has() {
    let mut reports = reports();
    for key in ["a", "b", "c", "d"] {
        add(&mut reports, Queue::Statuses, key, "0123456789");
    }
    let push = |reports: &mut Reports, key, bytes| {
        let pushed = reports.push(Queue::Statuses, key, vec![0; bytes].into());
        pushed.map(|persist| persist.report.number)
    };
    assert_eq!(push(&mut reports, "e", 1), Err(Refused::Full));
    assert_eq!(push(&mut reports, "d", 11), Err(Refused::Full));
    assert_eq!(push(&mut reports, "d", 10), Ok(4));
    // One that is on its way as well: it does not count twice.
    reports.send().unwrap();
    assert_eq!(push(&mut reports, "a", 10), Ok(5));
    assert_eq!((reports.len(), reports.bytes()), (4, 40));
}

#[test]
fn what_is_larger_than_any_and_what_belongs_nowhere_is_refused() {
    let mut reports = reports();
    let key = "k".repeat(KEY_BYTES_MAX + 1);
    let refused = reports.push(Queue::Events, &key, Bytes::new());
    assert!(matches!(refused, Err(Refused::TooLarge { .. })));
    let bytes = vec![0; REPORT_BYTES_MAX + 1].into();
    let refused = reports.push(Queue::Events, "k", bytes);
    assert!(matches!(refused, Err(Refused::TooLarge { .. })));
    let refused = reports.push(Queue::Other(9), "k", Bytes::new());
    assert_eq!(refused, Err(Refused::NoQueue { number: 9 }));
    assert_eq!(reports.counts().refused, 3);
}

#[test]
fn as_much_is_on_its_way_as_the_window_has_room_for() {
    let mut reports = reports();
    for text in ["1", "2", "3", "4"] {
        add(&mut reports, Queue::Events, "e", text);
    }
    assert_eq!(sent(&mut reports).len(), 3);
    reports.reported(told(Queue::Events, SERIES, 2)).unwrap();
    assert_eq!(sent(&mut reports), is(&[(4, "4")]));
    // A large one goes, and nothing behind it.
    add(&mut reports, Queue::Messages, "m", "more than twenty bytes");
    add(&mut reports, Queue::Messages, "m", "small");
    assert_eq!(sent(&mut reports), is(&[(1, "more than twenty bytes")]));
}

#[test]
fn no_queue_waits_for_another() {
    let mut reports = reports();
    for text in ["1", "2", "3"] {
        add(&mut reports, Queue::Messages, "m", text);
    }
    reports.send().unwrap();
    add(&mut reports, Queue::Leases, "node", "lease");
    add(&mut reports, Queue::Events, "e", "event");
    let texts: Vec<String> = sent(&mut reports)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, ["lease", "event", "2", "3"]);
}

#[test]
fn after_a_break_everything_is_sent_again_that_was_not_acked() {
    let mut reports = reports();
    for text in ["1", "2", "3"] {
        add(&mut reports, Queue::Events, "e", text);
    }
    sent(&mut reports);
    reports.reported(told(Queue::Events, SERIES, 1)).unwrap();
    reports.lost();
    assert_eq!(reports.send(), None);
    // The hub took the second, and its ack was lost.
    let forget = reports.reported(told(Queue::Events, SERIES, 2)).unwrap();
    assert_eq!(forget.map(|forget| forget.upto), Some(2));
    assert_eq!(sent(&mut reports), is(&[(3, "3")]));
    assert_eq!((reports.counts().sent, reports.counts().sent_again), (3, 1));
}

#[test]
fn after_a_break_what_was_replaced_is_not_sent_again() {
    let mut reports = reports();
    add(&mut reports, Queue::Statuses, "a", "a1");
    sent(&mut reports);
    let newer = push(&mut reports, Queue::Statuses, "a", "a2");
    // It may be all that the disk has: then it goes again.
    reports.lost();
    opened(&mut reports);
    assert_eq!(sent(&mut reports), is(&[(1, "a1")]));
    reports.stored(newer.write);
    reports.lost();
    opened(&mut reports);
    assert_eq!(sent(&mut reports), is(&[(2, "a2")]));
}

#[test]
fn another_hub_that_has_less_is_sent_what_nobody_acked() {
    let mut reports = reports();
    for text in ["1", "2", "3"] {
        add(&mut reports, Queue::Events, "e", text);
    }
    sent(&mut reports);
    reports.reported(told(Queue::Events, SERIES, 2)).unwrap();
    reports.lost();
    assert_eq!(reports.reported(told(Queue::Events, SERIES, 1)), Ok(None));
    assert_eq!(sent(&mut reports), is(&[(3, "3")]));
}

#[test]
fn a_hub_that_has_what_it_was_never_sent_shows_that_the_disk_is_an_old_copy() {
    let mut reports = reports();
    add(&mut reports, Queue::Events, "e", "1");
    let not_sent = |number, shown| Err(NotSent { number, shown });
    assert_eq!(
        reports.reported(told(Queue::Events, SERIES, 1)),
        not_sent(1, 0)
    );
    sent(&mut reports);
    assert_eq!(
        reports.reported(told(Queue::Events, SERIES, 2)),
        not_sent(2, 1)
    );
    assert_eq!(reports.len(), 1);
}

#[test]
fn a_restart_keeps_what_is_on_disk_and_goes_on_counting() {
    let forgotten = [Forget {
        queue: Queue::Events,
        upto: 6,
    }];
    let mut entries = vec![report(Queue::Events, SERIES, 6)];
    entries.extend([8, 7].map(|number| report(Queue::Events, SERIES, number)));
    entries.extend([3, 5, 4].map(|number| report(Queue::Statuses, SERIES, number)));
    let mut reports = Reports::restore(SERIES, limits(), forgotten, entries);
    assert_eq!(reports.len(), 3);
    // The hub may have seen them: the newer one needs a number of its own.
    let newer = push(&mut reports, Queue::Statuses, "k", "new");
    assert_eq!((newer.report.number, newer.instead_of), (6, Some(5)));
    reports.stored(newer.write);
    opened(&mut reports);
    let numbers: Vec<u64> = sent(&mut reports)
        .iter()
        .map(|(number, _)| *number)
        .collect();
    assert_eq!(numbers, [6, 7, 8]);
    let empty = Reports::restore(SERIES, limits(), forgotten, []);
    assert_eq!(add(&mut { empty }, Queue::Events, "e", "7"), 7);
}

#[test]
fn queues_that_are_restored_in_a_session_go_on_in_it() {
    let (events, statuses) = (Queue::Events, Queue::Statuses);
    let mut before = reports();
    add(&mut before, events, "a", "1");
    add(&mut before, events, "a", "2");
    add(&mut before, statuses, "s", "old");
    assert_eq!(sent(&mut before).len(), 3);
    // The hub has the first; the status is replaced, and the next event is never on disk.
    before.reported(told(events, SERIES, 1)).unwrap();
    let status = push(&mut before, statuses, "s", "new");
    before.stored(status.write);
    push(&mut before, events, "a", "lost");
    let second = Report {
        key: "a".into(),
        bytes: Bytes::from_static(b"2"),
        ..report(events, SERIES, 2)
    };
    let first = report(events, SERIES, 1);
    let entries = [first, second, status.report];
    let mut after = Reports::restore(SERIES, limits(), [], entries);
    after.go_on_from(&before);
    assert_eq!((after.count(events), after.counts()), (1, before.counts()));
    assert_eq!(sent(&mut after), is(&[(2, "new")]));
    assert_eq!(add(&mut after, events, "a", "3"), 3);
    // What is on its way has its place in the window until it is acked.
    assert_eq!(add(&mut after, events, "a", "4"), 4);
    assert_eq!(add(&mut after, events, "a", "5"), 5);
    assert_eq!(sent(&mut after), is(&[(3, "3"), (4, "4")]));
    let forget = after.reported(told(events, SERIES, 2));
    assert_eq!(
        forget,
        Ok(Some(Forget {
            queue: events,
            upto: 2
        }))
    );
    assert_eq!(sent(&mut after), is(&[(5, "5")]));
    after.reported(told(statuses, SERIES, 2)).unwrap();
    assert_eq!((after.count(statuses), after.held()), (0, 3));
}

#[test]
fn the_hub_takes_each_report_once_and_acks_what_is_done() {
    let mut hub = Collected::new();
    let first = |number| report(Queue::Events, SERIES, number);
    for number in [1, 2, 3] {
        assert_eq!(hub.take(&first(number)), Ok(Taken::New));
        assert_eq!(hub.take(&first(number)), Ok(Taken::Before));
    }
    // Done in any order, acked in theirs.
    assert_eq!(hub.done(Queue::Events, SERIES, 2), None);
    let ack = Some(told(Queue::Events, SERIES, 2));
    assert_eq!(hub.done(Queue::Events, SERIES, 1), ack);
    assert_eq!(hub.done(Queue::Events, SERIES, 1), None);
    assert_eq!(hub.done(Queue::Events, 5, 3), None);
}

#[test]
fn a_gap_is_refused_except_where_a_session_begins_or_the_newest_wins() {
    let mut hub = Collected::new();
    let take = |hub: &mut Collected, queue, number| hub.take(&report(queue, SERIES, number));
    assert_eq!(take(&mut hub, Queue::Events, 41), Ok(Taken::New));
    let gap = |number, next| Err(Misbehaved::Gap { number, next });
    assert_eq!(take(&mut hub, Queue::Events, 43), gap(43, 42));
    assert_eq!(take(&mut hub, Queue::Events, 42), Ok(Taken::New));
    for number in [2, 9] {
        assert_eq!(take(&mut hub, Queue::Statuses, number), Ok(Taken::New));
    }
    hub.begin();
    assert_eq!(take(&mut hub, Queue::Events, 50), Ok(Taken::New));
    assert_eq!(take(&mut hub, Queue::Events, 52), gap(52, 51));
}

#[test]
fn a_node_may_fill_its_window_again_in_each_session() {
    let mut hub = Collected::new();
    for number in 1..=3 * FLIGHT_MAX as u64 {
        if number % FLIGHT_MAX as u64 == 1 {
            hub.begin();
        }
        // What the session before brought was replaced meanwhile and does not come again.
        let taken = hub.take(&report(Queue::Statuses, SERIES, number));
        assert_eq!(taken, Ok(Taken::New));
    }
}

#[test]
fn a_node_that_lost_its_disk_is_not_taken_for_one_that_repeats_itself() {
    let mut hub = Collected::restore([told(Queue::Events, SERIES, 500)]);
    assert_eq!(hub.begin()[2], told(Queue::Events, SERIES, 500));
    assert_eq!(hub.take(&report(Queue::Events, 78, 1)), Ok(Taken::New));
    let within = Misbehaved::OtherSeries { series: SERIES };
    assert_eq!(hub.take(&report(Queue::Events, SERIES, 501)), Err(within));
    let ack = Some(told(Queue::Events, 78, 1));
    assert_eq!(hub.done(Queue::Events, 78, 1), ack);
}

#[test]
fn what_was_not_done_when_a_session_ended_comes_again_with_the_next() {
    let mut hub = Collected::new();
    for number in [1, 2, 3] {
        hub.take(&report(Queue::Events, SERIES, number)).unwrap();
    }
    hub.done(Queue::Events, SERIES, 1);
    assert_eq!(hub.begin()[2], told(Queue::Events, SERIES, 1));
    for number in [2, 3] {
        let again = hub.take(&report(Queue::Events, SERIES, number));
        assert_eq!(again, Ok(Taken::New));
    }
}

#[test]
fn who_does_not_wait_for_acks_or_reports_what_nobody_asked_for_misbehaves() {
    let mut hub = Collected::new();
    let flight = FLIGHT_MAX as u64;
    for number in 1..=flight {
        let taken = hub.take(&report(Queue::Events, SERIES, number));
        assert_eq!(taken, Ok(Taken::New));
    }
    let number = flight + 1;
    assert_eq!(
        hub.take(&report(Queue::Events, SERIES, number)),
        Err(Misbehaved::TooMany { number })
    );
    assert_eq!(
        hub.take(&report(Queue::Other(9), SERIES, 1)),
        Err(Misbehaved::NoQueue { number: 9 })
    );
}
