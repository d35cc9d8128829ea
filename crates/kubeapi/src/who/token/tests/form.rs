//! Texts that are not tokens, or not only in one way.

use super::*;

#[test]
fn what_is_not_a_token_is_refused() {
    let key = signing_key();
    let good = key.sign(&claims());
    let (signed_part, signature) = good.rsplit_once('.').unwrap();
    let wrong = [
        String::new(),
        ".".into(),
        "..".into(),
        "a.b.c".into(),
        signed_part.into(),
        format!("{good}."),
        format!("{good}=="),
        format!(" {good}"),
        format!("{signed_part}.{signature}\n"),
        format!("{signed_part}.{}", signature.replace(['-', '_'], "+")) + "+",
        "{\"payload\":\"x\"}".into(),
    ];
    for token in wrong {
        let refused = verify(&token, &key).unwrap_err();
        assert_eq!(refused, Refused::Malformed, "{token:?}");
        assert_eq!(refused.status().code, 401);
    }
    let long = format!("{good}{}", "A".repeat(1024 * 1024));
    assert_eq!(verify(&long, &key), Err(Refused::TooLong));
}

#[test]
fn a_token_that_leaves_room_for_interpretation_is_refused() {
    let (pair, key) = raw_key();
    let body = body_text();
    let header = r#"{"alg":"ES256"}"#;
    assert!(verify(&signed(&pair, header, &body), &key).is_ok());
    let twice = |field: &str| body.replacen('{', &format!("{{{field},"), 1);
    let wrong = [
        (r#"{"alg":"ES256","alg":"ES256"}"#, body.clone()),
        (r#"{"alg":"ES256","crit":["exp"]}"#, body.clone()),
        (r#"["ES256"]"#, body.clone()),
        (
            header,
            twice(r#""sub":"system:serviceaccount:kube-system:admin""#),
        ),
        (header, twice(r#""exp":99999999999"#)),
        (header, twice(r#""aud":"other""#)),
        (
            header,
            body.replace("\"name\":\"sa\"", "\"name\":\"sa\",\"name\":\"sa\""),
        ),
        (
            header,
            body.replace(r#"{"name":"sa","uid":"sa-uid"}"#, r#"["sa","sa-uid"]"#),
        ),
        (header, format!("{body} {body}")),
        (header, "[]".into()),
        (header, "[".repeat(10_000)),
    ];
    for (header, body) in wrong {
        let refused = verify(&signed(&pair, header, &body), &key);
        assert_eq!(refused, Err(Refused::Malformed), "{header} {body:.80}");
    }
}

#[test]
fn claims_of_the_wrong_kind_or_missing_are_refused() {
    let (pair, key) = raw_key();
    let header = r#"{"alg":"ES256"}"#;
    let change = |path: &str, value: Value| {
        let mut body = serde_json::to_value(claims()).unwrap();
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(path)),
            value => body[path] = value,
        }
        verify(&signed(&pair, header, &body.to_string()), &key)
    };
    for (path, value) in [
        ("exp", Value::Null),
        ("exp", json!("tomorrow")),
        ("exp", json!(1.5)),
        ("nbf", Value::Null),
        ("aud", Value::Null),
        ("iss", Value::Null),
        ("sub", Value::Null),
        ("kubernetes.io", Value::Null),
        ("kubernetes.io", json!("ns")),
    ] {
        assert_eq!(
            change(path, value.clone()),
            Err(Refused::Malformed),
            "{path} {value}"
        );
    }
    assert!(change("aud", json!("api")).is_ok());
    assert!(matches!(
        change("aud", json!([])),
        Err(Refused::Audience { .. })
    ));
}
