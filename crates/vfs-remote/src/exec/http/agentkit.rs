//! Adapter for the sandboxes of Volcengine's Agentkit.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vfs_core::{Error, ErrorKind, Result};

use super::code_execution_api::{ApiRequest, CodeExecutionApi};
use super::json_api::{EncodedOutputs, broken, completed};
use crate::exec::diagnostics::one_line;
use crate::exec::script_bootstrap::random_marker;
use crate::exec::{RemoteExit, RemoteOutput, RetainedOutputPart, ScriptInvocation, TransportLimits};

/// The Python program that runs a script by `sh -c`, for a service that runs Python only.
///
/// The outputs go through files, so that a process which the script leaves behind does not delay the response.
const RUNNER: &str = include_str!("runner.py");

/// Time in seconds that the Python program may run longer than the script.
const TIMEOUT_MARGIN_SECONDS: u64 = 10;

/// The tool-invocation API of Volcengine's Agentkit: a POST of the action `InvokeTool` whose operation is `RunCode`.
///
/// The service runs Python in a Jupyter kernel, so this transport, unlike the others, needs `python3` in the place: a
/// few lines of Python run the script with `sh`, and print its outputs in base64. Requests are signed by
/// [`VolcengineSignature`](super::VolcengineSignature).
///
/// The format is that of the sandbox quick start of Agentkit (<https://volcengine.github.io/agentkit-sdk-python/>), of
/// the request that its agent kit makes (<https://github.com/volcengine/veadk-python>, `run_code`), and of the sandbox
/// backend of eino (<https://github.com/cloudwego/eino-ext>, `adk/backend/agentkit`), which name the fields. The
/// adapter is tested against a server that checks the signature and runs the code, not against the service itself.
///
/// ```
/// use vfs_remote::http::{Agentkit, HttpRun, HttpRunConfig, VolcengineSignature};
///
/// let api = Agentkit::new("t-tool", "user-1").session_seconds(3600);
/// let signature = VolcengineSignature::new("key-id", "key");
/// let transport = HttpRun::new(HttpRunConfig::new(Agentkit::url("cn-beijing"), api).sign(signature))?;
/// assert_eq!(transport.to_string(), "Agentkit tool t-tool at agentkit.cn-beijing.volces.com");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Agentkit {
    tool_id: String,
    user_session_id: String,
    session_seconds: Option<u32>,
    transport: TransportLimits,
}

impl Agentkit {
    /// Creates an adapter for the tool `tool_id` in the session `user_session_id`. Calls of one session see the same
    /// files.
    pub fn new(tool_id: impl Into<String>, user_session_id: impl Into<String>) -> Self {
        let (max_stdin_bytes, max_output_bytes) = (1024 * 1024, 4 * 1024 * 1024);
        Self {
            tool_id: tool_id.into(),
            user_session_id: user_session_id.into(),
            session_seconds: None,
            transport: TransportLimits { max_stdin_bytes, max_output_bytes, ..TransportLimits::default() },
        }
    }

    /// Returns the address of the service in a region.
    pub fn url(region: &str) -> String {
        format!("https://agentkit.{region}.volces.com/")
    }

    /// Sets the lifetime of a new session in seconds, from 60 to 86,400. Default: that of the service.
    #[must_use]
    pub fn session_seconds(mut self, seconds: u32) -> Self {
        self.session_seconds = Some(seconds);
        self
    }

    /// Sets the limits of one request. Default: the default size of a script, 1 MiB of standard input, and 4 MiB of
    /// each output. The service does not publish its limits.
    #[must_use]
    pub fn with_transport(mut self, transport: TransportLimits) -> Self {
        self.transport = transport;
        self
    }

    fn code(&self, invocation: &ScriptInvocation, tag: &str) -> String {
        let call = json!({
            "script": STANDARD.encode(&invocation.script),
            "stdin": STANDARD.encode(&invocation.stdin),
            "seconds": invocation.timeout.as_secs_f64(),
            "limit": invocation.max_output_bytes.min(self.transport.max_output_bytes),
            "ends": invocation.keep == RetainedOutputPart::Ends,
            "tag": tag,
        });
        format!("{RUNNER}\n_run_script(\"{}\")\n", STANDARD.encode(call.to_string()))
    }
}

impl fmt::Display for Agentkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agentkit tool {}", one_line(&self.tool_id, 80))
    }
}

/// The body of a request with the action `InvokeTool`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct InvokeToolRequest<'a> {
    tool_id: &'a str,
    user_session_id: &'a str,
    operation_type: &'a str,
    operation_payload: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
}

/// The body of a response to `InvokeTool`.
#[derive(Deserialize)]
struct InvokeToolResponse {
    #[serde(rename = "ResponseMetadata", default)]
    metadata: ResponseMetadata,
    #[serde(rename = "Result", alias = "result", default)]
    result: Option<ToolResult>,
}

/// The metadata of a response, with the error of a failed action.
#[derive(Default, Deserialize)]
struct ResponseMetadata {
    #[serde(rename = "Error", default)]
    error: Option<AgentkitError>,
}

/// The error of a failed action.
#[derive(Deserialize)]
struct AgentkitError {
    #[serde(rename = "Code", default)]
    code: String,
    #[serde(rename = "Message", default)]
    message: String,
}

/// The result of a tool.
#[derive(Deserialize)]
struct ToolResult {
    /// JSON in a string.
    #[serde(rename = "Result", alias = "result")]
    result: String,
}

/// The report of the Python program on the script, which is its last line.
#[derive(Deserialize)]
struct RunnerReport {
    code: Option<i32>,
    late: bool,
    cut: bool,
    #[serde(flatten)]
    printed: EncodedOutputs,
}

impl CodeExecutionApi for Agentkit {
    fn transport(&self) -> TransportLimits {
        self.transport
    }

    fn request(&self, invocation: &ScriptInvocation) -> Result<ApiRequest> {
        let tag = random_marker()?;
        let payload = json!({
            "code": self.code(invocation, &tag),
            "timeout": invocation.timeout.as_secs().saturating_add(TIMEOUT_MARGIN_SECONDS),
            "kernel_name": "python3",
        });
        let body = InvokeToolRequest {
            tool_id: &self.tool_id,
            user_session_id: &self.user_session_id,
            operation_type: "RunCode",
            operation_payload: payload.to_string(),
            ttl: self.session_seconds,
        };
        let failed = |error| Error::new(ErrorKind::Internal, "the request could not be written").with_source(error);
        let body = serde_json::to_vec(&body).map_err(failed)?;
        Ok(ApiRequest::json(body).query("Action", "InvokeTool").query("Version", "2025-10-30").tag(tag))
    }

    fn parse_response(&self, request: &ApiRequest, body: &[u8]) -> Result<RemoteOutput> {
        let invoked: InvokeToolResponse = serde_json::from_slice(body).map_err(|_| broken())?;
        if let Some(error) = invoked.metadata.error {
            let message = format!("the service did not run the command: {}", one_line(&error.code, 80));
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let result: Value =
            invoked.result.and_then(|result| serde_json::from_str(&result.result).ok()).ok_or_else(broken)?;
        let printed = printed(&result);
        let report = printed.split(&request.tag).nth(1).and_then(|text| serde_json::from_str(text).ok());
        let Some(report) = report else { return Err(not_run(&result)) };
        let RunnerReport { code, late, cut, printed } = report;
        let exit = match (late, code) {
            (true, _) => RemoteExit::TimedOut,
            (false, Some(code @ 0..)) => RemoteExit::Exited(code),
            (false, Some(signal)) => RemoteExit::Signalled(signal.saturating_neg()),
            (false, None) => return Err(broken()),
        };
        completed(exit, &printed, cut)
    }

    fn parse_failure(&self, body: &[u8]) -> Option<String> {
        let error = serde_json::from_slice::<InvokeToolResponse>(body).ok()?.metadata.error?;
        Some(format!("{} {}", error.code, error.message))
    }
}

/// Returns the output of the kernel as one text, which may arrive in pieces.
fn printed(result: &Value) -> String {
    let outputs = result["data"]["outputs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |output: &Value| match &output["text"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    };
    outputs.iter().map(text).collect()
}

/// Returns the error for a Python program that did not complete.
fn not_run(result: &Value) -> Error {
    let outputs = result["data"]["outputs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = outputs.iter().find_map(|output| output["ename"].as_str()).unwrap_or_default();
    let name = one_line(name, 80);
    let reason = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let message = format!("the service's Python did not bring the command to its end{reason}; its effects are unknown");
    Error::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_answers_have_the_names_of_the_service() {
        let call = InvokeToolRequest {
            tool_id: "t",
            user_session_id: "u",
            operation_type: "RunCode",
            operation_payload: "{}".to_owned(),
            ttl: Some(60),
        };
        let json = r#"{"ToolId":"t","UserSessionId":"u","OperationType":"RunCode","OperationPayload":"{}","Ttl":60}"#;
        assert_eq!(serde_json::to_string(&call).expect("JSON"), json);
        let json = r#"{"ResponseMetadata":{"Error":{"Code":"No","Message":"not now"}},"Result":{"Result":"{}"}}"#;
        let InvokeToolResponse { metadata, result } = serde_json::from_str(json).expect("an answer");
        let error = metadata.error.expect("an error");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("No", "not now"));
        assert_eq!(result.expect("a result").result, "{}");
    }
}
