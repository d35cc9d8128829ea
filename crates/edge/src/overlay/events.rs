//! Events that are written here: each is reported once, under a name that it has from the start.
//! They are not shown, but what a client was answered is remembered for a while, since it goes on
//! from there.

use std::collections::VecDeque;

use bytes::Bytes;
use host::secret;
use kubeapi::Status;
use kubeapi::write::patch::Patch;
use serde_json::{Map, Value, json};
use wire::report::Statement;
use wire::report::statement::{Act, EventApi, is_name};

use super::fold::text;

/// Events that are remembered. Of more, the first is forgotten.
const REMEMBERED_MAX: usize = 256;

/// Events that were answered here.
#[derive(Debug, Default)]
pub(super) struct Answered(VecDeque<Value>);

impl Answered {
    fn find(&self, namespace: &str, name: &str) -> Option<&Value> {
        let its = |event: &&Value| {
            let metadata = &event["metadata"];
            text(metadata, "namespace") == namespace && text(metadata, "name") == name
        };
        self.0.iter().find(its)
    }

    /// Remembers what was answered.
    pub(super) fn put(&mut self, event: Value) {
        let metadata = event["metadata"].clone();
        let of = |it: &Value| {
            let its = &it["metadata"];
            (
                text(its, "namespace").to_owned(),
                text(its, "name").to_owned(),
            )
        };
        let named = of(&json!({"metadata": metadata}));
        self.0.retain(|it| of(it) != named);
        self.0.push_back(event);
        if self.0.len() > REMEMBERED_MAX {
            self.0.pop_front();
        }
    }

    /// An event with a patch applied, as far as it is known here.
    pub(super) fn patched(
        &self,
        (namespace, name): (&str, &str),
        patch: &Patch,
    ) -> Result<Value, Status> {
        let bare = json!({"metadata": {"namespace": namespace, "name": name}});
        let known = self.find(namespace, name).unwrap_or(&bare);
        // Lists of an event do not merge, so its schema has nothing to say.
        let patch = match patch {
            Patch::Strategic(patch) => Patch::Merge(patch.clone()),
            patch => patch.clone(),
        };
        patch.applied_to(known.clone(), None)
    }
}

/// A new event, as it is reported and as it is answered.
pub(super) fn created(
    api: EventApi,
    namespace: &str,
    mut event: Value,
) -> Result<(Statement, Value), Status> {
    let Some(object) = event.as_object_mut() else {
        return Err(Status::bad_request("an event must be an object"));
    };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Status::bad_request("metadata must be an object"));
    };
    let given = named(metadata, "namespace");
    if !given.is_empty() && given != namespace {
        let message = "the namespace of the event is not that of the request";
        return Err(Status::bad_request(message));
    }
    let mut name = named(metadata, "name");
    if name.is_empty() {
        // It has its name from now on: however often it is sent, it is one event.
        let random: [u8; 5] = secret::random().unwrap_or_default();
        name = format!(
            "{}{}",
            named(metadata, "generateName"),
            secret::hex(&random)
        );
        metadata.remove("generateName");
    }
    if !is_name(&name) || !is_name(namespace) {
        return Err(Status::bad_request(format!(
            "{name:?} cannot be the name of an event"
        )));
    }
    metadata.insert("name".to_owned(), name.as_str().into());
    metadata.insert("namespace".to_owned(), namespace.into());
    let body = Bytes::from(event.to_string());
    let statement = Statement::Event {
        api,
        act: Act::Create,
        namespace: namespace.into(),
        name: name.into(),
        body,
    };
    Ok((statement, event))
}

/// A change of an event, as it is reported.
pub(super) fn changed(
    api: EventApi,
    (namespace, name): (&str, &str),
    patch: &Patch,
) -> Result<Statement, Status> {
    let (act, body) = match patch {
        Patch::Strategic(patch) => (Act::Patch, patch.to_string()),
        Patch::Merge(patch) => (Act::Merge, patch.to_string()),
        Patch::Json(_) => {
            let message = "a JSON patch of an event needs the cluster, which cannot be reached; \
                           use a merge patch or a strategic merge patch";
            return Err(Status::new(415, "UnsupportedMediaType", message));
        }
    };
    if !is_name(name) || !is_name(namespace) {
        return Err(Status::bad_request(format!(
            "{name:?} cannot be the name of an event"
        )));
    }
    Ok(Statement::Event {
        api,
        act,
        namespace: namespace.into(),
        name: name.into(),
        body: body.into(),
    })
}

fn named(metadata: &Map<String, Value>, key: &str) -> String {
    let named = metadata.get(key).and_then(Value::as_str);
    named.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_a_name_has_one_before_it_is_reported() {
        let event = json!({"metadata": {"generateName": "web."}, "reason": "Pulled"});
        let (statement, answered) = created(EventApi::Core, "default", event).unwrap();
        let name = text(&answered["metadata"], "name");
        assert!(
            name.starts_with("web.") && name.len() > "web.".len(),
            "{name}"
        );
        let Statement::Event {
            body, name: said, ..
        } = &statement
        else {
            panic!("{statement:?}");
        };
        assert_eq!(**said, *name);
        assert_eq!(serde_json::from_slice::<Value>(body).unwrap(), answered);
        assert_eq!(
            Statement::decode(statement.queue(), &statement.encode()),
            Ok(statement)
        );
    }

    #[test]
    fn an_event_that_leads_elsewhere_is_refused() {
        for event in [
            json!({"metadata": {"name": "../pods"}}),
            json!({"metadata": {"name": "a", "namespace": "other"}}),
            json!({"metadata": []}),
            json!("event"),
        ] {
            let refused = created(EventApi::Core, "default", event.clone()).unwrap_err();
            assert_eq!(refused.code, 400, "{event}");
        }
    }

    #[test]
    fn a_series_goes_on_from_what_was_answered() {
        let mut answered = Answered::default();
        let event = json!({"metadata": {"name": "e"}, "count": 1, "firstTimestamp": "then"});
        let (_, event) = created(EventApi::Core, "default", event).unwrap();
        answered.put(event);
        let place = ("default", "e");
        let patch = Patch::Strategic(json!({"count": 2}));
        let event = answered.patched(place, &patch).unwrap();
        assert_eq!(
            (&event["count"], &event["firstTimestamp"]),
            (&json!(2), &json!("then"))
        );
        answered.put(event);
        assert_eq!(answered.0.len(), 1);
        assert!(changed(EventApi::Core, place, &patch).is_ok());
        let other = answered.patched(("default", "f"), &patch).unwrap();
        assert_eq!(other["metadata"]["name"], "f");
    }
}
