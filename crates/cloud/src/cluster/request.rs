//! One question, one answer: whole, within a time and a size.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER,
};
use http::response::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::connection::Sent;
use super::{Client, Error, ITEM_BYTES_MAX, Status};

/// How long a question may go without an answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// An answer of any kind, refusals included.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its code.
    pub status: StatusCode,
    /// When to come again, if it says so.
    pub retry_after: Option<Duration>,
    /// Its body.
    pub bytes: Bytes,
}

/// What a conditional question brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It is what it was.
    Same,
    /// It is something else.
    New {
        /// The body.
        bytes: Bytes,
        /// Its name, if the server gave it one.
        etag: Option<HeaderValue>,
    },
}

/// What a request's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// An object.
    Json,
    /// A merge patch.
    MergePatch,
    /// A strategic merge patch.
    StrategicMergePatch,
    /// A JSON patch.
    JsonPatch,
}

impl ContentType {
    /// As it stands in a header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::StrategicMergePatch => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
        }
    }
}

impl Answer {
    /// The body of an answer that says yes; what it says otherwise.
    pub fn ok(self) -> Result<Bytes, Error> {
        match self.status.is_success() {
            true => Ok(self.bytes),
            false => {
                let status = Status::of(self.status, &self.bytes, self.retry_after);
                Err(Error::Refused(status))
            }
        }
    }
}

impl Client {
    /// Asks for a path and query, and waits for the whole answer, whatever it says.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(ContentType, Bytes)>,
    ) -> Result<Answer, Error> {
        let request = request(method, path, body)?;
        let (head, bytes) = self.exchange(request).await?;
        Ok(answer(&head, bytes))
    }

    /// Sends a request and waits for the whole answer.
    async fn exchange(&self, request: Request<Sent>) -> Result<(Parts, Bytes), Error> {
        let exchange = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok((head, whole(body).await?))
        };
        let late = |_| Error::unreachable("no answer in time");
        tokio::time::timeout(REQUEST_TIME_MAX, exchange)
            .await
            .map_err(late)?
    }

    /// Gets what is at a path in a form, unless it is still what `known` names.
    pub async fn get_as(
        &self,
        path: &str,
        form: &'static str,
        known: Option<&HeaderValue>,
    ) -> Result<Reading, Error> {
        let mut request = request(Method::GET, path, None)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(form));
        if let Some(known) = known {
            headers.insert(IF_NONE_MATCH, known.clone());
        }
        let (head, bytes) = self.exchange(request).await?;
        if known.is_some() && head.status == StatusCode::NOT_MODIFIED {
            return Ok(Reading::Same);
        }
        let etag = head.headers.get(ETAG).cloned();
        let bytes = answer(&head, bytes).ok()?;
        Ok(Reading::New { bytes, etag })
    }

    /// Gets what is at a path.
    pub async fn get(&self, path: &str) -> Result<Bytes, Error> {
        self.request(Method::GET, path, None).await?.ok()
    }

    /// Creates an object in the collection at a path, and gives it as it was stored.
    pub async fn create(&self, path: &str, object: Bytes) -> Result<Bytes, Error> {
        let body = Some((ContentType::Json, object));
        self.request(Method::POST, path, body).await?.ok()
    }

    /// Replaces the object at a path, and gives it as it was stored.
    pub async fn update(&self, path: &str, object: Bytes) -> Result<Bytes, Error> {
        let body = Some((ContentType::Json, object));
        self.request(Method::PUT, path, body).await?.ok()
    }

    /// Merges a patch into the object at a path, and gives it as it was stored.
    pub async fn patch(&self, path: &str, patch: Bytes) -> Result<Bytes, Error> {
        let body = Some((ContentType::MergePatch, patch));
        self.request(Method::PATCH, path, body).await?.ok()
    }

    /// Deletes what is at a path, under the conditions of `options` if there are any.
    pub async fn delete(&self, path: &str, options: Option<Bytes>) -> Result<Bytes, Error> {
        let body = options.map(|options| (ContentType::Json, options));
        self.request(Method::DELETE, path, body).await?.ok()
    }

    /// Asks for something that is read piece by piece. A refusal is read whole and is an error.
    pub(super) async fn stream(
        &self,
        path: &str,
        head_time_max: Duration,
    ) -> Result<Incoming, Error> {
        let request = request(Method::GET, path, None)?;
        let answer = tokio::time::timeout(head_time_max, self.send(request)).await;
        let answer = answer.map_err(|_| Error::unreachable("no answer in time"))??;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let bytes = tokio::time::timeout(REQUEST_TIME_MAX, whole(body)).await;
        let bytes = bytes.map_err(|_| Error::unreachable("no answer in time"))??;
        let status = Status::of(head.status, &bytes, retry_after(&head.headers));
        Err(Error::Refused(status))
    }
}

fn answer(head: &Parts, bytes: Bytes) -> Answer {
    Answer {
        status: head.status,
        retry_after: retry_after(&head.headers),
        bytes,
    }
}

fn request(
    method: Method,
    path: &str,
    body: Option<(ContentType, Bytes)>,
) -> Result<Request<Sent>, Error> {
    let mut request = Request::builder().method(method).uri(path);
    request = request.header(ACCEPT, ContentType::Json.as_str());
    let bytes = match body {
        Some((content_type, bytes)) => {
            request = request.header(CONTENT_TYPE, content_type.as_str());
            bytes
        }
        None => Bytes::new(),
    };
    let body = Either::Left(Full::new(bytes));
    request.body(body).map_err(Error::BadRequest)
}

/// A whole body, within the limit.
async fn whole(body: Incoming) -> Result<Bytes, Error> {
    let collected = Limited::new(body, ITEM_BYTES_MAX).collect().await;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let max = ITEM_BYTES_MAX;
            Err(Error::TooLarge { max })
        }
        Err(error) => Err(Error::failed("the answer broke off", error)),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
