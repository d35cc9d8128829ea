//! What the tests are made of: objects, drafts, and chance that can be repeated.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use host::Clock;
use object::{Header, Object, ObjectName, Resource, Version};
use store::authority::{Action, Draft, Expect, Outcome, Refusal, Swap};
use store::disk::Disk;
use store::replica::{CutEnd, Until};
use store::{Authority, Extent, Options, Range, Retention, Want};

/// Chance from a seed (splitmix64). A failing test names its seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The seed of a run: from the environment, to repeat one, or fixed.
pub(crate) fn seed(fixed: u64) -> u64 {
    let given = std::env::var("SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or(fixed);
    println!("SEED={seed}");
    seed
}

pub(crate) fn pods() -> Resource {
    Resource::new("", "pods")
}

pub(crate) fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "leases")
}

pub(crate) fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

pub(crate) fn number(version: &Version) -> u64 {
    version.to_string().parse().unwrap()
}

pub(crate) fn name(path: &str) -> ObjectName {
    ObjectName::from_path(path)
}

pub(crate) fn want(resource: Resource, range: Range) -> Want {
    Want {
        resource,
        range,
        selector: Default::default(),
        extent: Extent::Whole,
    }
}

/// The text of an object before and after its version.
fn halves(path: &str, uid: &str, label: &str, filling: usize) -> (String, String) {
    let path = name(path);
    let uid = uid.replace('/', "-");
    let head = format!(
        r#"{{"metadata":{{"name":"{}","namespace":"{}","uid":"{uid}",
            "labels":{{"app":"{label}"}},"resourceVersion":""#,
        path.name(),
        path.namespace()
    );
    let tail = format!(r#""}},"filling":"{}"}}"#, "x".repeat(filling));
    (head, tail)
}

/// An object as a source would send it.
pub(crate) fn object(path: &str, uid: &str, label: &str, at: u64) -> Object {
    let (head, tail) = halves(path, uid, label, 40);
    let bytes = Bytes::from(format!("{head}{at}{tail}"));
    Object::parse(&pods(), bytes, &[]).unwrap()
}

/// An object that an authority is to give a version to.
pub(crate) fn draft(path: &str, uid: &str, filling: usize) -> Draft {
    let (head, tail) = halves(path, uid, "red", filling);
    let header = Header::parse(&pods(), format!("{head}1{tail}").as_bytes(), &[]).unwrap();
    Draft {
        header,
        head: head.into(),
        tail: tail.into(),
    }
}

pub(crate) fn put(resource: Resource, path: &str, uid: &str, expect: Expect) -> Swap {
    Swap {
        resource,
        name: name(path),
        expect,
        action: Action::Put(Box::new(draft(path, uid, 40))),
    }
}

pub(crate) fn delete(resource: Resource, path: &str) -> Swap {
    Swap {
        resource,
        name: name(path),
        expect: Expect::Present,
        action: Action::Delete,
    }
}

/// Creates an object and returns its version.
pub(crate) fn create(
    authority: &Authority,
    resource: Resource,
    path: &str,
) -> Result<u64, Refusal> {
    let swap = put(resource, path, path, Expect::Absent);
    let (outcomes, _) = authority.swap_blocking(vec![swap])?;
    Ok(stored(&outcomes[0]))
}

pub(crate) fn stored(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Stored(object) => number(&object.header.version),
        Outcome::Deleted(version) => number(version),
        Outcome::Checked => panic!("nothing was stored"),
    }
}

/// Options that compact and trim early.
pub(crate) fn small(compact_bytes_min: u64) -> Options {
    Options {
        owner: "test".into(),
        retention: Retention {
            events_max: 60,
            events_min: 10,
            bytes_max: 20_000,
            age_max: std::time::Duration::from_secs(60),
        },
        compact_bytes_min,
        keys: None,
    }
}

pub(crate) fn open(disk: Arc<dyn Disk>, options: &Options) -> Authority {
    Authority::open(disk, options.clone(), Clock::machine()).unwrap()
}

/// Opens an authority with both tables.
pub(crate) fn opened(disk: Arc<dyn Disk>, options: &Options) -> Authority {
    let authority = open(disk, options);
    authority
        .open_tables_blocking(vec![pods(), leases()])
        .unwrap();
    authority
}

/// Asks, and comes back with the question on its way.
pub(crate) async fn begun<F: Future>(asked: F) -> Pin<Box<F>> {
    let mut asked = Box::pin(asked);
    std::future::poll_fn(|context| {
        assert!(
            asked.as_mut().poll(context).is_pending(),
            "answered at once"
        );
        Poll::Ready(())
    })
    .await;
    asked
}

/// The end of a cut; without one, more of it follows, up to a version that is far away.
pub(crate) fn until(end: Option<CutEnd>) -> Until {
    let aim = version(1_000_000);
    end.map_or(Until::Piece { aim }, Until::End)
}
