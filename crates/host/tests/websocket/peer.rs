//! Tungstenite as the peer: what it says we understand, and it us, whoever opened the connection.

use futures_util::{SinkExt, StreamExt};
use host::websocket::{
    self, AcceptFailed, Close, CloseCode, ReadFailed, Refused, Socket, Violation,
};
use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::handshake::server;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode as Code, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async, client_async};

use crate::{BYTES_MAX, echo, pattern};

type Other = WebSocketStream<DuplexStream>;

/// A buffer that is smaller than most messages, so that both ends wait in the middle of them.
const BUFFER_BYTES: usize = 1000;

fn request() -> Request {
    let mut request = "ws://hub.example/link".into_client_request().unwrap();
    let ours = HeaderValue::from_static("chat, holdfast.v1");
    request.headers_mut().insert("sec-websocket-protocol", ours);
    request
}

/// The other one asks, ours answers.
async fn other_as_client() -> (Other, Socket<DuplexStream>) {
    let (left, right) = tokio::io::duplex(BUFFER_BYTES);
    let (other, ours) = tokio::join!(client_async(request(), left), websocket::accept(right));
    let (other, response) = other.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "holdfast.v1");
    (other, ours.unwrap())
}

/// Ours asks, the other one answers.
async fn other_as_server() -> (Other, Socket<DuplexStream>) {
    let (left, right) = tokio::io::duplex(BUFFER_BYTES);
    #[expect(clippy::result_large_err, reason = "the signature is not ours")]
    let agree = |request: &server::Request, mut response: server::Response| {
        assert_eq!(request.uri().path(), "/link");
        let asked = request.headers()["sec-websocket-protocol"].clone();
        response
            .headers_mut()
            .insert("sec-websocket-protocol", asked);
        Ok(response)
    };
    let (ours, other) = tokio::join!(
        websocket::connect(left, "hub.example:8443"),
        accept_hdr_async(right, agree),
    );
    (other.unwrap(), ours.unwrap())
}

fn part(content: &[u8], kind: Data, last: bool) -> Message {
    Message::Frame(Frame::message(content.to_vec(), OpCode::Data(kind), last))
}

/// Whole messages of all lengths, one in parts, pings, and a close: said by the other one.
async fn talk(mut other: Other) {
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000, BYTES_MAX] {
        let message = Message::binary(pattern(length));
        other.send(message.clone()).await.unwrap();
        assert_eq!(other.next().await.unwrap().unwrap(), message);
    }
    let first = part(b"hold", Data::Binary, false);
    other.send(first).await.unwrap();
    other.send(Message::Ping("there?".into())).await.unwrap();
    other.send(part(b"", Data::Continue, false)).await.unwrap();
    other
        .send(part(b"fast", Data::Continue, true))
        .await
        .unwrap();
    let pong = other.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("there?".into()));
    let whole = other.next().await.unwrap().unwrap();
    assert_eq!(whole, Message::binary("holdfast"));
    other.send(Message::Pong("unasked".into())).await.unwrap();
    let frame = CloseFrame {
        code: Code::Away,
        reason: "enough".into(),
    };
    other.send(Message::Close(Some(frame))).await.unwrap();
    let answer = other.next().await.unwrap().unwrap();
    assert!(matches!(answer, Message::Close(Some(close)) if close.code == Code::Away));
    assert!(other.next().await.is_none(), "the stream ends cleanly");
}

#[tokio::test]
async fn a_client_of_another_make_is_understood_and_understands() {
    let (other, ours) = other_as_client().await;
    let ((), close) = tokio::join!(talk(other), echo(ours));
    assert_eq!(close, Close::new(CloseCode::AWAY, "enough"));
}

#[tokio::test]
async fn a_server_of_another_make_is_understood_and_understands() {
    let (other, ours) = other_as_server().await;
    let ((), close) = tokio::join!(talk(other), echo(ours));
    assert_eq!(close, Close::new(CloseCode::AWAY, "enough"));
}

/// We close first; the other one answers, and then its stream ends.
async fn we_close(mut other: Other, ours: Socket<DuplexStream>) {
    let (mut reader, mut writer) = ours.split();
    let close = async {
        writer.close(CloseCode::NORMAL, "done").await.unwrap();
        let received = reader.read(BYTES_MAX).await.unwrap();
        writer.end().await.unwrap();
        received
    };
    let theirs = async {
        let close = other.next().await.unwrap().unwrap();
        // The answer goes out when it is asked for the next message.
        assert!(other.next().await.is_none());
        close
    };
    let (answer, close) = tokio::join!(close, theirs);
    let websocket::Received::Closed(answer) = answer else {
        panic!("not closed: {answer:?}");
    };
    assert_eq!(answer.code, Some(CloseCode::NORMAL));
    let Message::Close(Some(close)) = close else {
        panic!("not closed: {close:?}");
    };
    assert_eq!((close.code, close.reason.as_str()), (Code::Normal, "done"));
}

#[tokio::test]
async fn a_close_of_ours_is_answered() {
    let (other, ours) = other_as_client().await;
    we_close(other, ours).await;
    let (other, ours) = other_as_server().await;
    we_close(other, ours).await;
}

#[tokio::test]
async fn text_is_refused_and_the_other_one_is_told_so() {
    let (mut other, ours) = other_as_client().await;
    let (mut reader, mut writer) = ours.split();
    let refuse = async {
        let failed = reader.read(BYTES_MAX).await.unwrap_err();
        let ReadFailed::Misbehaved(violation @ Violation::Text) = failed else {
            panic!("another reason: {failed:?}");
        };
        let words = violation.to_string();
        writer.close(violation.code(), &words).await.unwrap();
    };
    let (sent, ()) = tokio::join!(other.send(Message::text("hello")), refuse);
    sent.unwrap();
    let told = other.next().await.unwrap().unwrap();
    assert!(matches!(told, Message::Close(Some(close)) if close.code == Code::Unsupported));
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_and_below_it_is_not() {
    let (mut other, ours) = other_as_client().await;
    let (mut reader, mut writer) = ours.split();
    let refuse = async {
        reader.read(100).await.unwrap();
        reader.read(200).await.unwrap();
        let failed = reader.read(200).await.unwrap_err();
        let ReadFailed::Misbehaved(violation) = failed else {
            panic!("another reason: {failed:?}");
        };
        writer.close(violation.code(), "").await.unwrap();
    };
    let send = async {
        for length in [100, 200, 201] {
            other.send(Message::binary(pattern(length))).await.unwrap();
        }
        other.next().await.unwrap().unwrap()
    };
    let ((), told) = tokio::join!(refuse, send);
    assert!(matches!(told, Message::Close(Some(close)) if close.code == Code::Size));
}

#[tokio::test]
async fn a_client_is_refused_with_the_status_that_says_why() {
    let ours = HeaderValue::from_static("holdfast.v1");
    let origin = HeaderValue::from_static("https://hub.example");
    let cases = [
        ("/link", None, None, Refused::Subprotocol, 400),
        ("/link", Some(&ours), Some(&origin), Refused::Browser, 403),
        ("/other", Some(&ours), None, Refused::Path, 404),
    ];
    for (path, subprotocol, origin, refused, status) in cases {
        let mut request = format!("ws://hub.example{path}")
            .into_client_request()
            .unwrap();
        let fields = [("sec-websocket-protocol", subprotocol), ("origin", origin)];
        for (name, value) in fields {
            value.map(|value| request.headers_mut().insert(name, value.clone()));
        }
        let (left, right) = tokio::io::duplex(BUFFER_BYTES);
        let (other, ours) = tokio::join!(client_async(request, left), websocket::accept(right));
        let Err(AcceptFailed::Refused(why)) = ours else {
            panic!("let in, or lost");
        };
        assert_eq!(why, refused);
        let Err(Error::Http(response)) = other else {
            panic!("let in, or lost");
        };
        assert_eq!(response.status(), status);
    }
}
