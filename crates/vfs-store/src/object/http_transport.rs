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
use super::list_xml::{self, RawKeysExtension};

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
    ///
    /// With `has_outcome`, the response is awaited to its end, and a success is clear only if this holds for its body.
    async fn record(
        &self,
        response: impl Future<Output = Result<HttpResponse, HttpError>>,
        has_outcome: Option<BodyOutcomeCheck>,
    ) -> Result<HttpResponse, HttpError> {
        let was_doubtful = self.doubtful.swap(true, Ordering::Relaxed);
        let mut is_clear = false;
        let result = async {
            let response = response.await?;
            is_clear = !response.status().is_server_error();
            let Some(has_outcome) = has_outcome.filter(|_| response.status().is_success()) else { return Ok(response) };
            is_clear = false;
            let (parts, body) = response.into_parts();
            let body = body.bytes().await?;
            is_clear = has_outcome(&body);
            Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
        }
        .await;
        is_clear |= result.as_ref().is_err_and(|error: &HttpError| error.kind() == HttpErrorKind::Connect);
        if is_clear {
            self.doubtful.store(was_doubtful, Ordering::Relaxed);
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
    let is_part = match *request.method() {
        // Azure stores the parts of a blob as blocks.
        Method::PUT | Method::DELETE => is_multipart(request) || has_parameter(request, "comp=block"),
        Method::POST => has_parameter(request, "uploads") || has_parameter(request, "uploads="),
        _ => false,
    };
    !request.method().is_safe() && !is_part && !is_for_credentials(request)
}

/// Returns whether `request` is for credentials, which may be sent before the request that changes the object.
fn is_for_credentials(request: &HttpRequest) -> bool {
    match *request.method() {
        // The metadata service of EC2.
        Method::PUT => request.headers().contains_key("x-aws-ec2-metadata-token-ttl-seconds"),
        // OAuth, and the token service of AWS. A change by this method has other parameters.
        Method::POST => request.uri().query().is_none_or(|query| query.starts_with("Action=")),
        _ => false,
    }
}

fn has_parameter(request: &HttpRequest, wanted: &str) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == wanted))
}

fn is_multipart(request: &HttpRequest) -> bool {
    request.uri().query().is_some_and(|query| query.contains("uploadId="))
}

/// Function that returns whether the body of a response says what became of a change.
type BodyOutcomeCheck = fn(&[u8]) -> bool;

/// Returns the check of the body for a request whose change may have failed although the status of the response is a success.
fn body_check(request: &HttpRequest) -> Option<BodyOutcomeCheck> {
    match *request.method() {
        // The service begins the response before it has joined the parts of the object.
        Method::POST if is_multipart(request) => Some(is_completion),
        // Azure removes a blob by a batch of one request, whose status is in the body.
        Method::POST if has_parameter(request, "comp=batch") => Some(has_batch_outcome),
        _ => None,
    }
}

fn is_completion(body: &[u8]) -> bool {
    const WORD: &[u8] = b"CompleteMultipartUploadResult";
    body.windows(WORD.len()).any(|part| part == WORD)
}

/// Returns whether the response to a batch is complete, and no part has the status of a server error.
fn has_batch_outcome(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let delimiter = text.lines().next().unwrap_or_default();
    let is_complete = text.trim_end().ends_with(&format!("{delimiter}--"));
    let mut statuses = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).peekable();
    is_complete && statuses.peek().is_some() && statuses.all(|status| status.starts_with(['2', '3', '4']))
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
pub(super) struct AttemptRecordingConnector {
    /// Whether the service accepts unsigned headers.
    pub(super) unsigned: UnsignedHeaderSupport,
    /// Timeout of one request.
    pub(super) request_timeout: Duration,
}

impl HttpConnector for AttemptRecordingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client(options).map_err(|source| object_store::Error::Generic { store: "HTTP", source })?;
        Ok(HttpClient::new(AttemptRecordingHttpService { client, unsigned: self.unsigned }))
    }
}

impl AttemptRecordingConnector {
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
struct AttemptRecordingHttpService {
    client: reqwest::Client,
    unsigned: UnsignedHeaderSupport,
}

#[async_trait]
impl HttpService for AttemptRecordingHttpService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let wants_raw_keys = request.extensions().get::<RawKeysExtension>().is_some();
        let change = CHANGE.try_with(ChangeAttemptRecord::clone).ok();
        if let Some(change) = change.as_ref().filter(|_| self.unsigned == UnsignedHeaderSupport::Accepted)
            && let Some((name, value)) = change.header(&request)
        {
            request.headers_mut().insert(name, value);
        }
        let change = change.filter(|_| changes_object(&request));
        let has_outcome = body_check(&request);
        let response = HttpService::call(&self.client, request);
        let response = match change {
            Some(change) => change.record(response, has_outcome).await?,
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
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use hyper::body::{Body, Frame};
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
            assert_eq!(changes_object(&request(method.clone(), target)), expected, "{method} {target}");
        }
    }

    fn request(method: Method, target: &str) -> HttpRequest {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().expect("a target");
        request
    }

    /// Body that breaks after its text.
    struct BrokenBody(Option<Bytes>);

    impl Body for BrokenBody {
        type Data = Bytes;
        type Error = HttpError;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
            let frame = self.0.take().map(Frame::data);
            Poll::Ready(Some(frame.ok_or_else(|| HttpError::new(HttpErrorKind::Interrupted, std::fmt::Error))))
        }
    }

    #[tokio::test]
    async fn the_removal_of_a_blob_is_clear_if_the_batch_has_its_outcome() {
        const DONE: &str = "--b\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\nServer: s\r\n\r\n--b--";
        let part = |status: &str| DONE.replace("202 Accepted", status);
        for (status, body, is_clear) in [
            (202, DONE.to_owned(), true),
            (202, format!("{DONE}\r\n"), true),
            (202, part("404 The specified blob does not exist."), true),
            (202, part("412 Precondition Failed"), true),
            (202, part("500 Internal Server Error"), false),
            (202, part("503 Server Busy"), false),
            (202, part("nonsense"), false),
            (202, DONE.replace("--b--", ""), false),
            (202, DONE.replace("--b--", &part("500 Internal Server Error")), false),
            (202, "--b\r\n\r\n--b--".to_owned(), false),
            (202, String::new(), false),
            (403, String::new(), true),
            (503, String::new(), false),
        ] {
            for is_broken in [false, true] {
                let text = Bytes::from(body.clone());
                let mut response = HttpResponse::new(match is_broken {
                    false => text.into(),
                    true => HttpResponseBody::new(BrokenBody(Some(text))),
                });
                *response.status_mut() = status.try_into().expect("a status");
                let change = ChangeAttemptRecord::new();
                let batch = request(Method::POST, "/files?restype=container&comp=batch");
                drop(change.record(async { Ok(response) }, body_check(&batch)).await);
                let is_clear = is_clear && (status == 403 || !is_broken);
                assert_eq!(change.is_doubtful(), !is_clear, "{status} {is_broken} {body}");
            }
        }
    }

    #[test]
    fn a_request_for_credentials_changes_no_object() {
        for (method, target, header) in [
            (Method::PUT, "http://169.254.169.254/latest/api/token", Some("x-aws-ec2-metadata-token-ttl-seconds")),
            (Method::POST, "https://sts.eu-west-1.amazonaws.com/?Action=AssumeRoleWithWebIdentity&RoleArn=r", None),
            (Method::POST, "https://login.microsoftonline.com/tenant/oauth2/v2.0/token", None),
            (Method::POST, "https://accounts.google.com/o/oauth2/token", None),
        ] {
            let mut request = request(method, target);
            request.headers_mut().extend(header.map(|name| (HeaderName::from_static(name), HeaderValue::from(600))));
            assert!(!changes_object(&request), "{} {target}", request.method());
        }
    }
}
