//! A path -> connections of those who may open it: a unix socket for root and for whoever runs the
//! program, and for nobody else.
//!
//! There is no TLS on it: the kernel says who comes, and nobody is in between. What a client
//! speaks is seen from its first bytes.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{Pause, Protocol, Severity, severity};
use crate::shutdown::Shutdown;
use crate::tasks::Crowd;

/// How long the first bytes of a client are waited for.
const FIRST_TIME_MAX: Duration = Duration::from_secs(10);
/// How everything begins that speaks HTTP/2 without having agreed on it before. No method of
/// HTTP/1.1 begins so.
const HTTP2: &[u8] = b"PRI";

/// A connection of somebody who may.
pub struct Local {
    /// The connection.
    pub stream: Rewound,
    /// What the client speaks.
    pub protocol: Protocol,
}

/// Why a path cannot be listened on, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another program listens there.
    #[error(
        "{} is in use by another program; stop that program or choose another path",
        .0.display()
    )]
    InUse(PathBuf),
    /// Something else is there, which is not ours to remove.
    #[error("{} is there and is no socket; choose another path", .0.display())]
    NotASocket(PathBuf),
    /// Paths of sockets are short.
    #[error(
        "{} is too long for a socket: 107 bytes are possible; choose another path",
        .0.display()
    )]
    TooLong(PathBuf),
    /// The system refused for another reason.
    #[error("cannot listen on {}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Bytes of a socket's path, with the zero that ends it.
const PATH_BYTES_MAX: usize = 108;

/// A path that is ours and open. The file goes when it is dropped.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Who came before anybody was let in.
    first: Option<UnixStream>,
}

impl Socket {
    /// Takes the path. A socket on which nobody listens any more is replaced.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().len() >= PATH_BYTES_MAX {
            return Err(Error::TooLong(path.to_owned()));
        }
        clear(path)?;
        let failed = |source| system(path, source);
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Whoever was quicker than this is turned away by who he is.
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, owner).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            first: None,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until somebody comes, who is the first that [`Socket::run`] lets in. Whoever came
    /// before and was not let in is turned away.
    pub async fn knock(&mut self) -> Result<(), Error> {
        self.first = None;
        let mut pause = Pause::default();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if may_enter(&stream) => {
                    self.first = Some(stream);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => self.endure(error, &mut pause).await?,
            }
        }
    }

    /// Accepts connections until the shutdown and runs `serve` for each in a place of `crowd`. When
    /// that is full a new connection is closed at once.
    pub async fn run<F>(
        mut self,
        crowd: Crowd,
        shutdown: Shutdown,
        serve: impl Fn(Local) -> F + Clone + Send + Sync + 'static,
    ) -> Result<(), Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut pause = Pause::default();
        let mut stop = pin!(shutdown.triggered());
        loop {
            let accepted = match self.first.take() {
                Some(first) => Ok(first),
                None => tokio::select! {
                    accepted = self.listener.accept() => accepted.map(|(stream, _)| stream),
                    () = &mut stop => return Ok(()),
                },
            };
            match (accepted, crowd.place()) {
                (Ok(stream), Some(place)) => {
                    pause = Pause::default();
                    if may_enter(&stream) {
                        place.spawn_then(begun(stream), serve.clone());
                    }
                }
                (Ok(stream), None) => {
                    drop(stream);
                    debug!(open = crowd.busy(), "connection refused: no place is free");
                }
                (Err(error), _) => self.endure(error, &mut pause).await?,
            }
        }
    }

    /// Goes on after an error, if that is of use.
    async fn endure(&self, error: io::Error, pause: &mut Pause) -> Result<(), Error> {
        match severity(&error) {
            Severity::Connection => debug!(%error, "connection lost before it began"),
            Severity::Machine => pause.wait(&error).await,
            Severity::Listener => return Err(system(&self.path, error)),
        }
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that is left behind is replaced at the next start.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Makes room for a socket: what a program that is gone left there goes, and nothing else.
fn clear(path: &Path) -> Result<(), Error> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(path, error)),
    };
    if !found.file_type().is_socket() {
        return Err(Error::NotASocket(path.to_owned()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(Error::InUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| system(path, error))
        }
        Err(error) => Err(system(path, error)),
    }
}

fn system(path: &Path, source: io::Error) -> Error {
    Error::System {
        path: path.to_owned(),
        source,
    }
}

/// Whether the other end is root, or whoever runs this program.
fn may_enter(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == 0 || peer.uid() == own => true,
        Ok(peer) => {
            warn!(
                uid = peer.uid(),
                "somebody else was turned away from the socket"
            );
            false
        }
        Err(error) => {
            debug!(%error, "nobody knows who came");
            false
        }
    }
}

/// Waits until it is seen what a client speaks.
async fn begun(mut stream: UnixStream) -> Option<Local> {
    let mut first = [0; HTTP2.len()];
    let mut count = 0;
    let read = async {
        // One that differs is enough to know.
        while count < first.len() && HTTP2.starts_with(&first[..count]) {
            match stream.read(&mut first[count..]).await? {
                0 => break,
                read => count += read,
            }
        }
        Ok::<_, io::Error>(())
    };
    match timeout(FIRST_TIME_MAX, read).await {
        Ok(Ok(())) if count > 0 => {}
        _ => return None,
    }
    let protocol = match first == HTTP2 {
        true => Protocol::Http2,
        false => Protocol::Http1,
    };
    let first = Bytes::copy_from_slice(&first[..count]);
    let stream = Rewound { first, stream };
    Some(Local { stream, protocol })
}

/// A connection whose first bytes were looked at, and are read again.
pub struct Rewound {
    first: Bytes,
    stream: UnixStream,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..count]);
        self.first.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::tasks::Tasks;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        (folder, path)
    }

    #[tokio::test]
    async fn what_is_spoken_is_seen_from_the_first_bytes_and_none_is_lost() {
        let (_folder, path) = folder();
        let socket = Socket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("connections", 4);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let serve = move |mut local: Local| {
            let noted = noted.clone();
            async move {
                let mut said = String::new();
                local.stream.read_to_string(&mut said).await.unwrap();
                noted.lock().push((local.protocol, said.clone()));
                local.stream.write_all(said.as_bytes()).await.unwrap();
            }
        };
        tasks.add("socket", socket.run(crowd, shutdown.clone(), serve));
        let said = ["GET / HTTP/1.1", "PRI * HTTP/2.0", "PUT", "P", "PRX", ""];
        for said in said {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            // A byte at a time: what is needed may come late.
            for byte in said.bytes() {
                stream.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            stream.shutdown().await.unwrap();
            let mut heard = String::new();
            stream.read_to_string(&mut heard).await.unwrap();
            assert_eq!(heard, said);
        }
        let seen: Vec<Protocol> = seen.lock().iter().map(|(protocol, _)| *protocol).collect();
        let (one, two) = (Protocol::Http1, Protocol::Http2);
        assert_eq!(
            seen,
            [one, two, one, one, one],
            "who says nothing is nobody"
        );
        shutdown.trigger();
        tasks.join(Duration::from_secs(5)).await.unwrap();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_left_behind_is_replaced_and_nothing_else_is() {
        let (_folder, path) = folder();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let socket = Socket::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(Error::InUse(_))));
        drop(socket);
        assert!(!path.exists());
        std::fs::write(&path, "something of value").unwrap();
        assert!(matches!(Socket::bind(&path), Err(Error::NotASocket(_))));
        assert!(path.exists());
        let long = path.with_file_name("x".repeat(PATH_BYTES_MAX));
        assert!(matches!(Socket::bind(&long), Err(Error::TooLong(_))));
    }

    #[tokio::test]
    async fn without_a_place_a_connection_is_closed() {
        let (_folder, path) = folder();
        let socket = Socket::bind(&path).unwrap();
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("connections", 1);
        let taken = crowd.place();
        let serve = |_: Local| async {};
        tasks.add("socket", socket.run(crowd, shutdown.clone(), serve));
        let mut stream = UnixStream::connect(&path).await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        drop(taken);
        shutdown.trigger();
        tasks.join(Duration::from_secs(5)).await.unwrap();
    }
}
