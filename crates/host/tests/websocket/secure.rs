//! TLS below, as in production: certificates on both sides, and a record for a small message.

use host::Clock;
use host::pki::{Authority, Leaf, Wanted};
use host::tls::{self, Shown};
use host::websocket::{self, CloseCode, Received, Socket};
use tokio::io::DuplexStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::{BYTES_MAX, Counted, echo, pattern};

type Writes = std::sync::Arc<parking_lot::Mutex<Vec<usize>>>;
type Client = Socket<client::TlsStream<Counted>>;
type Server = Socket<server::TlsStream<DuplexStream>>;

async fn pair() -> (Client, Server, Writes) {
    let clock = Clock::machine();
    let authority = Authority::create("test-ca", clock.wall()).unwrap();
    let wanted = Wanted::Server {
        name: "hub".into(),
        dns: vec!["hub.example".into()],
        ips: vec![],
    };
    let shown = Shown::new(&authority.issue(&wanted, clock.wall()).unwrap()).unwrap();
    let wanted = Wanted::Client {
        user: "node-1".into(),
        groups: vec![],
    };
    let own = authority.issue(&wanted, clock.wall()).unwrap();
    let server = tls::server(shown, authority.certificate(), &clock).unwrap();
    let client = tls::client(authority.certificate(), Some(&own), &clock).unwrap();
    let (left, right) = tokio::io::duplex(64 * 1024);
    let (counted, writes) = Counted::new(left);
    let client = async {
        let name = "hub.example".try_into().unwrap();
        let stream = TlsConnector::from(client).connect(name, counted).await;
        websocket::connect(stream.unwrap(), "hub.example")
            .await
            .unwrap()
    };
    let server = async {
        let stream = TlsAcceptor::from(server).accept(right).await;
        websocket::accept(stream.unwrap()).await.unwrap()
    };
    let (client, server) = tokio::join!(client, server);
    (client, server, writes)
}

#[tokio::test]
async fn messages_pass_through_tls_and_a_small_one_is_one_record() {
    let (client, server, writes) = pair().await;
    let (_, session) = server.stream().get_ref();
    let shown = session.peer_certificates().unwrap().first().unwrap();
    assert_eq!(Leaf::read(shown).unwrap().common_name, "node-1");
    writes.lock().clear();
    let (mut reader, mut writer) = client.split();
    let talk = async {
        for length in [100, 16_376, 1_000_000] {
            let message = pattern(length);
            let (written, received) =
                tokio::join!(writer.write_message(&message), reader.read(BYTES_MAX));
            written.unwrap();
            assert_eq!(received.unwrap(), Received::Message(message.into()));
            assert_eq!(reader.held_bytes(), 0);
        }
        writer.close(CloseCode::NORMAL, "").await.unwrap();
        let closed = reader.read(BYTES_MAX).await.unwrap();
        assert!(matches!(closed, Received::Closed(_)));
    };
    tokio::join!(talk, echo(server));
    // Head and mask of the frame: 6. Head, kind and seal of the record: 5 + 1 + 16.
    assert_eq!(writes.lock()[0], 100 + 6 + 22);
    assert_eq!(writes.lock()[1], 16_376 + 8 + 22);
}
