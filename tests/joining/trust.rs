//! Whom a node trusts at first contact, and what it says when it does not.

use edge::join::{Failed, Joining, join};
use host::pki::{Authority, Pin};
use jiff::SignedDuration;

use crate::hub::Stage;
use cloud::join::token;

#[tokio::test]
async fn a_hub_with_another_authority_gets_nothing() {
    let stage = Stage::new().await;
    let other = Authority::create("link-ca", stage.clock.wall()).unwrap();
    let joining = Joining {
        pin: Pin::of(other.certificate()).unwrap(),
        ..stage.joining("n1").await
    };
    let failed = join(&stage.home, &joining, &stage.clock).await;
    let Err(failed @ Failed::Untrusted { .. }) = failed else {
        panic!("trusted");
    };
    assert!(failed.is_final());
    let kept = token::list(&stage.memory).await.unwrap();
    assert_eq!(kept[0].used, None, "the token was not even sent");
    assert!(stage.home.identity().unwrap().is_none());
}

#[tokio::test]
async fn a_machine_whose_clock_is_wrong_is_told_by_how_much() {
    let stage = Stage::new().await;
    let joining = stage.joining("n1").await;
    let right = stage.clock.wall();
    for (years, words) in [(-5, "is not valid before"), (5, "is not valid after")] {
        let wrong = right + SignedDuration::from_hours(years * 365 * 24);
        let (clock, _) = host::Clock::manual(wrong);
        let failed = join(&stage.home, &joining, &clock).await;
        let Err(failed @ Failed::WrongTime { .. }) = failed else {
            panic!("joined at another time");
        };
        let said = failed.to_string();
        assert!(
            said.contains(words) && said.contains("set the clock"),
            "{said}"
        );
        assert!(
            said.contains(&wrong.strftime("%Y-%m-%d").to_string()),
            "{said}"
        );
        assert!(!failed.is_final());
    }
    join(&stage.home, &joining, &stage.clock).await.unwrap();
}

#[tokio::test]
async fn a_hub_that_is_away_does_not_keep_a_node_from_another() {
    let stage = Stage::new().await;
    let mut joining = stage.joining("n1").await;
    // A port on which nobody listens: that of a listener which is gone.
    let gone = host::listen::Listener::bind(([127, 0, 0, 1], 0).into());
    let port = gone.await.unwrap().address().port();
    let away = format!("localhost:{port}").parse().unwrap();
    joining.hubs.insert(0, away);
    join(&stage.home, &joining, &stage.clock).await.unwrap();
    joining.hubs.truncate(1);
    let failed = join(&stage.home, &joining, &stage.clock).await;
    let Err(failed @ Failed::Unreachable { .. }) = failed else {
        panic!("joined with nobody");
    };
    assert!(!failed.is_final());
}
