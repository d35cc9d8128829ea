//! Who asks, as a connection: each has one of its own with its own certificate.

use std::collections::BTreeMap;

use bytes::Bytes;
use cluster::Site;
use cluster::client::{Client, Door, Error, Protocol};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};

use crate::conversation::Who;
use crate::values::Known;

/// The connections of one conversation to one server.
pub(super) struct Doors<'a> {
    site: &'a Site,
    clients: BTreeMap<Option<Person>, Client>,
}

/// A name and groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Person {
    name: String,
    groups: Vec<String>,
}

impl<'a> Doors<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        Self {
            site,
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
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        let person = person(who, known)?;
        if person.is_none() {
            self.clients.remove(&person);
        }
        let client = self.open(&person).await?;
        let mut answer = client.ask(request.clone()).await;
        if matches!(answer, Err(Error::Unsent(_))) {
            self.clients.remove(&person);
            answer = self.open(&person).await?.ask(request).await;
        }
        answer.map_err(|error| error.to_string())
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
        let Some(Person { name, groups }) = person else {
            return Door::open(self.site, None);
        };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        Door::open(self.site, Some(&self.site.client(name, &groups)?))
    }
}

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
