//! A bounded crowd of small tasks, such as connections, of which any may fail alone.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::error;

use super::guard::{Outcome, guarded};
use crate::shutdown::Shutdown;

/// A crowd of tasks with a limited number of places. Clones share the places.
///
/// A task costs its own future and about 300 bytes; nothing of it is left once it has ended.
#[derive(Clone)]
pub struct Crowd(Arc<Room>);

struct Room {
    name: &'static str,
    places: u32,
    free: Arc<Semaphore>,
    cut: Shutdown,
}

/// A place in a crowd, held until it is dropped or until the task that took it has ended.
pub struct Place {
    room: Arc<Room>,
    permit: OwnedSemaphorePermit,
}

impl Crowd {
    pub(super) fn new(name: &'static str, places: u32) -> Self {
        let free = Arc::new(Semaphore::new(places as usize));
        Self(Arc::new(Room {
            name,
            places,
            free,
            cut: Shutdown::new(),
        }))
    }

    /// What the crowd is called in logs.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// How many places are taken.
    pub fn busy(&self) -> usize {
        self.0.places as usize - self.0.free.available_permits()
    }

    /// A place if one is free.
    pub fn place(&self) -> Option<Place> {
        let permit = self.0.free.clone().try_acquire_owned().ok()?;
        Some(self.with(permit))
    }

    /// A place, once one is free.
    pub async fn next_place(&self) -> Place {
        let permit = self.0.free.clone().acquire_owned().await;
        self.with(permit.expect("the semaphore is never closed"))
    }

    fn with(&self, permit: OwnedSemaphorePermit) -> Place {
        Place {
            room: self.0.clone(),
            permit,
        }
    }

    /// Waits until every place is free.
    pub(super) async fn emptied(&self) {
        let all = self.0.free.acquire_many(self.0.places).await;
        drop(all.expect("the semaphore is never closed"));
    }

    /// Ends every task where it stands and waits until all are gone.
    pub(super) async fn cut(&self) {
        self.0.cut.trigger();
        self.emptied().await;
    }
}

impl Place {
    /// Runs `task` in this place. Its panic is logged and ends nothing else.
    pub fn spawn(self, task: impl Future<Output = ()> + Send + 'static) {
        let task = Box::pin(task);
        start(async move { self.run(task).await.unwrap_or_default() });
    }

    /// Runs `first` and then, in a task of its own that keeps the place, `next` of what it gave.
    ///
    /// A handshake needs far more room than the session after it. A task keeps the size of its
    /// largest moment, so the session gets a fresh one.
    pub fn spawn_then<T, F>(
        self,
        first: impl Future<Output = Option<T>> + Send + 'static,
        next: impl FnOnce(T) -> F + Send + 'static,
    ) where
        T: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let first = Box::pin(first);
        start(async move {
            if let Some(Some(given)) = self.run(first).await {
                let next = Box::pin(next(given));
                start(async move { self.run(next).await.unwrap_or_default() });
            }
        });
    }

    /// Runs a future to its end, its panic or the cut, whichever is first.
    ///
    /// The future is boxed: each layer around it would have room for it once more.
    async fn run<T, F>(&self, task: Pin<Box<F>>) -> Option<T>
    where
        F: Future<Output = T>,
    {
        debug_assert_eq!(self.permit.num_permits(), 1, "a place is one permit");
        let outcome = tokio::select! {
            outcome = guarded(task) => outcome,
            () = self.room.cut.triggered() => return None,
        };
        match outcome {
            Outcome::Ended(output) => Some(output),
            Outcome::Panicked(message) => {
                error!(
                    crowd = self.room.name,
                    message, "task panicked; this is a bug"
                );
                None
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the task is owned by its place in the crowd"
)]
fn start(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_costs_a_task_little() {
        let place = Crowd::new("connections", 1).place().expect("a free place");
        let large = async {
            let space = [0_u8; 10_000];
            std::future::pending::<()>().await;
            assert_eq!(space.len(), 10_000);
        };
        let task = place.run(Box::pin(large));
        let bytes = size_of_val(&task);
        assert!(bytes <= 320, "{bytes} bytes beside the task's own");
    }
}
