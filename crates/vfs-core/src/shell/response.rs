//! How it went.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{JobId, seconds};
use crate::path::VfsPath;
use crate::types::Problem;

/// What a command printed and how it ended.
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
    /// How many bytes of output there were in all.
    pub output_bytes: u64,
    /// Whether it was ended by the timeout.
    pub timed_out: bool,
    /// How long it ran; seconds in JSON.
    #[serde(with = "seconds")]
    pub duration: Duration,
    /// The file that has all of the output, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output: Option<VfsPath>,
    /// The job that goes on in the background; nothing else is known of it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// What is to be known of the files after it: in a sandbox, entries that are new and could make a program outside of it
    /// run something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl ExecuteResponse {
    /// How it ended, without what it printed.
    pub fn exit(&self) -> CommandExit {
        CommandExit {
            exit_code: self.exit_code,
            signal: self.signal,
            timed_out: self.timed_out,
            duration: self.duration,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CommandExit {
    /// Its exit code, where it exited by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended by the timeout.
    pub timed_out: bool,
    /// How long it ran; seconds in JSON.
    #[serde(with = "seconds")]
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
