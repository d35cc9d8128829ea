//! How far a node is behind the cluster: what it lacks of a resource, and for how long.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use object::{Resource, Scope, Standing, Version};
use parking_lot::Mutex;
use wire::cut::{self, Change};
use wire::outbox::Source;

use crate::cache::Cache;
use crate::ledger::Held;
use crate::watch::Told;

/// Marks of a resource. Beyond it the older half of them is thinned out: what came long ago is
/// told less exactly.
const MARKS_MAX: usize = 512;
/// Versions that come within this time share a mark.
const GRAIN: Duration = Duration::from_secs(1);

/// When which versions came.
#[derive(Debug, Default)]
pub struct Marks(Mutex<BTreeMap<Resource, VecDeque<Mark>>>);

/// From this moment on, versions up to this one came.
#[derive(Debug, Clone)]
struct Mark {
    at: Duration,
    upto: Version,
}

impl Marks {
    /// Something became of the cluster, and the cache has it.
    pub fn hear(&self, told: &Told, cache: &Cache, now: Duration) {
        if let Told::Changed(resource, _) | Told::Listed(resource, _) = told
            && let Some(version) = cache.version(resource)
        {
            self.note(resource, version, now);
        }
    }

    /// A resource is known up to this version, as of now.
    pub fn note(&self, resource: &Resource, upto: &Version, now: Duration) {
        let mut all = self.0.lock();
        let marks = all.entry(resource.clone()).or_default();
        match marks.back_mut() {
            Some(last) if *upto <= last.upto => {}
            Some(last) if now < last.at + GRAIN => last.upto = upto.clone(),
            _ => marks.push_back(Mark {
                at: now,
                upto: upto.clone(),
            }),
        }
        if marks.len() > MARKS_MAX {
            thin_out(marks);
        }
    }

    /// When a version came: not later than that, and exactly if it was lately.
    pub fn came(&self, resource: &Resource, version: &Version) -> Option<Duration> {
        let all = self.0.lock();
        let marks = all.get(resource)?;
        let index = marks.partition_point(|mark| mark.upto < *version);
        marks.get(index).map(|mark| mark.at)
    }

    /// Another history begins.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Of two neighbours in the older half one stays: the moment of the first, the version of the
/// second.
fn thin_out(marks: &mut VecDeque<Mark>) {
    let newer = marks.split_off(MARKS_MAX / 2);
    let older: Vec<Mark> = marks.drain(..).collect();
    marks.extend(older.chunks(2).map(|pair| Mark {
        at: pair[0].at,
        upto: pair[pair.len() - 1].upto.clone(),
    }));
    marks.extend(newer);
}

/// What a node lacks of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behind {
    /// Objects that it has, of those that it is to have. Nothing if that is not known any more.
    pub objects: Option<u64>,
    /// Objects that it lacks, has in an older state, or should not have any more.
    pub lacks: u64,
    /// When the first of these changes came, if that is known.
    pub since: Option<Duration>,
}

/// Whether a node was last found to have what it is to have of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It was.
    Even,
    /// It was not, or that is not known.
    Otherwise,
}

/// What a node lacks that holds this, and is to hold these scopes.
pub fn behind(
    resource: &Resource,
    (held, wanted, found): (Option<&Held>, &[Scope], Found),
    cache: &Cache,
    marks: &Marks,
) -> Behind {
    let count = |scopes: &[Scope]| match scopes {
        [] => 0,
        scopes => cache.digest(resource, scopes).1,
    };
    let (Some(held), Some(ring)) = (held, cache.ring(resource)) else {
        return Behind {
            objects: held.is_none().then_some(0),
            lacks: count(wanted),
            since: None,
        };
    };
    let from = Standing::complete(held.version.clone());
    let Ok(changes) = cut::changes(ring, &held.scopes, &from, ring.now()) else {
        if found == Found::Even {
            // The hub was started since, and nothing had to be sent: the node has it all.
            return Behind {
                objects: Some(count(wanted)),
                ..Behind::default()
            };
        }
        // It is further behind than changes are remembered: it is asked what it holds.
        return Behind {
            objects: None,
            lacks: count(wanted),
            since: marks.came(resource, &held.version),
        };
    };
    let new = wanted.iter().filter(|scope| !held.scopes.contains(scope));
    let new: Vec<Scope> = new.cloned().collect();
    let made = changes
        .iter()
        .filter(|it| matches!(it, Change::Put { base: None, .. }));
    let gone = changes
        .iter()
        .filter(|it| matches!(it, Change::Delete { .. }));
    let objects = count(&held.scopes) + gone.count() as u64;
    let first = changes.first().map(Change::version);
    Behind {
        objects: Some(objects.saturating_sub(made.count() as u64)),
        lacks: changes.len() as u64 + count(&new),
        since: first.and_then(|version| marks.came(resource, version)),
    }
}

#[cfg(test)]
mod tests {
    use object::{Change as Changed, Object, Range};

    use super::*;
    use crate::cache::{Keep, Limits};

    fn pods() -> Resource {
        Resource::new("", "pods")
    }

    fn version(number: u64) -> Version {
        number.to_string().parse().unwrap()
    }

    fn pod(name: &str, at: u64) -> Object {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a",
            "uid":"u-{name}","resourceVersion":"{at}"}},"spec":{{"nodeName":"n"}}}}"#
        );
        Object::parse(&pods(), text.into(), &[]).unwrap()
    }

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn here() -> Vec<Scope> {
        vec![Scope::of(Range::Node("n".into()))]
    }

    /// Two pods at version 10, and then a change, a pod more and one less.
    fn cache(marks: &Marks) -> Cache {
        let limits = Limits {
            steps_max: 3,
            ..Limits::default()
        };
        let mut cache = Cache::new(1, limits);
        cache.open(&pods(), Keep::All);
        cache.list_started(&pods());
        cache.listed(&pods(), pod("one", 3));
        cache.listed(&pods(), pod("two", 4));
        cache.list_done(&pods(), &version(10));
        marks.note(&pods(), &version(10), seconds(0));
        let gone = Changed::Delete {
            name: pod("two", 4).header.name.clone(),
            uid: "u-two".into(),
            version: version(13),
        };
        let all = [
            Changed::Put(pod("one", 11)),
            Changed::Put(pod("three", 12)),
            gone,
        ];
        for (number, change) in all.into_iter().enumerate() {
            cache.apply(&pods(), change).unwrap();
            let known = cache.version(&pods()).unwrap();
            marks.note(&pods(), known, seconds(10 * (number as u64 + 1)));
        }
        cache
    }

    fn held(at: u64) -> Held {
        Held {
            version: version(at),
            scopes: here().into(),
        }
    }

    #[test]
    fn what_a_node_lacks_is_counted_from_when_the_first_of_it_came() {
        let marks = Marks::default();
        let cache = cache(&marks);
        let of = Found::Otherwise;
        let at = |at| behind(&pods(), (Some(&held(at)), &here(), of), &cache, &marks);
        let all = Behind {
            objects: Some(2),
            lacks: 3,
            since: Some(seconds(10)),
        };
        assert_eq!(at(10), all);
        let last = Behind {
            objects: Some(3),
            lacks: 1,
            since: Some(seconds(30)),
        };
        assert_eq!(at(12), last);
        let nothing = Behind {
            objects: Some(2),
            lacks: 0,
            since: None,
        };
        assert_eq!(at(13), nothing);
    }

    #[test]
    fn who_holds_nothing_lacks_everything_and_who_is_too_far_behind_too() {
        let marks = Marks::default();
        let mut cache = cache(&marks);
        let none = (None, &here()[..], Found::Otherwise);
        let first = behind(&pods(), none, &cache, &marks);
        assert_eq!((first.objects, first.lacks), (Some(0), 2));
        cache.apply(&pods(), Changed::Put(pod("four", 20))).unwrap();
        let far = |found| behind(&pods(), (Some(&held(10)), &here(), found), &cache, &marks);
        let lacks = far(Found::Otherwise);
        assert_eq!((lacks.objects, lacks.lacks), (None, 3));
        assert_eq!(lacks.since, Some(seconds(0)));
        // Unless it was found to have all of it, as after a restart of the hub.
        let even = far(Found::Even);
        assert_eq!((even.objects, even.lacks, even.since), (Some(3), 0, None));
    }

    #[test]
    fn marks_are_bounded_and_never_later_than_the_truth() {
        let marks = Marks::default();
        for number in 1..=10_000 {
            marks.note(&pods(), &version(number), seconds(2 * number));
        }
        assert!(marks.0.lock()[&pods()].len() <= MARKS_MAX);
        for number in 1..=10_000 {
            assert!(marks.came(&pods(), &version(number)).unwrap() <= seconds(2 * number));
        }
        let recent = marks.came(&pods(), &version(9_990));
        assert_eq!(recent, Some(seconds(2 * 9_990)));
        assert_eq!(marks.came(&pods(), &version(10_001)), None);
        // Within a second they share one.
        marks.note(&pods(), &version(10_001), Duration::from_millis(20_000_100));
        assert_eq!(marks.came(&pods(), &version(10_001)), Some(seconds(20_000)));
    }
}
