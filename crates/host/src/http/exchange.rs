//! One question over a stream, from either end.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::head::{self, HEAD_BYTES_MAX, Malformed};
use super::{Asked, Opening, Response};

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeFailed {
    /// The path failed. Try again, with backoff.
    #[error("connection lost before the answer was there")]
    Lost(#[source] io::Error),
    /// The other end speaks no HTTP that we understand.
    #[error("the answer is not HTTP as we speak it")]
    Malformed(#[source] Malformed),
    /// The answer is longer than any that we expect.
    #[error("the answer has {length} bytes, and at most {max} are taken")]
    TooLarge {
        /// What it claims to have.
        length: u64,
        /// The limit.
        max: usize,
    },
}

/// Reads a head and, where it came along, what follows it.
pub async fn read_opening<S>(stream: &mut S) -> io::Result<Result<Opening, Malformed>>
where
    S: AsyncRead + Unpin,
{
    let mut bytes = Vec::new();
    loop {
        let searched = bytes.len();
        // The buffer grows by small steps: most heads are short.
        bytes.resize(HEAD_BYTES_MAX.min(searched + HEAD_STEP_BYTES), 0);
        let count = stream.read(&mut bytes[searched..]).await?;
        bytes.truncate(searched + count);
        match head::end(&bytes, searched) {
            Ok(Some(end)) => {
                let early = Bytes::copy_from_slice(&bytes[end..]);
                bytes.truncate(end);
                return Ok(Ok(Opening { head: bytes, early }));
            }
            Ok(None) if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(None) => {}
            Err(malformed) => return Ok(Err(malformed)),
        }
    }
}

/// Reads content of this length, of which `early` has come already. The caller has checked the
/// length; more than that is an error, since nothing may follow.
pub async fn read_body<S>(stream: &mut S, early: &Bytes, length: usize) -> io::Result<Vec<u8>>
where
    S: AsyncRead + Unpin,
{
    let Some(missing) = length.checked_sub(early.len()) else {
        let more = "more content than was announced";
        return Err(io::Error::new(io::ErrorKind::InvalidData, more));
    };
    let mut body = early.to_vec();
    // `take` grows the buffer with what comes, not with what was claimed.
    let read = stream.take(missing as u64).read_to_end(&mut body).await?;
    match read == missing {
        true => Ok(body),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes an answer and ends our side of the stream.
pub async fn write_response<S>(stream: &mut S, response: &Response) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    stream.write_all(&response.bytes()).await?;
    stream.flush().await?;
    stream.shutdown().await
}

/// Asks a question and waits for the answer, whose content may have `bytes_max`.
pub async fn ask<S>(
    stream: &mut S,
    asked: Asked<'_>,
    bytes_max: usize,
) -> Result<Response, ExchangeFailed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let lost = ExchangeFailed::Lost;
    // A server that refuses may answer before it has read everything: its answer counts, not that
    // it did not listen.
    let written = match stream.write_all(&asked.bytes()).await {
        Ok(()) => stream.flush().await,
        Err(error) => Err(error),
    };
    let opening = match (read_opening(stream).await, written) {
        (Ok(opening), _) => opening.map_err(ExchangeFailed::Malformed)?,
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(lost(error)),
    };
    let (mut response, length) =
        Response::read_head(&opening.head).map_err(ExchangeFailed::Malformed)?;
    let fits = usize::try_from(length)
        .ok()
        .filter(|length| *length <= bytes_max);
    let Some(fits) = fits else {
        let max = bytes_max;
        return Err(ExchangeFailed::TooLarge { length, max });
    };
    response.body = read_body(stream, &opening.early, fits)
        .await
        .map_err(lost)?;
    Ok(response)
}

const HEAD_STEP_BYTES: usize = 1024;
