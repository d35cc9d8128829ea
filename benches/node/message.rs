//! What is read of an answer or an event, in JSON or in protobuf: its version and what it is.

use std::io::Read;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::{Value, json};

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

impl Form {
    /// As the head of an answer says it.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let said = headers.get(CONTENT_TYPE);
        let said = said.and_then(|it| it.to_str().ok()).unwrap_or("");
        match said.starts_with(PROTOBUF) {
            true => Self::Protobuf,
            false => Self::Json,
        }
    }
}

/// A whole answer.
pub(crate) struct Message {
    pub(crate) form: Form,
    pub(crate) body: Bytes,
}

impl Message {
    /// Takes what came, and opens it if it was compressed.
    pub(crate) fn open(headers: &HeaderMap, body: Bytes) -> Self {
        let zipped = headers.get(CONTENT_ENCODING).is_some_and(|it| it == "gzip");
        let body = match zipped {
            false => body,
            true => {
                let mut opened = Vec::new();
                let mut reader = flate2::read::GzDecoder::new(&*body);
                reader.read_to_end(&mut opened).expect("a whole gzip");
                opened.into()
            }
        };
        let form = Form::of(headers);
        Self { form, body }
    }

    /// The version of an object.
    pub(crate) fn version(&self) -> u64 {
        version_of(self.form, &self.body, OBJECT_VERSION).expect("a version")
    }

    /// The version of a list.
    pub(crate) fn list_version(&self) -> u64 {
        version_of(self.form, &self.body, LIST_VERSION).expect("a version")
    }

    /// This lease, renewed at this second of a day, as a request: its content type and its body.
    pub(crate) fn renewed(&self, second: u64) -> (&'static str, Bytes) {
        match self.form {
            Form::Json => {
                let mut lease: Value = serde_json::from_slice(&self.body).expect("JSON");
                let time = format!("2026-01-01T00:00:00.{:06}Z", second % 1_000_000);
                lease["spec"]["renewTime"] = json!(time);
                ("application/json", lease.to_string().into())
            }
            Form::Protobuf => (PROTOBUF, self.renewed_protobuf(second)),
        }
    }

    fn renewed_protobuf(&self, second: u64) -> Bytes {
        let unknown = self.body.strip_prefix(MAGIC).expect("the mark of protobuf");
        let lease = field(unknown, 2).expect("a lease");
        let spec = field(lease, 2).expect("what it says");
        let mut time = Vec::new();
        number(&mut time, 1, NEW_YEAR + second);
        number(&mut time, 2, second % 1_000_000 * 1_000);
        let mut renewed = Vec::new();
        bytes(&mut renewed, 1, field(spec, 1).expect("whose it is"));
        number(&mut renewed, 2, 40);
        bytes(&mut renewed, 4, &time);
        let mut whole = Vec::new();
        bytes(&mut whole, 1, field(lease, 1).expect("its metadata"));
        bytes(&mut whole, 2, &renewed);
        let mut out = MAGIC.to_vec();
        bytes(&mut out, 1, field(unknown, 1).expect("what it is"));
        bytes(&mut out, 2, &whole);
        out.into()
    }
}

/// What happened, as a watch says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An object is new, other or gone, at this version.
    Change(u64),
    /// Everything up to this version was said.
    Bookmark(u64),
    /// The watch cannot go on: what is there must be listed anew.
    Error,
}

/// The events of a watch, as their bytes come.
pub(crate) struct Events {
    form: Form,
    rest: Vec<u8>,
}

impl Events {
    pub(crate) fn of(form: Form) -> Self {
        let rest = Vec::new();
        Self { form, rest }
    }

    /// The events that are whole now.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(length) = self.whole() {
            let one: Vec<u8> = self.rest.drain(..length).collect();
            let event = match self.form {
                Form::Json => in_json(&one),
                Form::Protobuf => in_protobuf(&one[LENGTH_BYTES..]),
            };
            events.push(event.expect("an event"));
        }
        events
    }

    /// How many bytes the first event takes, if it is whole.
    fn whole(&self) -> Option<usize> {
        match self.form {
            Form::Json => {
                let end = self.rest.iter().position(|byte| *byte == b'\n');
                end.map(|end| end + 1)
            }
            Form::Protobuf => {
                let (length, _) = self.rest.split_first_chunk::<LENGTH_BYTES>()?;
                let length = LENGTH_BYTES + u32::from_be_bytes(*length) as usize;
                (self.rest.len() >= length).then_some(length)
            }
        }
    }
}

fn in_json(line: &[u8]) -> Option<Event> {
    let event: Value = serde_json::from_slice(line).ok()?;
    let version = event["object"]["metadata"]["resourceVersion"].as_str();
    let version = version.and_then(|digits| digits.parse().ok());
    event_of(event["type"].as_str()?, version)
}

fn in_protobuf(event: &[u8]) -> Option<Event> {
    let kind = std::str::from_utf8(field(event, 1)?).ok()?;
    let object = field(field(event, 2)?, 1)?;
    event_of(kind, version_of(Form::Protobuf, object, OBJECT_VERSION))
}

fn event_of(kind: &str, version: Option<u64>) -> Option<Event> {
    match kind {
        "ADDED" | "MODIFIED" | "DELETED" => version.map(Event::Change),
        "BOOKMARK" => version.map(Event::Bookmark),
        _ => Some(Event::Error),
    }
}

/// The version in the metadata of an object or of a list.
fn version_of(form: Form, body: &[u8], number: u64) -> Option<u64> {
    match form {
        Form::Json => {
            let object: Value = serde_json::from_slice(body).ok()?;
            let version = object["metadata"]["resourceVersion"].as_str()?;
            version.parse().ok()
        }
        Form::Protobuf => {
            let object = field(body.strip_prefix(MAGIC)?, 2)?;
            let version = field(field(object, 1)?, number)?;
            std::str::from_utf8(version).ok()?.parse().ok()
        }
    }
}

/// The bytes of a field of a message of protobuf, by its number.
fn field(mut message: &[u8], number: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let length = match tag & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (field, rest) = message.split_at_checked(length)?;
        if tag >> 3 == number && tag & 7 == 2 {
            return Some(field);
        }
        message = rest;
    }
    None
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    write_varint(out, field << 3);
    write_varint(out, value);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    write_varint(out, field << 3 | 2);
    write_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What an object in protobuf begins with.
const MAGIC: &[u8] = b"k8s\0";
/// An event in protobuf begins with its length.
const LENGTH_BYTES: usize = 4;
/// Where the version is in the metadata of an object, and in that of a list.
const OBJECT_VERSION: u64 = 6;
const LIST_VERSION: u64 = 2;
/// The first second of 2026.
const NEW_YEAR: u64 = 1_767_225_600;
