//! The sets of documents that sessions have. Most nodes of a fleet run the same pods of the system,
//! so most sessions have the same set: each is made once, and kept for as long as a session has it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use object::ObjectName;
use wire::documents::Documents;

/// Sets that are remembered before it is looked which nobody has any more.
const LOOK_AFTER: usize = 64;

/// The sets that there are, by the accounts whose rules are in them; the set without rules is that
/// of no accounts at all.
#[derive(Debug, Default)]
pub(super) struct Made {
    sets: HashMap<(bool, Box<[ObjectName]>), Weak<Documents>>,
    look_at: usize,
}

impl Made {
    /// Everything has to be made anew.
    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.look_at = 0;
    }

    /// The set of these accounts, made now if there is none.
    pub(super) fn get(
        &mut self,
        accounts: &[ObjectName],
        with_rules: bool,
        make: impl FnOnce() -> Documents,
    ) -> Arc<Documents> {
        let key = (with_rules, Box::from(accounts));
        if let Some(made) = self.sets.get(&key).and_then(Weak::upgrade) {
            return made;
        }
        if self.sets.len() >= self.look_at.max(LOOK_AFTER) {
            self.sets.retain(|_, made| made.strong_count() > 0);
            self.look_at = self.sets.len() * 2;
        }
        let made = Arc::new(make());
        self.sets.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shared_and_forgotten_with_those_who_have_them() {
        let mut made = Made::default();
        let of = |index: usize| [ObjectName::new("a", &format!("n{index}"))];
        let first = made.get(&of(0), true, Documents::default);
        let again = made.get(&of(0), true, || unreachable!("it is there"));
        assert!(Arc::ptr_eq(&first, &again));
        let without = made.get(&[], false, Documents::default);
        let with_none = made.get(&[], true, Documents::default);
        assert!(!Arc::ptr_eq(&without, &with_none));
        for index in 1..1000 {
            made.get(&of(index), true, Documents::default);
        }
        assert!(made.sets.len() <= LOOK_AFTER + 1, "{}", made.sets.len());
        assert!(Arc::ptr_eq(
            &first,
            &made.get(&of(0), true, Documents::default)
        ));
    }
}
