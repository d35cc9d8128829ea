//! What a stream can do to us: any pieces, pauses at any byte, an end at any time.

use bytes::Bytes;
use futures_util::FutureExt;
use host::websocket::handshake::Key;
use host::websocket::{
    CloseCode, ConnectFailed, NotLetIn, ReadFailed, Received, Role, Socket, Violation, WriteFailed,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{BYTES_MAX, Counted, echo, pair, pattern};

#[tokio::test]
async fn messages_pass_both_ways_byte_by_byte() {
    let (client, server) = pair(1).await;
    let (mut reader, mut writer) = client.split();
    let talk = async {
        for length in [0, 1, 125, 126, 20_000, 70_000] {
            let message = pattern(length);
            let (written, received) =
                tokio::join!(writer.write_message(&message), reader.read(BYTES_MAX));
            written.unwrap();
            assert_eq!(received.unwrap(), Received::Message(message.into()));
        }
        writer.close(CloseCode::NORMAL, "").await.unwrap();
        let closed = reader.read(BYTES_MAX).await.unwrap();
        assert!(matches!(closed, Received::Closed(_)));
    };
    tokio::join!(talk, echo(server));
}

#[tokio::test]
async fn a_read_that_is_given_up_at_any_byte_loses_nothing() {
    let messages = [pattern(3), pattern(300), pattern(10_000), vec![]];
    let sent = written(&messages).await;
    let (mut raw, ours) = tokio::io::duplex(16);
    let (mut reader, _writer) = Socket::new(ours, Role::Server, Bytes::new()).split();
    let mut received = Vec::new();
    for byte in sent {
        raw.write_u8(byte).await.unwrap();
        while let Some(read) = reader.read(BYTES_MAX).now_or_never() {
            let Received::Message(message) = read.unwrap() else {
                panic!("no message");
            };
            received.push(message.to_vec());
        }
    }
    assert_eq!(received, messages);
    assert_eq!(reader.held_bytes(), 0);
}

/// The bytes that a client sends for these messages.
async fn written(messages: &[Vec<u8>]) -> Vec<u8> {
    let (mut raw, ours) = tokio::io::duplex(1024 * 1024);
    let (_reader, mut writer) = Socket::new(ours, Role::Client, Bytes::new()).split();
    for message in messages {
        writer.write_message(message).await.unwrap();
    }
    writer.end().await.unwrap();
    let mut bytes = Vec::new();
    raw.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test]
async fn nothing_is_held_after_a_large_message_nor_while_waiting_for_the_next() {
    let (client, server) = pair(4096).await;
    let (_client_reader, mut writer) = client.split();
    let (mut reader, _server_writer) = server.split();
    let message = pattern(1024 * 1024);
    for _ in 0..3 {
        let (written, read) = tokio::join!(writer.write_message(&message), reader.read(BYTES_MAX));
        written.unwrap();
        let Received::Message(received) = read.unwrap() else {
            panic!("no message");
        };
        assert_eq!(received, message);
        assert_eq!(reader.held_bytes(), 0);
        let idle = reader.read(BYTES_MAX).now_or_never();
        assert!(idle.is_none(), "nothing more was said");
        assert_eq!(reader.held_bytes(), 0, "waiting costs nothing either");
    }
}

#[tokio::test]
async fn an_idle_socket_is_small_and_so_is_what_waits_for_it() {
    let (client, _server) = pair(64).await;
    let (mut reader, mut writer) = client.split();
    assert!(size_of_val(&reader) + size_of_val(&writer) <= 256);
    assert!(size_of_val(&reader.read(BYTES_MAX)) <= 256);
    assert!(size_of_val(&writer.write_message(b"x")) <= 512);
}

#[tokio::test]
async fn what_comes_along_with_the_handshake_is_not_lost() {
    // A client that does not wait for the answer.
    let (mut raw, ours) = tokio::io::duplex(4096);
    let mut bytes = Key([1; 16]).request("hub").unwrap();
    bytes.extend([0x82, 0x82, 0, 0, 0, 0, b'h', b'i', 0x82, 0x81, 0, 0, 0, 0]);
    raw.write_all(&bytes).await.unwrap();
    let (mut reader, _writer) = host::websocket::accept(ours).await.unwrap().split();
    assert_eq!(reader.held_bytes(), 14);
    let early = reader.read(10).await.unwrap();
    assert_eq!(early, Received::Message(Bytes::from_static(b"hi")));
    raw.write_u8(b'x').await.unwrap();
    let late = reader.read(10).await.unwrap();
    assert_eq!(late, Received::Message(Bytes::from_static(b"x")));
    assert_eq!(reader.held_bytes(), 0);
    // A server that speaks right behind its answer.
    let (mut raw, ours) = tokio::io::duplex(4096);
    let server = async {
        let mut request = vec![0; 4096];
        let count = raw.read(&mut request).await.unwrap();
        let mut bytes = Key::read_request(&request[..count]).unwrap().response();
        bytes.extend([0x82, 2, b'h', b'i']);
        raw.write_all(&bytes).await.unwrap();
    };
    let (client, ()) = tokio::join!(host::websocket::connect(ours, "hub"), server);
    let (mut reader, _writer) = client.unwrap().split();
    let early = reader.read(10).await.unwrap();
    assert_eq!(early, Received::Message(Bytes::from_static(b"hi")));
}

#[tokio::test]
async fn a_peer_that_breaks_the_rules_is_told_and_not_listened_to() {
    let (mut raw, ours) = tokio::io::duplex(4096);
    let (mut reader, mut writer) = Socket::new(ours, Role::Server, Bytes::new()).split();
    raw.write_all(&[0x82, 1, b'x', 0x82, 0x80, 0, 0, 0, 0])
        .await
        .unwrap();
    for _ in 0..2 {
        let failed = reader.read(10).await.unwrap_err();
        assert!(matches!(
            failed,
            ReadFailed::Misbehaved(Violation::Unmasked)
        ));
    }
    let code = Violation::Unmasked.code();
    writer.close(code, "mask!").await.unwrap();
    writer.close(code, "said before").await.unwrap();
    let late = writer.write_message(b"late").await;
    assert!(matches!(late, Err(WriteFailed::Closed)));
    writer.end().await.unwrap();
    let mut told = Vec::new();
    raw.read_to_end(&mut told).await.unwrap();
    assert_eq!(told, b"\x88\x07\x03\xeamask!");
}

#[tokio::test]
async fn a_stream_that_ends_without_a_close_is_lost() {
    for sent in [&[][..], &[0x82], &[0x82, 0x85, 0, 0, 0, 0, 1]] {
        let (mut raw, ours) = tokio::io::duplex(64);
        let (mut reader, _writer) = Socket::new(ours, Role::Server, Bytes::new()).split();
        raw.write_all(sent).await.unwrap();
        drop(raw);
        let failed = reader.read(10).await.unwrap_err();
        assert!(matches!(failed, ReadFailed::Lost(_)), "{failed:?}");
    }
}

#[tokio::test]
async fn a_handshake_that_is_cut_off_or_endless_does_not_succeed() {
    let (mut raw, ours) = tokio::io::duplex(64 * 1024);
    raw.write_all(b"GET /link HTTP/1.1\r\n").await.unwrap();
    drop(raw);
    let failed = host::websocket::accept(ours).await.unwrap_err();
    assert!(matches!(failed, host::websocket::AcceptFailed::Lost(_)));
    let (mut raw, ours) = tokio::io::duplex(64 * 1024);
    raw.write_all(&[b'x'; 20 * 1024]).await.unwrap();
    host::websocket::accept(ours).await.unwrap_err();
    let mut told = Vec::new();
    raw.read_to_end(&mut told).await.unwrap();
    assert!(told.starts_with(b"HTTP/1.1 431 "));
    let (mut raw, ours) = tokio::io::duplex(64 * 1024);
    raw.write_all(b"HTTP/1.1 503 Busy\r\n\r\n").await.unwrap();
    let failed = host::websocket::connect(ours, "hub").await.unwrap_err();
    assert!(matches!(
        failed,
        ConnectFailed::NotLetIn(NotLetIn::Status(503))
    ));
}

#[tokio::test]
async fn a_message_that_fits_into_a_record_is_one_write() {
    for (role, head) in [(Role::Client, 8), (Role::Server, 4)] {
        let (raw, _other) = tokio::io::duplex(1024 * 1024);
        let (counted, writes) = Counted::new(raw);
        let (_reader, mut writer) = Socket::new(counted, role, Bytes::new()).split();
        writer.write_message(&pattern(100)).await.unwrap();
        writer.pong(b"there").await.unwrap();
        writer
            .write_message(&pattern(16 * 1024 - head))
            .await
            .unwrap();
        assert_eq!(writes.lock().len(), 3);
        writer.write_message(&pattern(40_000)).await.unwrap();
        assert_eq!(writes.lock().len(), 6);
        assert!(writes.lock().iter().all(|bytes| *bytes <= 16 * 1024));
    }
}

#[tokio::test]
async fn after_a_write_that_was_given_up_nothing_is_written() {
    let (raw, _other) = tokio::io::duplex(10);
    let (_reader, mut writer) = Socket::new(raw, Role::Client, Bytes::new()).split();
    assert!(writer.write_message(&pattern(100)).now_or_never().is_none());
    let later = writer.write_message(b"later").await;
    assert!(matches!(later, Err(WriteFailed::Torn)));
    let close = writer.close(CloseCode::NORMAL, "").await;
    assert!(matches!(close, Err(WriteFailed::Torn)));
}

#[tokio::test]
async fn a_client_masks_each_frame_differently() {
    let (mut raw, ours) = tokio::io::duplex(4096);
    let (_reader, mut writer) = Socket::new(ours, Role::Client, Bytes::new()).split();
    let mut masks = std::collections::BTreeSet::new();
    for _ in 0..20 {
        writer.write_message(b"same").await.unwrap();
        let mut frame = [0; 10];
        raw.read_exact(&mut frame).await.unwrap();
        assert_eq!(frame[..2], [0x82, 0x84]);
        masks.insert([frame[2], frame[3], frame[4], frame[5]]);
    }
    assert!(masks.len() > 15, "{masks:?}");
}
