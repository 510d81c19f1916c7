//! HTTP transport: a service that runs code, with retries and request signing.

mod agentkit;
mod api;
mod client;
mod config;
mod json;
mod secret;
mod volcengine;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use vfs_core::{Error, ErrorKind, Result};

use crate::exec::{Invocation, RemoteExec, RemoteOutput, Transport};
pub use agentkit::Agentkit;
pub use api::{ApiRequest, RunCodeApi, Sign, Unsigned};
use client::{Chance, HttpClient};
pub use config::{HttpRunConfig, Repeat};
pub use json::{BearerToken, JsonApi};
pub use secret::Secret;
pub use volcengine::VolcengineSignature;

/// How long is waited before the second attempt; twice as long before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Runs scripts through a service that runs code for an HTTP request.
///
/// # Behaviour
///
/// * What a request and its answer look like is the [`RunCodeApi`]'s, how a request is signed is the [`Sign`]'s.
/// * Each call is one request. It is sent again only where it cannot have been run: where no connection was made, and
///   where the service answered 429. After anything else its effects are unknown, and it is sent again only if
///   [`Repeat::Idempotent`] says that this does no harm. A `Retry-After` is waited for if it is not over
///   [`longest_wait`](HttpRunConfig::longest_wait).
/// * The script's timeout is given to the service, which has to end it. An answer that is
///   [`patience`](HttpRunConfig::patience) late is not waited for any longer.
/// * An answer over [`max_response_bytes`](HttpRunConfig::max_response_bytes) is refused. Redirects are not followed.
///
/// # Errors
///
/// `unavailable` where the service cannot be reached, fails, or its answer is not whole or not in its format;
/// `permission_denied` for 401 and 403; `too_large` for 413, and for an answer or a request over a bound. No message
/// has a secret of the request in it.
#[derive(Debug, Clone)]
pub struct HttpRun {
    config: Arc<HttpRunConfig>,
    client: HttpClient,
}

impl HttpRun {
    /// Scripts go to the service of `config`. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an address that is not one of HTTPS, unless [`plain_http`](HttpRunConfig::plain_http)
    /// allows it or it is this machine's own; `internal` where encryption cannot be set up.
    pub fn new(config: HttpRunConfig) -> Result<Self> {
        let client = HttpClient::new(&config)?;
        Ok(Self { config: Arc::new(config), client })
    }

    /// Checks that `invocation` is within the limits of one request and its response.
    fn check(&self, invocation: &Invocation) -> Result<()> {
        let transport = self.transport();
        let is_over = invocation.script.len() > transport.max_script_bytes
            || u64::try_from(invocation.stdin.len()).is_ok_and(|bytes| bytes > transport.max_stdin_bytes);
        if is_over {
            return Err(Error::new(ErrorKind::TooLarge, "the command or its input is over what the service takes"));
        }
        if invocation.script.contains('\0') {
            return Err(Error::invalid_argument("a command cannot hold a NUL byte; take it out"));
        }
        Ok(())
    }
}

impl fmt::Display for HttpRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.config.api, self.client.host())
    }
}

#[async_trait]
impl RemoteExec for HttpRun {
    fn transport(&self) -> Transport {
        let mut transport = self.config.api.transport();
        // In an answer, four bytes stand for three, and there are two outputs.
        transport.max_output_bytes = transport.max_output_bytes.min(self.config.max_response_bytes / 2);
        transport
    }

    async fn run(&self, invocation: Invocation) -> Result<RemoteOutput> {
        self.check(&invocation)?;
        let request = self.config.api.request(&invocation)?;
        let time = invocation.timeout.saturating_add(self.config.patience);
        let (mut attempt, mut wait) = (1, FIRST_WAIT);
        loop {
            let started = Instant::now();
            let fault = match self.client.send(&self.config, &request, time).await {
                Ok(body) => {
                    let completed = self.config.api.answer(&request, &body)?;
                    return Ok(within(completed, &invocation));
                }
                Err(fault) => fault,
            };
            let may_repeat = match fault.chance {
                Chance::NotRun => true,
                Chance::Unknown => self.config.repeat == Repeat::Idempotent && started.elapsed() < time,
                Chance::Final => false,
            };
            let pause = fault.retry_after.unwrap_or(wait);
            if !may_repeat || attempt >= self.config.attempts.max(1) || pause > self.config.longest_wait {
                return Err(fault.error);
            }
            sleep(pause).await;
            wait = wait.saturating_mul(2);
            attempt += 1;
        }
    }
}

/// `completed` with each output cut to the limit of `invocation`.
fn within(completed: RemoteOutput, invocation: &Invocation) -> RemoteOutput {
    let [mut stdout, mut stderr] = [invocation.keeper(), invocation.keeper()];
    stdout.push(&completed.stdout);
    stderr.push(&completed.stderr);
    let mut cut = RemoteOutput::kept(completed.exit, stdout, stderr);
    cut.truncated |= completed.truncated;
    cut.stdout_bytes = cut.stdout_bytes.max(completed.stdout_bytes);
    cut.stderr_bytes = cut.stderr_bytes.max(completed.stderr_bytes);
    cut
}
