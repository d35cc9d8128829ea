//! The first words of a WebSocket: a request and its answer, as bytes and without I/O.
//!
//! There is one path, one version and one subprotocol. A browser is not let in: it would bring the
//! certificate of its user along to wherever a web page tells it to connect.

#[cfg(test)]
mod tests;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::http::head::{Head, Malformed};

/// The path that links are opened on.
pub const PATH: &str = "/link";
/// The subprotocol: what the messages mean.
pub const SUBPROTOCOL: &str = "holdfast.v1";

/// Sixteen random bytes by which a client knows that the answer is to its own request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The request that opens a WebSocket at `host`, which is a name or an address and maybe a
    /// port.
    pub fn request(&self, host: &str) -> Result<Vec<u8>, NotAHost> {
        if host.is_empty() || !host.bytes().all(is_of_a_host) {
            return Err(NotAHost);
        }
        let key = STANDARD.encode(self.0);
        let request = format!(
            "GET {PATH} HTTP/1.1\r\n\
             Host: {host}\r\n\
             Connection: Upgrade\r\n\
             Upgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        );
        Ok(request.into_bytes())
    }

    /// The answer that lets the client in.
    pub fn response(&self) -> Vec<u8> {
        let accept = self.accept();
        let response = format!(
            "HTTP/1.1 101 Switching Protocols\r\n\
             Connection: Upgrade\r\n\
             Upgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\
             Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        );
        response.into_bytes()
    }

    /// Reads a request, from its first byte to its empty line.
    pub fn read_request(request: &[u8]) -> Result<Self, Refused> {
        let head = Head::read(request)?;
        check_line(head.line)?;
        // This comes early, so that a browser is told what is true whatever else it sent.
        if head.all("origin").next().is_some() {
            return Err(Refused::Browser);
        }
        if head.one("host")?.is_none_or(str::is_empty) || announces_content(&head)? {
            return Err(Refused::Malformed);
        }
        if !has_token(&head, "connection", "upgrade") || !has_token(&head, "upgrade", "websocket") {
            return Err(Refused::NotAnUpgrade);
        }
        if head.one("sec-websocket-version")? != Some("13") {
            return Err(Refused::Version);
        }
        if !head
            .list("sec-websocket-protocol")
            .any(|name| name == SUBPROTOCOL)
        {
            return Err(Refused::Subprotocol);
        }
        let key = head.one("sec-websocket-key")?.ok_or(Refused::Malformed)?;
        let key = STANDARD.decode(key).map_err(|_| Refused::Malformed)?;
        let key = key.try_into().map_err(|_| Refused::Malformed)?;
        Ok(Self(key))
    }

    /// Reads the answer to our request, from its first byte to its empty line.
    pub fn read_response(&self, response: &[u8]) -> Result<(), NotLetIn> {
        let head = Head::read(response)?;
        let status = status(head.line).ok_or(NotLetIn::NotAWebSocket)?;
        if status != 101 {
            return Err(NotLetIn::Status(status));
        }
        let upgraded =
            has_token(&head, "connection", "upgrade") && has_token(&head, "upgrade", "websocket");
        let ours = head.one("sec-websocket-accept")? == Some(self.accept().as_str());
        let extended = head.all("sec-websocket-extensions").next().is_some();
        if !upgraded || !ours || extended {
            return Err(NotLetIn::NotAWebSocket);
        }
        if head.one("sec-websocket-protocol")? != Some(SUBPROTOCOL) {
            return Err(NotLetIn::Subprotocol);
        }
        Ok(())
    }

    /// What a server makes of the key. SHA-1 protects nothing here: it shows that the server read
    /// the request as a WebSocket's.
    fn accept(&self) -> String {
        let text = STANDARD.encode(self.0) + ACCEPT_SALT;
        STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
    }
}

/// Why a client is not let in. It is told by [`Refused::response`], and the connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a request that can be understood in one way only.
    #[error("malformed request")]
    Malformed,
    /// The head has too many bytes or fields.
    #[error("request header too large")]
    TooLong,
    /// Nothing but GET opens a WebSocket.
    #[error("method not allowed")]
    Method,
    /// There is nothing at this path.
    #[error("not found")]
    Path,
    /// Only HTTP/1.1 is spoken here.
    #[error("HTTP version not supported")]
    HttpVersion,
    /// It has an `Origin`, as browsers send it.
    #[error("browsers are not allowed")]
    Browser,
    /// A request like any other.
    #[error("only WebSocket is spoken here")]
    NotAnUpgrade,
    /// Another version of WebSocket.
    #[error("only version 13 of WebSocket is spoken here")]
    Version,
    /// The client does not speak our subprotocol: it is another program, or of another time.
    #[error("only the subprotocol {SUBPROTOCOL} is spoken here")]
    Subprotocol,
}

impl Refused {
    /// The status of the answer.
    pub fn status(self) -> u16 {
        self.line().0
    }

    /// The answer that says why not.
    pub fn response(self) -> Vec<u8> {
        let (status, reason) = self.line();
        let more = match self {
            Self::Method => "Allow: GET\r\n",
            Self::NotAnUpgrade | Self::Version => {
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            }
            _ => "",
        };
        let connection = match self {
            Self::NotAnUpgrade | Self::Version => "Upgrade, close",
            _ => "close",
        };
        let words = format!("{self}\n");
        let length = words.len();
        let response = format!(
            "HTTP/1.1 {status} {reason}\r\n\
             Connection: {connection}\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             {more}\r\n{words}"
        );
        response.into_bytes()
    }

    fn line(self) -> (u16, &'static str) {
        match self {
            Self::Malformed | Self::Subprotocol => (400, "Bad Request"),
            Self::Browser => (403, "Forbidden"),
            Self::Path => (404, "Not Found"),
            Self::Method => (405, "Method Not Allowed"),
            Self::NotAnUpgrade | Self::Version => (426, "Upgrade Required"),
            Self::TooLong => (431, "Request Header Fields Too Large"),
            Self::HttpVersion => (505, "HTTP Version Not Supported"),
        }
    }
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Syntax => Self::Malformed,
            Malformed::TooLong => Self::TooLong,
        }
    }
}

/// Why the other end is not one that we can speak with. Another address may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLetIn {
    /// It answered with another status than 101: a refusal, or a proxy in trouble.
    #[error("the other end answered with status {0}")]
    Status(u16),
    /// It speaks HTTP, maybe, but no WebSocket.
    #[error("the other end does not speak WebSocket")]
    NotAWebSocket,
    /// It speaks WebSocket, but not about the same.
    #[error("the other end does not speak {SUBPROTOCOL}")]
    Subprotocol,
}

impl From<Malformed> for NotLetIn {
    fn from(_: Malformed) -> Self {
        Self::NotAWebSocket
    }
}

/// A name that cannot stand in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name or address of a host")]
pub struct NotAHost;

fn check_line(line: &str) -> Result<(), Refused> {
    let mut words = line.split(' ');
    let words = (words.next(), words.next(), words.next(), words.next());
    let (Some(method), Some(path), Some(version), None) = words else {
        return Err(Refused::Malformed);
    };
    if version != "HTTP/1.1" {
        let http = version.starts_with("HTTP/");
        return Err(if http {
            Refused::HttpVersion
        } else {
            Refused::Malformed
        });
    }
    if path != PATH {
        return Err(Refused::Path);
    }
    match method {
        "GET" => Ok(()),
        _ => Err(Refused::Method),
    }
}

/// Content would be taken for frames.
fn announces_content(head: &Head<'_>) -> Result<bool, Malformed> {
    let length = head.one("content-length")?;
    let coded = head.all("transfer-encoding").next().is_some();
    Ok(coded || length.is_some_and(|length| length != "0"))
}

fn has_token(head: &Head<'_>, name: &str, token: &str) -> bool {
    head.list(name)
        .any(|value| value.eq_ignore_ascii_case(token))
}

fn status(line: &str) -> Option<u16> {
    let status = line.strip_prefix("HTTP/1.1 ")?;
    let status = status.split(' ').next()?;
    let three = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    three.then(|| status.parse().ok()).flatten()
}

fn is_of_a_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte)
}

/// What RFC 6455 appends to every key.
const ACCEPT_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
