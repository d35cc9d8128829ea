//! What the random run of a replica stages before a reset.

use store::Scope;
use store::replica::{Onto, Reset, Stage};

use crate::bench_objects::*;
use crate::replica_model::Run;
use crate::replica_source::{NAMES, Rows, correction};

impl Run {
    /// What the node shows of a scope.
    pub(crate) fn held(&self, scope: &Scope) -> Rows {
        let rows = self.rows.iter();
        let inside = rows.filter(|(_, object)| scope.contains(&object.header));
        inside
            .map(|(path, object)| (path.clone(), object.clone()))
            .collect()
    }

    /// Stages anything, in pieces; returns the reset that makes of it what it should be.
    pub(crate) fn stage_some(&mut self, scope: &Scope, content: &Rows) -> Reset {
        let mut staged = Rows::new();
        let mut onto = Onto::Nothing;
        if self.chance.one_in(3) {
            (staged, onto) = (self.held(scope), Onto::Held);
        }
        for _ in 0..1 + self.chance.below(3) {
            let (mut puts, mut drops) = (Vec::new(), Vec::new());
            for path in NAMES {
                if !self.chance.one_in(3) {
                    continue;
                }
                let anything = object(path, "stale", "red", 1 + self.chance.below(9) as u64);
                let object = content.get(path).filter(|_| self.chance.one_in(2));
                let object = object.unwrap_or(&anything);
                if self.chance.one_in(4) {
                    drops.push(name(path));
                    staged.remove(path);
                } else if scope.contains(&object.header) {
                    puts.push(object.clone());
                    staged.insert(path.into(), object.clone());
                }
            }
            let stage = Stage {
                resource: pods(),
                epoch: self.source.epoch,
                scope: scope.clone(),
                onto,
                puts,
                drops,
            };
            self.replica().stage_blocking(stage).unwrap();
            onto = Onto::Staged;
            self.list();
            if self.chance.one_in(8) {
                self.reopen();
            }
        }
        self.counts.staged += 1;
        correction(scope, Onto::Staged, &staged, content)
    }
}
