//! A stream -> a socket: the handshake over a real connection, from either end.
//!
//! The futures here own their stream, so one that is dropped ends its connection. They are to be
//! given a few seconds, and what follows a task of its own: the memory of a handshake is then not
//! kept for the length of a session.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::Socket;
use super::frame::Role;
use super::handshake::{Key, NotAHost, NotLetIn, Refused};
use crate::http::head::Malformed;
use crate::http::{Opening, read_opening};
use crate::secret;

/// Why a client was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptFailed {
    /// The path failed, or the client left. Nothing to do.
    #[error("connection lost during the handshake")]
    Lost(#[source] io::Error),
    /// It was refused, and told so.
    #[error("client refused")]
    Refused(#[source] Refused),
}

/// Why there is no connection to a server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailed {
    /// The path failed. Try again, with backoff.
    #[error("connection lost during the handshake")]
    Lost(#[source] io::Error),
    /// The server does not let us in. Try another address, or later.
    #[error("the server did not let us in")]
    NotLetIn(#[source] NotLetIn),
    /// The configuration is wrong: this is no host.
    #[error("cannot ask for this host")]
    Host(#[source] NotAHost),
}

/// Waits for a client's request and lets it in, or refuses it with an answer.
pub async fn accept<S>(mut stream: S) -> Result<Socket<S>, AcceptFailed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let read = read_opening(&mut stream).await;
    let opening = read.map_err(AcceptFailed::Lost)?;
    accept_opening(stream, opening).await
}

/// Lets a client in whose request was read already, or refuses it with an answer.
pub async fn accept_opening<S>(
    mut stream: S,
    opening: Result<Opening, Malformed>,
) -> Result<Socket<S>, AcceptFailed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = opening
        .map_err(Refused::from)
        .and_then(|opening| Ok((Key::read_request(&opening.head)?, opening.early)));
    match request {
        Ok((key, early)) => {
            let written = write(&mut stream, &key.response()).await;
            written.map_err(AcceptFailed::Lost)?;
            Ok(Socket::new(stream, Role::Server, early))
        }
        Err(refused) => {
            // Whether the client hears it is its own affair.
            if write(&mut stream, &refused.response()).await.is_ok() {
                stream.shutdown().await.ok();
            }
            Err(AcceptFailed::Refused(refused))
        }
    }
}

/// Asks a server to be let in. `host` is what it is called, maybe with a port.
pub async fn connect<S>(mut stream: S, host: &str) -> Result<Socket<S>, ConnectFailed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let key = random_key().map_err(ConnectFailed::Lost)?;
    let request = key.request(host).map_err(ConnectFailed::Host)?;
    let written = write(&mut stream, &request).await;
    written.map_err(ConnectFailed::Lost)?;
    let read = read_opening(&mut stream).await;
    let response = read
        .map_err(ConnectFailed::Lost)?
        .map_err(NotLetIn::from)
        .and_then(|opening| key.read_response(&opening.head).map(|()| opening.early));
    let early = response.map_err(ConnectFailed::NotLetIn)?;
    Ok(Socket::new(stream, Role::Client, early))
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

fn random_key() -> io::Result<Key> {
    secret::random().map(Key)
}
