//! Running commands: a facet that some backends have beside their files.

mod job;
mod request;
mod response;
mod seconds;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use job::{Job, JobId, JobOutput, JobOutputRequest, JobsRequest, StopJobRequest};
pub use request::{BaseEnvironment, ExecuteRequest, FullOutput, RunMode, TerminalSize};
pub use response::{CommandExit, ExecuteEvent, ExecuteResponse};

use crate::context::OpContext;
use crate::error::{Error, ErrorKind, Result};

/// Runs commands to their end, and in the background.
///
/// # Behaviour
///
/// * A command is a line for a POSIX shell. It runs in [`cwd`](ExecuteRequest::cwd), with the environment that the request
///   gives and nothing else unless it [asks for more](BaseEnvironment), and reads [`stdin`](ExecuteRequest::stdin) or
///   nothing.
/// * How a command ended is an answer, not an error: so are an exit code other than 0, a signal, and a
///   [timeout](ExecuteResponse::timed_out), whose answer has what was printed until then.
/// * Both outputs are kept, apart and together in the order of arrival. Of more than
///   [`max_output_bytes`](ExecuteRequest::max_output_bytes) the first and the last part are kept. Bytes that are not UTF-8
///   are shown as U+FFFD.
/// * At the timeout, when the context's token or deadline ends the call, and when the call's future or stream is dropped,
///   all processes of the command are ended: politely first, and a grace later surely. A process that the command left
///   running does not keep the call from returning.
/// * With [`RunMode::Background`] the answer is there at once, with the [id](ExecuteResponse::job) of a job that goes on.
///
/// # Errors
///
/// `invalid_argument` for a request that cannot be run as it is, such as a timeout of zero, a name of a variable with `=`
/// in it, or a NUL; `not_found` and `not_a_directory` for `cwd`; `unsupported` for what this shell cannot do, such as a
/// terminal; `cancelled` and `timeout` as for every operation.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs one command and returns what it printed and how it ended.
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse>;

    /// The commands that the caller's actor and session run in the background, and those that ended not long ago, the oldest
    /// first. Nobody else knows of them.
    ///
    /// # Errors
    ///
    /// `unsupported` where nothing runs in the background.
    async fn jobs(&self, _cx: &OpContext, _req: JobsRequest) -> Result<Vec<Job>> {
        Err(no_jobs())
    }

    /// What a job has printed from a place on.
    ///
    /// # Errors
    ///
    /// `not_found` where no job has the id; `unsupported` where nothing runs in the background.
    async fn job_output(&self, _cx: &OpContext, _req: JobOutputRequest) -> Result<JobOutput> {
        Err(no_jobs())
    }

    /// Ends all processes of a job and returns once they are gone. A job that has ended stays as it is.
    ///
    /// # Errors
    ///
    /// `not_found` where no job has the id; `unsupported` where nothing runs in the background.
    async fn stop_job(&self, _cx: &OpContext, _req: StopJobRequest) -> Result<Job> {
        Err(no_jobs())
    }
}

fn no_jobs() -> Error {
    Error::new(ErrorKind::Unsupported, "no commands run in the background here; wait for the command, with a timeout")
}

/// Runs commands and hands their output on as it arrives.
///
/// # Behaviour
///
/// As [`Shell::execute`], but that nothing is kept for the end: the outputs of the last item,
/// [`Exit`](ExecuteEvent::Exit), are empty, and the memory taken is bounded whatever is printed. A consumer that is slow
/// makes the command wait. Dropping the stream ends the command. A request to run in the background is `invalid_argument`.
pub trait StreamingShell: Send + Sync {
    /// Runs one command; dropping the stream ends it.
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>>;
}
