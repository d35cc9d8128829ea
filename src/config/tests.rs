//! What a configuration file may say, and where each wrong one is wrong.

use super::*;

fn load_text(text: &str) -> Result<File, Problem> {
    check(yaml::parse(yaml::text(text.as_bytes()).expect("text"))?)
}

fn problem(text: &str) -> String {
    load_text(text).expect_err("a wrong file").to_string()
}

#[test]
fn a_file_with_every_setting_is_read() {
    let file = load_text(
        "dataDir: /var/lib/holdfast\nlisten: '[::1]:6443'\nephemeral: true\n\
         serverNames: [edge.example, 192.0.2.7]\nshutdownGrace: 1m30s\nhistory: 1h\n\
         limits:\n  connections: 500\nlog:\n  format: json\n  level: debug\n",
    )
    .unwrap();
    assert_eq!(file.data_dir, Some("/var/lib/holdfast".into()));
    assert_eq!(file.listen, Some("[::1]:6443".parse().unwrap()));
    assert_eq!(file.ephemeral, Some(true));
    let names = ["edge.example", "192.0.2.7"].map(|name| name.parse().unwrap());
    assert_eq!(file.server_names.as_deref(), Some(&names[..]));
    assert_eq!(file.shutdown_grace, Some("90s".parse().unwrap()));
    assert_eq!(file.history, Some("60m".parse().unwrap()));
    assert_eq!(file.connections_max, Some(Connections(500)));
    assert_eq!(
        (file.log_format, file.log_level),
        (Some(LogFormat::Json), Some(LogLevel::Debug))
    );
}

#[test]
fn what_a_file_does_not_mention_is_left_open() {
    assert_eq!(
        load_text("log: {}\r\nlisten:\r\n").unwrap(),
        File::default()
    );
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_known_ones() {
    let said = problem("listen: 127.0.0.1:6443\nlog:\n  levle: info\n");
    assert_eq!(said, "3:3: levle: unknown key; known here: format, level");
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    let said = problem("listen: 127.0.0.1:1\nephemeral: true\nlisten: 127.0.0.1:2\n");
    assert_eq!(said, "3:1: listen: this key is there twice");
}

fn expect_problems(table: &[(&str, &str)]) {
    for (text, expected) in table {
        let said = problem(text);
        assert!(said.starts_with(expected), "{text:?}: {said}");
        assert!(!said.contains('\n'), "one message on one line: {said}");
    }
}

#[test]
fn wrong_addresses_are_told_with_key_and_place_and_what_would_do() {
    expect_problems(&[
        (
            "listen: 127.0.0.1:70000\n",
            "1:9: listen: \"70000\" is not a port",
        ),
        ("listen: 127.0.0.1:0\n", "1:9: listen: port 0 is for trying"),
        (
            "listen: 127.0.0.1:-1\n",
            "1:9: listen: \"-1\" is not a port",
        ),
        ("listen: '127.0.0.1:1 '\n", "1:9: listen: there is a space"),
        (
            "listen: ::1:6443\n",
            "1:9: listen: an IPv6 address stands in brackets",
        ),
        ("listen: 127.0.0.1\n", "1:9: listen: 127.0.0.1 has no port"),
        (
            "listen: localhost:1\n",
            "1:9: listen: \"localhost\" is not an IP",
        ),
        ("listen: 6443\n", "1:9: listen: \"6443\" is not an address"),
    ]);
}

#[test]
fn wrong_values_are_told_with_key_and_place() {
    expect_problems(&[
        (
            "shutdownGrace: -5s\n",
            "1:16: shutdownGrace: \"-5s\" is not",
        ),
        (
            "shutdownGrace: 99999999999999999999h\n",
            "1:16: shutdownGrace: ",
        ),
        (
            "shutdownGrace: 11m\n",
            "1:16: shutdownGrace: \"11m\" is not",
        ),
        ("shutdownGrace: 5\n", "1:16: shutdownGrace: \"5\" is not"),
        ("history: 0s\n", "1:10: history: \"0s\" is not"),
        ("history: 25h\n", "1:10: history: \"25h\" is not"),
        (
            "limits:\n  connections: 0\n",
            "2:16: limits.connections: \"0\"",
        ),
        (
            "limits:\n  connections: 9223372036854775808\n",
            "2:16: limits.conn",
        ),
        (
            "limits:\n  connections: 1e3\n",
            "2:16: limits.connections: ",
        ),
        ("ephemeral: yes\n", "1:12: ephemeral: \"yes\" is neither"),
        (
            "log:\n  level: loud\n",
            "2:10: log.level: \"loud\" is not error",
        ),
        (
            "log:\n  format: xml\n",
            "2:11: log.format: \"xml\" is neither",
        ),
        (
            "serverNames:\n  - a\n  - B_\n",
            "3:5: serverNames: \"B_\" is neither",
        ),
        ("dataDir: ~/holdfast\n", "1:10: dataDir: "),
    ]);
}

#[test]
fn wrong_shapes_are_told_with_key_and_place() {
    expect_problems(&[
        ("listen: [a, b]\n", "1:9: listen: "),
        ("ephemeral: true\nlog: text\n", "2:6: log: "),
        ("serverNames: edge\n", "1:14: serverNames: "),
        ("- listen\n", "1:1: "),
        ("just words\n", "1:1: "),
        (
            "ephemeral: true\n---\nephemeral: true\n",
            "3:1: a second document",
        ),
        ("listen: \"127.0.0.1:1\nephemeral: true\n", "2:1: "),
        ("listen: &a 127.0.0.1:1\n", "1:"),
        ("<<: {listen: 127.0.0.1:1}\n", "1:1: "),
        ("listen: !secret x\n", "1:"),
    ]);
}

#[test]
fn a_bomb_of_aliases_or_depth_is_refused_at_once() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{},", level - 1).repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    assert!(problem(&bomb).len() < 300);
    let deep = format!("listen: {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    assert!(problem(&deep).len() < 300);
    let wide = format!("serverNames: [{}]\n", "a,".repeat(200_000));
    assert!(problem(&wide).len() < 300);
}

#[test]
fn bytes_that_are_no_text_are_told_what_they_are() {
    for (bytes, expected) in [
        (&b""[..], "is empty"),
        (b"# nothing\n\n---\n", "is empty"),
        (b"\xef\xbb\xbflisten: 127.0.0.1:1\n", "byte order mark"),
        (b"\xff\xfel\0i\0", "UTF-16"),
        (b"\x7fELF\x02\x01\x01\0", "control characters"),
        (b"listen: \xc3\x28\n", "not UTF-8"),
    ] {
        let said = yaml::text(bytes).unwrap_err();
        assert!(said.contains(expected), "{bytes:?}: {said}");
    }
}
