//! Pieces of a tunnelled request and its answer: anything may come, whatever comes of it is within
//! bounds, and what one end writes the other reads.

#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tunnel::pieces::{Base, Head, Pieces};

/// A connection on which this comes, and what was written to it.
#[derive(Default)]
struct Wire<'b> {
    comes: &'b [u8],
    written: Vec<u8>,
}

impl AsyncRead for Wire<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.comes).poll_read(context, into)
    }
}

impl AsyncWrite for Wire<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What is read until it ends or is refused.
fn read(pieces: &mut Pieces<&mut Wire<'_>>) -> Option<Vec<u8>> {
    let mut context = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        let mut space = [0; 512];
        let mut space = ReadBuf::new(&mut space);
        match Pin::new(&mut *pieces).poll_read(&mut context, &mut space) {
            Poll::Ready(Ok(())) if space.filled().is_empty() => return Some(all),
            Poll::Ready(Ok(())) => all.extend_from_slice(space.filled()),
            Poll::Ready(Err(_)) => return None,
            Poll::Pending => unreachable!("bytes are always ready"),
        }
    }
}

fn write(pieces: &mut Pieces<&mut Wire<'_>>, bytes: &[u8]) {
    let mut context = Context::from_waker(Waker::noop());
    let mut rest = bytes;
    while !rest.is_empty() {
        match Pin::new(&mut *pieces).poll_write(&mut context, rest) {
            Poll::Ready(Ok(taken)) => rest = &rest[taken..],
            other => panic!("{other:?}"),
        }
    }
}

fuzz_target!(|data: (&[u8], &[u8], &[u8], bool)| {
    let (base, question, answer, private) = data;
    let base = || Base::from(Bytes::copy_from_slice(base));
    let head = if private { Head::Private } else { Head::Open };
    // Anything may come, at both ends.
    for bytes in [question, answer] {
        let (mut near, mut far) = (Wire::default(), Wire::default());
        near.comes = bytes;
        far.comes = bytes;
        let mut asking = Pieces::asking(&mut near, base(), head);
        write(&mut asking, question);
        drop(read(&mut asking));
        drop(read(&mut Pieces::answering(&mut far, base())));
    }
    // What one says the other hears.
    let mut near = Wire::default();
    write(&mut Pieces::asking(&mut near, base(), head), question);
    let asked = near.written;
    let mut far = Wire {
        comes: &asked,
        ..Wire::default()
    };
    let mut answering = Pieces::answering(&mut far, base());
    assert_eq!(read(&mut answering).as_deref(), Some(question));
    write(&mut answering, answer);
    drop(answering);
    let answered = far.written;
    let mut near = Wire {
        comes: &answered,
        ..Wire::default()
    };
    let mut asking = Pieces::asking(&mut near, base(), head);
    write(&mut asking, question);
    assert_eq!(read(&mut asking).as_deref(), Some(answer));
});
