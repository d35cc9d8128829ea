//! Lists: a page of rows at one version, encoded piece by piece while the client reads.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use object::Resource;
use store::{Ahead, At, Page, Part, Range, Reader, Refused, Want};

use super::encode::Encoder;
use super::options::{Freshness, ListOptions};
use super::token::Token;
use super::{Overlay, refused, unreadable, wait_for};
use crate::Status;
use crate::catalog::Kind;
use crate::table::ListMeta;

/// Bytes of a list that are made at once. A client that reads slowly holds no more than this.
pub const PIECE_BYTES: usize = 64 * 1024;

/// A list on its way to a client.
pub struct Listing {
    page: Page,
    encoder: Encoder,
    next_token: String,
    now: Timestamp,
    sent: usize,
    state: State,
    overlay: Option<Arc<dyn Overlay>>,
    resource: Resource,
}

#[derive(PartialEq)]
enum State {
    Head,
    Items,
    Done,
}

/// Whether what is wanted lies here in the version of the kind. All objects of a resource come in
/// one version, but for a moment after a change of it: one of them speaks for all.
pub fn is_in_version(reader: &Reader, kind: &Kind, want: &Want) -> bool {
    if !kind.may_differ() {
        return true;
    }
    let one = Part {
        limit: Some(1),
        ..Part::default()
    };
    // What cannot be read is told by the answer.
    let Ok(page) = reader.page(want, &At::Now, &one) else {
        return true;
    };
    let first = page.rows.first().and_then(|row| page.bytes(row).ok());
    first.is_none_or(|bytes| kind.is_version_of(&bytes))
}

/// Takes the rows of a list.
pub async fn list(
    reader: &Reader,
    encoder: Encoder,
    want: &Want,
    options: &ListOptions,
    now: Timestamp,
) -> Result<Listing, Status> {
    if let Freshness::AtLeast(version) | Freshness::Exactly(version) = &options.freshness {
        wait_for(reader, want, version).await?;
    }
    let page = match &options.token {
        Some(token) => next_page(reader, want, options, token)?,
        None => first_page(reader, want, options)?,
    };
    let next_token = match (page.more, page.rows.last()) {
        (true, Some(last)) => {
            let name = last.header.name.as_str();
            let name = name.strip_prefix(&*listed_in(want)).unwrap_or(name);
            Token::after(Some(page.version.clone()), name).encode()
        }
        _ => String::new(),
    };
    Ok(Listing {
        page,
        encoder,
        next_token,
        now,
        sent: 0,
        state: State::Head,
        overlay: None,
        resource: want.resource.clone(),
    })
}

fn first_page(reader: &Reader, want: &Want, options: &ListOptions) -> Result<Page, Status> {
    let at = match &options.freshness {
        Freshness::Exactly(version) => At::Exactly(version.clone()),
        Freshness::Newest | Freshness::Any | Freshness::AtLeast(_) => At::Now,
    };
    // Who takes any version is given all of it, as Kubernetes does: its caches hold it anyway.
    let limit = options
        .limit
        .filter(|_| options.freshness != Freshness::Any);
    reader
        .page(want, &at, &Part { from: None, limit })
        .map_err(refused)
}

fn next_page(
    reader: &Reader,
    want: &Want,
    options: &ListOptions,
    token: &Token,
) -> Result<Page, Status> {
    let at = token.version.clone().map_or(At::Now, At::Exactly);
    let from = format!("{}{}", listed_in(want), token.start);
    let part = Part {
        from: Some(&from),
        limit: options.limit,
    };
    reader.page(want, &at, &part).map_err(|why| match why {
        Refused::TooOld { .. } => {
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue \
                 token in this response to retrieve the remainder of the results. Continuing \
                 with the provided token results in an inconsistent list - objects that were \
                 created, modified, or deleted between the time the first chunk was returned and \
                 now may show up in the list.",
            );
            let (version, start) = (None, token.start.clone());
            status.continue_token = Some(Token { version, start }.encode());
            status
        }
        why => refused(why),
    })
}

/// What the names in a list's tokens are relative to, so that a token means the same here and at
/// another server of the cluster.
fn listed_in(want: &Want) -> String {
    match &want.range {
        Range::Namespace(namespace) => format!("{namespace}/"),
        Range::Name(name) if !name.namespace().is_empty() => format!("{}/", name.namespace()),
        Range::Name(_) | Range::All | Range::Node(_) => String::new(),
    }
}

impl Listing {
    /// The same with what lies over its objects.
    #[must_use]
    pub fn over(mut self, overlay: Option<Arc<dyn Overlay>>) -> Self {
        self.overlay = overlay;
        self
    }

    /// The next piece; nothing after the last.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, Status> {
        if self.state == State::Done {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        if self.state == State::Head {
            let version = self.page.version.to_string();
            let meta = ListMeta {
                resource_version: &version,
                continue_token: &self.next_token,
                remaining: self.page.remaining,
            };
            self.encoder
                .list_begin(&mut out, &meta, self.page.rows.len());
            self.state = State::Items;
        }
        let (page, sent) = (&self.page, &mut self.sent);
        let (overlay, resource) = (self.overlay.as_deref(), &self.resource);
        let shown = |number: usize, bytes: Bytes| {
            let name = &page.rows[number].header.name;
            let over = |overlay: &dyn Overlay| {
                let at = (&bytes, &page.version);
                overlay.shown(resource, name, at)
            };
            overlay.and_then(over).unwrap_or(bytes)
        };
        let mut ahead = Ahead::default();
        let mut items = std::iter::from_fn(|| {
            let number = *sent;
            page.rows.get(number)?;
            *sent += 1;
            Some(
                page.read(number, &mut ahead)
                    .map(|bytes| (number, shown(number, bytes)))
                    .map_err(|why| unreadable(why.into())),
            )
        });
        self.encoder
            .list_items(&mut out, PIECE_BYTES, &mut items, self.now)?;
        if self.sent == self.page.rows.len() {
            self.encoder.list_end(&mut out, self.sent);
            self.state = State::Done;
        }
        Ok(Some(out.into()))
    }

    /// Whether the last piece was given.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }
}
