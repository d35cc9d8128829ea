//! Bytes -> few bytes, by what they are like.
//!
//! Pods of one owner differ in names, addresses and times only. The first of them is the model of
//! the others: they are packed as the difference from it. A model in turn is packed as the
//! difference from one of a few roots, which are kept as they are. Opening takes two steps at most.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use object::header::Lifecycle;
use object::{Header, Pairs};
use wire::content::{pack, unpack};

/// Roots of a resource. Beyond these, what is like none of them is packed by the nearest.
const ROOTS_MAX: usize = 8;
/// A model that saves less than this part is not like the object at all.
const WORTH: usize = 3;
/// Owners that are remembered before those of whom nothing is left are looked for.
const MODELS_MIN: usize = 64;

/// An object's bytes, packed.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: Box<[u8]>,
    length: u32,
    like: Option<Arc<Model>>,
}

/// What others are like: packed itself, or as it is.
#[derive(Debug)]
pub(super) struct Model {
    bytes: Box<[u8]>,
    length: u32,
    root: Option<Arc<Model>>,
    common: Common,
}

/// What the headers of an owner's objects have in common.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) labels: Pairs,
    pub(super) lifecycle: Option<Box<Lifecycle>>,
}

impl Common {
    fn of(header: &Header) -> Self {
        Self {
            labels: header.labels.clone(),
            lifecycle: header.lifecycle.clone(),
        }
    }
}

/// What the objects of one resource are like.
#[derive(Debug, Default)]
pub(super) struct Packer {
    roots: Vec<Arc<Model>>,
    /// The model of an owner's objects.
    models: HashMap<Box<str>, Weak<Model>>,
    /// When to look for owners of whom nothing is left.
    prune_at: usize,
}

impl Packed {
    /// The bytes as they were. Nothing only where memory is short.
    pub(super) fn open(&self) -> Option<Bytes> {
        let base = match &self.like {
            Some(model) => model.open()?,
            None => Bytes::new(),
        };
        opened(&self.bytes, self.length, &base)
    }

    /// How many bytes come of it.
    pub(super) fn length(&self) -> usize {
        self.length as usize
    }

    /// How many bytes it takes, without its model.
    pub(super) fn packed_length(&self) -> usize {
        self.bytes.len()
    }

    /// What the header has in common with its model's.
    pub(super) fn common(&self) -> Option<&Common> {
        self.like.as_ref().map(|model| &model.common)
    }

    fn new(bytes: &[u8], like: Option<&Arc<Model>>) -> Self {
        let base = like.and_then(|model| model.open());
        let like = like.filter(|_| base.is_some()).cloned();
        let (bytes, length) = packed(bytes, base.as_deref().unwrap_or_default());
        Self {
            bytes,
            length,
            like,
        }
    }
}

impl Model {
    fn open(&self) -> Option<Bytes> {
        match &self.root {
            Some(root) => opened(&self.bytes, self.length, &root.bytes),
            None => Some(Bytes::copy_from_slice(&self.bytes)),
        }
    }
}

impl Packer {
    /// Packs an object's bytes by the model that its owner's objects have.
    pub(super) fn pack(&mut self, header: &Header, bytes: &[u8]) -> Packed {
        let lifecycle = header.lifecycle.as_deref();
        let owner = lifecycle.and_then(|lifecycle| lifecycle.owners.first());
        let Some(owner) = owner else {
            let root = self.root(header, bytes);
            return Packed::new(bytes, Some(&root));
        };
        let model = self.models.get(&owner.uid).and_then(Weak::upgrade);
        if let Some(model) = model {
            let packed = Packed::new(bytes, Some(&model));
            if packed.packed_length() * WORTH <= bytes.len() {
                return packed;
            }
        }
        let model = self.model(header, bytes);
        self.prune();
        self.models
            .insert(owner.uid.clone(), Arc::downgrade(&model));
        Packed::new(bytes, Some(&model))
    }

    /// Bytes of models that are in use.
    pub(super) fn bytes(&self) -> usize {
        let models = self.models.values().filter_map(Weak::upgrade);
        let models: usize = models.map(|model| model.bytes.len()).sum();
        let roots: usize = self.roots.iter().map(|root| root.bytes.len()).sum();
        models + roots
    }

    fn model(&mut self, header: &Header, bytes: &[u8]) -> Arc<Model> {
        let root = self.root(header, bytes);
        let (bytes, length) = packed(bytes, &root.bytes);
        Arc::new(Model {
            bytes,
            length,
            root: Some(root),
            common: Common::of(header),
        })
    }

    /// The root that these bytes are most like; they become one if they are like none.
    fn root(&mut self, header: &Header, bytes: &[u8]) -> Arc<Model> {
        let size = |root: &Arc<Model>| packed(bytes, &root.bytes).0.len();
        let sizes = self.roots.iter().map(|root| (size(root), root));
        let best = sizes.min_by_key(|(size, _)| *size);
        if let Some((size, root)) = best
            && (size * WORTH <= bytes.len() || self.roots.len() == ROOTS_MAX)
        {
            return root.clone();
        }
        let root = Arc::new(Model {
            bytes: bytes.into(),
            length: bytes.len() as u32,
            root: None,
            common: Common::of(header),
        });
        self.roots.push(root.clone());
        root
    }

    fn prune(&mut self) {
        if self.models.len() >= self.prune_at.max(MODELS_MIN) {
            self.models.retain(|_, model| model.strong_count() > 0);
            self.prune_at = self.models.len() * 2;
        }
    }
}

/// Bytes packed by a base; as they are where that is no shorter.
fn packed(bytes: &[u8], base: &[u8]) -> (Box<[u8]>, u32) {
    // An object has some megabytes at most.
    let length = u32::try_from(bytes.len()).expect("an object is no longer than a u32 says");
    let packed = pack(bytes, base).filter(|packed| packed.len() < bytes.len());
    let packed = packed.unwrap_or_else(|| bytes.to_vec());
    (packed.into(), length)
}

fn opened(bytes: &[u8], length: u32, base: &[u8]) -> Option<Bytes> {
    let length = length as usize;
    match bytes.len() == length {
        true => Some(Bytes::copy_from_slice(bytes)),
        false => unpack(bytes, base, length).map(Bytes::from),
    }
}
