//! Receiver of a script's output and exit.

use crate::script_exit::ScriptExit;

/// One of the two outputs of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

/// Receives what a script prints and how it exits, on the script's thread.
pub(crate) trait OutputSink: Send + Sync + 'static {
    /// Receives `bytes`. The script continues when this returns.
    fn write(&self, stream: OutputStream, bytes: &[u8]);

    /// Receives the exit of the script, after which nothing is written.
    fn finish(&self, exit: ScriptExit);
}
