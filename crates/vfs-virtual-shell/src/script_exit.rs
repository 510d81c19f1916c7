//! Exit of a script and its translation to a response.

use std::time::Duration;

use vfs_core::{Error, ErrorKind, ExecuteResponse, OpContext, Result, VfsPath};

use crate::stop_signal::StopReason;

/// Signal number reported for a script that was ended at a limit or a timeout.
pub(crate) const SIGKILL: i32 = 9;

/// Exit of a script.
#[derive(Debug, Clone)]
pub(crate) struct ScriptExit {
    pub(crate) cause: ExitCause,
    pub(crate) duration: Duration,
    /// Whether the interpreter dropped a part of the output.
    pub(crate) is_cut: bool,
    /// File with the full output.
    pub(crate) full_output: Option<VfsPath>,
}

/// Cause of an exit.
#[derive(Debug, Clone)]
pub(crate) enum ExitCause {
    /// The script exited by itself.
    Exited(i32),
    /// The script went over a limit.
    Killed,
    /// The script was stopped.
    Stopped(StopReason),
    /// The interpreter failed.
    Failed(Error),
}

impl ScriptExit {
    /// Creates an exit without duration and output file.
    pub(crate) fn new(cause: ExitCause) -> Self {
        Self { cause, duration: Duration::ZERO, is_cut: false, full_output: None }
    }
}

impl ExitCause {
    /// Writes the exit code or signal to `response`, or returns the error of the interpreter.
    pub(crate) fn apply_to(self, response: &mut ExecuteResponse) -> Result<()> {
        match self {
            Self::Exited(code) => response.exit_code = Some(code),
            Self::Killed | Self::Stopped(_) => response.signal = Some(SIGKILL),
            Self::Failed(error) => return Err(error),
        }
        response.timed_out = matches!(self, Self::Stopped(StopReason::Timeout));
        Ok(())
    }
}

/// Returns the error of a call that its caller abandoned for `reason`.
pub(crate) fn abandoned_error(reason: StopReason, cx: &OpContext) -> Error {
    match (reason, cx.check()) {
        (_, Err(error)) => error,
        (StopReason::Deadline, Ok(())) => Error::of(ErrorKind::Timeout),
        (_, Ok(())) => Error::of(ErrorKind::Cancelled),
    }
}
