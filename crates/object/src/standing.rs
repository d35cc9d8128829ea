//! How far a node is with a resource: everything up to a version, and some of what comes after it.

use crate::Version;
use crate::codec::{Malformed, Taker, put_number, put_version};

/// Cuts that may be cut off one after the other. A node that has had more of them does not know any
/// more where it stands, and must be asked what it holds.
pub const PARTS_MAX: usize = 8;

/// Where a node stands with one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// It has everything up to here.
    pub progress: Version,
    /// Cuts that were cut off since, in the order in which they began. Usually there is none.
    pub parts: Parts,
}

impl Standing {
    /// A node that has everything up to `version` and no more.
    pub fn complete(version: Version) -> Self {
        Self {
            progress: version,
            parts: Parts::default(),
        }
    }

    /// The highest version that the node has shown to anybody.
    pub fn shown(&self) -> &Version {
        self.parts
            .0
            .last()
            .map_or(&self.progress, |part| &part.shown)
    }

    /// Whether it is one that an honest node can have, and that says what it holds.
    pub fn is_in_order(&self) -> bool {
        let mut reached = &self.progress;
        let in_order = self.parts.0.iter().all(|part| {
            let in_order = *reached <= part.shown && part.shown <= part.aim;
            reached = &part.shown;
            in_order
        });
        in_order && self.parts.0.len() <= PARTS_MAX
    }
}

/// Cuts that were cut off, the last of which may still be coming.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts(Vec<Part>);

/// A cut of which the end has not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The version that it leads to.
    pub aim: Version,
    /// The node has its changes up to here.
    pub shown: Version,
}

impl Parts {
    /// Notes a change, of the cut that leads to `aim`.
    pub fn show(&mut self, aim: &Version, version: Version) {
        let next = Part {
            aim: aim.clone(),
            shown: version,
        };
        // Too many are not told apart: what they made cannot be told anyway.
        let many = self.0.len() > PARTS_MAX;
        match self.0.last_mut().filter(|last| last.aim == *aim || many) {
            Some(last) => *last = next,
            None => self.0.push(next),
        }
    }

    /// The cuts, in the order in which they began.
    pub fn as_slice(&self) -> &[Part] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them: everything is complete.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        for part in &self.0 {
            put_version(out, Some(&part.aim));
            put_version(out, Some(&part.shown));
        }
    }

    /// Takes them.
    pub fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let count = taker.number()?;
        if count > PARTS_MAX as u64 + 1 {
            return Err(Malformed);
        }
        let part = |_| -> Result<Part, Malformed> {
            let aim = taker.version()?.ok_or(Malformed)?;
            let shown = taker.version()?.ok_or(Malformed)?;
            Ok(Part { aim, shown })
        };
        Ok(Self((0..count).map(part).collect::<Result<_, _>>()?))
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> Version {
        number.to_string().parse().unwrap()
    }

    fn shown(pairs: &[(u64, u64)]) -> Standing {
        let mut standing = Standing::complete(version(1));
        for (aim, at) in pairs {
            standing.parts.show(&version(*aim), version(*at));
        }
        standing
    }

    #[test]
    fn changes_of_one_cut_are_one_part() {
        let standing = shown(&[(9, 5), (9, 7), (12, 11)]);
        assert_eq!(standing.parts.as_slice().len(), 2);
        assert_eq!(standing.shown(), &version(11));
        assert!(standing.is_in_order());
        assert_eq!(Standing::complete(version(3)).shown(), &version(3));
    }

    #[test]
    fn too_many_parts_say_nothing_and_stay_bounded() {
        let many: Vec<(u64, u64)> = (2..100).map(|at| (at, at)).collect();
        let standing = shown(&many);
        assert!(!standing.is_in_order());
        assert_eq!(standing.parts.as_slice().len(), PARTS_MAX + 1);
        assert_eq!(standing.shown(), &version(99));
        assert!(shown(&many[..PARTS_MAX]).is_in_order());
    }

    #[test]
    fn parts_are_the_same_after_they_were_written() {
        let parts = shown(&[(9, 5), (12, 11)]).parts;
        let mut out = Vec::new();
        parts.encode(&mut out);
        assert_eq!(Parts::decode(&mut Taker::new(&out)), Ok(parts));
        let mut many = Vec::new();
        put_number(&mut many, 10);
        assert_eq!(Parts::decode(&mut Taker::new(&many)), Err(Malformed));
    }
}
