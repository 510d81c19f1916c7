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
use super::list_xml::{self, AsSent};

tokio::task_local! {
    /// The change that the requests of this task belong to.
    static CHANGE: ChangeAttempts;
}

/// One change on its way, which may take several attempts.
///
/// An object store tries again by itself where no answer came, and then tells of the last attempt only. This sees all of them.
#[derive(Debug, Clone)]
pub(super) struct ChangeAttempts {
    condition: Option<ObjectCondition>,
    doubtful: Arc<AtomicBool>,
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectCondition {
    /// No object.
    Nothing,
    /// An object with this entity tag, and this generation where the service counts them.
    Tag {
        /// In quotes.
        e_tag: String,
        /// As the service gave it.
        generation: Option<String>,
    },
}

impl ChangeAttempts {
    /// A change whose request says itself what it depends on.
    pub(super) fn new() -> Self {
        Self { condition: None, doubtful: Arc::default() }
    }

    /// A change that `object_store` sends without a condition: where the service takes one, it is added.
    pub(super) fn on(condition: ObjectCondition) -> Self {
        Self { condition: Some(condition), ..Self::new() }
    }

    /// Makes the change.
    pub(super) async fn make<T>(&self, requests: impl Future<Output = T>) -> T {
        CHANGE.scope(self.clone(), requests).await
    }

    /// Whether an attempt may have been made without an answer that says so.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    fn see(&self, answer: &Result<HttpResponse, HttpError>) {
        let is_clear = match answer {
            Ok(response) => !response.status().is_server_error(),
            Err(error) => error.kind() == HttpErrorKind::Connect,
        };
        if !is_clear {
            self.doubt();
        }
    }

    /// The answer to a request that puts the parts of an object together, read to its end.
    ///
    /// The service begins it before it knows how that ends, so that `200` alone says nothing.
    async fn see_end(&self, answer: HttpResponse) -> Result<HttpResponse, HttpError> {
        let (parts, body) = answer.into_parts();
        let body = body.bytes().await.inspect_err(|_| self.doubt())?;
        if parts.status.is_success() && !is_of_completion(&body) {
            self.doubt();
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
    }

    fn doubt(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// The header that belongs to a request: only those that remove an object or put the parts of one together need it.
    fn header(&self, request: &HttpRequest) -> Option<(HeaderName, HeaderValue)> {
        let decides = match *request.method() {
            Method::DELETE => !is_of_parts(request),
            Method::POST => is_of_parts(request),
            _ => false,
        };
        match self.condition.as_ref().filter(|_| decides)? {
            ObjectCondition::Nothing => Some((IF_NONE_MATCH, HeaderValue::from_static("*"))),
            ObjectCondition::Tag { e_tag, .. } => Some((IF_MATCH, HeaderValue::from_str(e_tag).ok()?)),
        }
    }
}

/// How long an operation of a service may take, with all its attempts.
///
/// `object_store` looks at the time only between attempts, so that the last may take as long as the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationTimeout(Option<Duration>);

impl OperationTimeout {
    /// None: an object store of any kind has its own.
    pub(super) const NONE: Self = Self(None);

    /// For operations of at most this time.
    pub(super) fn new(limit: Duration) -> Self {
        Self(Some(limit))
    }

    /// The outcome of an operation. One that is ended leaves its change in doubt.
    pub(super) async fn of<T>(
        self,
        operation: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        let Some(limit) = self.0 else { return Ok(operation.await?) };
        if let Ok(outcome) = tokio::time::timeout(limit, operation).await {
            return Ok(outcome?);
        }
        let _ = CHANGE.try_with(ChangeAttempts::doubt);
        Err(BucketError::unanswered())
    }
}

fn is_of_parts(request: &HttpRequest) -> bool {
    request.uri().query().is_some_and(|query| query.contains("uploadId="))
}

fn is_of_completion(body: &[u8]) -> bool {
    const WORD: &[u8] = b"CompleteMultipartUploadResult";
    body.windows(WORD.len()).any(|part| part == WORD)
}

/// Whether a service takes the conditions of HTTP in headers that are not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsignedHeaders {
    /// S3 does.
    Taken,
    /// The others do not.
    #[cfg_attr(not(any(feature = "gcp", feature = "azure")), expect(dead_code, reason = "S3 alone is there"))]
    Refused,
}

/// Makes connections.
#[derive(Debug)]
pub(super) struct HttpConnectionFactory {
    /// What the service takes.
    pub(super) unsigned: UnsignedHeaders,
    /// How long one request may take.
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
        let may_be_open = option(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let seconds = |key| option(key).and_then(|text| humantime::parse_duration(&text).ok());
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("agent-vfs/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(encryption()?)
            .https_only(!may_be_open)
            .connect_timeout(seconds(ClientConfigKey::ConnectTimeout).unwrap_or(Duration::from_secs(5)))
            .timeout(self.request_timeout);
        // A connection that is dead on the way ends sooner than the request, which then has time for another.
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

/// Trusts whom the system trusts; where it knows of nobody, as in an empty container, whom Mozilla trusts.
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

#[derive(Debug)]
struct HttpConnection {
    client: reqwest::Client,
    unsigned: UnsignedHeaders,
}

#[async_trait]
impl HttpService for HttpConnection {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let as_sent = request.extensions().get::<AsSent>().is_some();
        let change = CHANGE.try_with(ChangeAttempts::clone).ok();
        if let Some(change) = change.as_ref().filter(|_| self.unsigned == UnsignedHeaders::Taken)
            && let Some((name, value)) = change.header(&request)
        {
            request.headers_mut().insert(name, value);
        }
        let is_end = *request.method() == Method::POST && is_of_parts(&request);
        let answer = HttpService::call(&self.client, request).await;
        if let Some(change) = &change {
            change.see(&answer);
        }
        let mut response = answer?;
        if let Some(change) = change.filter(|_| is_end) {
            response = change.see_end(response).await?;
        }
        if as_sent && response.status().is_success() { keep_listing(response).await } else { Ok(response) }
    }
}

/// Reads a listing here, and hands on one without objects: `object_store` fails on a single key that it cannot parse, and takes
/// folders for files.
async fn keep_listing(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (mut parts, body) = response.into_parts();
    let body = body.bytes().await?;
    let listing = list_xml::parse(&body).map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
    let rest = listing.without_objects();
    parts.extensions.insert(listing);
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(rest)))
}
