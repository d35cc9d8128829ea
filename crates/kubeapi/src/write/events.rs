//! The end of events: in a cluster of machines a lease ends them after an hour; here they are
//! looked through now and then.

use jiff::{SignedDuration, Timestamp};
use object::Resource;
use object::select::Selector;
use serde::Deserialize;
use store::authority::{Action, Expect, Refusal, Swap};
use store::{At, Extent, Part, Range, Want};

use super::perform::Writes;
use crate::Status;

/// How long an event is kept after it was last heard of: as long as a kube-apiserver keeps it.
const LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Events that are looked at in one step.
const PAGE: usize = 500;

/// When an event was heard of. Clients of different ages fill in different fields.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Heard {
    metadata: Made,
    event_time: Option<Timestamp>,
    last_timestamp: Option<Timestamp>,
    series: Option<Series>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Made {
    creation_timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<Timestamp>,
}

impl Heard {
    fn last(&self) -> Option<Timestamp> {
        let series = self
            .series
            .as_ref()
            .and_then(|series| series.last_observed_time);
        [
            series,
            self.last_timestamp,
            self.event_time,
            self.metadata.creation_timestamp,
        ]
        .into_iter()
        .flatten()
        .max()
    }
}

impl Writes {
    /// Removes events that nobody heard of for an hour. Returns how many went.
    pub async fn look_after_events(&self) -> Result<usize, Status> {
        let resource = Resource::new("", "events");
        let now = self.now();
        let mut gone = 0;
        let mut from: Option<String> = None;
        loop {
            let (old, next) = self.old_events(&resource, from.as_deref(), now)?;
            let swaps = old.into_iter().map(|(name, version)| Swap {
                resource: resource.clone(),
                name,
                expect: Expect::Version(version),
                action: Action::Delete,
            });
            for swap in swaps {
                match self.authority().swap(vec![swap]).await {
                    Ok(_) => gone += 1,
                    // It was heard of again, or somebody was faster.
                    Err(Refusal::Conflict { .. }) => {}
                    Err(refusal) => return Err(Status::internal(refusal.to_string())),
                }
            }
            match next {
                Some(next) => from = Some(next),
                None => return Ok(gone),
            }
        }
    }

    /// The old events of one page, and where the next page starts.
    fn old_events(
        &self,
        resource: &Resource,
        from: Option<&str>,
        now: Timestamp,
    ) -> Result<OldEvents, Status> {
        let want = Want {
            resource: resource.clone(),
            range: Range::All,
            selector: Selector::default(),
            extent: Extent::Whole,
        };
        let unread = || Status::internal("the stored events could not be read");
        let part = Part {
            from,
            limit: Some(PAGE),
        };
        let page = self
            .reader()
            .page(&want, &At::Now, &part)
            .map_err(|_| unread())?;
        let mut old = Vec::new();
        for row in &page.rows {
            let bytes = page.bytes(row).map_err(|_| unread())?;
            let heard: Heard = serde_json::from_slice(&bytes).unwrap_or_default();
            // One that tells no time is as old as it can be.
            let ends = heard.last().and_then(|last| last.checked_add(LIFE).ok());
            if ends.is_none_or(|ends| ends <= now) {
                old.push((row.header.name.clone(), row.header.version.clone()));
            }
        }
        let last = page.rows.last().filter(|_| page.more);
        Ok((old, last.map(|row| format!("{}\0", row.header.name))))
    }
}

type OldEvents = (Vec<(object::ObjectName, object::Version)>, Option<String>);

#[cfg(test)]
mod tests {
    use super::*;

    fn last(event: &str) -> Option<String> {
        let heard: Heard = serde_json::from_str(event).unwrap();
        heard.last().map(|last| last.to_string())
    }

    #[test]
    fn an_event_was_last_heard_of_at_the_latest_time_that_it_tells() {
        let event = r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},
            "lastTimestamp":"2026-01-01T00:10:00Z","eventTime":null}"#;
        assert_eq!(last(event).unwrap(), "2026-01-01T00:10:00Z");
        let series = r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},
            "series":{"count":2,"lastObservedTime":"2026-01-01T01:00:00.000001Z"}}"#;
        assert_eq!(last(series).unwrap(), "2026-01-01T01:00:00.000001Z");
        assert_eq!(last("{}"), None);
    }
}
