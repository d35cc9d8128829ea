//! A list that is nearly always empty, and then takes one word.

use std::ops::{Deref, DerefMut};

/// A few things; nearly always none. An empty one holds no memory.
#[derive(Debug)]
#[expect(
    clippy::box_collection,
    reason = "there are many of these, and nearly all are empty"
)]
pub(crate) struct Few<T>(Option<Box<Vec<T>>>);

impl<T> Few<T> {
    /// One more.
    pub(crate) fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }

    /// None any more.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Takes all of them.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.take().map(|all| *all).unwrap_or_default()
    }

    /// Takes those of which this is true.
    pub(crate) fn take_if(&mut self, is: impl FnMut(&mut T) -> bool) -> Vec<T> {
        let Some(all) = &mut self.0 else {
            return Vec::new();
        };
        let taken = all.extract_if(.., is).collect();
        self.shrink();
        taken
    }

    /// Only those stay of which this is true.
    pub(crate) fn retain(&mut self, is: impl FnMut(&T) -> bool) {
        if let Some(all) = &mut self.0 {
            all.retain(is);
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |all| &all[..])
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut().map_or(&mut [], |all| &mut all[..])
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(all: Vec<T>) -> Self {
        Self((!all.is_empty()).then(|| Box::new(all)))
    }
}

impl<'f, T> IntoIterator for &'f Few<T> {
    type Item = &'f T;
    type IntoIter = std::slice::Iter<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'f, T> IntoIterator for &'f mut Few<T> {
    type Item = &'f mut T;
    type IntoIter = std::slice::IterMut<'f, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_take_a_word_and_hold_nothing() {
        assert_eq!(size_of::<Few<[u64; 9]>>(), size_of::<usize>());
        let mut few = Few::from(vec![1, 2, 3]);
        few.push(4);
        assert_eq!(few.take_if(|it| *it % 2 == 0), [2, 4]);
        few.extend([5]);
        few.retain(|it| *it > 2);
        assert_eq!(&few[..], [3, 5]);
        assert_eq!(few.take(), [3, 5]);
        assert!(few.0.is_none());
        few.push(1);
        few.retain(|_| false);
        assert!(few.0.is_none());
        assert!(Few::from(Vec::<u8>::new()).0.is_none());
    }
}
