//! Who lists and watches at a node: it sees every change once and in order, whatever happens to the
//! agent meanwhile, or is told that it must list again.

use std::collections::BTreeMap;

use object::select::Selector;
use object::{ObjectName, Resource, Version};
use store::{At, Ended, Event, Extent, Part, Reader, Refused, Row, Step, Want, Watch, What};

use crate::cluster::range_of;
use crate::seen::Seen;
use crate::trace::trace;

pub(crate) struct Client {
    want: Want,
    node: &'static str,
    state: Option<State>,
    watch: Option<Watch>,
    /// The last reset of the resource at the node: of which epoch and at which version.
    pub(crate) reset: Option<(u64, Version)>,
}

/// What it knows.
struct State {
    version: Version,
    epoch: u64,
    rows: Known,
}

type Known = BTreeMap<ObjectName, (Box<str>, Version)>;

impl Client {
    pub(crate) fn new(node: &'static str, resource: Resource) -> Self {
        let range = range_of(node, &resource);
        Self {
            want: Want {
                resource,
                range,
                selector: Selector::default(),
                extent: Extent::Whole,
            },
            node,
            state: None,
            watch: None,
            reset: None,
        }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.want.resource
    }

    /// The server went. It comes back from where it was.
    pub(crate) fn cut_off(&mut self) {
        self.watch = None;
    }

    /// The disk is another one: what was seen before says nothing.
    pub(crate) fn forget(&mut self) {
        self.watch = None;
        self.state = None;
    }

    /// Lists or watches, whatever is next.
    pub(crate) fn turn(&mut self, reader: &Reader, seen: &mut Seen) {
        let epoch = reader
            .holding(&self.want.resource)
            .map_or(0, |held| held.epoch);
        if let Some(state) = &self.state
            && self.watch.is_none()
        {
            // Nobody can tell a version of one epoch from that of another: who was away when the
            // epoch changed lists again.
            if state.epoch != epoch {
                self.state = None;
                return;
            }
            match reader.watch(&self.want, &state.version) {
                Ok(watch) => {
                    seen.note("resumed watch");
                    self.watch = Some(watch);
                }
                Err(refused) => return self.too_old(&refused, seen),
            }
        }
        match self.watch.take() {
            Some(watch) => self.follow(watch, reader, (epoch, seen)),
            None => self.list(reader, epoch),
        }
    }

    fn list(&mut self, reader: &Reader, epoch: u64) {
        let page = match reader.page(&self.want, &At::Now, &Part::default()) {
            Ok(page) => page,
            Err(Refused::NotCovered) => return,
            Err(refused) => panic!("{}: {refused}", self.node),
        };
        let rows = page.rows.iter().map(|row| known(row)).collect();
        trace(|| {
            format!(
                "{} lists {} at {}",
                self.node,
                self.resource(),
                page.version
            )
        });
        self.watch = Some(
            reader
                .watch(&self.want, &page.version)
                .expect("a list can be watched from"),
        );
        self.state = Some(State {
            version: page.version.clone(),
            epoch,
            rows,
        });
    }

    /// Whether something was reset, or ended, since then.
    fn was_reset(&self, state: &State) -> bool {
        let reset = self.reset.as_ref();
        reset.is_some_and(|(epoch, at)| *epoch != state.epoch || *at >= state.version)
    }

    /// It must list again: something was reset since, or is not held any more.
    fn too_old(&mut self, refused: &Refused, seen: &mut Seen) {
        let Some(state) = self.state.take() else {
            return;
        };
        let at = &state.version;
        trace(|| format!("{} {} at {at}: {refused}", self.node, self.resource()));
        seen.note("relist");
        // It stands only where this node has shown something, also in the middle of a cut.
        assert!(!matches!(refused, Refused::PassedOver { .. }), "{refused}");
        if let Refused::TooOld { .. } = refused {
            // I8: nobody is sent away who could be told what happened.
            assert!(self.was_reset(&state), "{refused}, and no reset since");
        }
    }

    fn follow(&mut self, mut watch: Watch, reader: &Reader, (epoch, seen): (u64, &mut Seen)) {
        loop {
            match watch.step() {
                Ok(Step::Events(events)) => {
                    for event in events {
                        self.see(&event);
                    }
                }
                Ok(Step::Progress(version)) => {
                    let state = self.state.as_mut().expect("who watches has listed");
                    // I9: what was said to be complete stays so.
                    assert!(version >= state.version, "progress went back");
                    assert_eq!(state.epoch, epoch, "an epoch ends every watch");
                    state.version = version;
                    self.watch = Some(watch);
                    return self.compare(reader);
                }
                Err(Ended::Replaced) => {
                    seen.note("relist");
                    let state = self.state.take().expect("who watches has listed");
                    let at = &state.version;
                    trace(|| format!("{} {} at {at}: replaced", self.node, self.resource()));
                    // I8: a reset or an end is why.
                    assert!(self.was_reset(&state), "replaced without a reset");
                    return;
                }
                Err(ended) => panic!("{} {}: {ended}", self.node, self.resource()),
            }
        }
    }

    /// I2, I8: versions rise, and every change is of what was known.
    fn see(&mut self, event: &Event) {
        let state = self.state.as_mut().expect("who watches has listed");
        let (node, resource, range) = (self.node, &self.want.resource, &self.want.range);
        let at = &event.version;
        let inside = |row: &&std::sync::Arc<Row>| range.contains(&row.header);
        let What::Changed { before, after } = &event.what else {
            panic!("{node} {resource}: not for watchers");
        };
        let (before, after) = (
            before.as_ref().filter(inside),
            after.as_ref().filter(inside),
        );
        trace(|| format!("{node} sees {resource}@{at}"));
        assert!(
            *at > state.version,
            "{node} {resource}: {at} after {}",
            state.version
        );
        state.version = at.clone();
        if let Some(before) = before {
            let (name, was) = known(before);
            assert_eq!(
                state.rows.remove(&name),
                Some(was),
                "{node} {resource} before {at}"
            );
        }
        if let Some(after) = after {
            let (name, is) = known(after);
            let twice = state.rows.insert(name, is);
            assert_eq!(twice, None, "{node} {resource} came twice at {at}");
        }
    }

    /// I8: what was seen adds up to what is there.
    fn compare(&self, reader: &Reader) {
        let (Some(state), Ok(page)) = (
            &self.state,
            reader.page(&self.want, &At::Now, &Part::default()),
        ) else {
            return;
        };
        let rows: Known = page.rows.iter().map(|row| known(row)).collect();
        assert_eq!(state.rows, rows, "{} {}", self.node, self.resource());
    }
}

fn known(row: &Row) -> (ObjectName, (Box<str>, Version)) {
    let header = &row.header;
    let known = (header.uid.clone(), header.version.clone());
    (header.name.clone(), known)
}
