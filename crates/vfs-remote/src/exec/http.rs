//! HTTP transport: a service that runs code, with retries and request signing.

mod agentkit;
mod code_execution_api;
mod config;
mod http_client;
mod json_api;
mod secret;
mod volcengine_signature;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use vfs_core::{Error, ErrorKind, Result};

use crate::exec::{RemoteExec, RemoteOutput, ScriptInvocation, TransportLimits};
pub use agentkit::Agentkit;
pub use code_execution_api::{ApiRequest, CodeExecutionApi, Sign, SignableRequest};
pub use config::{HttpRunConfig, ReplayPolicy};
use http_client::{HttpClient, Retryability};
pub use json_api::{BearerToken, JsonApi};
pub use secret::Secret;
pub use volcengine_signature::VolcengineSignature;

/// Wait before the second attempt. The wait doubles before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Runs scripts through a service that runs code for an HTTP request.
///
/// # Behaviour
///
/// * The [`CodeExecutionApi`] defines the format of requests and responses, the [`Sign`] how requests are signed.
/// * Each call is one request. The request is sent again if the script cannot have run: if no connection was made, or
///   the service answered 429. After any other failure the effects are unknown, and the request is sent again only with
///   [`ReplayPolicy::Idempotent`]. A `Retry-After` of up to [`longest_wait`](HttpRunConfig::longest_wait) is obeyed.
/// * The service receives the script's timeout, and has to end the script. The call waits
///   [`patience`](HttpRunConfig::patience) longer for the response.
/// * A response over [`max_response_bytes`](HttpRunConfig::max_response_bytes) is refused. Redirects are not followed.
///
/// # Errors
///
/// `unavailable` if the service cannot be reached or fails, or its response is incomplete or malformed;
/// `permission_denied` for 401 and 403; `too_large` for 413, and for a response or a request over a limit. No message
/// contains a secret of the request.
#[derive(Debug, Clone)]
pub struct HttpRun {
    config: Arc<HttpRunConfig>,
    client: HttpClient,
}

impl HttpRun {
    /// Creates a transport to the service of `config`, without a connection yet.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an address without HTTPS, unless [`plain_http`](HttpRunConfig::plain_http) allows it or
    /// the address is this machine's own; `internal` if encryption cannot be set up.
    pub fn new(config: HttpRunConfig) -> Result<Self> {
        let client = HttpClient::new(&config)?;
        Ok(Self { config: Arc::new(config), client })
    }

    /// Checks that `invocation` is within the limits of one request and its response.
    fn check(&self, invocation: &ScriptInvocation) -> Result<()> {
        let transport = self.transport();
        let is_over = invocation.script.len() > transport.max_script_bytes
            || u64::try_from(invocation.stdin.len()).is_ok_and(|bytes| bytes > transport.max_stdin_bytes);
        if is_over {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the command or its input exceeds the limits of the service; make it smaller",
            ));
        }
        if invocation.script.contains('\0') {
            return Err(Error::invalid_argument("the command contains NUL; remove it"));
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
    fn transport(&self) -> TransportLimits {
        let mut transport = self.config.api.transport();
        // A response encodes three bytes as four, and contains both outputs.
        transport.max_output_bytes = transport.max_output_bytes.min(self.config.max_response_bytes / 2);
        transport
    }

    async fn run(&self, invocation: ScriptInvocation) -> Result<RemoteOutput> {
        self.check(&invocation)?;
        let request = self.config.api.request(&invocation)?;
        let time = invocation.timeout.saturating_add(self.config.patience);
        let (mut attempt, mut wait) = (1, FIRST_WAIT);
        loop {
            let started = Instant::now();
            let fault = match self.client.send(&self.config, &request, time).await {
                Ok(body) => {
                    let completed = self.config.api.parse_response(&request, &body)?;
                    return Ok(within(completed, &invocation));
                }
                Err(fault) => fault,
            };
            let may_repeat = match fault.chance {
                Retryability::NotRun => true,
                Retryability::Unknown => self.config.repeat == ReplayPolicy::Idempotent && started.elapsed() < time,
                Retryability::Final => false,
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

/// Returns `completed` with each output cut to the limit of `invocation`.
fn within(completed: RemoteOutput, invocation: &ScriptInvocation) -> RemoteOutput {
    let [mut stdout, mut stderr] = [invocation.output_buffer(), invocation.output_buffer()];
    stdout.push(&completed.stdout);
    stderr.push(&completed.stderr);
    let mut cut = RemoteOutput::from_buffers(completed.exit, stdout, stderr);
    cut.truncated |= completed.truncated;
    cut.stdout_bytes = cut.stdout_bytes.max(completed.stdout_bytes);
    cut.stderr_bytes = cut.stderr_bytes.max(completed.stderr_bytes);
    cut
}
