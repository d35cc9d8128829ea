//! How connections end, well and badly.

use rustls::AlertDescription;

use super::*;

#[tokio::test]
async fn each_end_says_goodbye_for_itself() {
    for (version, path) in VERSIONS.into_iter().flat_map(|v| PATHS.map(|p| (v, p))) {
        let (mut client, mut lean) = pair(path, version).await;
        let leave = async {
            client.write_all(b"last").await.unwrap();
            client.shutdown().await.unwrap();
        };
        let mut words = Vec::new();
        let ((), read) = tokio::join!(leave, lean.read_to_end(&mut words));
        read.unwrap();
        assert_eq!(words, b"last");
        for _ in 0..3 {
            assert_eq!(lean.read(&mut [0; 4]).await.unwrap(), 0);
        }
        let leave = async {
            lean.write_all(b"more").await.unwrap();
            lean.shutdown().await.unwrap();
            lean.shutdown().await.unwrap();
            let late = lean.write(b"late").await.unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::BrokenPipe);
        };
        let mut rest = Vec::new();
        let ((), read) = tokio::join!(leave, client.read_to_end(&mut rest));
        read.unwrap();
        assert_eq!(rest, b"more");
        assert_eq!(lean.held_bytes(), 0);
    }
}

#[tokio::test]
async fn who_has_said_goodbye_can_still_listen() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    lean.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0);
    client.write_all(b"answer").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    lean.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"answer");
}

#[tokio::test]
async fn an_end_without_a_goodbye_is_an_error_behind_what_was_said() {
    for version in VERSIONS {
        let (mut client, mut lean) = pair(Path::Tcp, version).await;
        client.write_all(b"hello").await.unwrap();
        client.get_mut().0.shutdown().await.unwrap();
        let mut words = Vec::new();
        let cut = lean.read_to_end(&mut words).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(words, b"hello");
        let again = lean.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn a_client_with_a_certificate_of_another_authority_is_told() {
    let hub = Hub::new();
    let other = Authority::create("link-ca", now()).unwrap();
    for (version, path) in VERSIONS.into_iter().flat_map(|v| PATHS.map(|p| (v, p))) {
        let (there, here) = path.open().await;
        let config = hub.client(version, Some(&node(&other)));
        let talk = async {
            let name = "hub.example".try_into().unwrap();
            let mut stream = TlsConnector::from(config).connect(name, there).await?;
            // With TLS 1.3 the client hears of it after its part of the handshake.
            stream.read_u8().await
        };
        let (told, refused) = tokio::join!(talk, accept(here, hub.config.clone()));
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        let reason = refused.get_ref().and_then(|inner| inner.downcast_ref());
        assert!(
            matches!(reason, Some(rustls::Error::InvalidCertificate(_))),
            "{refused}"
        );
        let told = alert(&told.unwrap_err());
        let expected = [AlertDescription::UnknownCA, AlertDescription::DecryptError];
        assert!(expected.contains(&told), "{told:?}");
    }
}

#[tokio::test]
async fn other_words_than_tls_are_refused() {
    for (words, told) in [
        (b"GET / HTTP/1.1\r\nhost: hub\r\n\r\n" as &[u8], Some(21)),
        (&[0; 100], Some(21)),
        // A record that is longer than any may be.
        (&[22, 3, 1, 255, 255, 1, 2, 3], Some(21)),
        // A message that would have 16 MB. For this `rustls` has no words.
        (&[22, 3, 1, 0, 5, 1, 255, 255, 255, 0], None),
    ] {
        let (mut there, here) = tokio::io::duplex(64 * 1024);
        there.write_all(words).await.unwrap();
        let refused = accept(here, Hub::new().config).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{words:?}");
        // It is told, as far as it understands: the head of an alert is 21.
        let mut answer = Vec::new();
        there.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.first().copied(), told, "{words:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_its_handshake_ends_it() {
    for words in [&[] as &[u8], &[22], &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]] {
        let (mut there, here) = tokio::io::duplex(64 * 1024);
        there.write_all(words).await.unwrap();
        drop(there);
        let left = accept(here, Hub::new().config).await.unwrap_err();
        assert_eq!(left.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn a_client_that_never_completes_its_first_message_is_refused_at_a_limit() {
    let (mut there, here) = tokio::io::duplex(64 * 1024);
    let flood = async {
        // A message of 60 kB, of which each record brings one byte.
        let mut record = vec![22, 3, 1, 0, 4, 1, 0, 0xea, 0x60];
        let mut sent = 0_usize;
        while there.write_all(&record).await.is_ok() {
            sent += record.len();
            record = vec![22, 3, 1, 0, 1, 7];
        }
        sent
    };
    let refused = accept(here, Hub::new().config);
    let (sent, refused) = tokio::join!(flood, refused);
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert!(sent < 256 * 1024, "{sent}");
}

#[tokio::test]
async fn a_broken_record_is_an_error_behind_what_was_said_and_the_peer_is_told() {
    for version in VERSIONS {
        let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), version).await;
        client.write_all(b"hello").await.unwrap();
        let mut record = vec![23, 3, 3, 0, 40];
        record.extend([7; 40]);
        client.get_mut().0.write_all(&record).await.unwrap();
        let mut word = [0; 100];
        assert_eq!(lean.read(&mut word).await.unwrap(), 5);
        for _ in 0..2 {
            let broken = lean.read(&mut word).await.unwrap_err();
            assert_eq!(broken.kind(), io::ErrorKind::InvalidData);
        }
        let broken = lean.write(b"late").await.unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::InvalidData);
        assert_eq!(lean.held_bytes(), 0);
        let told = client.read(&mut word).await.unwrap_err();
        assert_eq!(alert(&told), AlertDescription::BadRecordMac);
        lean.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_broken_record_is_found_by_who_writes_too() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    client.write_all(b"hello").await.unwrap();
    let mut record = vec![23, 3, 3, 0, 40];
    record.extend([7; 40]);
    client.get_mut().0.write_all(&record).await.unwrap();
    // The rest of what was read waits, with the broken record behind it.
    assert_eq!(lean.read_u8().await.unwrap(), b'h');
    let broken = lean.write(b"answer").await.unwrap_err();
    assert_eq!(broken.kind(), io::ErrorKind::InvalidData);
    let mut rest = [0; 4];
    lean.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b"ello");
    assert!(lean.read_u8().await.is_err());
    lean.flush().await.unwrap();
    let told = client.read_u8().await.unwrap_err();
    assert_eq!(alert(&told), AlertDescription::BadRecordMac);
}

#[tokio::test]
async fn new_keys_without_end_and_without_content_end_the_connection() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    for _ in 0..40 {
        client.get_mut().1.refresh_traffic_keys().unwrap();
        client.flush().await.unwrap();
    }
    let refused = lean.read_u8().await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    assert_eq!(lean.held_bytes(), 0);
}
