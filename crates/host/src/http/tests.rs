//! What is taken as one request with content, and what is not.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const MAX: usize = 1024;

fn head(more: &str) -> String {
    format!("POST /join HTTP/1.1\r\nHost: hub.example\r\n{more}\r\n")
}

fn read(text: &str) -> Result<Post, Refused> {
    Post::read(text.as_bytes(), MAX)
}

#[test]
fn a_post_says_how_much_follows() {
    let post = read(&head(
        "Content-Length: 1024\r\nContent-Encoding: identity\r\n",
    ))
    .unwrap();
    assert_eq!((post.path.as_str(), post.length), ("/join", 1024));
}

#[test]
fn whatever_can_be_understood_in_two_ways_is_refused() {
    use Refused::*;
    let cases = [
        ("", Length),
        ("Content-Length: 1025\r\n", TooLarge),
        ("Content-Length: 18446744073709551615\r\n", TooLarge),
        ("Content-Length: 18446744073709551616\r\n", Malformed),
        ("Content-Length: +5\r\n", Malformed),
        ("Content-Length: 5,5\r\n", Malformed),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Malformed),
        ("Content-Length: \r\n", Malformed),
        ("Content-Length: 0x5\r\n", Malformed),
        ("Transfer-Encoding: chunked\r\n", Encoded),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            Encoded,
        ),
        ("Content-Encoding: gzip\r\nContent-Length: 5\r\n", Encoded),
        ("Expect: 100-continue\r\nContent-Length: 5\r\n", Expectation),
        ("Host: other\r\nContent-Length: 5\r\n", Malformed),
        ("Content-Length : 5\r\n", Malformed),
        ("X: a\r\n b\r\nContent-Length: 5\r\n", Malformed),
    ];
    for (more, expected) in cases {
        assert_eq!(read(&head(more)), Err(expected), "{more:?}");
    }
    let line = |line: &str| read(&format!("{line}\r\nHost: h\r\nContent-Length: 1\r\n\r\n"));
    assert_eq!(line("GET /join HTTP/1.1"), Err(Method));
    assert_eq!(line("POST /join HTTP/1.0"), Err(HttpVersion));
    assert_eq!(line("POST /join x"), Err(Malformed));
    assert_eq!(line("POST  /join HTTP/1.1"), Err(Malformed));
    assert_eq!(
        read("POST /join HTTP/1.1\r\nContent-Length: 1\r\n\r\n"),
        Err(Malformed)
    );
    let many = "A: b\r\n".repeat(100);
    assert_eq!(read(&head(&many)), Err(HeadTooLong));
}

proptest! {
    #[test]
    fn any_bytes_are_a_post_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        drop(Post::read(&bytes, MAX));
        drop(Response::read_head(&bytes));
    }

    #[test]
    fn an_answer_comes_back_as_it_went_out(
        status in 200_u16..600,
        later in proptest::option::of(1_u64..3600),
        body in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let retry_after = later.map(Duration::from_secs);
        let response = Response { status, retry_after, body };
        let bytes = response.bytes();
        let end = head::end(&bytes, 0).unwrap().unwrap();
        let (mut back, length) = Response::read_head(&bytes[..end]).unwrap();
        back.body = bytes[end..].to_vec();
        prop_assert_eq!(back.body.len() as u64, length);
        prop_assert_eq!(back, response);
    }
}

#[tokio::test]
async fn a_question_is_answered_over_a_stream_however_it_is_cut() {
    let (mut client, mut server) = tokio::io::duplex(7);
    let body = vec![b'x'; 500];
    let asked = Asked {
        host: "hub.example",
        path: "/join",
        body: &body,
    };
    let serving = async {
        let opening = read_opening(&mut server).await.unwrap().unwrap();
        assert_eq!(opening.path(), Some("/join"));
        let post = Post::read(&opening.head, MAX).unwrap();
        let read = read_body(&mut server, &opening.early, post.length).await;
        assert_eq!(read.unwrap(), body);
        let response = Response {
            status: 200,
            retry_after: None,
            body: b"{}".to_vec(),
        };
        write_response(&mut server, &response).await.unwrap();
    };
    let (answer, ()) = tokio::join!(ask(&mut client, asked, MAX), serving);
    assert_eq!(answer.unwrap().body, b"{}");
}

#[tokio::test]
async fn content_that_is_short_or_long_is_no_content() {
    let early = Bytes::from_static(b"four");
    let mut ended: &[u8] = b"";
    let short = read_body(&mut ended, &early, 5).await.unwrap_err();
    assert_eq!(short.kind(), std::io::ErrorKind::UnexpectedEof);
    let long = read_body(&mut ended, &early, 3).await.unwrap_err();
    assert_eq!(long.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(read_body(&mut ended, &early, 4).await.unwrap(), b"four");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let (mut client, mut server) = tokio::io::duplex(4096);
    let asked = Asked {
        host: "h",
        path: "/",
        body: b"",
    };
    let serving = async {
        let mut request = [0; 10];
        server.read_exact(&mut request).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n";
        server.write_all(answer).await.unwrap();
    };
    let (answer, ()) = tokio::join!(ask(&mut client, asked, MAX), serving);
    assert!(matches!(answer, Err(ExchangeFailed::TooLarge { .. })));
}
