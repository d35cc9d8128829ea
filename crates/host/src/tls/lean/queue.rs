//! Bytes that wait in order, and no memory when none do.

use std::mem;

/// Bytes that wait in order, and no memory when none do.
#[derive(Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    /// How many of them are gone already.
    gone: usize,
}

/// Why nothing was put into a space.
pub(super) enum Short<E> {
    /// It must have this many bytes.
    Needs(usize),
    /// None would do.
    Never(E),
}

impl Queue {
    /// How many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.gone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of memory it has.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// What waits.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    /// What waits, to be changed where it is.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.gone..]
    }

    /// Adds these behind the others.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.close_up();
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds what `put` writes into a space of `guess` bytes, or of as many as it then asks for.
    pub(super) fn push_with<E>(
        &mut self,
        guess: usize,
        mut put: impl FnMut(&mut [u8]) -> Result<usize, Short<E>>,
    ) -> Result<(), Short<E>> {
        self.close_up();
        let start = self.bytes.len();
        let space = |bytes: &mut Vec<u8>, size| {
            bytes.reserve_exact(size);
            bytes.resize(start + size, 0);
        };
        space(&mut self.bytes, guess);
        let mut done = put(&mut self.bytes[start..]);
        if let Err(Short::Needs(size)) = done {
            space(&mut self.bytes, size);
            done = put(&mut self.bytes[start..]);
        }
        let count = *done.as_ref().unwrap_or(&0);
        self.bytes.truncate(start + count);
        self.free_if_empty();
        done.map(|_| ())
    }

    /// The first `count` bytes are gone.
    pub(super) fn discard(&mut self, count: usize) {
        assert!(count <= self.len(), "only what waits can go");
        self.gone += count;
        self.free_if_empty();
    }

    /// All of them are gone.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Gives back memory that few bytes would keep: they may wait for long.
    pub(super) fn shrink(&mut self) {
        if self.held() > 2 * self.len() {
            self.close_up();
            self.bytes.shrink_to_fit();
        }
    }

    fn close_up(&mut self) {
        self.bytes.drain(..mem::take(&mut self.gone));
    }

    fn free_if_empty(&mut self) {
        if self.is_empty() {
            self.clear();
        }
    }
}
