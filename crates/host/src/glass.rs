//! A look into a running program: a unix socket that answers GET with JSON, for its owner alone;
//! and a port that answers with metrics.
//!
//! One request, one answer, and the end, each within a few seconds. What is shown is made for each
//! request; nothing is kept.

#![expect(clippy::disallowed_types, reason = "sockets live in this crate")]

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::time::timeout;

use crate::http;
use crate::shutdown::Shutdown;
use crate::tasks::Crowd;

/// How long a request and its answer may take.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of an answer that a client reads. A hub of 100,000 nodes has less to say.
const ANSWER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// What is shown for a path; nothing if there is no such thing.
pub type Shown = Arc<dyn Fn(&str) -> Option<Page> + Send + Sync>;

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// What it is.
    pub content_type: &'static str,
    /// The content.
    pub body: Vec<u8>,
}

/// Why there is no look into a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket cannot be made.
    #[error("cannot listen on {}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The port cannot be listened on.
    #[error("cannot listen on {address}")]
    Port {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("nobody answers on {}; is it running?", path.display())]
    Nobody {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such thing to look at.
    #[error("{} does not show {shown}", path.display())]
    NotShown {
        /// Where.
        path: PathBuf,
        /// What was asked for.
        shown: String,
    },
}

/// A socket that is ours, and goes when it is dropped.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Takes the path. What a program that is gone left there is replaced: the caller has a lock on
    /// the folder.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Socket {
            path: path.to_owned(),
            source,
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, owner).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Answers until the shutdown.
    pub async fn run(self, shown: Shown, crowd: Crowd, shutdown: Shutdown) -> Result<(), Error> {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = shutdown.triggered() => return Ok(()),
            };
            answer_in(accepted.map(|(stream, _)| stream), &shown, &crowd).await;
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that is left behind is replaced at the next start.
        drop(std::fs::remove_file(&self.path));
    }
}

/// A port that shows things to whoever can reach it.
pub struct Port(TcpListener);

impl Port {
    /// Takes the port.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let bound = TcpListener::bind(address).await;
        bound
            .map(Self)
            .map_err(|source| Error::Port { address, source })
    }

    /// Answers until the shutdown.
    pub async fn run(self, shown: Shown, crowd: Crowd, shutdown: Shutdown) -> Result<(), Error> {
        loop {
            let accepted = tokio::select! {
                accepted = self.0.accept() => accepted,
                () = shutdown.triggered() => return Ok(()),
            };
            answer_in(accepted.map(|(stream, _)| stream), &shown, &crowd).await;
        }
    }
}

/// Asks a program that shows something on a socket.
pub async fn look(path: &Path, shown: &str) -> Result<Vec<u8>, Error> {
    let nobody = |source| Error::Nobody {
        path: path.to_owned(),
        source,
    };
    let asked = async {
        let mut stream = UnixStream::connect(path).await?;
        let request = format!("GET {shown} HTTP/1.1\r\nHost: holdfast\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        let mut stream = stream.take(ANSWER_BYTES_MAX);
        stream.read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(answer)
    };
    let answer = timeout(TIME_MAX, asked).await;
    let answer = answer.map_err(|_| nobody(io::ErrorKind::TimedOut.into()))?;
    let answer = answer.map_err(nobody)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    match (answer.starts_with(b"HTTP/1.1 200"), end) {
        (true, Some(end)) => Ok(answer[end + 4..].to_vec()),
        _ => Err(Error::NotShown {
            path: path.to_owned(),
            shown: shown.to_owned(),
        }),
    }
}

/// Answers a connection in a place of the crowd. Without a place, and where it could not be
/// accepted, it ends: whoever looks, looks again.
async fn answer_in<S>(accepted: io::Result<S>, shown: &Shown, crowd: &Crowd)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match (accepted, crowd.place()) {
        (Ok(stream), Some(place)) => {
            let shown = Arc::clone(shown);
            place.spawn(async move {
                drop(timeout(TIME_MAX, answer(stream, &shown)).await);
            });
        }
        (Ok(_), None) => {}
        // Out of files, perhaps: a moment later there may be some.
        (Err(_), _) => tokio::time::sleep(PAUSE).await,
    }
}

const CLOSE: &str = "Connection: close\r\n";
const PAUSE: Duration = Duration::from_millis(100);

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, shown: &Shown) -> io::Result<()> {
    let Ok(opening) = http::read_opening(&mut stream).await? else {
        return Ok(());
    };
    let get = opening.head.starts_with(b"GET ");
    let page = opening.path().filter(|_| get).and_then(|path| shown(path));
    let head = match &page {
        Some(page) => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n{CLOSE}\r\n",
            page.content_type,
            page.body.len()
        ),
        None => format!("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n{CLOSE}\r\n"),
    };
    stream.write_all(head.as_bytes()).await?;
    if let Some(page) = page {
        stream.write_all(&page.body).await?;
    }
    stream.flush().await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Tasks;

    fn shown() -> Shown {
        Arc::new(|path| {
            (path == "/status").then(|| Page {
                content_type: "application/json",
                body: b"{}".to_vec(),
            })
        })
    }

    #[tokio::test]
    async fn a_running_program_can_be_looked_into_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.sock");
        std::fs::write(&path, "left behind").unwrap();
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("looks", 4);
        let socket = Socket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        tasks.add("status", socket.run(shown(), crowd, shutdown.clone()));
        assert_eq!(look(&path, "/status").await.unwrap(), b"{}");
        let other = look(&path, "/secrets").await;
        assert!(matches!(other, Err(Error::NotShown { .. })));
        shutdown.trigger();
        tasks.join(Duration::from_secs(5)).await.unwrap();
        assert!(!path.exists());
        let gone = look(&path, "/status").await.unwrap_err();
        assert!(gone.to_string().contains("is it running?"), "{gone}");
    }
}
