//! The disk of an agent, and a trap in it: at a chosen place of the store the machine dies.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use store::disk::lossy::{Fault, LossyDisk};
use store::failpoint;

thread_local! {
    static TRAP: RefCell<Trap> = RefCell::default();
}

#[derive(Default)]
struct Trap {
    /// Where it springs, and after how many passes.
    armed: Option<(&'static str, u64)>,
    disk: Option<LossyDisk>,
    sprung: bool,
    passed: BTreeMap<&'static str, u64>,
}

/// The machine of an agent dies while something is stored, at one of the store's named places.
pub(crate) fn arm(place: &'static str, passes: u64) {
    TRAP.with_borrow_mut(|trap| trap.armed = Some((place, passes)));
}

/// Every place on this thread is looked at from now on.
pub(crate) fn begin() {
    TRAP.set(Trap::default());
    failpoint::visit(Some(Box::new(|place| {
        TRAP.with_borrow_mut(|trap| trap.pass(place));
    })));
}

impl Trap {
    fn pass(&mut self, place: &'static str) {
        let Some(disk) = &self.disk else { return };
        let Some((armed, passes)) = &mut self.armed else {
            return;
        };
        if *armed != place {
            return;
        }
        *passes = passes.saturating_sub(1);
        if *passes == 0 {
            // No call has an effect from here on: the process is gone, whatever it still does.
            disk.fail_at(0, Fault::Dead);
            self.armed = None;
            self.sprung = true;
            *self.passed.entry(place).or_default() += 1;
        }
    }
}

/// Does something with a disk. Says at which place the machine died meanwhile, if it did.
pub(crate) fn with<T>(disk: &LossyDisk, doing: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    let place = TRAP.with_borrow_mut(|trap| {
        trap.disk = Some(disk.clone());
        trap.sprung = false;
        trap.armed.map(|(place, _)| place)
    });
    let done = doing();
    let sprung = TRAP.with_borrow_mut(|trap| {
        trap.disk = None;
        trap.sprung
    });
    (done, place.filter(|_| sprung))
}

/// Disks that can be put back as they were.
pub(crate) type Copy = Rc<BTreeMap<String, Vec<u8>>>;

/// What is on a disk now.
pub(crate) fn copy(disk: &LossyDisk) -> Copy {
    use store::disk::Disk;
    let names = disk.list().expect("the model can list").into_iter();
    Rc::new(
        names
            .map(|name| (name.clone(), disk.bytes(&name).expect("it was listed")))
            .collect(),
    )
}

/// A disk with this on it.
pub(crate) fn restored(copy: &Copy) -> LossyDisk {
    let disk = LossyDisk::default();
    for (name, bytes) in copy.iter() {
        disk.set_bytes(name, bytes);
    }
    disk
}
