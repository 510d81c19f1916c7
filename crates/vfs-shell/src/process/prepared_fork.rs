//! Owned arguments, environment and descriptors for a fork.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::time::Duration;

use libc::c_char;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use vfs_core::{Error, ErrorKind, Result};

use super::StandardFds;
use super::after_fork::{self, ForkPlan, RlimitResource};
use crate::spawner::{Limits, SpawnSpec};

/// Owner of the data that a [`ForkPlan`] borrows.
pub(super) struct PreparedFork {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: OwnedFd,
    standard: [OwnedFd; 3],
    descriptors: Vec<(OwnedFd, RawFd)>,
    started: OwnedFd,
    status: OwnedFd,
    control: OwnedFd,
    host: OwnedFd,
    limits: Vec<(RlimitResource, libc::rlim_t)>,
    terminal: bool,
    confine: Option<Arc<dyn Fn() -> io::Result<()> + Send + Sync>>,
    grace: i64,
}

impl PreparedFork {
    /// Prepares `spec`. `ends` are the child's ends of the pipe for the start, the pipe for the exit status, and the control
    /// socket.
    pub(super) fn new(spec: SpawnSpec, standard: StandardFds, ends: [OwnedFd; 3], grace: Duration) -> Result<Self> {
        let mut arguments = vec![text(spec.program.clone())?];
        for argument in spec.arguments {
            arguments.push(text(argument)?);
        }
        let mut environment = Vec::with_capacity(spec.environment.len());
        for (mut variable, value) in spec.environment {
            variable.push("=");
            variable.push(value);
            environment.push(text(variable)?);
        }
        let highest = spec.descriptors.iter().map(|&(_, number)| number).max().unwrap_or(0).max(2);
        let lift = |fd: OwnedFd| lift(fd, highest);
        let [started, status, control] = ends;
        let mut descriptors = Vec::with_capacity(spec.descriptors.len());
        for (fd, number) in spec.descriptors {
            if number < 3 {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "internal: a spawner placed a descriptor at a standard one",
                ));
            }
            descriptors.push((lift(fd)?, number));
        }
        let host = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(|errno| {
            let (kind, message) = match errno {
                Errno::NOSYS | Errno::PERM => (
                    ErrorKind::Unsupported,
                    "starting the command failed: the system call pidfd_open is missing (before Linux 5.4) or refused by the \
                     filter of a container; allow it there",
                ),
                _ => (ErrorKind::Busy, "starting the command failed: no descriptor is left; try again later"),
            };
            Error::new(kind, message).with_source(io::Error::from(errno))
        })?;
        Ok(Self {
            program: text(spec.program)?,
            arguments,
            environment,
            directory: lift(spec.directory)?,
            standard: [lift(standard.input)?, lift(standard.output)?, lift(standard.error)?],
            descriptors,
            started: lift(started)?,
            status: lift(status)?,
            control: lift(control)?,
            host: lift(host)?,
            limits: resources(&spec.limits),
            terminal: spec.terminal.is_some(),
            confine: spec.confine,
            grace: i64::try_from(grace.as_millis()).unwrap_or(i64::MAX),
        })
    }

    /// Forks the supervisor, which starts the program.
    pub(super) fn fork(&self) -> io::Result<Pid> {
        let descriptors: Vec<_> = self.descriptors.iter().map(|(fd, number)| (fd.as_raw_fd(), *number)).collect();
        let plan = ForkPlan {
            program: &self.program,
            arguments: &pointers(&self.arguments),
            environment: &pointers(&self.environment),
            directory: self.directory.as_raw_fd(),
            standard: self.standard.each_ref().map(|fd| fd.as_raw_fd()),
            terminal: self.terminal,
            descriptors: &descriptors,
            limits: &self.limits,
            confine: self.confine.as_deref(),
            started: self.started.as_raw_fd(),
            control: self.control.as_raw_fd(),
            status: self.status.as_raw_fd(),
            host: self.host.as_raw_fd(),
            grace: self.grace,
        };
        let pid = after_fork::fork(&plan)?;
        Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process has this id"))
    }
}

fn text(text: OsString) -> Result<CString> {
    CString::new(text.into_vec()).map_err(|_| {
        Error::invalid_argument("starting the command failed: an argument or variable contains NUL; remove it")
    })
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Duplicates a descriptor above `highest`, so that installing another at a number up to that does not close it.
fn lift(fd: OwnedFd, highest: RawFd) -> Result<OwnedFd> {
    if fd.as_raw_fd() > highest {
        return Ok(fd);
    }
    rustix::io::fcntl_dupfd_cloexec(&fd, highest.saturating_add(1)).map_err(|errno| {
        Error::new(ErrorKind::Busy, "starting the command failed: too many files are open; try again")
            .with_source(io::Error::from(errno))
    })
}

fn resources(limits: &Limits) -> Vec<(RlimitResource, libc::rlim_t)> {
    [
        (libc::RLIMIT_CPU, limits.cpu_seconds),
        (libc::RLIMIT_AS, limits.memory_bytes),
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
        (libc::RLIMIT_NOFILE, limits.open_files),
    ]
    .into_iter()
    .filter_map(|(resource, limit)| limit.map(|limit| (resource, limit as libc::rlim_t)))
    .collect()
}
