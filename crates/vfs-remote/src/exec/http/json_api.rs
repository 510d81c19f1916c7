//! Adapter for a plain JSON API, with bearer token authentication.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use vfs_core::{Error, ErrorKind, Result};

use super::code_execution_api::{ApiRequest, CodeExecutionApi, Sign, SignableRequest};
use super::secret::Secret;
use crate::exec::{RemoteExit, RemoteOutput, RetainedOutputPart, ScriptInvocation, TransportLimits};

/// A plain JSON API, for services without an adapter of their own.
///
/// The request is a POST of
///
/// ```json
/// {"script": "cat; exit 3", "stdin": "aGk=", "timeout_ms": 120000, "max_output_bytes": 1048576, "keep": "ends"}
/// ```
///
/// where `stdin` is base64, `max_output_bytes` is `null` for no limit, and `keep` is the part of a longer output to
/// retain: `beginning`, or both `ends`. The service runs `sh -c SCRIPT`, ends all of its processes after the timeout,
/// and responds with status 200 and
///
/// ```json
/// {"exit_code": 3, "signal": null, "timed_out": false, "truncated": false, "stdout": "aGk=", "stderr": ""}
/// ```
///
/// where the outputs are base64 and exactly one of the first three fields is the exit of the script. If outputs are
/// cut, `stdout_bytes` and `stderr_bytes` may have the sizes of the whole outputs. A response with another status may
/// have a message in `{"error": "..."}`.
#[derive(Debug, Clone, Default)]
pub struct JsonApi {
    transport: TransportLimits,
}

impl JsonApi {
    /// Creates an adapter for a service without limits of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits of the service.
    #[must_use]
    pub fn with_transport(mut self, transport: TransportLimits) -> Self {
        self.transport = transport;
        self
    }
}

impl fmt::Display for JsonApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON run API")
    }
}

/// The body of a request.
#[derive(Serialize)]
struct JsonRunRequest<'a> {
    script: &'a str,
    stdin: String,
    timeout_ms: u64,
    max_output_bytes: Option<u64>,
    keep: &'static str,
}

/// The body of a successful response.
#[derive(Deserialize)]
struct JsonRunResponse {
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    signal: Option<i32>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    truncated: bool,
    #[serde(flatten)]
    printed: EncodedOutputs,
}

/// The outputs of a script in base64, with their whole sizes if they are cut.
#[derive(Deserialize)]
pub(super) struct EncodedOutputs {
    stdout: String,
    stderr: String,
    #[serde(default)]
    stdout_bytes: u64,
    #[serde(default)]
    stderr_bytes: u64,
}

/// The body of a response with a status of failure.
#[derive(Deserialize)]
struct JsonErrorBody {
    error: String,
}

impl CodeExecutionApi for JsonApi {
    fn transport(&self) -> TransportLimits {
        self.transport
    }

    fn request(&self, invocation: &ScriptInvocation) -> Result<ApiRequest> {
        let max = invocation.max_output_bytes;
        let call = JsonRunRequest {
            script: &invocation.script,
            stdin: STANDARD.encode(&invocation.stdin),
            timeout_ms: u64::try_from(invocation.timeout.as_millis()).unwrap_or(u64::MAX),
            max_output_bytes: (max < u64::MAX).then_some(max),
            keep: match invocation.keep {
                RetainedOutputPart::Beginning => "beginning",
                RetainedOutputPart::Ends => "ends",
            },
        };
        let failed = |error| Error::new(ErrorKind::Internal, "the request could not be written").with_source(error);
        Ok(ApiRequest::json(serde_json::to_vec(&call).map_err(failed)?))
    }

    fn parse_response(&self, _request: &ApiRequest, body: &[u8]) -> Result<RemoteOutput> {
        let response: JsonRunResponse = serde_json::from_slice(body).map_err(|_| broken())?;
        let exit = match (response.exit_code, response.signal, response.timed_out) {
            (Some(code), None, false) => RemoteExit::Exited(code),
            (None, Some(signal), false) => RemoteExit::Signalled(signal),
            (None, None, true) => RemoteExit::TimedOut,
            _ => return Err(broken()),
        };
        completed(exit, &response.printed, response.truncated)
    }

    fn parse_failure(&self, body: &[u8]) -> Option<String> {
        serde_json::from_slice::<JsonErrorBody>(body).ok().map(|complaint| complaint.error)
    }
}

/// Decodes a response whose outputs are base64.
pub(super) fn completed(exit: RemoteExit, printed: &EncodedOutputs, truncated: bool) -> Result<RemoteOutput> {
    let bytes = |text: &str| STANDARD.decode(text).map_err(|_| broken());
    let mut completed = RemoteOutput::new(exit, bytes(&printed.stdout)?.into(), bytes(&printed.stderr)?.into());
    completed.stdout_bytes = completed.stdout_bytes.max(printed.stdout_bytes);
    completed.stderr_bytes = completed.stderr_bytes.max(printed.stderr_bytes);
    completed.truncated = truncated;
    Ok(completed)
}

/// Returns the error for a malformed response.
pub(super) fn broken() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the service's answer is not in its format; check its address; the command may have been run",
    )
}

/// Signs with a token in the `Authorization` header.
#[derive(Debug, Clone)]
pub struct BearerToken {
    token: Secret,
}

impl BearerToken {
    /// Creates a signature with `token`.
    pub fn new(token: impl Into<Secret>) -> Self {
        Self { token: token.into() }
    }
}

impl Sign for BearerToken {
    fn sign(&self, _request: &SignableRequest<'_>) -> Result<Vec<(String, String)>> {
        Ok(vec![("authorization".to_owned(), format!("Bearer {}", self.token.reveal()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_answers_have_the_documented_names() {
        let (script, stdin, keep) = ("cat", "aGk=".to_owned(), "ends");
        let call = JsonRunRequest { script, stdin, timeout_ms: 120_000, max_output_bytes: None, keep };
        let json = r#"{"script":"cat","stdin":"aGk=","timeout_ms":120000,"max_output_bytes":null,"keep":"ends"}"#;
        assert_eq!(serde_json::to_string(&call).expect("JSON"), json);
        let json = concat!(
            r#"{"exit_code":3,"signal":9,"timed_out":true,"truncated":true,"#,
            r#""stdout":"aGk=","stderr":"eW8=","stdout_bytes":20,"stderr_bytes":30}"#
        );
        let JsonRunResponse { exit_code, signal, timed_out, truncated, printed } =
            serde_json::from_str(json).expect("an answer");
        assert_eq!((exit_code, signal, timed_out, truncated), (Some(3), Some(9), true, true));
        let EncodedOutputs { stdout, stderr, stdout_bytes, stderr_bytes } = printed;
        assert_eq!((stdout.as_str(), stderr.as_str(), stdout_bytes, stderr_bytes), ("aGk=", "eW8=", 20, 30));
        let complaint: JsonErrorBody = serde_json::from_str(r#"{"error":"too busy"}"#).expect("a complaint");
        assert_eq!(complaint.error, "too busy");
    }
}
