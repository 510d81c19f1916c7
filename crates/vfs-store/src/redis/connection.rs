//! Connections that are restored after a loss, and requests that are repeated.

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
use super::error::{RecoveryAction, RequestError};
use super::limits::RECEIPT_TTL;

const MIN_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// For how long a request is repeated that may have been sent: while the outcome of a change is surely remembered.
const MAX_REPEAT_TIME: Duration = Duration::from_secs(RECEIPT_TTL.as_secs() / 2);
/// How many bytes are given a second beside the timeout.
const MIN_BYTES_PER_SECOND: u64 = 4 << 20;

/// What is asked of the server.
pub(super) enum Request<'a> {
    /// One command.
    Command(Cmd),
    /// A script, with the keys and arguments of [`start`].
    Script(&'a Script, Cmd),
}

impl Request<'_> {
    fn bytes(&self) -> u64 {
        let (Request::Command(cmd) | Request::Script(_, cmd)) = self;
        let sizes = cmd.args_iter().map(|argument| match argument {
            ::redis::Arg::Simple(bytes) => bytes.len() as u64,
            _ => 0,
        });
        sizes.sum()
    }
}

/// The beginning of a call of `script` with one key.
pub(super) fn start(script: &Script, key: &str) -> Cmd {
    let mut cmd = ::redis::cmd("EVALSHA");
    cmd.arg(script.get_hash()).arg(1).arg(key);
    cmd
}

/// Which time a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The first time.
    First,
    /// Again, after a connection was lost with the request perhaps sent.
    Again,
}

/// A place for a connection, made when it is first needed.
#[derive(Default)]
struct ConnectionSlot(Mutex<Arc<OnceCell<MultiplexedConnection>>>);

impl ConnectionSlot {
    fn current(&self) -> Arc<OnceCell<MultiplexedConnection>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the next request make a new connection, unless another has seen to that.
    fn discard(&self, broken: &Arc<OnceCell<MultiplexedConnection>>) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, broken) {
            *current = Arc::default();
        }
    }
}

/// The connections to a server.
pub(super) struct RedisClient {
    client: Client,
    address: String,
    connect_timeout: Duration,
    timeout: Duration,
    patience: Duration,
    lanes: Vec<ConnectionSlot>,
    turn: AtomicUsize,
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
            patience: config.patience,
            lanes: (0..config.connections).map(|_| ConnectionSlot::default()).collect(),
            turn: AtomicUsize::new(0),
        })
    }

    /// Where the server is, without secrets.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The answer to what `request` makes for each attempt.
    ///
    /// Where it is not known whether a request was made, one repetition at least finds out, however short the patience is.
    pub(super) async fn ask<'a>(&self, request: impl Fn(Attempt) -> Request<'a> + Send + Sync) -> Result<Value> {
        let start = Instant::now();
        let mut first_sent = None;
        let mut pause = MIN_BACKOFF;
        loop {
            let (began, attempt) = (Instant::now(), first_sent.map_or(Attempt::First, |_| Attempt::Again));
            let fault = match self.attempt(&request(attempt)).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            let is_in_doubt = fault.may_have_been_sent();
            let may_go_on = start.elapsed() + pause < self.patience || (is_in_doubt && attempt == Attempt::First);
            if is_in_doubt {
                first_sent.get_or_insert(began);
            }
            let is_remembered = first_sent.is_none_or(|sent| sent.elapsed() + pause < MAX_REPEAT_TIME);
            if fault.next() == RecoveryAction::GiveUp || !may_go_on || !is_remembered {
                return Err(fault.into_error(&self.address));
            }
            tracing::debug!(server = self.address, ?fault, "a request to Redis is repeated");
            // Many clients that lost a server at once do not come back at once.
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(MAX_BACKOFF);
        }
    }

    /// Asks once, without trying again: the first thing that a new handle does should not keep its user waiting for an error.
    pub(super) async fn ask_once(&self, request: Request<'_>) -> Result<Value> {
        self.attempt(&request).await.map_err(|fault| fault.into_error(&self.address))
    }

    async fn attempt(&self, request: &Request<'_>) -> Result<Value, RequestError> {
        let lane = &self.lanes[self.turn.fetch_add(1, Ordering::Relaxed) % self.lanes.len()];
        let cell = lane.current();
        // Requests wait for the one that connects, each no longer than its own time.
        let connecting = tokio::time::timeout(self.connect_timeout, cell.get_or_try_init(|| self.connect()));
        let mut connection =
            connecting.await.map_err(|_| RequestError::NotConnectedFor(self.connect_timeout))??.clone();
        let limit = self.timeout.saturating_add(Duration::from_secs(request.bytes() / MIN_BYTES_PER_SECOND));
        let answer = match tokio::time::timeout(limit, send(request, &mut connection)).await {
            Ok(answer) => answer.map_err(RequestError::of_request),
            Err(_) => Err(RequestError::NotAnsweredFor(limit)),
        };
        if answer.as_ref().is_err_and(RequestError::breaks_connection) {
            lane.discard(&cell);
        }
        answer
    }

    /// A connection of its own, for requests that keep the server waiting.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, RequestError> {
        let settings = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&settings);
        match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(connection) => connection.map_err(RequestError::NotConnected),
            Err(_) => Err(RequestError::NotConnectedFor(self.connect_timeout)),
        }
    }

    /// How long an answer may take.
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
    // Where the process has chosen a provider, that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificates = TlsCertificates { client_tls: None, root_cert: config.root_certificate.clone() };
    let advice = "the store's URL or its root certificate cannot be used; a certificate is in the form of PEM";
    Client::build_with_tls(url, certificates).map_err(|_| Error::invalid_argument(advice))
}

async fn send(request: &Request<'_>, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
    match request {
        Request::Command(cmd) => cmd.query_async(connection).await,
        Request::Script(script, cmd) => match cmd.query_async(connection).await {
            Err(error) if error.kind() == ::redis::ErrorKind::Server(ServerErrorKind::NoScript) => {
                script.prepare_invoke().load_async(connection).await?;
                cmd.query_async(connection).await
            }
            answer => answer,
        },
    }
}

/// Without the client, which knows the password.
impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("address", &self.address)
            .field("connections", &self.lanes.len())
            .finish_non_exhaustive()
    }
}
