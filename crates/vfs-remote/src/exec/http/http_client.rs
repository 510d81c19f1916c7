//! HTTP client: one attempt to send a request and to read a bounded response.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use url::{Host, Url};
use vfs_core::{Error, ErrorKind, Result};

use super::code_execution_api::{ApiRequest, CodeExecutionApi, SignableRequest};
use super::config::HttpRunConfig;
use super::volcengine_signature::{percent_encoded, sha256};
use crate::exec::diagnostics::one_line;

/// Maximum number of bytes that are read of an error response.
const MAX_COMPLAINT: u64 = 64 * 1024;

/// Sends requests to one address.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    url: Url,
    host: String,
}

/// A failed attempt to send a request.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) error: Error,
    pub(super) chance: Retryability,
    /// The wait that the service requires.
    pub(super) retry_after: Option<Duration>,
}

/// Whether the script was run, and whether another attempt may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retryability {
    /// The script cannot have been run; another attempt may succeed.
    NotRun,
    /// The script may have been run.
    Unknown,
    /// Another attempt would fail too.
    Final,
}

impl RequestFailure {
    fn new(chance: Retryability, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { error: Error::new(kind, message.into()), chance, retry_after: None }
    }
}

impl From<Error> for RequestFailure {
    fn from(error: Error) -> Self {
        Self { error, chance: Retryability::Final, retry_after: None }
    }
}

impl HttpClient {
    pub(super) fn new(config: &HttpRunConfig) -> Result<Self> {
        let refused = || Error::invalid_argument("the service's address must be `https://HOST/PATH`, without a query");
        let url = Url::parse(&config.url).map_err(|_| refused())?;
        let is_near = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(refused()),
        };
        let is_open = url.scheme() == "http" && (is_near || config.plain_http);
        let is_bare = url.query().is_none() && url.username().is_empty() && url.password().is_none();
        if !(url.scheme() == "https" || is_open) || !is_bare {
            return Err(refused());
        }
        let internal = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(ErrorKind::Internal, format!("encryption could not be set up: {error}"))
        };
        let client = reqwest::Client::builder()
            .user_agent(concat!("agent-vfs/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(encryption().map_err(|error| internal(error.into()))?)
            .redirect(Policy::none())
            .connect_timeout(config.connect_timeout);
        // Do not use the proxy settings of the environment.
        let client = match &config.proxy {
            Some(proxy) => client.proxy(reqwest::Proxy::all(proxy.reveal()).map_err(|_| {
                Error::invalid_argument("a proxy's address must be `http://HOST:PORT` or `https://HOST:PORT`")
            })?),
            None => client.no_proxy(),
        };
        let client = client.build().map_err(|error| internal(error.into()))?;
        let name = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        Ok(Self { client, url, host })
    }

    /// Returns the host, with the port unless it is the default one.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Sends `request` and returns the body of a successful response.
    pub(super) async fn send(
        &self,
        config: &HttpRunConfig,
        request: &ApiRequest,
        time: Duration,
    ) -> Result<Bytes, RequestFailure> {
        let (headers, secrets) = self.headers(config, request)?;
        let mut url = self.url.clone();
        let query = percent_encoded(&request.query);
        url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        let sent = self.client.post(url).headers(headers).body(request.body.clone()).timeout(time).send().await;
        let response = sent.map_err(|error| lost(&error, time))?;
        if response.status().is_success() {
            return read(response, config.max_response_bytes, time).await;
        }
        let (status, headers) = (response.status(), response.headers().clone());
        // The status is sufficient if the body does not arrive.
        let body = read(response, MAX_COMPLAINT, time).await.unwrap_or_default();
        Err(refused(&*config.api, status, &headers, &body, &secrets))
    }

    /// Returns the signed headers of a request, and the values that must not be shown.
    fn headers(&self, config: &HttpRunConfig, request: &ApiRequest) -> Result<(HeaderMap, Vec<String>)> {
        let body_sha256 = sha256(&request.body);
        let unsigned = SignableRequest {
            query: &request.query,
            headers: &request.headers,
            ..SignableRequest::new(&self.host, self.url.path(), &body_sha256, Utc::now())
        };
        let signature = config.sign.as_ref().map_or_else(|| Ok(Vec::new()), |sign| sign.sign(&unsigned))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers.iter().chain(&signature) {
            let refused = || Error::invalid_argument(format!("the value of the header `{name}` cannot be sent"));
            let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
            value.set_sensitive(name != CONTENT_TYPE);
            headers.insert(name, value);
        }
        let secrets = signature.iter().flat_map(|(_, value)| words(value)).filter(|word| word.len() >= 8);
        Ok((headers, secrets.map(str::to_owned).collect()))
    }
}

/// Returns the parts that may be secret of a header's value, such as `Scheme name=part, name=part` or `Scheme part`.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let pieces = || value.split([' ', ',']).filter(|piece| !piece.is_empty());
    let scheme = usize::from(pieces().count() > 1);
    pieces().skip(scheme).map(|piece| match piece.split_once('=') {
        Some((_, word)) if !word.trim_matches('=').is_empty() => word,
        _ => piece,
    })
}

/// Returns the fault of a request without a response.
fn lost(error: &reqwest::Error, time: Duration) -> RequestFailure {
    let (chance, message) = if error.is_connect() {
        (Retryability::NotRun, "the service cannot be reached: check its address and the network".to_owned())
    } else if error.is_timeout() {
        (
            Retryability::Unknown,
            format!("the service gave no answer within {} s; its effects are unknown", time.as_secs()),
        )
    } else {
        (
            Retryability::Unknown,
            "the connection to the service was lost before it answered; its effects are unknown".to_owned(),
        )
    };
    RequestFailure::new(chance, ErrorKind::Unavailable, message)
}

/// Reads a body to its end.
async fn read(mut response: Response, max_bytes: u64, time: Duration) -> Result<Bytes, RequestFailure> {
    let too_large = || {
        let message = format!("the service's answer is over {max_bytes} bytes; request less, or raise the limit");
        RequestFailure::new(Retryability::Final, ErrorKind::TooLarge, message)
    };
    if response.content_length().is_some_and(|length| length > max_bytes) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() as u64 + chunk.len() as u64 > max_bytes => return Err(too_large()),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.freeze()),
            Err(error) if error.is_timeout() => return Err(lost(&error, time)),
            Err(_) => {
                let message = "the service's answer broke off; the command was run, or a part of it";
                return Err(RequestFailure::new(Retryability::Unknown, ErrorKind::Unavailable, message));
            }
        }
    }
}

/// Returns the fault of a response with a status of failure.
fn refused(
    api: &dyn CodeExecutionApi,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[String],
) -> RequestFailure {
    use ErrorKind::{PermissionDenied, TooLarge, Unavailable};
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| delay(value.to_str().ok()?, Utc::now()));
    let (chance, kind, meaning) = match status {
        StatusCode::UNAUTHORIZED => {
            (Retryability::Final, PermissionDenied, "the service does not accept the credentials")
        }
        StatusCode::FORBIDDEN => (Retryability::Final, PermissionDenied, "the service does not allow this"),
        StatusCode::NOT_FOUND => (Retryability::Final, Unavailable, "the service has nothing at its address: check it"),
        StatusCode::PAYLOAD_TOO_LARGE => {
            (Retryability::Final, TooLarge, "the command is larger than the service takes")
        }
        StatusCode::TOO_MANY_REQUESTS => {
            (Retryability::NotRun, Unavailable, "the service has too many requests; it was not run")
        }
        _ if status.is_redirection() => {
            (Retryability::Final, Unavailable, "the service is at another address: name that one")
        }
        _ if status.is_client_error() => (Retryability::Final, Unavailable, "the service does not take the request"),
        _ => (Retryability::Unknown, Unavailable, "the service failed; its effects are unknown"),
    };
    let mut message = format!("{meaning} (HTTP {}", status.as_u16());
    if let Some(wait) = retry_after {
        message.push_str(&format!(", try again in {} s", wait.as_secs()));
    }
    if let Some(reason) = api.parse_failure(body) {
        let hidden = secrets.iter().fold(reason, |text, secret| text.replace(secret, "…"));
        message.push_str(&format!(", it answered: {}", one_line(&hidden, 200)));
    }
    message.push(')');
    RequestFailure { retry_after, ..RequestFailure::new(chance, kind, message) }
}

/// Parses a `Retry-After`, which is a number of seconds or a date.
fn delay(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value.trim()).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

/// Returns a TLS configuration that trusts the roots of the system, or those of Mozilla if the system has none, as in
/// an empty container.
fn encryption() -> Result<ClientConfig, rustls::Error> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
    };
    if let Ok(trusting) = builder()?.with_platform_verifier() {
        return Ok(trusting.with_no_client_auth());
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn the_words_of_a_signature_are_redacted() {
        let found = |value| words(value).collect::<Vec<_>>();
        assert_eq!(found("Bearer abc=="), ["abc=="]);
        assert_eq!(found("Scheme Credential=id/day, SignedHeaders=a;b, Signature=0f"), ["id/day", "a;b", "0f"]);
        assert_eq!(found("token"), ["token"]);
    }

    #[test]
    fn a_delay_is_seconds_or_a_date() {
        let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).single().expect("a time");
        assert_eq!(delay("7", now), Some(Duration::from_secs(7)));
        assert_eq!(delay("Fri, 02 Jan 2026 03:04:15 GMT", now), Some(Duration::from_secs(10)));
        assert_eq!(delay("Fri, 02 Jan 2026 03:04:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(delay("soon", now), None);
    }
}
