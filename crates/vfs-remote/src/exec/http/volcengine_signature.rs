//! Request signing of Volcengine: HMAC-SHA256 over the canonical request.

use chrono::Utc;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use vfs_core::{Error, ErrorKind, Result};

use super::code_execution_api::{Sign, SignableRequest};
use super::secret::Secret;

/// Signs requests to Volcengine's APIs, by HMAC-SHA256 over the method, path, query, some headers and the body's hash.
///
/// The format is that of Volcengine's documentation: the steps of a signature
/// (<https://www.volcengine.com/docs/6369/67269>) and its worked example
/// (<https://www.volcengine.com/docs/6369/67270>), which this crate's tests repeat.
///
/// ```
/// use vfs_remote::http::VolcengineSignature;
///
/// let signature = VolcengineSignature::new("key-id", "key").region("cn-shanghai").session_token("token");
/// assert!(format!("{signature:?}").contains("Secret(…)"));
/// ```
#[derive(Debug, Clone)]
pub struct VolcengineSignature {
    access_key_id: String,
    secret_access_key: Secret,
    session_token: Option<Secret>,
    region: String,
    service: String,
}

impl VolcengineSignature {
    /// Creates a signature for the service `agentkit` in the region `cn-beijing`.
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<Secret>) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: secret_access_key.into(),
            session_token: None,
            region: "cn-beijing".to_owned(),
            service: "agentkit".to_owned(),
        }
    }

    /// Sets the region.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Sets the service.
    #[must_use]
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// Adds the token of short-lived credentials.
    #[must_use]
    pub fn session_token(mut self, token: impl Into<Secret>) -> Self {
        self.session_token = Some(token.into());
        self
    }

    /// Returns the key for one day, region and service.
    fn key(&self, day: &str) -> Result<Vec<u8>> {
        let mut key = self.secret_access_key.reveal().as_bytes().to_vec();
        for word in [day, &self.region, &self.service, "request"] {
            key = hmac(&key, word.as_bytes())?;
        }
        Ok(key)
    }
}

impl Sign for VolcengineSignature {
    fn sign(&self, request: &SignableRequest<'_>) -> Result<Vec<(String, String)>> {
        let time = request.time.with_timezone(&Utc).format("%Y%m%dT%H%M%SZ").to_string();
        let day = &time[..8];
        let mut added =
            vec![("x-date".to_owned(), time.clone()), ("x-content-sha256".to_owned(), request.body_sha256.to_owned())];
        if let Some(token) = &self.session_token {
            added.push(("x-security-token".to_owned(), token.reveal().to_owned()));
        }
        let mut signed: Vec<(String, &str)> = vec![("host".to_owned(), request.host)];
        signed.extend(added.iter().map(|(name, value)| (name.clone(), value.trim())));
        let content_type = |(name, value): &'_ (String, String)| {
            name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_owned())
        };
        let content_type = request.headers.iter().find_map(content_type);
        signed.extend(content_type.as_deref().map(|value| ("content-type".to_owned(), value)));
        signed.sort();
        let names = signed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let mut query = request.query.to_vec();
        query.sort();
        let canonical = [request.method, request.path, &percent_encoded(&query), &lines, &names, request.body_sha256];
        let scope = format!("{day}/{}/{}/request", self.region, self.service);
        let text = format!("HMAC-SHA256\n{time}\n{scope}\n{}", sha256(canonical.join("\n").as_bytes()));
        let signature = hex(&hmac(&self.key(day)?, text.as_bytes())?);
        let credential = format!("{}/{scope}", self.access_key_id);
        let value = format!("HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
        added.push(("authorization".to_owned(), value));
        Ok(added)
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Result<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .map_err(|error| Error::new(ErrorKind::Internal, "a key of this length cannot sign").with_source(error))?;
    mac.update(text);
    Ok(mac.finalize().into_bytes().to_vec())
}

/// Returns the SHA-256 of `bytes` in lower-case hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encodes a query: all characters except the unreserved ones of RFC 3986.
pub(super) fn percent_encoded(query: &[(String, String)]) -> String {
    let encoded = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    /// The worked example of Volcengine's documentation, whose key has no rights anywhere.
    #[test]
    fn the_documented_example_is_signed_as_documented() {
        let signature =
            VolcengineSignature::new("example", "TnpCak5XWXpZV1U0WkRaaE5ERmxaR0ZpTmpjeVkyUXlZek0wTWpJMU1qWQ==")
                .region("cn-north-1")
                .service("iam");
        let words = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let query = words(&[("Version", "2018-01-01"), ("Limit", "10"), ("Action", "ListUsers"), ("Offset", "0")]);
        let headers = words(&[("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]);
        let nothing = sha256(b"");
        let time = Utc.with_ymd_and_hms(2020, 12, 30, 8, 18, 5).single().expect("a time");
        let request = SignableRequest {
            method: "GET",
            query: &query,
            headers: &headers,
            ..SignableRequest::new("iam.volcengineapi.com", "/", &nothing, time)
        };
        let added = signature.sign(&request).expect("a signature");
        let authorization = &added.iter().find(|(name, _)| name == "authorization").expect("the header").1;
        assert_eq!(
            authorization,
            "HMAC-SHA256 Credential=example/20201230/cn-north-1/iam/request, \
             SignedHeaders=content-type;host;x-content-sha256;x-date, \
             Signature=28eeabbbd726b87002e0fe58ad8c1c768e619b06e2646f35b6ad7ed029a6d8a7"
        );
    }

    #[test]
    fn a_session_token_is_signed_too() {
        let time = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("a time");
        let request = SignableRequest::new("host", "/", "00", time);
        let signature = VolcengineSignature::new("id", "key").session_token("token");
        let added = signature.sign(&request).expect("a signature");
        assert!(added.contains(&("x-security-token".to_owned(), "token".to_owned())));
        assert!(added.iter().any(|(_, value)| value.contains("host;x-content-sha256;x-date;x-security-token")));
    }

    #[test]
    fn a_query_is_encoded_as_in_rfc_3986() {
        let query = [("a b".to_owned(), "+/~é*".to_owned()), ("c".to_owned(), String::new())];
        assert_eq!(percent_encoded(&query), "a%20b=%2B%2F~%C3%A9%2A&c=");
    }
}
