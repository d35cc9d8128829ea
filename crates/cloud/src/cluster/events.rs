//! A watch, event by event.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use object::Version;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::listing::chunk;
use super::{Client, Error, ITEM_BYTES_MAX, Served, Status};

/// How long a server may take to begin a watch.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of an event beside its object.
const FRAME_BYTES_MAX: usize = 256;

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The object is like this from now on.
    Put(Bytes),
    /// The object went; this is what it was, with the version at which it went.
    Delete(Bytes),
    /// Everything up to this version was told.
    Bookmark(Version),
    /// The watch cannot go on.
    Error(Status),
}

/// A watch that is being read.
pub struct Events {
    body: Incoming,
    lines: Lines,
    idle_max: Duration,
}

/// How long a watch may last, and how long it may be silent. Both are the caller's to spread.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The server ends it after this.
    pub whole: Duration,
    /// It is taken for dead when nothing came for this long; a server that sends bookmarks is
    /// silent for little more than a minute.
    pub silent: Duration,
}

impl Client {
    /// Watches a whole resource: every change after `from`.
    pub async fn watch(
        &self,
        served: &Served,
        from: &Version,
        patience: Patience,
    ) -> Result<Events, Error> {
        self.watch_path(&format!("{}?", served.path()), from, patience)
            .await
    }

    /// Watches the objects of a query: every change after `from`. The query ends with `?` or `&`,
    /// so that more can follow.
    pub async fn watch_path(
        &self,
        query: &str,
        from: &Version,
        patience: Patience,
    ) -> Result<Events, Error> {
        let path = format!(
            "{query}watch=true&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={}",
            patience.whole.as_secs().max(1),
        );
        Ok(Events {
            body: self.stream(&path, HEAD_TIME_MAX).await?,
            lines: Lines::default(),
            idle_max: patience.silent,
        })
    }
}

impl Events {
    /// The next event; nothing when the server has ended the watch.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready()? {
                return Ok(Some(event));
            }
            match chunk(&mut self.body, self.idle_max).await? {
                Some(chunk) => self.lines.push(&chunk),
                None if self.lines.is_empty() => return Ok(None),
                None => return Err(Error::unreachable("the watch broke off")),
            }
        }
    }

    /// The next event, if it has come already.
    pub fn ready(&mut self) -> Result<Option<Event>, Error> {
        self.lines.next()?.map(|line| event(&line)).transpose()
    }
}

/// Bytes -> lines.
#[derive(Debug, Default)]
struct Lines {
    buffer: BytesMut,
    /// So many bytes hold no end of a line.
    scanned: usize,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    fn is_empty(&self) -> bool {
        self.buffer.iter().all(u8::is_ascii_whitespace)
    }

    /// The next line that is not empty, once its end has come.
    fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.scanned = self.buffer.len();
                let max = ITEM_BYTES_MAX + FRAME_BYTES_MAX;
                return match self.scanned > max {
                    true => Err(Error::TooLarge { max }),
                    false => Ok(None),
                };
            };
            let line = self.buffer.split_to(self.scanned + end + 1).freeze();
            self.scanned = 0;
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(line));
            }
        }
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn event(line: &Bytes) -> Result<Event, Error> {
    let frame: Frame<'_> = serde_json::from_slice(line).map_err(|_| NOT_AN_EVENT)?;
    let object = line.slice_ref(frame.object.get().as_bytes());
    match frame.kind {
        "ADDED" | "MODIFIED" => Ok(Event::Put(object)),
        "DELETED" => Ok(Event::Delete(object)),
        "BOOKMARK" => bookmark(&object).map(Event::Bookmark),
        "ERROR" => Ok(Event::Error(Status::read(&object))),
        _ => Err(NOT_AN_EVENT),
    }
}

fn bookmark(object: &[u8]) -> Result<Version, Error> {
    #[derive(Deserialize)]
    struct Marked {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    let marked: Marked = serde_json::from_slice(object).map_err(|_| NOT_AN_EVENT)?;
    let version = marked.metadata.resource_version.parse();
    version.map_err(|_| Error::Malformed("a bookmark without a version"))
}

const NOT_AN_EVENT: Error = Error::Malformed("not an event of a watch");

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], chunk: usize) -> Result<Vec<Event>, Error> {
        let mut lines = Lines::default();
        let mut events = Vec::new();
        for chunk in text.chunks(chunk) {
            lines.push(chunk);
            while let Some(line) = lines.next()? {
                events.push(event(&line)?);
            }
        }
        Ok(events)
    }

    #[test]
    fn events_are_read_wherever_chunks_end_and_objects_are_not_touched() {
        let text = br#"{"type":"ADDED","object":{ "a" : 1.50 }}

{"object":{"b":"\n"},"type":"DELETED"}
{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}
{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}
"#;
        for chunk in 1..text.len() {
            let events = lines(text, chunk).unwrap();
            let [
                Event::Put(put),
                Event::Delete(deleted),
                Event::Bookmark(at),
                Event::Error(error),
            ] = &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!(&put[..], br#"{ "a" : 1.50 }"#);
            assert_eq!(&deleted[..], br#"{"b":"\n"}"#);
            assert_eq!(at.to_string(), "12");
            assert!(error.is_expired());
            assert_eq!(error.message, "too old");
        }
    }

    #[test]
    fn what_is_no_event_is_refused_and_so_is_a_line_without_end() {
        for text in ["{}\n", "[]\n", "{\"type\":\"NEW\",\"object\":{}}\n", "x\n"] {
            assert!(lines(text.as_bytes(), 4).is_err(), "{text}");
        }
        let endless = vec![b'x'; ITEM_BYTES_MAX + FRAME_BYTES_MAX + 1];
        let refused = lines(&endless, endless.len());
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
    }
}
