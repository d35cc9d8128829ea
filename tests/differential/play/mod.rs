//! Plays a conversation against one server and writes down what it answered.

mod ask; // a step, what is known -> a request
mod identity; // who asks -> a connection
mod settle; // what was written through a node -> the node has it
mod stage; // the namespace that a conversation has for itself
mod stream; // an open answer -> events

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::client::Answer;
use host::Clock;
use hyper::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use crate::conversation::{Act, Ask, Bookmarks, Conversation, Count, Step, Until};
use crate::servers::Entrance;
use crate::values::{Known, at, text_of};
use identity::Doors;
use stream::{Missing, Stream};

/// How long a request may take: longer than any time that a server is asked to wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long `@until` waits, and between two tries. The longest that is waited for is that history
/// goes: a real server looks as often as it should be kept, so it may keep it for twice as long.
const UNTIL_WITHIN: Duration = Duration::from_secs(60);
const UNTIL_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The headers that are compared: those that clients act on.
const HEADERS: [&str; 9] = [
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
];

/// All answers of one server.
#[derive(Debug)]
pub(crate) struct Played {
    /// When it began.
    pub(crate) began: Timestamp,
    pub(crate) told: Vec<Told>,
}

/// One answer, as one value.
#[derive(Debug)]
pub(crate) struct Told {
    /// Which step, from 0.
    pub(crate) step: usize,
    /// The request in one line.
    pub(crate) request: String,
    /// The answer: `status`, `header` and `body`; or `event`; or `missing` or `broken`.
    pub(crate) answer: Value,
    /// When it was there.
    pub(crate) at: Timestamp,
}

/// Plays all steps. What cannot be asked or does not come is written down as such, and the
/// conversation goes on: what follows may be different too.
pub(crate) async fn play(
    conversation: &Conversation,
    entrance: &Entrance,
    namespace: &str,
) -> Result<Played, String> {
    let clock = Clock::machine();
    let began = clock.wall();
    let mut player = Player {
        doors: Doors::new(entrance),
        known: Known {
            namespace: namespace.to_owned(),
            turn: 1,
            answers: BTreeMap::new(),
        },
        streams: BTreeMap::new(),
    };
    stage::set(&mut player.doors, &player.known).await?;
    let mut told = Vec::new();
    for (index, step) in conversation.steps.iter().enumerate() {
        for turn in 1..=step.repeat {
            player.known.turn = turn;
            let (request, answer) = player.step(step).await;
            told.push(Told {
                step: index,
                request,
                answer,
                at: clock.wall(),
            });
        }
    }
    stage::strike(&mut player.doors, &player.known).await?;
    Ok(Played { began, told })
}

struct Player<'a> {
    doors: Doors<'a>,
    known: Known,
    streams: BTreeMap<String, Stream>,
}

impl Player<'_> {
    /// The request in one line, and the answer to it.
    async fn step(&mut self, step: &Step) -> (String, Value) {
        let (line, answer) = match &step.act {
            Act::Events { stream, count } => self.events(stream, count).await,
            Act::Ask(ask) => self.asked(step, ask).await,
            Act::Watch {
                stream,
                bookmarks,
                ask,
            } => self.watch(step, ask, (stream, *bookmarks)).await,
        };
        let answer = answer.unwrap_or_else(|why| json!({"broken": why}));
        if let Some(name) = &step.name {
            let kept = answer.get("body").or(answer.get("event"));
            let kept = kept.cloned().unwrap_or_default();
            self.known.answers.insert(name.clone(), kept);
        }
        (line, answer)
    }

    async fn asked(&mut self, step: &Step, ask: &Ask) -> (String, Result<Value, String>) {
        let request = match ask::request(ask, &self.known) {
            Ok(request) => request,
            Err(why) => return (ask.method.clone(), Err(why)),
        };
        let line = request.line.clone();
        let answer = match &step.until {
            None => self.whole(step, request).await,
            Some(wanted) => self.until(step, ask, wanted).await,
        };
        (line, answer)
    }

    /// Asks again and again; only the last answer counts.
    async fn until(&mut self, step: &Step, ask: &Ask, wanted: &Until) -> Result<Value, String> {
        let mut last = Value::Null;
        let asking = async {
            loop {
                let request = ask::request(ask, &self.known)?;
                last = self.whole(step, request).await?;
                if is_reached(wanted, &last, &self.known)? {
                    return Ok::<(), String>(());
                }
                sleep(UNTIL_AGAIN_AFTER).await;
            }
        };
        match timeout(UNTIL_WITHIN, asking).await {
            Ok(asked) => asked?,
            Err(_) => {
                last["missing"] = format!("@until was not reached in {UNTIL_WITHIN:?}").into()
            }
        }
        Ok(last)
    }

    async fn whole(&mut self, step: &Step, request: ask::Request) -> Result<Value, String> {
        let exchange = async {
            let asked = self.doors.ask(&step.who, &self.known, request.http).await;
            let answer = asked?;
            if answer.status() == 200 && request.is_watch {
                return Err("a watch has # @watch NAME: its answer does not end".to_owned());
            }
            let whole = Answer::whole(answer).await;
            whole.map_err(|error| error.to_string())
        };
        let answer = timeout(ANSWER_WITHIN, exchange).await;
        let answer = answer.map_err(|_| format!("no whole answer in {ANSWER_WITHIN:?}"))??;
        answer_value(&answer)
    }

    /// Opens a stream. An answer that is no success is read to its end.
    async fn watch(
        &mut self,
        step: &Step,
        ask: &Ask,
        (name, bookmarks): (&str, Bookmarks),
    ) -> (String, Result<Value, String>) {
        let request = match ask::request(ask, &self.known) {
            Ok(request) => request,
            Err(why) => return (ask.method.clone(), Err(why)),
        };
        let line = request.line.clone();
        let opening = async {
            let asked = self.doors.ask(&step.who, &self.known, request.http).await;
            let answer = asked?;
            if answer.status() != 200 {
                let whole = Answer::whole(answer).await;
                return answer_value(&whole.map_err(|error| error.to_string())?);
            }
            let (head, body) = answer.into_parts();
            let stream = Stream::new(body, bookmarks);
            self.streams.insert(name.to_owned(), stream);
            Ok(json!({"status": 200, "header": headers(&head.headers)}))
        };
        let answer = timeout(ANSWER_WITHIN, opening).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer in {ANSWER_WITHIN:?}")));
        (line, answer)
    }

    async fn events(&mut self, name: &str, count: &Count) -> (String, Result<Value, String>) {
        let line = match count {
            Count::Next(count) => format!("EVENTS {name} {count}"),
            Count::Until { path, .. } => format!("EVENTS {name} until {path}"),
            Count::End => format!("EVENTS {name} end"),
        };
        let Some(stream) = self.streams.get_mut(name) else {
            return (line, Err(format!("the watch {name} was not opened")));
        };
        let mut events = Vec::new();
        let missing = loop {
            match is_enough(count, &events, &self.known) {
                Ok(false) => {}
                Ok(true) => break None,
                Err(why) => return (line, Err(why)),
            }
            match stream.next().await {
                Ok(event) => events.push(event),
                Err(Missing::Ended) if matches!(count, Count::End) => break None,
                Err(missing) => break Some(missing.to_string()),
            }
        };
        let mut answer = json!({"event": events});
        if let Some(missing) = missing {
            answer["missing"] = missing.into();
        }
        (line, Ok(answer))
    }
}

fn is_enough(count: &Count, events: &[Value], known: &Known) -> Result<bool, String> {
    match count {
        Count::Next(count) => Ok(events.len() == *count),
        Count::Until { path, value } => match events.last() {
            Some(event) => Ok(has(event, path, &value.fill(known)?)),
            None => Ok(false),
        },
        Count::End => Ok(false),
    }
}

fn has(place: &Value, path: &str, value: &str) -> bool {
    at(place, path).is_some_and(|found| text_of(found) == value)
}

fn is_reached(wanted: &Until, answer: &Value, known: &Known) -> Result<bool, String> {
    match wanted {
        Until::Status(status) => Ok(answer["status"] == *status),
        Until::Field { path, value } => {
            let value = value.fill(known)?;
            Ok(answer
                .get("body")
                .is_some_and(|body| has(body, path, &value)))
        }
    }
}

/// An answer as one value. A body that is not JSON is text.
fn answer_value(answer: &Answer) -> Result<Value, String> {
    let body = ask::plain_body(&answer.headers, &answer.body)?;
    let mut value = json!({"status": answer.status, "header": headers(&answer.headers)});
    if !body.is_empty() {
        let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
        value["body"] = serde_json::from_slice(&body).unwrap_or_else(|_| text());
    }
    Ok(value)
}

fn headers(headers: &HeaderMap) -> Value {
    let mut found = Map::new();
    for name in HEADERS {
        let values = headers.get_all(name).iter();
        let mut values: Vec<Value> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into())
            .collect();
        let value = match values.len() {
            0 => continue,
            1 => values.remove(0),
            _ => Value::Array(values),
        };
        found.insert(name.to_owned(), value);
    }
    Value::Object(found)
}
