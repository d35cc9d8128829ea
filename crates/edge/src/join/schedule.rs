//! When a certificate is renewed, and what to do at the start: pure, with the time passed in.

use host::pki::Validity;
use jiff::{SignedDuration, Timestamp};
use wire::join::Token;

/// How a certificate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It begins later than now: this machine's clock is wrong, or the hub's was.
    NotYet,
    /// It is good.
    Good,
    /// It is good and should be renewed.
    Due,
    /// It is over. No hub lets us in; the node goes on serving what it has.
    Expired,
}

/// When a certificate is to be renewed: after two thirds to four fifths of its life. `chance` is
/// any number; certificates that were issued together are then renewed apart.
pub fn due(validity: &Validity, chance: u64) -> Timestamp {
    let life = validity.not_before.duration_until(validity.not_after);
    let share = |part: f64| SignedDuration::try_from_secs_f64(life.as_secs_f64() * part);
    let spread = (EARLIEST - LATEST).abs() * (chance as f64 / u64::MAX as f64);
    let after = share(EARLIEST + spread).unwrap_or(SignedDuration::ZERO);
    validity
        .not_before
        .checked_add(after)
        .unwrap_or(validity.not_after)
}

/// How a certificate stands now.
pub fn standing(validity: &Validity, chance: u64, now: Timestamp) -> Standing {
    if now < validity.not_before {
        Standing::NotYet
    } else if now > validity.not_after {
        Standing::Expired
    } else if now >= due(validity, chance) {
        Standing::Due
    } else {
        Standing::Good
    }
}

/// What to do at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Join with the token: there is no identity, or the token is a new one.
    Join,
    /// Open links with the identity that is there.
    Use,
    /// Serve what is on disk without a link: the certificate is over and there is no new token.
    Alone,
    /// This machine is no node and has no token to become one.
    Nobody,
}

/// What to do at the start. `joined_with` is the id of the token that the identity was joined with:
/// a token file stays where it is, and must not be used up again at each start.
pub fn plan(
    identity: Option<&Validity>,
    joined_with: Option<&str>,
    token: Option<&Token>,
    now: Timestamp,
) -> Plan {
    let new_token = token.is_some_and(|token| Some(token.id()) != joined_with);
    match identity {
        None if token.is_some() => Plan::Join,
        None => Plan::Nobody,
        Some(_) if new_token => Plan::Join,
        Some(validity) if now > validity.not_after => Plan::Alone,
        Some(_) => Plan::Use,
    }
}

const EARLIEST: f64 = 2.0 / 3.0;
const LATEST: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn month() -> Validity {
        Validity {
            not_before: "2026-01-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-01-31T00:00:00Z".parse().unwrap(),
        }
    }

    proptest! {
        #[test]
        fn a_certificate_is_renewed_between_two_thirds_and_four_fifths(chance in any::<u64>()) {
            let at = due(&month(), chance);
            let day = |day: &str| day.parse::<Timestamp>().unwrap();
            prop_assert!(at >= day("2026-01-20T23:59:59Z"), "{at}");
            prop_assert!(at <= day("2026-01-25T00:00:01Z"), "{at}");
            let second = SignedDuration::from_secs(1);
            prop_assert_eq!(standing(&month(), chance, at - second), Standing::Good);
            prop_assert_eq!(standing(&month(), chance, at), Standing::Due);
        }
    }

    #[test]
    fn a_wrong_clock_is_seen_on_both_sides() {
        let before = "2016-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(standing(&month(), 0, before), Standing::NotYet);
        let after = "2036-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(standing(&month(), 0, after), Standing::Expired);
    }

    #[test]
    fn a_token_is_used_once_and_not_at_each_start() {
        let token: Token = "aaaaaaaa.00000000000000000000000000000000".parse().unwrap();
        let identity = month();
        let during = "2026-01-10T00:00:00Z".parse().unwrap();
        let after = "2026-02-10T00:00:00Z".parse().unwrap();
        let some = Some(&identity);
        assert_eq!(plan(None, None, None, during), Plan::Nobody);
        assert_eq!(plan(None, None, Some(&token), during), Plan::Join);
        assert_eq!(
            plan(some, Some("aaaaaaaa"), Some(&token), during),
            Plan::Use
        );
        assert_eq!(
            plan(some, Some("bbbbbbbb"), Some(&token), during),
            Plan::Join
        );
        assert_eq!(plan(some, None, None, during), Plan::Use);
        assert_eq!(
            plan(some, Some("aaaaaaaa"), Some(&token), after),
            Plan::Alone
        );
        assert_eq!(
            plan(some, Some("bbbbbbbb"), Some(&token), after),
            Plan::Join
        );
    }
}
