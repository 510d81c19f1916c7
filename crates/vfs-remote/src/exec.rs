//! Transport trait: execution of one POSIX shell script in a place, with its limits.

mod client_process;
pub(crate) mod container;
mod diagnostics;
mod frame_decoder;
#[cfg(feature = "http")]
pub mod http;
pub(crate) mod local;
mod script_bootstrap;
pub(crate) mod ssh;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::Result;
use vfs_core::output::HeadTailBuffer;

/// Runs POSIX shell scripts in a place: a container, a host behind SSH, or a cloud sandbox.
///
/// # Behaviour
///
/// * [`run`](Self::run) runs the script by `sh -c` in the place, with the standard input [`stdin`](ScriptInvocation::stdin),
///   and returns both outputs byte for byte, with the exit of the script. An exit code other than 0 is a response, not
///   an error.
/// * After [`timeout`](ScriptInvocation::timeout), and when the future is dropped, the script and the processes that it
///   started are ended as reliably as the place allows.
/// * Calls may run concurrently.
///
/// # Errors
///
/// Only failures that prevent the script from running or its response from arriving: `unavailable` if the place cannot
/// be reached (with [`is_temporary`](vfs_core::Error::is_temporary) if another attempt may succeed; whether the script
/// ran is then unknown unless the message says so), `permission_denied` if the place refuses access, `too_large` for a
/// script, input or output over a limit. An error of the transport is never returned as the script's own exit code.
#[async_trait]
pub trait RemoteExec: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Returns the limits of this transport.
    fn transport(&self) -> TransportLimits;

    /// Runs one script to its exit.
    async fn run(&self, invocation: ScriptInvocation) -> Result<RemoteOutput>;
}

/// Limits of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportLimits {
    /// The maximum size of a script in bytes. Default: 128 KiB less a page, the limit of Linux for one argument.
    pub max_script_bytes: usize,
    /// The maximum size of standard input in bytes; 0 if there is none. Default: no limit.
    pub max_stdin_bytes: u64,
    /// The maximum size of each output in bytes. Default: no limit.
    pub max_output_bytes: u64,
}

impl Default for TransportLimits {
    fn default() -> Self {
        Self { max_script_bytes: 128 * 1024 - 4096, max_stdin_bytes: u64::MAX, max_output_bytes: u64::MAX }
    }
}

/// A script to run. `Debug` shows its length and not its text, which may contain secrets.
#[derive(Clone)]
#[non_exhaustive]
pub struct ScriptInvocation {
    /// The text for `sh -c`.
    pub script: String,
    /// The number of bytes at the beginning of the script that other scripts of the same caller share: definitions of
    /// functions. A transport may have a shell ready that has read them. Default: 0.
    pub beginning: usize,
    /// The standard input. Default: empty.
    pub stdin: Bytes,
    /// The maximum run time. Default: 120 seconds.
    pub timeout: Duration,
    /// The number of bytes of each output that the caller needs. The transport may drop the bytes beyond it, and then
    /// sets [`truncated`](RemoteOutput::truncated). Default: no limit.
    pub max_output_bytes: u64,
    /// The part of a longer output that is retained. Default: the beginning. A transport that cannot retain both ends
    /// retains the beginning.
    pub keep: RetainedOutputPart,
    /// Whether the script contains values that other users of this machine must not see. If possible, a transport then
    /// passes the script to a client program on its standard input, not as an argument. Default: no.
    pub has_secrets: bool,
}

/// The part of an output over the limit that is retained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetainedOutputPart {
    /// The beginning.
    #[default]
    Beginning,
    /// The first half of the retained bytes, rounded down, and the last half; the middle is left out.
    Ends,
}

impl ScriptInvocation {
    /// Creates an invocation of `script`.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            beginning: 0,
            stdin: Bytes::new(),
            timeout: Duration::from_secs(120),
            max_output_bytes: u64::MAX,
            keep: RetainedOutputPart::default(),
            has_secrets: false,
        }
    }

    /// Returns a buffer with the limits of one output, for a transport that reads it piece by piece.
    pub fn output_buffer(&self) -> HeadTailBuffer {
        let max = usize::try_from(self.max_output_bytes).unwrap_or(usize::MAX);
        match self.keep {
            RetainedOutputPart::Beginning => HeadTailBuffer::head_only(max),
            RetainedOutputPart::Ends => HeadTailBuffer::new(max),
        }
    }
}

impl fmt::Debug for ScriptInvocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptInvocation")
            .field("script_bytes", &self.script.len())
            .field("beginning", &self.beginning)
            .field("stdin_bytes", &self.stdin.len())
            .field("timeout", &self.timeout)
            .field("max_output_bytes", &self.max_output_bytes)
            .field("keep", &self.keep)
            .field("has_secrets", &self.has_secrets)
            .finish()
    }
}

/// The outputs and exit of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteOutput {
    /// The standard output.
    pub stdout: Bytes,
    /// The standard error.
    pub stderr: Bytes,
    /// The exit of the script.
    pub exit: RemoteExit,
    /// Whether an output was cut.
    pub truncated: bool,
    /// The size of the whole standard output in bytes. If the transport cannot determine it, at least the retained
    /// size.
    pub stdout_bytes: u64,
    /// The size of the whole standard error in bytes. If the transport cannot determine it, at least the retained size.
    pub stderr_bytes: u64,
}

impl RemoteOutput {
    /// Creates the result of a script with complete outputs.
    pub fn new(exit: RemoteExit, stdout: Bytes, stderr: Bytes) -> Self {
        let (stdout_bytes, stderr_bytes) = (stdout.len() as u64, stderr.len() as u64);
        Self { stdout, stderr, exit, truncated: false, stdout_bytes, stderr_bytes }
    }

    /// Creates the result of a script whose outputs were collected in these [buffers](ScriptInvocation::output_buffer).
    pub fn from_buffers(exit: RemoteExit, stdout: HeadTailBuffer, stderr: HeadTailBuffer) -> Self {
        let (stdout_bytes, stderr_bytes) = (stdout.total(), stderr.total());
        let truncated = stdout.is_cut() || stderr.is_cut();
        let (stdout, stderr) = (stdout.into_bytes().into(), stderr.into_bytes().into());
        Self { stdout, stderr, exit, truncated, stdout_bytes, stderr_bytes }
    }
}

/// The exit of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemoteExit {
    /// The script exited with this code.
    Exited(i32),
    /// This signal ended the script.
    Signalled(i32),
    /// The timeout ended the script.
    TimedOut,
}
