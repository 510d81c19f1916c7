//! Running commands: a facet that some backends have beside their files.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::context::OpContext;
use crate::error::Result;
use crate::path::VfsPath;

/// Asks for a command to be run by the backend's shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExecuteRequest {
    /// The command line, as a shell reads it.
    pub command: String,
    /// The directory it runs in. Default: the root.
    #[serde(default)]
    pub cwd: VfsPath,
    /// Its environment, and nothing else unless the backend is set to pass its own on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long it may run. Default [`ExecuteRequest::DEFAULT_TIMEOUT`]; zero is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// What it reads. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Most bytes of output that are kept. Default [`ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// Whether the call waits for it. Default: it does.
    #[serde(default)]
    pub run: RunMode,
}

/// Whether a call waits for its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunMode {
    /// Until it ends.
    #[default]
    Foreground,
    /// Not at all.
    Background,
}

impl ExecuteRequest {
    /// 120 seconds.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// 100,000 bytes.
    pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 100_000;

    /// Runs `command` in the root.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            cwd: VfsPath::root(),
            env: BTreeMap::new(),
            timeout: None,
            stdin: None,
            max_output_bytes: None,
            run: RunMode::default(),
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecuteResponse {
    /// Everything it printed, in the order of arrival.
    pub output: String,
    /// What it printed to its standard output.
    pub stdout: String,
    /// What it printed to its standard error.
    pub stderr: String,
    /// Its exit code, where it exited by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether output was cut at the limit.
    pub truncated: bool,
    /// Whether it was ended by the timeout.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
}

/// One item of a streamed command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecuteEvent {
    /// It printed to its standard output.
    Stdout(String),
    /// It printed to its standard error.
    Stderr(String),
    /// It ended: always the last item unless that is an error.
    Exit(ExecuteResponse),
}

/// Runs commands to their end.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs one command and returns what it printed and how it ended.
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse>;
}

/// Runs commands and hands their output on as it arrives.
pub trait StreamingShell: Send + Sync {
    /// Runs one command; dropping the stream ends it.
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>>;
}
