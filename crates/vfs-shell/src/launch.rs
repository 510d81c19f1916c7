//! What is started for a command, and who decides that.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use vfs_core::{ExecuteRequest, OpContext, Result, TerminalSize};

/// A program that is to be started, with nothing of this process but what is named here.
#[non_exhaustive]
pub struct Launch {
    /// The program's path on the host.
    pub program: OsString,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory that it starts in, held open.
    pub directory: OwnedFd,
    /// Descriptors that it gets beside the three standard ones, each under the number given here, from 3.
    pub descriptors: Vec<(OwnedFd, i32)>,
    /// What it may use.
    pub limits: Limits,
    /// Its terminal, where it runs in one.
    pub terminal: Option<TerminalSize>,
    /// What the new process does to itself just before it becomes the program. It runs between `vfork` and `exec`, so it
    /// must make system calls only: no memory is taken, no lock is held. A process that has its memory from another one may
    /// not enter a user namespace (`unshare(2)`), and `/proc/self` is root's.
    pub confine: Option<Arc<dyn Fn() -> io::Result<()> + Send + Sync>>,
}

impl Launch {
    /// Starts `program` in `directory` with no arguments, an empty environment, and no limits.
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

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Launch").field("program", &self.program).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What one command may use; `None` is what the process that serves it may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Seconds of processor time, for each process.
    pub cpu_seconds: Option<u64>,
    /// Bytes of address space, for each process.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of the user at a time.
    pub processes: Option<u64>,
    /// Bytes of each file that is written.
    pub file_bytes: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
}

impl Limits {
    /// Ends a process that has used `seconds` of processor time.
    #[must_use]
    pub fn cpu_seconds(mut self, seconds: u64) -> Self {
        self.cpu_seconds = Some(seconds);
        self
    }

    /// Gives each process at most `bytes` of address space.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Lets the user have at most `processes` processes and threads, those of others than the command counted too. The
    /// kernel does not hold root to it.
    #[must_use]
    pub fn processes(mut self, processes: u64) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Lets no file grow over `bytes`.
    #[must_use]
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// Lets each process have at most `files` files open.
    #[must_use]
    pub fn open_files(mut self, files: u64) -> Self {
        self.open_files = Some(files);
        self
    }

    /// These, and where they do not say, `others`.
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

/// Decides what is started for a command: a shell of the host, or a sandbox with a shell in it.
#[async_trait]
pub trait Launcher: fmt::Debug + Send + Sync + 'static {
    /// What to start for `req`, whose environment is `environment`: all of it, as the request and the settings make it.
    ///
    /// # Errors
    ///
    /// Those of finding [`cwd`](ExecuteRequest::cwd), in the caller's namespace.
    async fn launch(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Launch>;
}
