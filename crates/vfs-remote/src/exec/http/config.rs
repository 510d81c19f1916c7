//! Settings of the HTTP transport: endpoint, request signing, timeouts, retries.

use std::sync::Arc;
use std::time::Duration;

use super::code_execution_api::{CodeExecutionApi, Sign};
use super::secret::Secret;

/// Configuration of an [`HttpRun`](super::HttpRun): the service, its credentials, timeouts and retries.
///
/// ```
/// use vfs_remote::http::{BearerToken, HttpRun, HttpRunConfig, JsonApi};
///
/// let config = HttpRunConfig::new("https://run.example.com/v1/run", JsonApi::new()).sign(BearerToken::new("a-token"));
/// let transport = HttpRun::new(config)?;
/// assert_eq!(transport.to_string(), "JSON run API at run.example.com");
/// assert!(!format!("{transport:?}").contains("a-token"));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpRunConfig {
    /// The address of the service, without a query.
    pub url: String,
    /// The format of the service's requests and responses.
    pub api: Arc<dyn CodeExecutionApi>,
    /// The signature of the requests. Default: none.
    pub sign: Option<Arc<dyn Sign>>,
    /// The timeout of a connection attempt. Default: 10 seconds.
    pub connect_timeout: Duration,
    /// The time beyond a script's timeout for which the call waits for the response. Default: 30 seconds.
    pub patience: Duration,
    /// The maximum size of a response in bytes. Default: 64 MiB.
    pub max_response_bytes: u64,
    /// The maximum number of attempts, if another one is safe. Default: 4.
    pub attempts: u32,
    /// The maximum wait before another attempt. If the service requires a longer one, the call fails. Default: 10
    /// seconds.
    pub longest_wait: Duration,
    /// Whether a script may be run twice. Default: no.
    pub repeat: ReplayPolicy,
    /// Whether scripts and secrets may be sent to another machine without encryption. Default: no.
    pub plain_http: bool,
    /// The proxy for requests, whose address may contain a user and a password. Default: none; proxy settings of the
    /// environment are ignored.
    pub proxy: Option<Secret>,
}

/// Whether a script may be run twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayPolicy {
    /// A request is not sent again if the script may have run. This is the default.
    #[default]
    Never,
    /// Each script has the same effect when it runs again.
    Idempotent,
}

impl HttpRunConfig {
    /// Creates the configuration for requests of `api` to `url`.
    pub fn new(url: impl Into<String>, api: impl CodeExecutionApi) -> Self {
        Self {
            url: url.into(),
            api: Arc::new(api),
            sign: None,
            connect_timeout: Duration::from_secs(10),
            patience: Duration::from_secs(30),
            max_response_bytes: 64 * 1024 * 1024,
            attempts: 4,
            longest_wait: Duration::from_secs(10),
            repeat: ReplayPolicy::Never,
            plain_http: false,
            proxy: None,
        }
    }

    /// Signs the requests with `sign`.
    #[must_use]
    pub fn sign(mut self, sign: impl Sign) -> Self {
        self.sign = Some(Arc::new(sign));
        self
    }

    /// Sets the [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// Sets the [`patience`](Self::patience).
    #[must_use]
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Sets [`max_response_bytes`](Self::max_response_bytes).
    #[must_use]
    pub fn max_response_bytes(mut self, bytes: u64) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// Sets the number of [`attempts`](Self::attempts); 0 counts as 1.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the [`longest_wait`](Self::longest_wait).
    #[must_use]
    pub fn longest_wait(mut self, time: Duration) -> Self {
        self.longest_wait = time;
        self
    }

    /// Sets whether a script may be run twice.
    #[must_use]
    pub fn repeat(mut self, repeat: ReplayPolicy) -> Self {
        self.repeat = repeat;
        self
    }

    /// Permits sending scripts and secrets to another machine without encryption, as in a trusted network.
    #[must_use]
    pub fn plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// Sets the [`proxy`](Self::proxy).
    #[must_use]
    pub fn proxy(mut self, url: impl Into<Secret>) -> Self {
        self.proxy = Some(url.into());
        self
    }
}
