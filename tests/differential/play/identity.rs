//! Who asks, as a connection: each has one of its own with its own certificate.

use std::collections::BTreeMap;

use bytes::Bytes;
use cluster::client::{Client, Door, Error, Protocol};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, InvalidHeaderValue};
use hyper::{HeaderMap, Method, Request, Response};

use super::settle;
use crate::conversation::Who;
use crate::servers::Entrance;
use crate::values::Known;

/// The connections of one conversation to one server.
pub(super) struct Doors<'a> {
    entrance: &'a Entrance,
    clients: BTreeMap<Option<Person>, Client>,
}

/// A name and groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Person {
    name: String,
    groups: Vec<String>,
}

impl<'a> Doors<'a> {
    pub(super) fn new(entrance: &'a Entrance) -> Self {
        Self {
            entrance,
            clients: BTreeMap::new(),
        }
    }

    /// Asks as somebody. A server may end a connection while it is idle: what could not be sent any
    /// more is sent over another one. It always ends those of people whom it does not know, so each
    /// of their requests has one of its own.
    pub(super) async fn ask(
        &mut self,
        who: &Who,
        known: &Known,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        let person = person(who, known)?;
        if let Entrance::Token { token, .. } = self.entrance {
            introduce(person.as_ref(), token, request.headers_mut())?;
        }
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path().to_owned();
        if person.is_none() {
            self.clients.remove(&person);
        }
        let client = self.open(&person).await?;
        let mut answer = client.ask(request.clone()).await;
        if matches!(answer, Err(Error::Unsent(_))) {
            self.clients.remove(&person);
            answer = self.open(&person).await?.ask(request).await;
        }
        let answer = answer.map_err(|error| error.to_string())?;
        if writes && answer.status().is_success() {
            settle::settled(self.entrance, &path).await?;
        }
        Ok(answer)
    }

    async fn open(&mut self, person: &Option<Person>) -> Result<&mut Client, String> {
        let usable = self.clients.get(person);
        if usable.is_none_or(Client::is_closed) {
            let door = self.door(person.as_ref());
            let door = door.map_err(|error| error.to_string())?;
            // A server that says goodbye over HTTP/2 may take back what it has just answered.
            let protocol = match person {
                Some(_) => Protocol::Http2,
                None => Protocol::Http1,
            };
            let client = door.connect(protocol).await;
            let client = client.map_err(|error| error.to_string())?;
            self.clients.insert(person.clone(), client);
        }
        let client = self.clients.get_mut(person);
        client.ok_or_else(|| "no connection".to_owned())
    }

    fn door(&self, person: Option<&Person>) -> Result<Door, cluster::Error> {
        let site = match self.entrance {
            Entrance::Certificates(site) => site,
            Entrance::Token { door, .. } => return Ok(door.clone()),
        };
        let Some(Person { name, groups }) = person else {
            return Door::open(site, None);
        };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        Door::open(site, Some(&site.client(name, &groups)?))
    }
}

/// Says who asks where nobody has a certificate: the administrator shows the token, and everybody
/// else is whom it speaks for.
fn introduce(person: Option<&Person>, token: &str, headers: &mut HeaderMap) -> Result<(), String> {
    let Some(person) = person else { return Ok(()) };
    let wrong = |error: InvalidHeaderValue| error.to_string();
    if !headers.contains_key(AUTHORIZATION) {
        let value = format!("Bearer {token}").parse().map_err(wrong)?;
        headers.insert(AUTHORIZATION, value);
    }
    if *person == admin() {
        return Ok(());
    }
    if headers.contains_key(IMPERSONATE_USER) {
        return Err(
            "who comes with a token cannot speak for one who speaks for another".to_owned(),
        );
    }
    headers.insert(IMPERSONATE_USER, person.name.parse().map_err(wrong)?);
    for group in &person.groups {
        headers.append(IMPERSONATE_GROUP, group.parse().map_err(wrong)?);
    }
    Ok(())
}

const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";

fn person(who: &Who, known: &Known) -> Result<Option<Person>, String> {
    match who {
        Who::Admin => Ok(Some(admin())),
        Who::Nobody => Ok(None),
        Who::User { name, groups } => {
            let groups = groups.iter().map(|group| group.fill(known));
            Ok(Some(Person {
                name: name.fill(known)?,
                groups: groups.collect::<Result<_, _>>()?,
            }))
        }
    }
}

fn admin() -> Person {
    Person {
        name: "kubernetes-admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
    }
}
