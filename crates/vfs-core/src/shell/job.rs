//! Background jobs.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{CommandExit, seconds};
use crate::requests::wire;

/// The id of a background job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    /// Creates an id from its text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobInfo {
    /// The id of the job.
    pub id: JobId,
    /// The command line.
    pub command: String,
    /// The time at which the job was started.
    pub started: DateTime<Utc>,
    /// The exit of the command, or `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
}

impl JobInfo {
    /// Creates a running job.
    pub fn new(id: JobId, command: impl Into<String>, started: DateTime<Utc>) -> Self {
        Self { id, command: command.into(), started, exit: None }
    }
}

/// A request for [`Shell::jobs`](super::Shell::jobs).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobsRequest {}

impl JobsRequest {
    /// Creates a request for the jobs of the caller.
    pub fn new() -> Self {
        Self {}
    }
}

/// A request for [`Shell::job_output`](super::Shell::job_output).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobOutputRequest {
    /// The job.
    pub id: JobId,
    /// The start: 0, or the [`cursor`](JobOutputResult::cursor) of an earlier result. Default: 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub cursor: u64,
    /// The maximum size of the output in bytes. Default: [`ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES`](super::ExecuteRequest).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_bytes: Option<u64>,
    /// How long to wait for output or the exit if there is no output after the cursor; seconds in JSON. Default: no wait.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds::optional")]
    pub wait: Option<Duration>,
}

impl JobOutputRequest {
    /// Creates a request for the output of `id` from its beginning.
    pub fn new(id: JobId) -> Self {
        Self { id, cursor: 0, max_bytes: None, wait: None }
    }

    /// Sets the cursor at which the output starts.
    #[must_use]
    pub fn from(mut self, cursor: u64) -> Self {
        self.cursor = cursor;
        self
    }

    /// Waits up to `wait` for more output.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }
}

/// The output of a job from a cursor on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct JobOutputResult {
    /// Standard output and standard error, in the order of arrival.
    pub output: String,
    /// The cursor after this output.
    pub cursor: u64,
    /// The number of bytes before `output` that are no longer stored.
    pub missed_bytes: u64,
    /// The exit of the command, if it has ended and `output` reaches the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
}

/// A request for [`Shell::stop_job`](super::Shell::stop_job).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StopJobRequest {
    /// The job.
    pub id: JobId,
}

impl StopJobRequest {
    /// Creates a request to stop the job `id`.
    pub fn new(id: JobId) -> Self {
        Self { id }
    }
}
