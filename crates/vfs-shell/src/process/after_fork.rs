//! What runs between `fork` and `exec`, and in the supervisor, which never becomes another program.
//!
//! The serving process forks a *supervisor*. That makes the *program*, which prepares itself, in the supervisor's memory and
//! while that stands still (`vfork(2)`), and executes what it was started for. The supervisor stays: it adopts every
//! descendant of the program that loses its parent, tells how the program ended, and ends all of them when it is told to, or
//! when the serving process is gone.
//!
//! # Why this is sound
//!
//! Both run in a copy of a process with many threads, of which only the forking one exists in the copy. Whatever the others
//! held at that moment, such as the allocator's lock, is held forever. So everything below this module keeps to these rules:
//!
//! * Only system calls are made, through functions of libc that do nothing else but set `errno`: each is on the list of
//!   functions that are safe in a signal handler (`signal-safety(7)`), or is a bare system call.
//! * What becomes the program has the supervisor's memory until it executes, its `errno` included, of which the supervisor
//!   needs nothing but what it has on its own stack. All else is the new process' own: descriptors, handlers of signals,
//!   directory, limits.
//! * No memory is allocated or freed. What is needed was made before the fork and is borrowed by [`Plan`]; nothing that
//!   owns memory is dropped, since every function here that ends does so by `_exit` or `execve`.
//! * Nothing panics: no index, no division, no arithmetic that could overflow in a debug build, no `expect`.
//! * The static tables in [`descendants`] are used by the supervisor only, which has one thread and its own copy of them.
//! * All signals are blocked from before the fork on. The supervisor never allows one, so no handler of the serving process
//!   runs in the copy; the program resets all handlers before it allows signals.
//!
//! [`Launch::confine`](crate::Launch::confine) is somebody else's code and has to keep to the first two rules, too.

mod descendants;
mod memory;
mod program;
mod supervisor;

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use libc::{c_char, c_int, pid_t};

/// Everything that the two processes need, made before the fork.
///
/// All descriptors are above the three standard ones, and above all numbers that [`descriptors`](Plan::descriptors) are to
/// be placed at, so that placing one never closes another.
pub(super) struct Plan<'a> {
    pub(super) program: &'a CStr,
    /// Ends with a null.
    pub(super) arguments: &'a [*const c_char],
    /// Ends with a null.
    pub(super) environment: &'a [*const c_char],
    pub(super) directory: RawFd,
    pub(super) standard: [RawFd; 3],
    pub(super) terminal: bool,
    pub(super) descriptors: &'a [(RawFd, RawFd)],
    pub(super) limits: &'a [(Resource, libc::rlim_t)],
    pub(super) confine: Option<&'a (dyn Fn() -> io::Result<()> + Send + Sync)>,
    /// Where the program reports that it started or failed to; closed when it is executed.
    pub(super) started: RawFd,
    /// Where the supervisor reads what it is to do; at its end the serving process wants everything ended.
    pub(super) control: RawFd,
    /// Where the supervisor tells how the program ended.
    pub(super) status: RawFd,
    /// Readable once the serving process is gone.
    pub(super) host: RawFd,
    /// Milliseconds between `SIGTERM` and `SIGKILL`.
    pub(super) grace: i64,
}

#[cfg(target_env = "gnu")]
pub(super) type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
pub(super) type Resource = c_int;

/// Tells the supervisor to go and to leave what runs running.
pub(super) const RELEASE: u8 = b'R';

/// What the program, and the supervisor, tell: two numbers.
pub(super) type Record = [i32; 2];

/// First number of a record on [`Plan::started`]: what was being done when it failed, with `errno`; or, as zero, that all is
/// ready, with the program's process id.
pub(super) const READY: i32 = 0;
pub(super) const FORKING: i32 = 1;
pub(super) const ENTERING: i32 = 2;
pub(super) const CONNECTING: i32 = 3;
pub(super) const LIMITING: i32 = 4;
pub(super) const CONFINING: i32 = 5;
pub(super) const EXECUTING: i32 = 6;

/// First number of a record on [`Plan::status`]: whether other processes were left when the program ended, as its wait
/// status tells.
pub(super) const ALONE: i32 = 0;
pub(super) const LEAVING_OTHERS: i32 = 1;

/// Forks the supervisor and returns its process id.
pub(super) fn fork(plan: &Plan<'_>) -> io::Result<pid_t> {
    // SAFETY: both sets are initialised by `sigfillset` and `sigprocmask`. The child never returns from `supervisor::run`,
    // which keeps to the rules above; the parent is as it was.
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
    // SAFETY: libc gives a valid address, always.
    unsafe { *libc::__errno_location() }
}

/// Writes a record; it is smaller than what a pipe takes in one piece.
fn tell(to: RawFd, record: Record) {
    loop {
        // SAFETY: the record is as long as is said, and lives.
        let written = unsafe { libc::write(to, (&raw const record).cast(), size_of::<Record>()) };
        if written >= 0 || errno() != libc::EINTR {
            return;
        }
    }
}

/// Closes the descriptors from `first` on but [`started`](Plan::started). When that ends, the serving process relies on there
/// being no copy of any other: it goes last, by itself.
fn close_all_but_started(plan: &Plan<'_>, first: RawFd) {
    close_range(first, plan.started.saturating_sub(1), 0);
    close_range(plan.started.saturating_add(1).max(first), LAST, 0);
}

fn exit(code: c_int) -> ! {
    // SAFETY: it ends this process without running anything of the serving one's.
    unsafe { libc::_exit(code) }
}

/// The last descriptor that there may be.
const LAST: RawFd = RawFd::MAX;

/// Keeps the descriptors from `first` to `last` from the next program, or closes them at once.
fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) {
    if last < first {
        return;
    }
    // SAFETY: the descriptors are this copy's own; those that are still needed are not among them or are only marked.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first.cast_unsigned(), last.cast_unsigned(), flags) == 0 {
            return;
        }
        // Kernels before 5.11 do not know all of it.
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
