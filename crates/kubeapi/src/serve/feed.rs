//! The log -> what the server itself must know of its content: who may what, and which custom kinds there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::select::Selector;
use object::{ObjectName, Resource};
use store::{At, Ended, Part, Range, ReadFailed, Reader, Refused, Step, Want, Watch, What};

use super::Api;
use crate::custom;
use crate::who::Authorizer;

/// What the server follows, and how far it is.
pub struct Feeds {
    api: Arc<Api>,
    watches: Vec<Watch>,
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
        let mut resources = Authorizer::resources();
        resources.push(definitions());
        let mut feeds = Self { api, watches: Vec::new() };
        for resource in resources {
            let watch = feeds.load(&resource)?;
            feeds.watches.extend(watch);
        }
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
                let events = match self.watches[index].step() {
                    Ok(Step::Events(events)) => events,
                    Ok(Step::Progress(_)) => break,
                    Err(Ended::Lagged | Ended::Replaced | Ended::Damaged) => {
                        let resource = self.watches[index].resource().clone();
                        match self.load(&resource)? {
                            Some(watch) => self.watches[index] = watch,
                            None => break,
                        }
                        continue;
                    }
                };
                for event in events {
                    self.take(index, &event)?;
                }
            }
        }
        Ok(())
    }

    fn take(&self, index: usize, event: &store::Event) -> Result<(), FeedFailed> {
        let What::Changed { before, after } = &event.what else { return Ok(()) };
        let watch = &self.watches[index];
        let resource = watch.resource();
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

    /// Reads all of a resource afresh and follows it from there. Nothing, if it is not served here.
    fn load(&self, resource: &Resource) -> Result<Option<Watch>, FeedFailed> {
        let reader = &self.api.reader;
        let want =
            Want { resource: resource.clone(), range: Range::All, selector: Selector::default() };
        let failed = |refused: Refused| unreadable(resource, refused.into());
        let page = match reader.page(&want, &At::Now, &Part::default()) {
            Ok(page) => page,
            Err(Refused::NotCovered) => return Ok(None),
            Err(refused) => return Err(failed(refused)),
        };
        let watch = reader.watch(&want, &page.version).map_err(failed)?;
        let mut known = known(reader, resource);
        for row in &page.rows {
            let bytes = page.bytes(row).map_err(|source| unreadable(resource, source.into()))?;
            self.put(resource, &row.header.name, &bytes);
            known.remove(&row.header.name);
        }
        Ok(Some(watch))
    }

    fn put(&self, resource: &Resource, name: &ObjectName, bytes: &[u8]) {
        if *resource == definitions() {
            return self.define(name, bytes);
        }
        if let Err(error) = self.api.authorizer.write().handle_put(resource, name, bytes) {
            tracing::warn!(%error, "an object that grants permissions cannot be read");
        }
    }

    fn delete(&self, resource: &Resource, name: &ObjectName) {
        if *resource == definitions() {
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

fn known(_reader: &Reader, _resource: &Resource) -> BTreeMap<ObjectName, ()> {
    BTreeMap::new()
}

fn definitions() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn unreadable(resource: &Resource, source: ReadFailed) -> FeedFailed {
    FeedFailed::Unreadable { resource: resource.clone(), source }
}
