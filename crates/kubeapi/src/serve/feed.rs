//! The log -> what the server itself must know of its content: who may what, and which custom kinds
//! there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::select::Selector;
use object::{ObjectName, Resource};
use store::{At, Extent, Part, Range, ReadFailed, Refused, Step, Want, Watch, What};

use super::Api;
use crate::custom;
use crate::who::Authorizer;

/// What the server follows, and how far it is.
pub struct Feeds {
    api: Arc<Api>,
    watches: Vec<Watch>,
    /// The definitions of custom kinds that the catalog was told of.
    defined: BTreeSet<ObjectName>,
}

/// Why the server cannot know its own content.
#[derive(Debug, thiserror::Error)]
pub enum FeedFailed {
    /// A resource that decides who may what cannot be read.
    #[error("{resource} cannot be read")]
    Unreadable {
        /// The resource.
        resource: Resource,
        /// What the store said.
        source: ReadFailed,
    },
}

impl Feeds {
    /// Reads what there is. When this returns, permissions and custom kinds are complete.
    pub fn start(api: Arc<Api>) -> Result<Self, FeedFailed> {
        let mut feeds = Self {
            api,
            watches: Vec::new(),
            defined: BTreeSet::new(),
        };
        feeds.load_all()?;
        Ok(feeds)
    }

    /// Follows what comes, until the shutdown.
    pub async fn run(mut self) -> Result<(), FeedFailed> {
        let mut ticks = self.api.reader.ticks();
        let shutdown = self.api.shutdown.clone();
        loop {
            self.catch_up()?;
            tokio::select! {
                ticked = ticks.changed() => if ticked.is_err() { return Ok(()) },
                () = shutdown.triggered() => return Ok(()),
            }
        }
    }

    /// Takes in everything that is in the log.
    fn catch_up(&mut self) -> Result<(), FeedFailed> {
        for index in 0..self.watches.len() {
            loop {
                match self.watches[index].step() {
                    Ok(Step::Progress(_)) => break,
                    Ok(Step::Events(events)) => {
                        for event in events {
                            self.take(index, &event)?;
                        }
                    }
                    // What was missed is not known, so everything is read afresh.
                    Err(_) => {
                        return self.load_all();
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads everything afresh and follows it from there.
    fn load_all(&mut self) -> Result<(), FeedFailed> {
        let mut authorizer = Authorizer::default();
        let mut watches = Vec::new();
        for resource in Authorizer::resources() {
            watches.extend(self.load(&resource, |name, bytes| {
                grant(&mut authorizer, &resource, name, bytes)
            })?);
        }
        let mut found = BTreeMap::new();
        let definitions = definitions();
        watches.extend(self.load(&definitions, |name, bytes| {
            found.insert(name.clone(), bytes.to_vec());
        })?);
        for gone in self
            .defined
            .iter()
            .filter(|name| !found.contains_key(*name))
        {
            self.api.catalog.remove_custom(gone.as_str());
        }
        self.defined = found.keys().cloned().collect();
        found
            .iter()
            .for_each(|(name, bytes)| self.define(name, bytes));
        *self.api.authorizer.write() = authorizer;
        self.watches = watches;
        Ok(())
    }

    fn take(&mut self, index: usize, event: &store::Event) -> Result<(), FeedFailed> {
        let What::Changed { before, after } = &event.what else {
            return Ok(());
        };
        let watch = &self.watches[index];
        let resource = &watch.resource().clone();
        match (after, before) {
            (Some(row), _) => {
                let bytes = watch.reader().event_bytes(resource, event, row);
                let bytes = bytes.map_err(|source| unreadable(resource, source))?;
                self.put(resource, &row.header.name, &bytes);
            }
            (None, Some(row)) => self.delete(resource, &row.header.name),
            (None, None) => {}
        }
        Ok(())
    }

    /// Reads all of a resource, and gives the place to follow it from. Nothing, if it is not served
    /// here.
    fn load(
        &self,
        resource: &Resource,
        mut put: impl FnMut(&ObjectName, &[u8]),
    ) -> Result<Option<Watch>, FeedFailed> {
        let reader = &self.api.reader;
        let (range, selector) = (Range::All, Selector::default());
        let want = Want {
            resource: resource.clone(),
            range,
            selector,
            extent: Extent::Whole,
        };
        let failed = |refused: Refused| unreadable(resource, refused.into());
        let page = match reader.page(&want, &At::Now, &Part::default()) {
            Ok(page) => page,
            Err(Refused::NotCovered) => return Ok(None),
            Err(refused) => return Err(failed(refused)),
        };
        let watch = reader.watch(&want, &page.version).map_err(failed)?;
        for row in &page.rows {
            let bytes = page
                .bytes(row)
                .map_err(|source| unreadable(resource, source.into()))?;
            put(&row.header.name, &bytes);
        }
        Ok(Some(watch))
    }

    fn put(&mut self, resource: &Resource, name: &ObjectName, bytes: &[u8]) {
        if *resource == definitions() {
            self.defined.insert(name.clone());
            return self.define(name, bytes);
        }
        grant(&mut self.api.authorizer.write(), resource, name, bytes);
    }

    fn delete(&mut self, resource: &Resource, name: &ObjectName) {
        if *resource == definitions() {
            self.defined.remove(name);
            return self.api.catalog.remove_custom(name.as_str());
        }
        self.api.authorizer.write().handle_delete(resource, name);
    }

    /// A custom kind came or changed: it is served from now on, once its names are accepted.
    fn define(&self, name: &ObjectName, bytes: &[u8]) {
        match custom::served(bytes) {
            Ok(kinds) => self.api.catalog.set_custom(name.as_str(), kinds),
            Err(error) => {
                tracing::warn!(%name, %error, "a custom kind cannot be served");
                self.api.catalog.remove_custom(name.as_str());
            }
        }
    }
}

fn grant(authorizer: &mut Authorizer, resource: &Resource, name: &ObjectName, bytes: &[u8]) {
    if let Err(error) = authorizer.handle_put(resource, name, bytes) {
        tracing::warn!(%error, "an object that grants permissions cannot be read");
    }
}

fn definitions() -> Resource {
    Resource::new(custom::GROUP, "customresourcedefinitions")
}

fn unreadable(resource: &Resource, source: ReadFailed) -> FeedFailed {
    FeedFailed::Unreadable {
        resource: resource.clone(),
        source,
    }
}
