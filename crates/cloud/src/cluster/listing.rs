//! A list, page by page and item by item.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use object::Version;
use serde::Deserialize;

use super::cutter::{Cutter, Piece};
use super::served::escaped;
use super::{Client, Error, Served};

/// Objects of a page.
const PAGE: usize = 500;
/// How long a server may think about a page before its first byte: a quorum read of many objects.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a page may stand still between two pieces.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Whether a list is asked for in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// In pages, all of the same moment. The server forgets that moment after some minutes.
    Pages,
    /// At once: for lists that take longer than the server remembers.
    Whole,
}

/// A consistent list that is being read.
pub struct Listing {
    client: Client,
    path: String,
    paging: Paging,
    page: Option<(Incoming, Cutter)>,
    version: Option<Version>,
    /// Where the next page begins; nothing after the last.
    next: Next,
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    First,
    After(String),
    Nothing,
}

impl Client {
    /// Lists a whole resource as it is now: no cache answers, but a quorum of the cluster's store.
    pub fn list(&self, served: &Served, paging: Paging) -> Listing {
        self.list_path(served.path(), paging)
    }

    fn list_path(&self, path: String, paging: Paging) -> Listing {
        Listing {
            client: self.clone(),
            path,
            paging,
            page: None,
            version: None,
            next: Next::First,
        }
    }

    /// The version at which a resource is now, by a consistent read of as little as can be.
    pub async fn version(&self, served: &Served) -> Result<Version, Error> {
        let bytes = self.get(&format!("{}?limit=1", served.path())).await?;
        let list: List = serde_json::from_slice(&bytes).map_err(|_| NOT_A_LIST)?;
        list.metadata.version()
    }
}

impl Listing {
    /// The next item as it came; nothing after the last. A refusal with 410 means that the server
    /// has forgotten the moment of the list: it must be started anew.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let Some((body, cutter)) = &mut self.page else {
                if self.next == Next::Nothing {
                    return Ok(None);
                }
                self.page = Some(self.open().await?);
                continue;
            };
            match cutter.piece()? {
                Some(Piece::Item(item)) => return Ok(Some(item)),
                Some(Piece::Metadata(metadata)) => self.note(&metadata)?,
                Some(Piece::End) => {
                    self.page = None;
                    if self.version.is_none() || self.next == Next::First {
                        return Err(Error::Malformed("a list without a version"));
                    }
                }
                None => match chunk(body, IDLE_TIME_MAX).await? {
                    Some(chunk) => cutter.push(&chunk),
                    None => return Err(Error::unreachable("the list broke off")),
                },
            }
        }
    }

    /// The version of the list, once [`Listing::next`] has given nothing.
    pub fn version(&self) -> Option<&Version> {
        let over = self.page.is_none() && self.next == Next::Nothing;
        self.version.as_ref().filter(|_| over)
    }

    async fn open(&mut self) -> Result<(Incoming, Cutter), Error> {
        let mut path = self.path.clone();
        if self.paging == Paging::Pages {
            path.push_str(&format!("?limit={PAGE}"));
            if let Next::After(token) = &self.next {
                path.push_str(&format!("&continue={}", escaped(token)));
            }
        }
        // Until the page says otherwise.
        self.next = Next::First;
        let body = self.client.stream(&path, HEAD_TIME_MAX).await?;
        Ok((body, Cutter::default()))
    }

    /// Notes what a page says of the list: all pages must be of one moment.
    fn note(&mut self, metadata: &[u8]) -> Result<(), Error> {
        let metadata: Metadata = serde_json::from_slice(metadata).map_err(|_| NOT_A_LIST)?;
        let version = metadata.version()?;
        if self.version.get_or_insert(version.clone()) != &version {
            return Err(Error::Malformed("pages of different versions"));
        }
        self.next = match metadata.next {
            Some(token) if !token.is_empty() => Next::After(token),
            _ => Next::Nothing,
        };
        Ok(())
    }
}

/// The next bytes of a body; nothing at its end.
pub(super) async fn chunk(body: &mut Incoming, within: Duration) -> Result<Option<Bytes>, Error> {
    loop {
        let frame = tokio::time::timeout(within, body.frame()).await;
        let frame = frame.map_err(|_| Error::unreachable("nothing came for too long"))?;
        match frame.transpose() {
            Ok(None) => return Ok(None),
            Ok(Some(frame)) => {
                // Trailers say nothing that we want to know.
                if let Ok(chunk) = frame.into_data() {
                    return Ok(Some(chunk));
                }
            }
            Err(error) => return Err(Error::failed("the answer broke off", error)),
        }
    }
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl Metadata {
    fn version(&self) -> Result<Version, Error> {
        let text = self.resource_version.as_deref().unwrap_or_default();
        text.parse()
            .map_err(|_| Error::Malformed("a list without a version"))
    }
}

const NOT_A_LIST: Error = Error::Malformed("not a list of objects");
