//! The result of a command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{JobId, seconds};
use crate::path::VfsPath;
use crate::requests::Problem;

/// The output and exit of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ExecuteResponse {
    /// Standard output and standard error, in the order of arrival.
    pub output: String,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
    /// The exit code, or `None` if a signal ended the command.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Whether an output was cut at the limit.
    pub truncated: bool,
    /// The size of the whole output in bytes.
    pub output_bytes: u64,
    /// Whether the timeout ended the command.
    pub timed_out: bool,
    /// The run time; seconds in JSON.
    #[serde(with = "seconds")]
    pub duration: Duration,
    /// The file with the whole output, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output: Option<VfsPath>,
    /// The id of the background job; the other fields are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Problems with files after the command: in a sandbox, new entries that could cause a program outside of the sandbox to run
    /// code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl ExecuteResponse {
    /// Returns the exit without the output.
    pub fn exit(&self) -> CommandExit {
        CommandExit {
            exit_code: self.exit_code,
            signal: self.signal,
            timed_out: self.timed_out,
            duration: self.duration,
        }
    }
}

/// The exit of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandExit {
    /// The exit code, or `None` if a signal ended the command.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Whether the timeout ended the command.
    pub timed_out: bool,
    /// The run time; seconds in JSON.
    #[serde(with = "seconds")]
    pub duration: Duration,
}

/// One item of a streamed command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExecuteEvent {
    /// Text of the standard output.
    Stdout(String),
    /// Text of the standard error.
    Stderr(String),
    /// The exit of the command, which is the last item unless the stream ends with an error.
    Exit(ExecuteResponse),
}
