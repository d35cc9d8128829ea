//! Two connections as one: what comes from one goes to the other, both ways.

use std::io;
use std::pin::pin;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, copy, split};

/// Carries bytes both ways until both directions ended, or one of them broke.
///
/// `near` may end its direction long before the other: who has said everything still listens. Once
/// `far` has said everything there is nobody to listen, so `near` has until `patience` is over.
pub async fn splice<N, F>(near: N, far: F, patience: impl Future<Output = ()>) -> io::Result<()>
where
    N: AsyncRead + AsyncWrite,
    F: AsyncRead + AsyncWrite,
{
    let (near_says, near_hears) = split(near);
    let (far_says, far_hears) = split(far);
    let mut there = pin!(carry(near_says, far_hears));
    let mut back = pin!(carry(far_says, near_hears));
    tokio::select! {
        done = &mut there => {
            done?;
            return back.await;
        }
        done = &mut back => done?,
    }
    tokio::select! {
        done = there => done,
        () = patience => Ok(()),
    }
}

/// Carries everything, and then the end.
async fn carry<R, W>(mut from: ReadHalf<R>, mut to: WriteHalf<W>) -> io::Result<()>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_has_said_everything_listens_as_long_as_there_is_something_to_hear() {
        let (mut user, near) = duplex(100);
        let (mut server, far) = duplex(100);
        let uses = async {
            user.write_all(b"question").await.unwrap();
            user.shutdown().await.unwrap();
            let mut heard = String::new();
            user.read_to_string(&mut heard).await.unwrap();
            heard
        };
        let serves = async {
            let mut heard = String::new();
            server.read_to_string(&mut heard).await.unwrap();
            assert_eq!(heard, "question");
            sleep(100 * MINUTE).await;
            server.write_all(b"answer").await.unwrap();
            server.shutdown().await.unwrap();
        };
        let spliced = splice(near, far, sleep(MINUTE));
        let (heard, (), spliced) = tokio::join!(uses, serves, spliced);
        assert_eq!(heard, "answer");
        spliced.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn to_one_who_listens_to_nobody_it_is_not_talked_for_ever() {
        let (user, near) = duplex(100);
        let (mut server, far) = duplex(100);
        server.shutdown().await.unwrap();
        let began = Instant::now();
        splice(near, far, sleep(MINUTE)).await.unwrap();
        assert_eq!(began.elapsed(), MINUTE);
        drop(user);
    }
}
