//! Limits and settings of scripts.

use std::time::Duration;

use vfs_core::{ExecuteRequest, VfsPath};

/// Limits and settings of a [`VirtualShell`](crate::VirtualShell).
///
/// As a [`Layer`](vfs_core::Layer), the value adds a shell to the backend that it wraps.
///
/// A command that would exceed a limit ends as by `SIGKILL`, and the last line of its standard error names the limit.
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
    /// Time limit of a command whose request has no timeout. Default 120 seconds.
    pub timeout: Duration,
    /// Upper bound on the simple commands of one command line. Default 100,000.
    pub max_commands: u64,
    /// Upper bound on the iterations of all loops of one command line together. Default 1,000,000.
    pub max_loop_iterations: u64,
    /// Upper bound on the bytes that one command line prints to each of its outputs; the rest is dropped, and the response
    /// is marked as truncated. Default 16 MiB.
    pub max_output_bytes: u64,
    /// Upper bound on the bytes in variables of one command line and, separately, on the bytes in its pipes. Default 64 MiB.
    pub max_memory_bytes: u64,
    /// Upper bound on the bytes of a file that is read or written. Default 32 MiB.
    pub max_file_bytes: u64,
    /// Upper bound on the bytes that one command line reads from files, all together: some tools hold all their input in
    /// memory. Default 256 MiB.
    pub max_read_bytes: u64,
    /// Upper bound on the entries of a listed directory. Default 100,000.
    pub max_directory_entries: u64,
    /// Upper bound on the command lines that run at a time, including background jobs; further ones wait. At least 1.
    /// Default 16.
    pub max_concurrent: usize,
    /// Directory of the files with the full output. Default `/.vfs/output`.
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
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time limit of a command whose request has no timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the upper bound on simple commands.
    #[must_use]
    pub fn max_commands(mut self, commands: u64) -> Self {
        self.max_commands = commands;
        self
    }

    /// Sets the upper bound on loop iterations.
    #[must_use]
    pub fn max_loop_iterations(mut self, rounds: u64) -> Self {
        self.max_loop_iterations = rounds;
        self
    }

    /// Sets the upper bound on the bytes of each output.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets the upper bound on the bytes in variables, and on those in pipes.
    #[must_use]
    pub fn max_memory_bytes(mut self, bytes: u64) -> Self {
        self.max_memory_bytes = bytes;
        self
    }

    /// Sets the upper bound on the size of a file.
    #[must_use]
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.max_file_bytes = bytes;
        self
    }

    /// Sets the upper bound on the bytes read from files.
    #[must_use]
    pub fn max_read_bytes(mut self, bytes: u64) -> Self {
        self.max_read_bytes = bytes;
        self
    }

    /// Sets the upper bound on the entries of a directory.
    #[must_use]
    pub fn max_directory_entries(mut self, entries: u64) -> Self {
        self.max_directory_entries = entries;
        self
    }

    /// Sets how many command lines may run at a time.
    #[must_use]
    pub fn max_concurrent(mut self, commands: usize) -> Self {
        self.max_concurrent = commands;
        self
    }

    /// Sets the directory of full outputs.
    #[must_use]
    pub fn output_directory(mut self, directory: VfsPath) -> Self {
        self.output_directory = directory;
        self
    }
}
