//! Checks a signature as Volcengine's documentation says it is made, from the request as it arrived.
//!
//! This is a second reading of the documentation, and shares no code with the transport.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use hyper::http::request::Parts;
use sha2::{Digest, Sha256};

use super::service::{KEY, KEY_ID, TOKEN};

/// Whether the request is signed with the key, in all that has to be signed.
pub(super) fn is_right(parts: &Parts, body: &[u8]) -> bool {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    let date = header("x-date");
    assert_eq!(date.len(), "20240619T071306Z".len());
    let now = chrono::Utc::now();
    let then = chrono::NaiveDateTime::parse_from_str(date, "%Y%m%dT%H%M%SZ").expect("a time").and_utc();
    assert!((now - then).num_seconds().abs() < 300, "the service takes signatures of the last minutes only");
    assert_eq!(header("x-security-token"), TOKEN);
    assert_eq!(header("x-content-sha256"), digits(&Sha256::digest(body)));
    let query = parts.uri.query().expect("a query");
    assert_eq!(query, "Action=InvokeTool&Version=2025-10-30");

    let authorization = header("authorization").strip_prefix("HMAC-SHA256 ").expect("the scheme");
    let fields: BTreeMap<&str, &str> =
        authorization.split(", ").map(|field| field.split_once('=').expect("a field")).collect();
    let credential: Vec<&str> = fields["Credential"].split('/').collect();
    assert_eq!(credential, [KEY_ID, &date[..8], "cn-beijing", "agentkit", "request"]);
    let names: Vec<&str> = fields["SignedHeaders"].split(';').collect();
    for must in ["content-type", "host", "x-content-sha256", "x-date", "x-security-token"] {
        assert!(names.contains(&must), "{must} has to be signed");
    }
    assert!(names.is_sorted());

    let mut text = format!("{}\n{}\n{query}\n", parts.method, parts.uri.path());
    for name in &names {
        text.push_str(&format!("{name}:{}\n", header(name)));
    }
    text.push_str(&format!("\n{}\n{}", names.join(";"), digits(&Sha256::digest(body))));
    let scope = credential[1..].join("/");
    let signed = format!("HMAC-SHA256\n{date}\n{scope}\n{}", digits(&Sha256::digest(text)));
    let key = credential[1..].iter().fold(KEY.as_bytes().to_vec(), |key, word| code(&key, word));
    fields["Signature"] == digits(&code(&key, &signed))
}

fn code(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
