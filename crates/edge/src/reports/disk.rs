//! Entries of the queues as documents of the store, each under its queue and number.
//!
//! Documents are written one after the other, so after a crash the disk has them up to some point.
//! What a newer entry replaced, or was forgotten, may still lie there: it is told by its number.

use std::collections::BTreeMap;

use bytes::Bytes;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text};
use store::Reader;
use store::replica::Refusal;
use wire::frame::{Form, Queue, Report};
use wire::report::Forget;

use crate::keep::Keep;

/// Where the documents are.
const FOLDER: &str = "reports/";
/// The document that has the series.
const SERIES: &str = "reports/series";
/// How the names begin of those that say up to where a queue was forgotten.
const FORGOTTEN: &str = "forgotten.";

/// What was found on disk.
#[derive(Default)]
pub(super) struct Found {
    pub(super) series: Option<u64>,
    pub(super) forgotten: Vec<Forget>,
    pub(super) entries: Vec<Report>,
}

impl Found {
    /// Whether a hub has an entry: a crash left it behind.
    pub(super) fn has_forgotten(&self, report: &Report) -> bool {
        let upto = |it: &Forget| it.queue == report.queue && report.number <= it.upto;
        self.forgotten.iter().any(upto)
    }
}

/// Reads everything. What cannot be read is left out: it is damaged, or of a later release.
pub(super) fn read(reader: &Reader) -> Found {
    let mut found = Found::default();
    for name in reader.documents() {
        let Some(rest) = name.as_str().strip_prefix(FOLDER) else {
            continue;
        };
        let Ok(Some(bytes)) = reader.document(name.as_str()) else {
            continue;
        };
        if name.as_str() == SERIES {
            found.series = number(&bytes);
        } else if let Some(queue) = rest.strip_prefix(FORGOTTEN) {
            let queue = queue.parse().map(Queue::from_number);
            if let (Ok(queue), Some(upto)) = (queue, number(&bytes)) {
                found.forgotten.push(Forget { queue, upto });
            }
        } else if let Ok(report) = decode(&bytes) {
            found.entries.push(report);
        }
    }
    found
        .entries
        .sort_by_key(|report| (report.queue, report.number));
    found
}

/// Begins another series. What waits goes in it.
pub(super) async fn begin(keep: &Keep, series: u64) -> Result<(), Refusal> {
    keep.put_own(SERIES, Some(series.to_string().into()))
        .await?;
    for forget in read(keep.reader()).forgotten {
        keep.put_own(&forgotten(forget.queue), None).await?;
    }
    Ok(())
}

/// Writes down the series, and removes what a crash left behind: what was forgotten, and what
/// something newer replaced.
pub(super) async fn ready(keep: &Keep, series: u64) -> Result<(), Refusal> {
    let found = read(keep.reader());
    if found.series != Some(series) {
        keep.put_own(SERIES, Some(series.to_string().into()))
            .await?;
    }
    let mut newest = BTreeMap::new();
    for report in &found.entries {
        newest.insert((report.queue, &*report.key), report.number);
    }
    for report in &found.entries {
        let replaced = report.queue.form() == Some(Form::NewestWins)
            && newest.get(&(report.queue, &*report.key)) > Some(&report.number);
        if found.has_forgotten(report) || replaced {
            remove(keep, report.queue, report.number).await?;
        }
    }
    Ok(())
}

/// Writes an entry.
pub(super) async fn write(keep: &Keep, report: &Report) -> Result<(), Refusal> {
    let place = name(report.queue, report.number);
    keep.put_own(&place, Some(encode(report))).await
}

/// Takes an entry away that another one replaced.
pub(super) async fn remove(keep: &Keep, queue: Queue, number: u64) -> Result<(), Refusal> {
    keep.put_own(&name(queue, number), None).await
}

/// Forgets what the hub has. The number comes first: entries without it would be sent again.
pub(super) async fn forget(keep: &Keep, forget: Forget) -> Result<(), Refusal> {
    let Forget { queue, upto } = forget;
    keep.put_own(&forgotten(queue), Some(upto.to_string().into()))
        .await?;
    let prefix = format!("{FOLDER}{}.", queue.number());
    for document in keep.reader().documents() {
        let entry = document.as_str().strip_prefix(&prefix);
        let entry = entry.and_then(|digits| digits.parse::<u64>().ok());
        if entry.is_some_and(|number| number <= upto) {
            keep.put_own(document.as_str(), None).await?;
        }
    }
    Ok(())
}

fn name(queue: Queue, number: u64) -> String {
    format!("{FOLDER}{}.{number}", queue.number())
}

fn forgotten(queue: Queue) -> String {
    format!("{FOLDER}{FORGOTTEN}{}", queue.number())
}

fn number(bytes: &Bytes) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn encode(report: &Report) -> Bytes {
    let mut out = Vec::new();
    for number in [report.queue.number(), report.series, report.number] {
        put_number(&mut out, number);
    }
    put_text(&mut out, &report.key);
    put_bytes(&mut out, &report.bytes);
    out.into()
}

fn decode(bytes: &Bytes) -> Result<Report, Malformed> {
    let mut taker = Taker::new(bytes);
    let report = Report {
        queue: Queue::from_number(taker.number()?),
        series: taker.number()?,
        number: taker.number()?,
        key: taker.text()?.into(),
        bytes: Bytes::copy_from_slice(taker.bytes()?),
    };
    taker.end()?;
    Ok(report)
}
