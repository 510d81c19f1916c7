//! What a command may use.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::{Backend, ExecuteRequest, Layer, VfsPath};

use crate::backend::VirtualShell;

/// What a command of a [`VirtualShell`] may use.
///
/// As a [`Layer`], it gives the shell to the backend that it is put around.
///
/// A command that would go over a limit is ended as by `SIGKILL`, and the last line of its standard error says which limit
/// it was.
///
/// ```
/// use vfs_virtual_shell::VirtualShellConfig;
///
/// let config = VirtualShellConfig::new().max_commands(1_000).max_output_bytes(64 << 10);
/// assert_eq!(config.max_commands, 1_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VirtualShellConfig {
    /// How long a command may run where its request does not say. Default 120 seconds.
    pub timeout: Duration,
    /// Most simple commands that one command line runs. Default 100,000.
    pub max_commands: u64,
    /// Most rounds of all loops of one command line together. Default 1,000,000.
    pub max_loop_iterations: u64,
    /// Most bytes that one command line prints to each of its outputs; what is beyond is dropped, and the answer says that it
    /// was cut. Default 16 MiB.
    pub max_output_bytes: u64,
    /// Most bytes that the variables of one command line hold, and, apart from these, what flows through its pipes.
    /// Default 64 MiB.
    pub max_memory_bytes: u64,
    /// The largest file that is read or written, in bytes. Default 32 MiB.
    pub max_file_bytes: u64,
    /// Most bytes of files that one command line reads, all together: some tools hold all that they read. Default 256 MiB.
    pub max_read_bytes: u64,
    /// Most entries of a directory that is listed. Default 100,000.
    pub max_directory_entries: u64,
    /// Most command lines that run at a time, those in the background included; further ones wait. At least 1. Default 16.
    pub max_concurrent: usize,
    /// Where all that a command printed is written, where its request asks for that. Default `/.vfs/output`.
    pub output_directory: VfsPath,
}

impl Default for VirtualShellConfig {
    fn default() -> Self {
        Self {
            timeout: ExecuteRequest::DEFAULT_TIMEOUT,
            max_commands: 100_000,
            max_loop_iterations: 1_000_000,
            max_output_bytes: 16 << 20,
            max_memory_bytes: 64 << 20,
            max_file_bytes: 32 << 20,
            max_read_bytes: 256 << 20,
            max_directory_entries: 100_000,
            max_concurrent: 16,
            output_directory: VfsPath::parse("/.vfs/output").unwrap_or_default(),
        }
    }
}

impl VirtualShellConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a command may run where its request does not say.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the most simple commands.
    #[must_use]
    pub fn max_commands(mut self, commands: u64) -> Self {
        self.max_commands = commands;
        self
    }

    /// Sets the most rounds of loops.
    #[must_use]
    pub fn max_loop_iterations(mut self, rounds: u64) -> Self {
        self.max_loop_iterations = rounds;
        self
    }

    /// Sets the most bytes of each output.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets the most bytes of variables, and of what flows through pipes.
    #[must_use]
    pub fn max_memory_bytes(mut self, bytes: u64) -> Self {
        self.max_memory_bytes = bytes;
        self
    }

    /// Sets the size of the largest file.
    #[must_use]
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = bytes;
        self
    }

    /// Sets the most bytes of files that are read.
    #[must_use]
    pub fn max_read_bytes(mut self, bytes: u64) -> Self {
        self.max_read_bytes = bytes;
        self
    }

    /// Sets the most entries of a directory.
    #[must_use]
    pub fn max_directory_entries(mut self, entries: u64) -> Self {
        self.max_directory_entries = entries;
        self
    }

    /// Sets how many command lines run at a time.
    #[must_use]
    pub fn max_concurrent(mut self, commands: usize) -> Self {
        self.max_concurrent = commands;
        self
    }

    /// Sets where full outputs are written.
    #[must_use]
    pub fn output_directory(mut self, directory: VfsPath) -> Self {
        self.output_directory = directory;
        self
    }
}

impl Layer for VirtualShellConfig {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(VirtualShell::new(inner, self.clone()))
    }
}
