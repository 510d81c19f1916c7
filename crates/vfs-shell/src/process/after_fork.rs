//! Code that runs between `fork` and `exec`, and in the supervisor, which executes no other program.
//!
//! The serving process forks a *supervisor*. The supervisor creates the *program*, which prepares itself in the supervisor's
//! memory while the supervisor is suspended (`vfork(2)`), and then executes. The supervisor stays: it adopts every
//! descendant of the program that loses its parent, reports how the program exited, and terminates all of them on request or
//! when the serving process has exited.
//!
//! # Why this is sound
//!
//! Both run in a copy of a process with many threads, of which only the forking one exists in the copy. A lock that another
//! thread held at that moment, such as the allocator's, is held forever. So all code in this module and below keeps these
//! rules:
//!
//! * Only system calls are made, through functions of libc that have no other effect but to set `errno`: each is a bare
//!   system call or on the list of functions that are safe in a signal handler (`signal-safety(7)`).
//! * The program has the supervisor's memory until it executes, including its `errno`. The supervisor needs nothing of that
//!   memory but its own stack. Descriptors, signal handlers, directory and limits are the new process's own.
//! * No memory is allocated or freed. [`ForkPlan`] borrows what was allocated before the fork. Nothing that owns memory is
//!   dropped, since every function that ends the process calls `_exit` or `execve`.
//! * Nothing panics: no index, no division, no arithmetic that could overflow in a debug build, no `expect`.
//! * Only the supervisor uses the static tables in [`process_tree`]. It has one thread and its own copy of them.
//! * All signals are blocked before the fork. The supervisor never unblocks one, so no handler of the serving process runs
//!   in the copy; the program resets all handlers before it unblocks signals.
//!
//! [`SpawnSpec::confine`](crate::SpawnSpec::confine) is code of a caller and has to keep the first two rules, too.

mod memory_release;
mod process_tree;
mod program_exec;
mod supervisor;

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use libc::{c_char, c_int, pid_t};

/// Input of the two processes, prepared before the fork.
///
/// All descriptors are above the three standard ones and above all target numbers of [`descriptors`](ForkPlan::descriptors),
/// so installing one never closes another.
pub(super) struct ForkPlan<'a> {
    pub(super) program: &'a CStr,
    /// Null-terminated.
    pub(super) arguments: &'a [*const c_char],
    /// Null-terminated.
    pub(super) environment: &'a [*const c_char],
    pub(super) directory: RawFd,
    pub(super) standard: [RawFd; 3],
    pub(super) terminal: bool,
    pub(super) descriptors: &'a [(RawFd, RawFd)],
    pub(super) limits: &'a [(RlimitResource, libc::rlim_t)],
    pub(super) confine: Option<&'a (dyn Fn() -> io::Result<()> + Send + Sync)>,
    /// Pipe on which the program reports that it started or failed; closed when it executes.
    pub(super) started: RawFd,
    /// Socket from which the supervisor reads requests; its end means that everything has to be terminated.
    pub(super) control: RawFd,
    /// Pipe on which the supervisor reports how the program exited.
    pub(super) status: RawFd,
    /// Readable once the serving process has exited.
    pub(super) host: RawFd,
    /// Milliseconds between `SIGTERM` and `SIGKILL`.
    pub(super) grace: i64,
}

/// Number of a resource limit, with the type that `setrlimit` takes.
#[cfg(target_env = "gnu")]
pub(super) type RlimitResource = libc::__rlimit_resource_t;
/// Number of a resource limit, with the type that `setrlimit` takes.
#[cfg(not(target_env = "gnu"))]
pub(super) type RlimitResource = c_int;

/// Request to the supervisor to exit and leave the processes running.
pub(super) const RELEASE: u8 = b'R';

/// Status report of the program or the supervisor: two numbers.
pub(super) type StatusRecord = [i32; 2];

/// First number of a record on [`ForkPlan::started`]: the stage that failed, followed by `errno`; or [`STAGE_READY`],
/// followed by the program's process id.
pub(super) const STAGE_READY: i32 = 0;
pub(super) const STAGE_FORK: i32 = 1;
pub(super) const STAGE_CHDIR: i32 = 2;
pub(super) const STAGE_DUP: i32 = 3;
pub(super) const STAGE_LIMITS: i32 = 4;
pub(super) const STAGE_CONFINE: i32 = 5;
pub(super) const STAGE_EXEC: i32 = 6;

/// First number of a record on [`ForkPlan::status`]: whether descendants were left when the program exited; its wait status
/// follows.
pub(super) const NO_ORPHANS: i32 = 0;
pub(super) const ORPHANS_LEFT: i32 = 1;

/// Forks the supervisor and returns its process id.
pub(super) fn fork(plan: &ForkPlan<'_>) -> io::Result<pid_t> {
    // SAFETY: both sets are initialised by `sigfillset` and `pthread_sigmask`. The child never returns from
    // `supervisor::run`, which keeps the rules above; the parent is unchanged.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            supervisor::run(plan);
        }
        let failure = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if pid < 0 { Err(failure) } else { Ok(pid) }
    }
}

fn errno() -> c_int {
    // SAFETY: libc always returns a valid address.
    unsafe { *libc::__errno_location() }
}

/// Writes a record, which is smaller than `PIPE_BUF` and so written in one piece.
fn write_record(to: RawFd, record: StatusRecord) {
    loop {
        // SAFETY: the record lives and has the given length.
        let written = unsafe { libc::write(to, (&raw const record).cast(), size_of::<StatusRecord>()) };
        if written >= 0 || errno() != libc::EINTR {
            return;
        }
    }
}

/// Closes the descriptors from `first` on except [`started`](ForkPlan::started). The end of that pipe shows the serving
/// process that no copy of another descriptor is left, so it is closed last, by a separate call.
fn close_all_but_started(plan: &ForkPlan<'_>, first: RawFd) {
    close_range(first, plan.started.saturating_sub(1), 0);
    close_range(plan.started.saturating_add(1).max(first), MAX_FD, 0);
}

fn exit(code: c_int) -> ! {
    // SAFETY: `_exit` ends this process without running any code of the serving one.
    unsafe { libc::_exit(code) }
}

/// Highest descriptor number.
const MAX_FD: RawFd = RawFd::MAX;

/// Marks the descriptors from `first` to `last` as close-on-exec, or closes them, depending on `flags`.
fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) {
    if last < first {
        return;
    }
    // SAFETY: the descriptors belong to this copy; those that are still needed are out of range or only marked.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first.cast_unsigned(), last.cast_unsigned(), flags) == 0 {
            return;
        }
        // Kernels before 5.11 lack the call or its flag.
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let end = RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX).min(1 << 20).min(last.saturating_add(1));
        for fd in first..end {
            if flags == 0 {
                libc::close(fd);
            } else {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}
