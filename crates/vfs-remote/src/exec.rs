//! Transport trait: execution of one POSIX shell script in a place, with its limits.

mod bootstrap;
mod client;
pub(crate) mod container;
mod diagnostics;
mod framed;
#[cfg(feature = "http")]
pub mod http;
pub(crate) mod local;
pub(crate) mod ssh;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use vfs_core::Result;
use vfs_core::output::HeadTailBuffer;

/// Runs POSIX shell scripts somewhere: in a container, over SSH, in a cloud sandbox.
///
/// # Behaviour
///
/// * [`run`](Self::run) hands the script to `sh -c` in the place, gives it [`stdin`](Invocation::stdin), and returns both
///   outputs byte for byte with how the script ended. An exit code other than 0 is an answer, not an error.
/// * After [`timeout`](Invocation::timeout), and when the future is dropped, the script and what it started is ended as
///   surely as the place allows.
/// * Calls may be made at the same time.
///
/// # Errors
///
/// Only what prevented the script from being run or its response from arriving: `unavailable` where the place cannot be reached
/// (with [`is_temporary`](vfs_core::Error::is_temporary) where another attempt may go better; whether the script ran is
/// then unknown unless the message says so), `permission_denied` where it does not let us in, `too_large` for what does not
/// fit through. An error of the transport is never given as the script's own exit code.
#[async_trait]
pub trait RemoteExec: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The limits of this transport.
    fn transport(&self) -> Transport;

    /// Runs one script to its end.
    async fn run(&self, invocation: Invocation) -> Result<RemoteOutput>;
}

/// Limits of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transport {
    /// Most bytes of a script. Default 128 KiB less a page, which is what Linux takes as one argument.
    pub max_script_bytes: usize,
    /// Most bytes of standard input; 0 where there is none. Default: no bound.
    pub max_stdin_bytes: u64,
    /// Most bytes of each output. Default: no bound.
    pub max_output_bytes: u64,
}

impl Default for Transport {
    fn default() -> Self {
        Self { max_script_bytes: 128 * 1024 - 4096, max_stdin_bytes: u64::MAX, max_output_bytes: u64::MAX }
    }
}

/// A script that is to be run. `Debug` shows its length and not its text, which may have secrets.
#[derive(Clone)]
#[non_exhaustive]
pub struct Invocation {
    /// The text for `sh -c`.
    pub script: String,
    /// How many bytes of the script are definitions that other scripts of the same caller begin with as well. A transport may
    /// have a shell ready that has read them. Default 0.
    pub beginning: usize,
    /// Its standard input. Default: nothing.
    pub stdin: Bytes,
    /// How long it may run. Default 120 seconds.
    pub timeout: Duration,
    /// Most bytes of each output that are of use; what is beyond may be dropped, and is then reported by
    /// [`truncated`](RemoteOutput::truncated). Default: no bound.
    pub max_output_bytes: u64,
    /// Which part of a longer output that is. Default: the beginning. A transport that cannot keep the ends keeps the beginning.
    pub keep: Keep,
    /// Whether values stand in the script that no other user of this machine may see. A transport then gives it to a
    /// client program by its standard input, where it can, and not as an argument. Default: no.
    pub has_secrets: bool,
}

/// Which part of an output is of use where it is longer than what is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Keep {
    /// The beginning.
    #[default]
    Beginning,
    /// The first half of the retained bytes, rounded down, and the last half; the middle is left out.
    Ends,
}

impl Invocation {
    /// Runs `script`.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            beginning: 0,
            stdin: Bytes::new(),
            timeout: Duration::from_secs(120),
            max_output_bytes: u64::MAX,
            keep: Keep::default(),
            has_secrets: false,
        }
    }

    /// Returns a buffer with the limits of one output, for a transport that reads it piece by piece.
    pub fn keeper(&self) -> HeadTailBuffer {
        let most = usize::try_from(self.max_output_bytes).unwrap_or(usize::MAX);
        match self.keep {
            Keep::Beginning => HeadTailBuffer::head_only(most),
            Keep::Ends => HeadTailBuffer::new(most),
        }
    }
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
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

/// A script that has run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteOutput {
    /// Its standard output.
    pub stdout: Bytes,
    /// Its standard error.
    pub stderr: Bytes,
    /// How the script ended.
    pub exit: RemoteExit,
    /// Whether an output was cut.
    pub truncated: bool,
    /// How many bytes of standard output there were, as far as is known: at least as many as were retained.
    pub stdout_bytes: u64,
    /// How many bytes of standard error there were, as far as is known: at least as many as were retained.
    pub stderr_bytes: u64,
}

impl RemoteOutput {
    /// A script that ended as `exit` and printed this.
    pub fn new(exit: RemoteExit, stdout: Bytes, stderr: Bytes) -> Self {
        let (stdout_bytes, stderr_bytes) = (stdout.len() as u64, stderr.len() as u64);
        Self { stdout, stderr, exit, truncated: false, stdout_bytes, stderr_bytes }
    }

    /// A script that ended as `exit`, with the outputs in these [buffers](Invocation::keeper).
    pub fn kept(exit: RemoteExit, stdout: HeadTailBuffer, stderr: HeadTailBuffer) -> Self {
        let (stdout_bytes, stderr_bytes) = (stdout.total(), stderr.total());
        let truncated = stdout.is_cut() || stderr.is_cut();
        let (stdout, stderr) = (stdout.into_bytes().into(), stderr.into_bytes().into());
        Self { stdout, stderr, exit, truncated, stdout_bytes, stderr_bytes }
    }
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemoteExit {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By the timeout.
    TimedOut,
}
