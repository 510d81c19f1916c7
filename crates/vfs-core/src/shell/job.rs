//! Commands in the background.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{CommandExit, seconds};
use crate::types::wire;

/// Names a command in the background.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    /// The id that is written `id`.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its command line.
    pub command: String,
    /// When it was started.
    pub started: DateTime<Utc>,
    /// How it ended, where it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
}

impl Job {
    /// A job that runs.
    pub fn new(id: JobId, command: impl Into<String>, started: DateTime<Utc>) -> Self {
        Self { id, command: command.into(), started, exit: None }
    }
}

/// Asks which commands run in the background.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobsRequest {}

impl JobsRequest {
    /// Those of the caller.
    pub fn new() -> Self {
        Self {}
    }
}

/// Asks for what a job has printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JobOutputRequest {
    /// The job.
    pub id: JobId,
    /// Where to begin: 0, or the [`cursor`](JobOutput::cursor) of an earlier answer. Default 0.
    #[serde(default, deserialize_with = "wire::whole")]
    pub cursor: u64,
    /// Most bytes of the answer. Default [`ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES`](super::ExecuteRequest).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_bytes: Option<u64>,
    /// How long to wait for something to be printed, or for the end, where nothing is there; seconds in JSON. Default: not
    /// at all.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds::optional")]
    pub wait: Option<Duration>,
}

impl JobOutputRequest {
    /// What `id` has printed from its beginning.
    pub fn new(id: JobId) -> Self {
        Self { id, cursor: 0, max_bytes: None, wait: None }
    }

    /// Begins at `cursor`.
    #[must_use]
    pub fn from(mut self, cursor: u64) -> Self {
        self.cursor = cursor;
        self
    }

    /// Waits for more, at most as long as `wait`.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }
}

/// What a job has printed from a place on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct JobOutput {
    /// Both outputs, in the order of arrival.
    pub output: String,
    /// Where what comes next begins.
    pub cursor: u64,
    /// How many bytes before `output` are no longer kept.
    pub missed_bytes: u64,
    /// How it ended, where it has and `output` reaches to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
}

/// Asks for a job to be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StopJobRequest {
    /// The job.
    pub id: JobId,
}

impl StopJobRequest {
    /// Ends `id`.
    pub fn new(id: JobId) -> Self {
        Self { id }
    }
}
