//! Connections with automatic reconnection, and requests with retries.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, Cmd, RedisError, Script, ServerErrorKind, TlsCertificates, Value};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use vfs_core::{Error, Result};

use super::config::RedisConfig;
use super::error::{RequestError, RetryDecision};
use super::retention_times::RECEIPT_TTL;

const MIN_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// Maximum time for which a request that may have been sent is repeated: the server surely still has the outcome of a
/// change.
const MAX_REPEAT_TIME: Duration = Duration::from_secs(RECEIPT_TTL.as_secs() / 2);
/// Rate of transfer in bytes that extends the timeout of large requests.
const MIN_BYTES_PER_SECOND: u64 = 4 << 20;

/// Request to the server.
pub(super) enum RedisRequest<'a> {
    /// One command.
    Command(Cmd),
    /// A script, with the keys and arguments of [`start`].
    Script(&'a Script, Cmd),
}

impl RedisRequest<'_> {
    fn bytes(&self) -> u64 {
        let (RedisRequest::Command(cmd) | RedisRequest::Script(_, cmd)) = self;
        let sizes = cmd.args_iter().map(|argument| match argument {
            ::redis::Arg::Simple(bytes) => bytes.len() as u64,
            _ => 0,
        });
        sizes.sum()
    }
}

/// Returns the beginning of a call of `script` with one key.
pub(super) fn start(script: &Script, key: &str) -> Cmd {
    let mut cmd = ::redis::cmd("EVALSHA");
    cmd.arg(script.get_hash()).arg(1).arg(key);
    cmd
}

/// Whether a request may already have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptKind {
    /// The request was not sent before.
    First,
    /// The request is repeated, because a connection was lost after it may have been sent.
    Repeated,
}

/// Slot for a connection, which is opened when it is first needed.
#[derive(Default)]
struct ConnectionSlot(Mutex<Arc<OnceCell<MultiplexedConnection>>>);

impl ConnectionSlot {
    fn current(&self) -> Arc<OnceCell<MultiplexedConnection>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Empties the slot, so that the next request opens a new connection, unless another request already replaced
    /// `broken`.
    fn discard(&self, broken: &Arc<OnceCell<MultiplexedConnection>>) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, broken) {
            *current = Arc::default();
        }
    }
}

/// Client of a server with several connections.
pub(super) struct RedisClient {
    client: Client,
    address: String,
    connect_timeout: Duration,
    timeout: Duration,
    retry_time: Duration,
    slots: Vec<ConnectionSlot>,
    next_slot: AtomicUsize,
}

impl RedisClient {
    pub(super) fn new(config: &RedisConfig) -> Result<Self> {
        let client = client(config)?;
        let url = config.url.expose();
        Ok(Self {
            client,
            address: format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(6379)),
            connect_timeout: config.connect_timeout,
            timeout: config.timeout,
            retry_time: config.patience,
            slots: (0..config.connections).map(|_| ConnectionSlot::default()).collect(),
            next_slot: AtomicUsize::new(0),
        })
    }

    /// Returns host and port of the server, without credentials.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the reply to a request, which `request` creates for each attempt. Transient failures are retried.
    ///
    /// If the server may have received the request, it is repeated at least once to find out, however short the retry
    /// time is.
    pub(super) async fn ask<'a>(
        &self,
        request: impl Fn(AttemptKind) -> RedisRequest<'a> + Send + Sync,
    ) -> Result<Value> {
        let start = Instant::now();
        let mut first_sent = None;
        let mut pause = MIN_BACKOFF;
        loop {
            let (attempt_start, attempt) =
                (Instant::now(), first_sent.map_or(AttemptKind::First, |_| AttemptKind::Repeated));
            let fault = match self.attempt(&request(attempt)).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            let is_in_doubt = fault.may_have_been_sent();
            let has_time = start.elapsed() + pause < self.retry_time || (is_in_doubt && attempt == AttemptKind::First);
            if is_in_doubt {
                first_sent.get_or_insert(attempt_start);
            }
            let is_repeatable = first_sent.is_none_or(|sent| sent.elapsed() + pause < MAX_REPEAT_TIME);
            if fault.recovery_action() == RetryDecision::Fail || !has_time || !is_repeatable {
                return Err(fault.into_error(&self.address, attempt));
            }
            tracing::debug!(server = self.address, ?fault, "a request to Redis is repeated");
            // Jitter, so that clients that lost the server at the same time do not all reconnect at the same time.
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(MAX_BACKOFF);
        }
    }

    /// Sends a request once, without retries. The first request of a new handle uses this, so that its errors are
    /// reported at once.
    pub(super) async fn ask_once(&self, request: RedisRequest<'_>) -> Result<Value> {
        self.attempt(&request).await.map_err(|fault| fault.into_error(&self.address, AttemptKind::First))
    }

    async fn attempt(&self, request: &RedisRequest<'_>) -> Result<Value, RequestError> {
        let slot = &self.slots[self.next_slot.fetch_add(1, Ordering::Relaxed) % self.slots.len()];
        let cell = slot.current();
        // Requests wait for the one that connects, each no longer than its own timeout.
        let connecting = tokio::time::timeout(self.connect_timeout, cell.get_or_try_init(|| self.connect()));
        let mut connection = connecting.await.map_err(|_| RequestError::ConnectTimeout(self.connect_timeout))??.clone();
        let limit = self.timeout.saturating_add(Duration::from_secs(request.bytes() / MIN_BYTES_PER_SECOND));
        let result = match tokio::time::timeout(limit, send(request, &mut connection)).await {
            Ok(result) => result.map_err(RequestError::from_response),
            Err(_) => Err(RequestError::ResponseTimeout(limit)),
        };
        if result.as_ref().is_err_and(RequestError::breaks_connection) {
            slot.discard(&cell);
        }
        result
    }

    /// Opens a separate connection for blocking requests.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, RequestError> {
        let settings = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&settings);
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(connection) => connection.map_err(RequestError::Connect),
            Err(_) => Err(RequestError::ConnectTimeout(self.connect_timeout)),
        }
    }

    /// Returns how long a response may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

fn client(config: &RedisConfig) -> Result<Client> {
    let url = config.url.expose().clone();
    if config.url.scheme() == "redis" {
        let advice = "the store's URL cannot be used; write it as 'redis://user:password@host:6379/0'";
        return Client::open(url).map_err(|_| Error::invalid_argument(advice));
    }
    // This fails if the process has already installed a provider, which then stays in use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificates = TlsCertificates { client_tls: None, root_cert: config.root_certificate.clone() };
    let advice = "the store's URL or its root certificate cannot be used; a certificate is in the form of PEM";
    Client::build_with_tls(url, certificates).map_err(|_| Error::invalid_argument(advice))
}

async fn send(request: &RedisRequest<'_>, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
    match request {
        RedisRequest::Command(cmd) => cmd.query_async(connection).await,
        RedisRequest::Script(script, cmd) => match cmd.query_async(connection).await {
            Err(error) if error.kind() == ::redis::ErrorKind::Server(ServerErrorKind::NoScript) => {
                script.prepare_invoke().load_async(connection).await?;
                cmd.query_async(connection).await
            }
            result => result,
        },
    }
}

/// Omits the client, which has the password.
impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient")
            .field("address", &self.address)
            .field("connections", &self.slots.len())
            .finish_non_exhaustive()
    }
}
