//! HTTP transport that records the attempts of a change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use super::error::BucketError;
use super::list_xml::{self, RawKeysMarker};

tokio::task_local! {
    /// Change to which the requests of this task belong.
    static CHANGE: ChangeAttemptRecord;
}

/// Record of one change, which may take several attempts.
///
/// `object_store` retries a request without a response, and then reports only the last attempt. This records all
/// attempts.
#[derive(Debug, Clone)]
pub(super) struct ChangeAttemptRecord {
    condition: Option<ObjectCondition>,
    doubtful: Arc<AtomicBool>,
}

/// Precondition of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectCondition {
    /// There is no object.
    Nothing,
    /// The object has this entity tag, and this generation if the service has generations.
    Tag {
        /// Entity tag in quotes.
        e_tag: String,
        /// Generation as returned by the service.
        generation: Option<String>,
    },
}

impl ChangeAttemptRecord {
    /// Creates the record of a change whose request already has its condition.
    pub(super) fn new() -> Self {
        Self { condition: None, doubtful: Arc::default() }
    }

    /// Creates the record of a change that `object_store` sends without a condition. The condition is added if the
    /// service accepts it.
    pub(super) fn on(condition: ObjectCondition) -> Self {
        Self { condition: Some(condition), ..Self::new() }
    }

    /// Runs the requests of the change.
    pub(super) async fn make<T>(&self, requests: impl Future<Output = T>) -> T {
        CHANGE.scope(self.clone(), requests).await
    }

    /// Returns whether an attempt may have been applied without a response that says so.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    /// Waits for the response to a request that changes the object, and records whether it is clear. The change is doubtful until
    /// then, also if this future is dropped, as it is after a timeout.
    async fn record(
        &self,
        response: impl Future<Output = Result<HttpResponse, HttpError>>,
    ) -> Result<HttpResponse, HttpError> {
        let was_doubtful = self.doubtful.swap(true, Ordering::Relaxed);
        let result = response.await;
        let is_clear = match &result {
            Ok(response) => !response.status().is_server_error(),
            Err(error) => error.kind() == HttpErrorKind::Connect,
        };
        if is_clear {
            self.doubtful.store(was_doubtful, Ordering::Relaxed);
        }
        result
    }

    /// Waits for the response to a request that joins the parts of an object like [`record`](Self::record), to its end.
    ///
    /// The service begins the response before it has joined the parts, so the status `200` alone does not mean success.
    async fn record_completion(
        &self,
        response: impl Future<Output = Result<HttpResponse, HttpError>>,
    ) -> Result<HttpResponse, HttpError> {
        let mut is_completed = true;
        let result = self
            .record(async {
                let (parts, body) = response.await?.into_parts();
                let body = body.bytes().await?;
                is_completed = !parts.status.is_success() || is_completion(&body);
                Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
            })
            .await;
        if !is_completed {
            self.mark_doubtful();
        }
        result
    }

    /// Records that the change may have been applied without a response that says so.
    pub(super) fn mark_doubtful(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Returns the header of the condition, for requests that remove an object or join its parts.
    fn header(&self, request: &HttpRequest) -> Option<(HeaderName, HeaderValue)> {
        let needs_condition = match *request.method() {
            Method::DELETE => !is_multipart(request),
            Method::POST => is_multipart(request),
            _ => false,
        };
        match self.condition.as_ref().filter(|_| needs_condition)? {
            ObjectCondition::Nothing => Some((IF_NONE_MATCH, HeaderValue::from_static("*"))),
            ObjectCondition::Tag { e_tag, .. } => Some((IF_MATCH, HeaderValue::from_str(e_tag).ok()?)),
        }
    }
}

/// Timeout of an operation with all its attempts.
///
/// `object_store` checks the time only between attempts, so that the last attempt could exceed the limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationTimeout(Option<Duration>);

impl OperationTimeout {
    /// No timeout, for object stores that have their own.
    pub(super) const NONE: Self = Self(None);

    /// Creates a timeout of `limit`.
    pub(super) fn new(limit: Duration) -> Self {
        Self(Some(limit))
    }

    /// Runs an operation within the timeout.
    pub(super) async fn of<T>(
        self,
        operation: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        let Some(limit) = self.0 else { return Ok(operation.await?) };
        if let Ok(outcome) = tokio::time::timeout(limit, operation).await {
            return Ok(outcome?);
        }
        Err(BucketError::unanswered())
    }
}

/// Returns whether `request` may change an object. The parts of an upload are no object before its completion.
fn changes_object(request: &HttpRequest) -> bool {
    let has_parameter = |wanted| request.uri().query().is_some_and(|query| query.split('&').any(|part| part == wanted));
    let is_part = match *request.method() {
        // Azure stores the parts of a blob as blocks.
        Method::PUT | Method::DELETE => is_multipart(request) || has_parameter("comp=block"),
        Method::POST => has_parameter("uploads") || has_parameter("uploads="),
        _ => false,
    };
    !request.method().is_safe() && !is_part
}

fn is_multipart(request: &HttpRequest) -> bool {
    request.uri().query().is_some_and(|query| query.contains("uploadId="))
}

fn is_completion(body: &[u8]) -> bool {
    const WORD: &[u8] = b"CompleteMultipartUploadResult";
    body.windows(WORD.len()).any(|part| part == WORD)
}

/// Whether a service accepts HTTP conditions in headers that are not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsignedHeaderSupport {
    /// S3 and compatible services accept them.
    Accepted,
    /// Other services reject them.
    #[cfg_attr(not(any(feature = "gcp", feature = "azure")), expect(dead_code, reason = "only S3 is compiled in"))]
    Rejected,
}

/// Factory of HTTP connections.
#[derive(Debug)]
pub(super) struct HttpConnectionFactory {
    /// Whether the service accepts unsigned headers.
    pub(super) unsigned: UnsignedHeaderSupport,
    /// Timeout of one request.
    pub(super) request_timeout: Duration,
}

impl HttpConnector for HttpConnectionFactory {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client(options).map_err(|source| object_store::Error::Generic { store: "HTTP", source })?;
        Ok(HttpClient::new(HttpConnection { client, unsigned: self.unsigned }))
    }
}

impl HttpConnectionFactory {
    fn client(&self, options: &ClientOptions) -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
        let option = |key| options.get_config_value(&key).filter(|value| !value.is_empty());
        let is_http_allowed = option(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let seconds = |key| option(key).and_then(|text| humantime::parse_duration(&text).ok());
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("agent-vfs/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls_config()?)
            .https_only(!is_http_allowed)
            .connect_timeout(seconds(ClientConfigKey::ConnectTimeout).unwrap_or(Duration::from_secs(5)))
            .timeout(self.request_timeout);
        // A dead connection is detected before the timeout of the request, which then has time for another attempt.
        #[cfg(target_os = "linux")]
        {
            builder = builder.tcp_user_timeout(self.request_timeout / 3);
        }
        if let Some(proxy) = option(ClientConfigKey::ProxyUrl) {
            let excluded =
                option(ClientConfigKey::ProxyExcludes).and_then(|hosts| reqwest::NoProxy::from_string(&hosts));
            builder = builder.proxy(reqwest::Proxy::all(proxy)?.no_proxy(excluded));
        }
        Ok(builder.build()?)
    }
}

/// Returns a TLS configuration that trusts the certificate authorities of the system or, if there are none, as in an
/// empty container, those of Mozilla.
fn tls_config() -> Result<ClientConfig, rustls::Error> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
    };
    if let Ok(verified) = builder()?.with_platform_verifier() {
        return Ok(verified.with_no_client_auth());
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

/// HTTP connection that records the attempts of changes.
#[derive(Debug)]
struct HttpConnection {
    client: reqwest::Client,
    unsigned: UnsignedHeaderSupport,
}

#[async_trait]
impl HttpService for HttpConnection {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let wants_raw_keys = request.extensions().get::<RawKeysMarker>().is_some();
        let change = CHANGE.try_with(ChangeAttemptRecord::clone).ok();
        if let Some(change) = change.as_ref().filter(|_| self.unsigned == UnsignedHeaderSupport::Accepted)
            && let Some((name, value)) = change.header(&request)
        {
            request.headers_mut().insert(name, value);
        }
        let is_completion = *request.method() == Method::POST && is_multipart(&request);
        let change = change.filter(|_| changes_object(&request));
        let response = HttpService::call(&self.client, request);
        let response = match change {
            Some(change) if is_completion => change.record_completion(response).await?,
            Some(change) => change.record(response).await?,
            None => response.await?,
        };
        if wants_raw_keys && response.status().is_success() { extract_listing(response).await } else { Ok(response) }
    }
}

/// Parses a listing and moves it to the extensions of the response, whose body then has no objects: `object_store`
/// would fail if it cannot parse a single key, and treats folders as files.
async fn extract_listing(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (mut parts, body) = response.into_parts();
    let body = body.bytes().await?;
    let listing = list_xml::parse(&body).map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
    let rest = listing.without_objects();
    parts.extensions.insert(listing);
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(rest)))
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;

    use super::*;

    #[test]
    fn a_request_that_may_change_an_object_is_distinguished_from_look_ups_and_parts() {
        for (method, target, expected) in [
            (Method::GET, "/files/a", false),
            (Method::HEAD, "/files/a", false),
            (Method::PUT, "/files/a", true),
            (Method::DELETE, "/files/a", true),
            (Method::POST, "/files/a?uploads", false),
            (Method::POST, "/files/a?uploads=", false),
            (Method::PUT, "/files/a?partNumber=1&uploadId=u", false),
            (Method::DELETE, "/files/a?uploadId=u", false),
            (Method::POST, "/files/a?uploadId=u", true),
            (Method::POST, "/files?delete", true),
            (Method::PUT, "/files/a?comp=block&blockid=1", false),
            (Method::PUT, "/files/a?comp=blocklist", true),
            (Method::POST, "/files?restype=container&comp=batch", true),
        ] {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method;
            *request.uri_mut() = target.parse().expect("a target");
            assert_eq!(changes_object(&request), expected, "{} {target}", request.method());
        }
    }
}
