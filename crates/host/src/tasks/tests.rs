//! What an owner of tasks promises.

use std::convert::Infallible;
use std::io;

use super::*;

const GRACE: Duration = Duration::from_secs(10);

fn until(shutdown: &Shutdown) -> impl Future<Output = Result<(), Infallible>> + use<> {
    let shutdown = shutdown.clone();
    async move {
        shutdown.triggered().await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_end_well_end_the_join_well() {
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.add("one", async { Ok::<_, Infallible>(()) });
    tasks.add("two", until(&shutdown));
    shutdown.trigger();
    tasks.join(GRACE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_stops_the_others_and_is_the_answer() {
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.add("waits", until(&shutdown));
    tasks.add("fails", async { Err(io::Error::other("no disk")) });
    let failed = tasks.join(GRACE).await.unwrap_err();
    assert!(
        matches!(&failed, Failed::Error { name: "fails", .. }),
        "{failed}"
    );
    assert!(shutdown.is_triggered());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_even_before_anyone_joins() {
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.add("panics", async {
        let bug = "a bug".to_owned();
        match bug.is_empty() {
            true => Ok::<_, Infallible>(()),
            false => panic!("{bug}"),
        }
    });
    shutdown.triggered().await;
    match tasks.join(GRACE).await.unwrap_err() {
        Failed::Panicked {
            name: "panics",
            message,
        } => assert_eq!(message, "a bug"),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_stop_is_cut_off_and_named() {
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.add("deaf", std::future::pending::<Result<(), Infallible>>());
    let crowd = tasks.crowd("connections", 8);
    crowd.place().unwrap().spawn(std::future::pending());
    shutdown.trigger();
    let failed = tasks.join(GRACE).await.unwrap_err().to_string();
    assert!(failed.contains("deaf, 1 of connections"), "{failed}");
    assert_eq!(crowd.busy(), 0);
}

#[tokio::test(start_paused = true)]
async fn join_waits_for_the_crowd() {
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("connections", 8);
    let clock = crate::Clock::machine();
    let before = clock.now();
    crowd
        .place()
        .unwrap()
        .spawn(tokio::time::sleep(Duration::from_secs(5)));
    tasks.join(GRACE).await.unwrap();
    assert_eq!(clock.now() - before, Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_full_crowd_has_no_place_until_a_task_ends() {
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("connections", 1);
    crowd
        .place()
        .unwrap()
        .spawn(tokio::time::sleep(Duration::from_secs(5)));
    assert!(crowd.place().is_none());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(crowd.place().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_crowd_gives_its_place_back_and_ends_nothing_else() {
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    let crowd = tasks.crowd("connections", 1);
    crowd
        .place()
        .unwrap()
        .spawn(async { panic!("a hostile peer found a bug") });
    tasks.join(GRACE).await.unwrap();
    assert_eq!(crowd.busy(), 0);
    assert!(!shutdown.is_triggered());
}

#[tokio::test(start_paused = true)]
async fn the_second_part_keeps_the_place_of_the_first() {
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("connections", 1);
    let first = async { Some(Duration::from_secs(5)) };
    crowd.place().unwrap().spawn_then(first, tokio::time::sleep);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(crowd.busy(), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(crowd.busy(), 0);
}
