//! Facets for running commands, their requests and results.

mod job;
mod request;
mod response;
mod seconds;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use job::{JobId, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
pub use request::{BaseEnvironment, ExecuteRequest, FullOutputMode, RunMode, TerminalSize};
pub use response::{CommandExit, ExecuteEvent, ExecuteResponse};

use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};

/// The facet that runs commands, in the foreground and in the background.
///
/// # Behaviour
///
/// * A command is a line for a POSIX shell. The command runs in [`cwd`](ExecuteRequest::cwd), with the environment of the request
///   on top of its [base environment](BaseEnvironment), and reads [`stdin`](ExecuteRequest::stdin).
/// * A failed command is not an error: an exit code other than 0, a signal and a [timeout](ExecuteResponse::timed_out) are parts
///   of the response, with the output so far.
/// * The response has both outputs, separate and interleaved in the order of arrival. Output over
///   [`max_output_bytes`](ExecuteRequest::max_output_bytes) is cut in the middle. Bytes that are not UTF-8 become U+FFFD.
/// * All processes of the command are terminated, and killed after a grace period, at the timeout, when the context is cancelled
///   or its deadline passes, and when the future or stream is dropped. The call does not wait for processes that outlive the
///   command.
/// * With [`RunMode::Background`] the call returns at once with the [id](ExecuteResponse::job) of a job.
///
/// # Errors
///
/// `invalid_argument` for an invalid request, such as one with a timeout of zero or a NUL, see [`ExecuteRequest::check`];
/// `not_found` and `not_a_directory` for `cwd`; `unsupported` for features that this shell lacks, such as a terminal; `cancelled`
/// and `timeout` as for every operation.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs one command and returns its output and exit.
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse>;

    /// Returns the background jobs of the caller's actor and session, running or recently ended, oldest first.
    ///
    /// # Errors
    ///
    /// `unsupported` if this shell has no background jobs.
    async fn jobs(&self, _cx: &OpContext, _req: JobsRequest) -> Result<Vec<JobInfo>> {
        Err(no_jobs())
    }

    /// Returns the output of a job from a cursor on.
    ///
    /// # Errors
    ///
    /// `not_found` if the caller has no job with this id; `unsupported` if this shell has no background jobs.
    async fn job_output(&self, _cx: &OpContext, _req: JobOutputRequest) -> Result<JobOutputResult> {
        Err(no_jobs())
    }

    /// Stops all processes of a job and waits for their exit. A job that has ended is unchanged.
    ///
    /// # Errors
    ///
    /// `not_found` if the caller has no job with this id; `unsupported` if this shell has no background jobs.
    async fn stop_job(&self, _cx: &OpContext, _req: StopJobRequest) -> Result<JobInfo> {
        Err(no_jobs())
    }
}

fn no_jobs() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "this backend cannot run commands in the background; run the command in the foreground with a timeout",
    )
}

/// The facet that runs commands and streams their output.
///
/// # Behaviour
///
/// Commands run as by [`Shell::execute`]. Output is not collected: the last item, [`Exit`](ExecuteEvent::Exit), has empty outputs,
/// and memory is bounded. A slow consumer blocks the command. Dropping the stream stops the command. A request to run in the
/// background is `invalid_argument`.
pub trait StreamingShell: Send + Sync {
    /// Runs one command and returns the stream of its output.
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>>;
}
