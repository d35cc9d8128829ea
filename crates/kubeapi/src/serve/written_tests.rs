//! What was written, and what has come of it since.

use host::Clock;

use super::*;

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

fn maps(name: &str) -> (Resource, ObjectName) {
    (
        Resource::new("", "configmaps"),
        ObjectName::new("default", name),
    )
}

/// What is newest of an object, where its resource is whole up to this version and the object
/// is at that one.
fn newest(written: &Written, name: &str, at: (u64, Option<u64>), now: Instant) -> Newest {
    let (resource, name) = maps(name);
    let (whole, held) = (version(at.0), at.1.map(version));
    written.newest((&resource, &name), (Some(&whole), held.as_ref()), now)
}

#[test]
fn who_has_written_is_not_told_to_do_it_again() {
    let told = broke_off(&std::io::Error::other("cut"));
    assert_eq!((told.code, told.retry_after_seconds()), (504, None));
}

#[test]
fn what_was_written_is_shown_until_it_has_come() {
    let (written, now) = (Written::default(), Clock::machine().now());
    let bytes = Bytes::from_static(b"new");
    written.note(
        maps("a"),
        State::Is(version(9), bytes.clone()),
        (now, Place::Held),
    );
    assert_eq!(newest(&written, "b", (7, Some(5)), now), Newest::Held);
    for whole in [7, 8] {
        let shown = newest(&written, "a", (whole, Some(5)), now);
        assert_eq!(shown, Newest::This(version(9), bytes.clone()));
    }
    assert_eq!(newest(&written, "a", (9, Some(9)), now), Newest::Held);
    assert!(written.0.lock().is_empty());
}

#[test]
fn of_what_was_changed_in_another_way_the_cluster_is_asked_until_something_comes() {
    let (written, now) = (Written::default(), Clock::machine().now());
    written.differs(maps("a"), Some(version(5)), now);
    assert_eq!(newest(&written, "a", (8, Some(5)), now), Newest::Elsewhere);
    assert_eq!(newest(&written, "a", (9, None), now), Newest::Held);
    written.differs(maps("a"), Some(version(5)), now);
    let later = now + REMEMBERED_FOR;
    assert_eq!(
        newest(&written, "a", (8, Some(5)), later),
        Newest::Elsewhere
    );
    let later = now + DOUBTED_FOR;
    assert_eq!(newest(&written, "a", (8, Some(5)), later), Newest::Held);
    assert!(written.0.lock().is_empty());
}

#[test]
fn of_what_does_not_come_for_long_the_cluster_is_asked_until_it_does() {
    let (written, now) = (Written::default(), Clock::machine().now());
    written.note(
        maps("a"),
        State::Is(version(9), Bytes::from("new")),
        (now, Place::Held),
    );
    for after in [REMEMBERED_FOR, DOUBTED_FOR] {
        let shown = newest(&written, "a", (8, Some(5)), now + after);
        assert_eq!(shown, Newest::Elsewhere);
    }
    let later = now + DOUBTED_FOR;
    assert_eq!(newest(&written, "a", (9, Some(9)), later), Newest::Held);
    assert!(written.0.lock().is_empty());
}

#[test]
fn what_was_made_and_deleted_is_not_taken_for_what_is_still_to_come() {
    let (written, now) = (Written::default(), Clock::machine().now());
    written.note(
        maps("a"),
        State::Is(version(9), Bytes::new()),
        (now, Place::Held),
    );
    written.differs(maps("a"), None, now);
    for (whole, held) in [(8, None), (8, Some(5)), (9, Some(9)), (10, Some(9))] {
        let shown = newest(&written, "a", (whole, held), now);
        assert_eq!(shown, Newest::Elsewhere, "{whole}");
    }
    assert_eq!(newest(&written, "a", (11, None), now), Newest::Held);
}

#[test]
fn an_answer_that_comes_late_does_not_hide_a_newer_one() {
    let (written, now) = (Written::default(), Clock::machine().now());
    let is = |number, word: &'static [u8]| State::Is(version(number), word.into());
    written.note(maps("a"), is(7, b"seven"), (now, Place::Held));
    for late in [
        is(6, b"six"),
        State::From(version(6)),
        State::From(version(7)),
    ] {
        written.note(maps("a"), late, (now, Place::Held));
        let shown = newest(&written, "a", (5, Some(5)), now);
        assert_eq!(
            shown,
            Newest::This(version(7), Bytes::from_static(b"seven"))
        );
    }
    // A version has more digits than another, and is compared as a number.
    written.note(maps("a"), State::From(version(10)), (now, Place::Held));
    assert_eq!(newest(&written, "a", (9, Some(7)), now), Newest::Elsewhere);
    assert_eq!(newest(&written, "a", (10, Some(10)), now), Newest::Held);
}

#[test]
fn what_came_while_a_write_went_on_is_not_taken_for_it() {
    let (written, now) = (Written::default(), Clock::machine().now());
    // Its answer says that it is at 7; or says nothing, and 6 was held by then.
    written.note(maps("a"), State::From(version(7)), (now, Place::Held));
    written.differs(maps("b"), Some(version(6)), now);
    for name in ["a", "b"] {
        assert_eq!(newest(&written, name, (6, Some(6)), now), Newest::Elsewhere);
        assert_eq!(newest(&written, name, (7, Some(7)), now), Newest::Held);
    }
}

#[test]
fn the_last_write_counts_and_there_is_room_for_so_many() {
    let (written, now) = (Written::default(), Clock::machine().now());
    written.note(maps("a"), State::Differs(None), (now, Place::Held));
    let is = |number, length| State::Is(version(number), vec![b'x'; length].into());
    written.note(maps("a"), is(7, 3), (now, Place::Held));
    let shown = newest(&written, "a", (1, None), now);
    assert_eq!(shown, Newest::This(version(7), Bytes::from_static(b"xxx")));
    for number in 0..OBJECTS_MAX {
        written.note(maps(&number.to_string()), is(7, 3), (now, Place::Held));
    }
    assert_eq!(written.0.lock().len(), OBJECTS_MAX);
    assert_eq!(newest(&written, "a", (1, None), now), Newest::Held);
    // Of what there is no room for, it is still known that it was written.
    written.note(maps("large"), is(7, BYTES_MAX - 2), (now, Place::Held));
    assert_eq!(written.0.lock().len(), OBJECTS_MAX);
    assert_eq!(newest(&written, "9", (1, None), now), Newest::Elsewhere);
    let shown = newest(&written, "large", (1, None), now);
    assert!(matches!(shown, Newest::This(..)));
}

#[test]
fn what_is_not_here_makes_room_for_what_is_and_is_not_kept_whole() {
    let (written, now) = (Written::default(), Clock::machine().now());
    let is = || State::Is(version(7), Bytes::from_static(b"xxx"));
    written.note(maps("held"), is(), (now, Place::Held));
    for number in 0..2 * OBJECTS_MAX {
        let name = number.to_string();
        written.note(maps(&name), is(), (now, Place::Elsewhere));
    }
    assert_eq!(written.0.lock().len(), OBJECTS_MAX);
    let shown = newest(&written, "held", (1, None), now);
    assert!(matches!(shown, Newest::This(..)));
    let last = (2 * OBJECTS_MAX - 1).to_string();
    assert_eq!(newest(&written, &last, (1, None), now), Newest::Elsewhere);
    assert_eq!(newest(&written, &last, (7, None), now), Newest::Held);
}
