//! How long the head of an answer is waited for: pure.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_LENGTH;
use kubeapi::request::{Query, Target};
use tunnel::hops;

/// How long an ordinary request is waited for. An API server gives up after a minute and says so;
/// its answer still has to get here.
const HEAD_TIME_MAX: Duration = Duration::from_secs(70);
/// So many bytes of a body earn a second more: that much gets through the slowest links.
const BYTES_PER_SECOND: u64 = 1024;
/// Bytes of a body whose length is not said: as many as an API server takes.
const BODY_BYTES: u64 = 3 * 1024 * 1024;
/// What a request says itself of its time is believed up to this.
const SAID_MAX: Duration = Duration::from_secs(3600);

/// How long the head of the answer may take; nothing if it may take for ever: a watch has nothing
/// to say before something happens, and a terminal is as slow as its user.
pub(super) fn head_time<B: http_body::Body>(request: &Request<B>) -> Option<Duration> {
    if lasts(request) {
        return None;
    }
    let said = said(request.uri().query().unwrap_or_default());
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
    let body = match (request.body().is_end_stream(), length) {
        (true, _) => 0,
        (false, Some(length)) => length,
        (false, None) => BODY_BYTES,
    };
    let earned = Duration::from_secs(body.min(BODY_BYTES) / BYTES_PER_SECOND);
    Some(HEAD_TIME_MAX.max(said) + earned)
}

/// Whether an answer lasts until its reader has enough.
fn lasts<B>(request: &Request<B>) -> bool {
    let query = Query::parse(request.uri().query().unwrap_or_default()).ok();
    let on = |name| query.as_ref().is_some_and(|query| query.switch(name));
    let target = Target::parse(request.uri().path());
    let watches = matches!(target, Ok(Target::Resource(path)) if path.watch);
    watches || on("watch") || on("follow") || hops::upgrade(request.headers()).is_some()
}

/// How long a request says that it may take, beside what is added for its way.
fn said(query: &str) -> Duration {
    let named = |name: &str| {
        let mut values = pairs(query).filter(|(key, _)| *key == name);
        values.next().map(|(_, value)| value)
    };
    let seconds = named("timeoutSeconds").and_then(|text| text.parse().ok());
    let seconds = seconds.or_else(|| named("timeout").and_then(seconds_of));
    let said = Duration::from_secs(seconds.unwrap_or(0)).min(SAID_MAX);
    match said.is_zero() {
        true => said,
        false => said + (HEAD_TIME_MAX - Duration::from_secs(60)),
    }
}

/// The seconds of a time as Go writes it, if they are a whole number of one unit: `30s`, `2m`.
fn seconds_of(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        _ => None,
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;

    fn time(query: &str, body: usize, headers: &[(&str, &str)]) -> Option<u64> {
        time_of(&format!("/api/v1/pods?{query}"), body, headers)
    }

    fn time_of(uri: &str, body: usize, headers: &[(&str, &str)]) -> Option<u64> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(vec![0; body]));
        let time = head_time(&request.body(body).unwrap());
        time.map(|time| time.as_secs())
    }

    #[test]
    fn an_ordinary_request_has_a_little_more_than_the_minute_of_an_api_server() {
        assert_eq!(time("", 0, &[]), Some(70));
        assert_eq!(time("limit=500&watch=false&follow=0", 0, &[]), Some(70));
        let length = [("content-length", "102400")];
        assert_eq!(time("", 102_400, &length), Some(170));
        assert_eq!(time("", 10, &[]), Some(70 + 3 * 1024));
    }

    #[test]
    fn what_lasts_is_waited_for_for_ever() {
        assert_eq!(time("watch=true", 0, &[]), None);
        assert_eq!(time("watch=1&timeoutSeconds=5", 0, &[]), None);
        assert_eq!(time("follow=true", 0, &[]), None);
        let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
        assert_eq!(time("", 0, &upgrade), None);
    }

    #[test]
    fn a_watch_is_known_in_whatever_way_it_is_asked_for() {
        for query in [
            "watch",
            "watch=",
            "limit=1&w%61tch=True",
            "follow",
            "follow=",
        ] {
            assert_eq!(time(query, 0, &[]), None, "{query}");
        }
        for path in [
            "/api/v1/watch/pods",
            "/api/v1/watch/namespaces/a/pods/b?timeoutSeconds=5",
            "/apis/apps/v1/watch/deployments",
        ] {
            assert_eq!(time_of(path, 0, &[]), None, "{path}");
        }
        for path in [
            "/api/v1/namespaces/watch/pods",
            "/apis/watch/v1/pods",
            "/apis/apps/watch",
            "/watch",
            "/api/v1/pods?watch=False",
        ] {
            assert_eq!(time_of(path, 0, &[]), Some(70), "{path}");
        }
    }

    #[test]
    fn what_a_request_says_of_its_time_is_believed_within_limits() {
        assert_eq!(time("timeoutSeconds=300", 0, &[]), Some(310));
        assert_eq!(time("timeout=5m", 0, &[]), Some(310));
        assert_eq!(time("timeout=10s", 0, &[]), Some(70));
        assert_eq!(time("timeout=999h", 0, &[]), Some(3610));
        for nonsense in ["timeout=", "timeout=x", "timeout=1h30m", "timeout=-1s"] {
            assert_eq!(time(nonsense, 0, &[]), Some(70), "{nonsense}");
        }
    }
}
