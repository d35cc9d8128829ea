//! A step and what is known so far, as a request that can be sent.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::Full;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

use crate::conversation::Ask;
use crate::values::Known;

/// The most that a compressed answer may grow to.
const BODY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A request, and how it is told of.
pub(super) struct Request {
    pub(super) line: String,
    pub(super) is_watch: bool,
    pub(super) http: hyper::Request<Full<Bytes>>,
}

/// Puts the values in.
pub(super) fn request(ask: &Ask, known: &Known) -> Result<Request, String> {
    let target = ask.target.fill(known)?;
    let body = ask.body.as_ref().map(|body| body.fill(known)).transpose()?;
    // HTTP/2 sends an address with each request; which one does not matter to a server.
    let mut request = hyper::Request::builder()
        .method(ask.method.as_str())
        .uri(format!("https://127.0.0.1{target}"));
    for (name, value) in &ask.headers {
        request = request.header(name, value.fill(known)?);
    }
    let typed = |headers: &HeaderMap| headers.contains_key(CONTENT_TYPE);
    if body.is_some() && !request.headers_ref().is_some_and(typed) {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let line = format!("{} {target}", ask.method);
    let http = request.body(Full::new(body.unwrap_or_default().into()));
    let http = http.map_err(|error| format!("{line} cannot be sent: {error}"))?;
    let (_, query) = target.split_once('?').unwrap_or_default();
    let mut pairs = query.split('&');
    let is_watch = pairs.any(|pair| pair == "watch=1" || pair == "watch=true");
    Ok(Request {
        line,
        is_watch,
        http,
    })
}

/// A body as it was before it was compressed.
pub(super) fn plain_body(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, String> {
    let coding = headers.get("content-encoding");
    if coding.is_none_or(|coding| coding != "gzip") {
        return Ok(body.clone());
    }
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(body.as_ref()).take(BODY_BYTES_MAX);
    let read = decoder.read_to_end(&mut plain);
    read.map_err(|error| format!("not gzip: {error}"))?;
    Ok(plain.into())
}
