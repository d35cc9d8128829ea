//! Bytes of a WebSocket: the same in any pieces, and the same when said again.

#![no_main]

use host::websocket::frame::{CONTROL_BYTES_MAX, Head, Mask, Opcode, Part};
use host::websocket::handshake::Key;
use host::websocket::message::Incoming;
use host::websocket::{Received, Role, Violation};
use libfuzzer_sys::fuzz_target;

/// Small, so that inputs of a few bytes reach it.
const BYTES_MAX: usize = 300;

type Said = (Vec<Received>, Result<(), Violation>);

/// All that is said in these bytes, when they come in pieces of this length.
fn read(from: Role, bytes: &[u8], piece_bytes: usize) -> Said {
    let mut incoming = Incoming::new(from);
    let mut said = Vec::new();
    for mut piece in bytes.chunks(piece_bytes) {
        loop {
            let received = incoming.take(&mut piece, BYTES_MAX);
            assert!(incoming.held_bytes() <= BYTES_MAX + CONTROL_BYTES_MAX);
            match received {
                Ok(None) => break,
                Ok(Some(received)) => {
                    let closed = matches!(received, Received::Closed(_));
                    said.push(received);
                    if closed {
                        return (said, Ok(()));
                    }
                }
                Err(violation) => return (said, Err(violation)),
            }
        }
    }
    (said, Ok(()))
}

/// The same said again, a frame for each.
fn write(from: Role, said: &[Received]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for received in said {
        let (opcode, content) = match received {
            Received::Message(message) => (Opcode::Binary, message.to_vec()),
            Received::Ping(ping) => (Opcode::Ping, ping.to_vec()),
            Received::Closed(close) => (Opcode::Close, close.encode()),
        };
        let mask = match from {
            Role::Client => Some(Mask([1, 2, 3, 4])),
            Role::Server => None,
        };
        let head = Head {
            opcode,
            part: Part::Last,
            mask,
            length: content.len() as u64,
        };
        head.encode(&mut bytes);
        let start = bytes.len();
        bytes.extend(content);
        if let Some(mask) = mask {
            mask.apply(0, &mut bytes[start..]);
        }
    }
    bytes
}

fuzz_target!(|input: &[u8]| {
    if let Ok(key) = Key::read_request(input) {
        let again = key.request("hub").expect("a host");
        assert_eq!(Key::read_request(&again), Ok(key));
        assert_eq!(key.read_response(&key.response()), Ok(()));
    }
    let _ = Key([0; 16]).read_response(input);
    let [choice, bytes @ ..] = input else {
        return;
    };
    let from = match choice & 1 {
        0 => Role::Client,
        _ => Role::Server,
    };
    let whole = read(from, bytes, usize::MAX);
    let pieces = read(from, bytes, usize::from(choice >> 1).max(1));
    assert_eq!(whole, pieces);
    let (said, _) = whole;
    let again = read(from, &write(from, &said), usize::MAX);
    assert_eq!(again, (said, Ok(())));
});
