//! Pieces of a tunnelled answer: anything may come, whatever comes of it is within bounds, and what
//! one end writes the other reads.

#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tunnel::pieces::{Base, Packing, Unpacking};

/// What is read of these bytes until they end or are refused.
fn read(bytes: &[u8], base: &Bytes) -> Option<Vec<u8>> {
    let mut reader = Unpacking::new(bytes, Base::from(base.clone()));
    let mut context = Context::from_waker(Waker::noop());
    let mut all = Vec::new();
    loop {
        let mut space = [0; 512];
        let mut space = ReadBuf::new(&mut space);
        match Pin::new(&mut reader).poll_read(&mut context, &mut space) {
            Poll::Ready(Ok(())) if space.filled().is_empty() => return Some(all),
            Poll::Ready(Ok(())) => all.extend_from_slice(space.filled()),
            Poll::Ready(Err(_)) => return None,
            Poll::Pending => unreachable!("bytes are always ready"),
        }
    }
}

fuzz_target!(|data: (&[u8], &[u8])| {
    let (base, bytes) = (Bytes::copy_from_slice(data.0), data.1);
    drop(read(bytes, &base));
    let mut written = Vec::new();
    let mut packing = Packing::new(&mut written, Base::from(base.clone()));
    let mut context = Context::from_waker(Waker::noop());
    let mut rest = bytes;
    while !rest.is_empty() {
        match Pin::new(&mut packing).poll_write(&mut context, rest) {
            Poll::Ready(Ok(taken)) => rest = &rest[taken..],
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read(&written, &base).as_deref(), Some(bytes));
});
