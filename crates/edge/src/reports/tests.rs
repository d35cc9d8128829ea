//! The queues over a real store: what is on disk counts, and nothing else.

use std::path::Path;

use host::Clock;
use store::disk::lossy::{Fault, LossyDisk};
use store::disk::real::RealDisk;
use store::{Options, Replica};
use wire::report::statement::{Act, EventApi, Pulse};

use super::*;

fn keep(folder: &Path) -> Keep {
    let disk = Arc::new(RealDisk::open(folder).unwrap());
    let replica = Replica::open(disk, Options::new("n"), Clock::machine()).unwrap();
    Keep::new(replica)
}

/// A store on a disk that can fail.
fn on(disk: &LossyDisk) -> Keep {
    let (disk, options) = (Arc::new(disk.clone()), Options::new("n"));
    Keep::new(Replica::open_here(disk, options, Clock::machine()).unwrap())
}

fn opened(keep: &Keep) -> Reports {
    let limits = Limits {
        entries: 4,
        ..LIMITS
    };
    Reports::open(keep.clone(), limits)
}

fn status(name: &str, text: &'static str) -> Statement {
    Statement::Status {
        about: About::Pod {
            namespace: "default".into(),
            name: name.into(),
            uid: "u".into(),
        },
        patch: Bytes::from_static(text.as_bytes()),
    }
}

fn event(name: &str) -> Statement {
    Statement::Event {
        api: EventApi::Core,
        act: Act::Create,
        namespace: "default".into(),
        name: name.into(),
        body: Bytes::from_static(b"{}"),
    }
}

/// Takes statements while the task runs that writes them.
async fn told(reports: &Reports, all: impl IntoIterator<Item = Statement>) -> Vec<bool> {
    let shutdown = Shutdown::new();
    let mut taken = Vec::new();
    let telling = async {
        for statement in all {
            taken.push(reports.tell(statement).await.is_ok());
        }
    };
    tokio::select! {
        ran = reports.clone().run(shutdown) => panic!("{ran:?}"),
        () = telling => {}
    }
    *reports.0.incoming.lock() = None;
    taken
}

impl Reports {
    /// Takes something that never reaches the disk.
    fn state_push(&self, statement: &Statement) {
        let mut state = self.0.state.lock();
        let (queue, key) = (statement.queue(), statement.key());
        let pushed = state.queues.push(queue, &key, statement.encode());
        pushed.unwrap();
    }
}

/// A session with a hub that says what it has, and what is sent to it.
fn session(reports: &Reports, has: &[Reported]) -> Vec<Report> {
    reports.end();
    reports.begin(Hub::Takes {
        leases: true,
        scopes: true,
    });
    for queue in Queue::ALL {
        let said = has.iter().find(|it| it.queue == queue).copied();
        reports.reported(said.unwrap_or(Reported {
            queue,
            series: 0,
            number: 0,
        }));
    }
    std::iter::from_fn(|| reports.next()).collect()
}

fn said(sent: &[Report]) -> Vec<Statement> {
    sent.iter()
        .map(|report| Statement::decode(report.queue, &report.bytes).unwrap())
        .collect()
}

fn ack(report: &Report) -> Reported {
    Reported {
        queue: report.queue,
        series: report.series,
        number: report.number,
    }
}

#[tokio::test]
async fn what_was_taken_is_sent_after_a_restart_and_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    {
        let keep = keep(folder.path());
        let reports = opened(&keep);
        let all = [event("a"), event("b"), status("p", "1"), status("p", "2")];
        assert_eq!(told(&reports, all).await, [true; 4]);
        drop(reports);
        keep.close();
    }
    let keep = keep(folder.path());
    let reports = opened(&keep);
    assert_eq!(reports.waiting_statuses().len(), 1);
    let mut sent = session(&reports, &[]);
    sent.sort_by_key(|report| report.queue);
    assert_eq!(said(&sent), [status("p", "2"), event("a"), event("b")]);
}

#[tokio::test]
async fn what_the_hub_has_is_forgotten_for_good_and_its_numbers_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = keep(folder.path());
    let reports = opened(&first);
    told(&reports, [event("a"), event("b")]).await;
    let sent = session(&reports, &[]);
    reports.reported(ack(&sent[1]));
    reports.forget().await.unwrap();
    drop(reports);
    first.close();
    let again = keep(folder.path());
    let reports = opened(&again);
    assert_eq!(disk::read(again.reader()).entries, []);
    assert_eq!(session(&reports, &[ack(&sent[1])]), []);
    let reports = opened(&again);
    told(&reports, [event("c")]).await;
    let later = session(&reports, &[ack(&sent[1])]);
    assert_eq!((later.len(), later[0].number), (1, 3));
    assert_eq!(later[0].series, sent[0].series);
}

#[tokio::test]
async fn one_queue_is_forgotten_at_a_time_and_the_next_has_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    told(&reports, [event("a"), status("p", "1")]).await;
    let sent = session(&reports, &[]);
    sent.iter().for_each(|report| reports.reported(ack(report)));
    for left in [1, 0] {
        // Somebody says that there is something to forget.
        reports.0.forgets.notified().await;
        reports.forget().await.unwrap();
        assert_eq!(disk::read(keep.reader()).entries.len(), left);
    }
}

#[tokio::test]
async fn a_status_that_the_hub_has_does_not_wait_after_a_crash() {
    let disk = LossyDisk::default();
    let keep = on(&disk);
    let reports = opened(&keep);
    told(&reports, [status("p", "1"), status("q", "1")]).await;
    let sent = session(&reports, &[]);
    // The crash comes when the number is written, and before the entry goes.
    let number = format!("reports/forgotten.{}", Queue::Statuses.number());
    let upto = sent[0].number.to_string();
    keep.put_own(&number, Some(upto.into())).await.unwrap();
    let reports = opened(&keep);
    let waiting = reports.waiting_statuses().into_iter();
    let keys: Vec<String> = waiting.map(|(about, _)| about.key()).collect();
    assert_eq!(keys, ["pod/default/q/u"]);
    assert_eq!(session(&reports, &[]).len(), 1);
}

/// A disk does not forget what the hub has, and is well again. Then time passes, or something else
/// is reported; what is left on disk after that is returned.
async fn left_after(then: impl AsyncFnOnce(&Reports)) -> Vec<Statement> {
    let disk = LossyDisk::default();
    let keep = on(&disk);
    let reports = opened(&keep);
    let telling = async {
        reports.tell(event("a")).await.unwrap();
        let sent = session(&reports, &[]);
        tokio::task::yield_now().await;
        disk.fail_at(disk.calls(), Fault::Full);
        reports.reported(ack(&sent[0]));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(disk::read(keep.reader()).entries, sent);
        disk.heal();
        then(&reports).await;
    };
    tokio::select! {
        ran = reports.clone().run(Shutdown::new()) => panic!("{ran:?}"),
        () = telling => {}
    }
    said(&disk::read(keep.reader()).entries)
}

#[tokio::test(start_paused = true)]
async fn what_the_hub_has_is_forgotten_when_the_disk_is_well_again() {
    let left = left_after(async |_: &Reports| {
        tokio::time::sleep(AGAIN + Duration::from_secs(1)).await;
    });
    assert_eq!(left.await, []);
    let left = left_after(async |reports: &Reports| {
        for name in ["b", "c"] {
            reports.tell(event(name)).await.unwrap();
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(left.await, [event("b"), event("c")]);
}

#[tokio::test]
async fn what_did_not_reach_the_disk_was_never_taken() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    // Nobody writes: the caller gives up, as if the program were killed.
    let telling = reports.tell(event("a"));
    let waited = tokio::time::timeout(Duration::from_millis(10), telling);
    assert!(waited.await.is_err());
    let reports = opened(&keep);
    assert_eq!(session(&reports, &[]), []);
}

#[tokio::test]
async fn a_crash_between_two_writes_leaves_the_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    told(&reports, [status("p", "1")]).await;
    let sent = session(&reports, &[]);
    let persist = {
        let mut state = reports.0.state.lock();
        let newer = status("p", "2");
        let pushed = state
            .queues
            .push(newer.queue(), &newer.key(), newer.encode());
        pushed.unwrap()
    };
    assert_eq!(persist.instead_of, Some(sent[0].number));
    disk::write(&keep, &persist.report).await.unwrap();
    assert_eq!(disk::read(keep.reader()).entries.len(), 2);
    let reports = opened(&keep);
    assert_eq!(said(&session(&reports, &[])), [status("p", "2")]);
    reports.ready().await.unwrap();
    assert_eq!(disk::read(keep.reader()).entries.len(), 1);
}

#[tokio::test]
async fn what_the_disk_refused_is_not_sent_and_the_rest_is() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    told(&reports, [event("a")]).await;
    reports.state_push(&event("b"));
    assert_eq!(reports.counts().0, 2);
    reports.reload();
    assert_eq!(said(&session(&reports, &[])), [event("a")]);
}

#[tokio::test]
async fn who_waits_for_an_object_hears_though_a_write_of_it_was_refused_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    reports.listen(move |key| hears.lock().push(key.to_owned()));
    told(&reports, [status("p", "1")]).await;
    let sent = session(&reports, &[]);
    // The ack comes while the disk is asked to take something newer, which it does not.
    reports.state_push(&status("p", "2"));
    reports.reported(ack(&sent[0]));
    assert!(heard.lock().is_empty());
    reports.reload();
    assert_eq!(*heard.lock(), ["pod/default/p/u"]);
}

#[tokio::test]
async fn a_session_goes_on_after_a_write_that_the_disk_refused() {
    let disk = LossyDisk::default();
    let reports = opened(&on(&disk));
    let shutdown = Shutdown::new();
    let telling = async {
        reports.tell(event("a")).await.unwrap();
        assert_eq!(said(&session(&reports, &[])), [event("a")]);
        disk.fail_at(disk.calls(), Fault::Full);
        let refused = reports.tell(Statement::Kubelet(Pulse::Alive)).await;
        assert!(matches!(refused, Err(NotKept::Store(_))), "{refused:?}");
        assert_eq!(reports.next(), None, "nothing is sent twice");
        disk.heal();
        let alive = Statement::Kubelet(Pulse::Alive);
        reports.tell(alive.clone()).await.unwrap();
        let sent: Vec<Report> = std::iter::from_fn(|| reports.next()).collect();
        assert_eq!(said(&sent), [alive]);
    };
    tokio::select! {
        ran = reports.clone().run(shutdown) => panic!("{ran:?}"),
        () = telling => {}
    }
}

#[tokio::test]
async fn an_entry_on_disk_counts_though_the_one_before_it_does_not_go() {
    let disk = LossyDisk::default();
    let keep = on(&disk);
    let reports = opened(&keep);
    let telling = async {
        reports.tell(event("a")).await.unwrap();
        let before = disk.calls();
        reports.tell(status("p", "1")).await.unwrap();
        let calls = disk.calls() - before;
        session(&reports, &[]);
        // The newer one is written, and then the disk is full.
        disk.fail_at(disk.calls() + calls, Fault::Full);
        reports.tell(status("p", "2")).await.unwrap();
        assert_eq!(disk::read(keep.reader()).entries.len(), 3);
        assert_eq!(said(&[reports.next().unwrap()]), [status("p", "2")]);
        // No more of them gather.
        assert!(reports.tell(status("p", "3")).await.is_err());
        disk.heal();
        reports.tell(event("b")).await.unwrap();
        let mut left = said(&disk::read(keep.reader()).entries);
        left.retain(|it| it.queue() == Queue::Statuses);
        assert_eq!(left, [status("p", "2")]);
    };
    tokio::select! {
        ran = reports.clone().run(Shutdown::new()) => panic!("{ran:?}"),
        () = telling => {}
    }
}

#[tokio::test]
async fn a_full_queue_refuses_the_newest_and_keeps_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    let all = ["a", "b", "c", "d", "e"].map(event);
    assert_eq!(told(&reports, all).await, [true, true, true, true, false]);
    assert_eq!(
        said(&session(&reports, &[])),
        ["a", "b", "c", "d"].map(event)
    );
    assert_eq!(reports.counts().1.refused, 1);
}

#[tokio::test]
async fn a_hub_that_takes_no_reports_gets_none() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    told(&reports, [Statement::Kubelet(Pulse::Alive)]).await;
    reports.begin(Hub::TakesNone);
    for queue in Queue::ALL {
        let (series, number) = (0, 0);
        reports.reported(Reported {
            queue,
            series,
            number,
        });
    }
    assert_eq!(reports.next(), None);
    assert_eq!(session(&reports, &[]).len(), 1);
}

#[tokio::test]
async fn a_disk_that_is_an_old_copy_counts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    told(&reports, [event("a")]).await;
    let sent = session(&reports, &[]);
    let beyond = Reported {
        number: 9,
        ..ack(&sent[0])
    };
    assert_eq!(session(&reports, &[beyond]), []);
    reports.forget().await.unwrap();
    let again = session(&reports, &[beyond]);
    assert_eq!(said(&again), [event("a")]);
    assert_ne!(again[0].series, sent[0].series);
}

#[tokio::test]
async fn who_waits_for_an_object_hears_when_the_hub_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let keep = keep(folder.path());
    let reports = opened(&keep);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    reports.listen(move |key| hears.lock().push(key.to_owned()));
    told(&reports, [status("p", "1"), status("q", "1")]).await;
    let sent = session(&reports, &[]);
    assert!(heard.lock().is_empty());
    reports.reported(ack(&sent[0]));
    assert_eq!(*heard.lock(), ["pod/default/p/u"]);
}
