//! Description of a process to start, and the trait that decides it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use vfs_core::shell::TerminalSize;
use vfs_core::{ExecuteRequest, OpContext, Result};

/// Specification of a process. The process gets nothing of the serving process that is not listed here.
#[non_exhaustive]
pub struct SpawnSpec {
    /// Path of the program on the host.
    pub program: OsString,
    /// Arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// Complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Open working directory.
    pub directory: OwnedFd,
    /// Descriptors beside the three standard ones, each with its number in the process, from 3.
    pub descriptors: Vec<(OwnedFd, i32)>,
    /// Resource limits.
    pub limits: Limits,
    /// Size of the terminal, or `None` to run without one.
    pub terminal: Option<TerminalSize>,
    /// Confinement that the new process applies to itself just before it executes the program. The function runs between
    /// `vfork` and `exec`, so it may only make system calls: it must not allocate memory or take a lock. A process that
    /// shares the memory of another may not enter a user namespace (`unshare(2)`), and its `/proc/self` belongs to root.
    pub confine: Option<Arc<dyn Fn() -> io::Result<()> + Send + Sync>>,
}

impl SpawnSpec {
    /// Creates a specification of `program` in `directory` with no arguments, an empty environment and no limits.
    pub fn new(program: impl Into<OsString>, directory: OwnedFd) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory,
            descriptors: Vec::new(),
            limits: Limits::default(),
            terminal: None,
            confine: None,
        }
    }
}

impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("SpawnSpec")
            .field("program", &self.program)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Resource limits of one command; `None` leaves the limit of the serving process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Seconds of processor time of each process.
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space of each process.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of the user at a time.
    pub processes: Option<u64>,
    /// Bytes of each written file.
    pub file_bytes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
}

impl Limits {
    /// Limits the processor time of each process to `seconds`.
    #[must_use]
    pub fn cpu_seconds(mut self, seconds: u64) -> Self {
        self.cpu_seconds = Some(seconds);
        self
    }

    /// Limits the address space of each process to `bytes`.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Limits the processes and threads of the user to `processes`, including those outside of the command. The kernel does
    /// not apply this limit to root.
    #[must_use]
    pub fn processes(mut self, processes: u64) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Limits the size of written files to `bytes`.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// Limits the open files of each process to `files`.
    #[must_use]
    pub fn open_files(mut self, files: u64) -> Self {
        self.open_files = Some(files);
        self
    }

    /// Returns these limits, with those of `others` where this has none.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds.or(others.cpu_seconds),
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            processes: self.processes.or(others.processes),
            file_bytes: self.file_bytes.or(others.file_bytes),
            open_files: self.open_files.or(others.open_files),
        }
    }
}

/// Decides which program runs for a command: a shell of the host, or a sandbox with a shell in it.
#[async_trait]
pub trait Spawner: fmt::Debug + Send + Sync + 'static {
    /// Returns the process to start for `req`. `environment` is complete: it combines the request and the settings.
    ///
    /// # Errors
    ///
    /// Errors of resolving [`cwd`](ExecuteRequest::cwd), in the caller's namespace.
    async fn prepare(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<SpawnSpec>;
}
