//! The last changes of one resource, with what each object was before: enough to say what a node
//! lacks, and to compute what it holds.

use std::collections::VecDeque;
use std::sync::Arc;

use object::{Header, ObjectName, Version};

/// What became of one object at one version.
#[derive(Debug, Clone)]
pub struct Step {
    /// The version: that of the object, or the one at which it went.
    pub version: Version,
    /// The object.
    pub name: ObjectName,
    /// What it was before; nothing if it was not there.
    pub before: Option<Arc<Header>>,
    /// What it is from now on; nothing if it went.
    pub after: Option<Arc<Header>>,
}

/// The last changes of one resource.
#[derive(Debug)]
pub struct Ring {
    steps: VecDeque<Step>,
    /// Nothing is known of what happened up to here.
    floor: Version,
    /// Everything is known of what happened after the floor and up to here.
    now: Version,
    steps_max: usize,
}

/// A change came at a version that was passed already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a change at {version} came after {now}")]
pub struct OutOfOrder {
    /// The version of the change.
    pub version: Version,
    /// The version that was passed.
    pub now: Version,
}

/// What is asked for lies before everything that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("changes are known above {floor} only")]
pub struct TooOld {
    /// Above this, everything is known.
    pub floor: Version,
}

impl Ring {
    /// A ring that knows of nothing before `now`, and keeps so many changes.
    pub fn new(now: Version, steps_max: usize) -> Self {
        Self {
            steps: VecDeque::new(),
            floor: now.clone(),
            now,
            steps_max,
        }
    }

    /// Takes in the next change. The oldest goes where there are too many, and is given back.
    pub fn push(&mut self, step: Step) -> Result<Option<Step>, OutOfOrder> {
        if step.version <= self.now {
            return Err(OutOfOrder {
                version: step.version,
                now: self.now.clone(),
            });
        }
        self.now = step.version.clone();
        self.steps.push_back(step);
        let oldest = self.steps.len() > self.steps_max;
        let oldest = oldest.then(|| self.steps.pop_front()).flatten();
        if let Some(oldest) = &oldest {
            self.floor = oldest.version.clone();
        }
        Ok(oldest)
    }

    /// Nothing happened up to this version.
    pub fn advance(&mut self, now: &Version) {
        if *now > self.now {
            self.now = now.clone();
        }
    }

    /// Forgets everything: the changes up to `now` are not known.
    pub fn restart(&mut self, now: Version) {
        *self = Self::new(now, self.steps_max);
    }

    /// Above this, everything is known.
    pub fn floor(&self) -> &Version {
        &self.floor
    }

    /// Up to here, everything is known.
    pub fn now(&self) -> &Version {
        &self.now
    }

    /// The changes above `from` and up to `to`, ascending.
    pub fn between(
        &self,
        from: &Version,
        to: &Version,
    ) -> Result<impl Iterator<Item = &Step> + use<'_>, TooOld> {
        if *from < self.floor {
            return Err(TooOld {
                floor: self.floor.clone(),
            });
        }
        let start = self.steps.partition_point(|step| step.version <= *from);
        let end = self.steps.partition_point(|step| step.version <= *to);
        Ok(self.steps.range(start..end.max(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Version {
        number.to_string().parse().unwrap()
    }

    fn step(at: u64) -> Step {
        Step {
            version: version(at),
            name: ObjectName::from_path("a"),
            before: None,
            after: None,
        }
    }

    fn versions(ring: &Ring, from: u64, to: u64) -> Result<Vec<String>, TooOld> {
        let steps = ring.between(&version(from), &version(to))?;
        Ok(steps.map(|step| step.version.to_string()).collect())
    }

    #[test]
    fn changes_lie_above_one_version_and_up_to_another() {
        let mut ring = Ring::new(version(10), 9);
        for at in [12, 15, 19] {
            ring.push(step(at)).unwrap();
        }
        assert_eq!(versions(&ring, 10, 19).unwrap(), ["12", "15", "19"]);
        assert_eq!(versions(&ring, 12, 18).unwrap(), ["15"]);
        assert_eq!(versions(&ring, 19, 12).unwrap(), [""; 0]);
        assert!(versions(&ring, 9, 19).is_err());
    }

    #[test]
    fn the_oldest_change_goes_and_is_then_too_old() {
        let mut ring = Ring::new(version(10), 2);
        for at in [12, 15, 19] {
            ring.push(step(at)).unwrap();
        }
        assert_eq!(ring.floor(), &version(12));
        assert!(versions(&ring, 11, 19).is_err());
        assert_eq!(versions(&ring, 12, 19).unwrap(), ["15", "19"]);
    }

    #[test]
    fn time_does_not_go_back() {
        let mut ring = Ring::new(version(10), 9);
        ring.advance(&version(20));
        ring.advance(&version(15));
        assert_eq!(ring.now(), &version(20));
        assert!(ring.push(step(20)).is_err());
        ring.push(step(21)).unwrap();
        ring.restart(version(30));
        assert_eq!((ring.floor(), ring.now()), (&version(30), &version(30)));
    }
}
