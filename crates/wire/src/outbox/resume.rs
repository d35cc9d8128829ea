//! What is staged on a node since before: in a session that was cut off, or in this one, longer ago
//! than the ring reaches. It is compared with what there is, put right, and gone on with.

use object::{Resource, Scope, Version};

use super::{Found, Outbox};
use crate::difference::Repairs;
use crate::frame::Staged;

impl Outbox {
    /// The node says that something is staged there. `epoch` is that of the versions here.
    pub fn found(&mut self, staged: Staged, epoch: u64) {
        let follow = self.follows.open(staged.resource);
        let found = Found::told(staged.last, staged.digest);
        let same = staged.epoch == epoch;
        follow.found(&staged.scope, same.then_some(found));
    }

    /// The next scope of which the node is to be asked what is staged for it. Then
    /// [`Outbox::resume`] is told what came of it.
    pub(crate) fn ask_staged(&mut self) -> Option<(Resource, Scope, Found)> {
        let (acked, sent) = (self.window.acked(), self.window.sent());
        self.follows.iter_mut().find_map(|(resource, follow)| {
            let (scope, found) = follow.ask_staged(acked, sent)?;
            Some((resource.clone(), scope, found))
        })
    }

    /// With these repairs, what is staged for a scope is what there was at `since`, and the rest
    /// follows. Without any, the scope is sent anew.
    pub fn resume(
        &mut self,
        resource: &Resource,
        scope: &Scope,
        since: &Version,
        repairs: Option<Repairs>,
    ) {
        if let Some(follow) = self.follows.get_mut(resource) {
            follow.resume(scope, since, repairs);
        }
    }
}
