//! The program's side: it makes itself ready, and becomes the program.

use std::os::fd::RawFd;

use libc::pid_t;

use super::{
    CONFINING, CONNECTING, ENTERING, EXECUTING, LAST, LIMITING, Plan, READY, close_all_but_started, close_range, errno,
    exit, tell,
};

/// As shells do for what cannot be executed.
const NOT_EXECUTED: i32 = 127;

/// The kernel's signals are numbered from 1 to this.
const LAST_SIGNAL: i32 = 64;

/// Becomes the program, or tells why not and ends.
pub(super) fn run(plan: &Plan<'_>, supervisor: pid_t) -> ! {
    // SAFETY: every call is on a plain number or on memory of `plan`, which is valid and ends with nulls where it has to.
    unsafe {
        libc::setsid();
        // Should the supervisor be killed, the program is, too.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if libc::getppid() != supervisor {
            exit(NOT_EXECUTED);
        }
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        close_range(3, LAST, libc::CLOSE_RANGE_CLOEXEC);
        if libc::fchdir(plan.directory) != 0 {
            fail(plan, ENTERING);
        }
        for (number, &fd) in (0..).zip(&plan.standard) {
            place(plan, fd, number);
        }
        if plan.terminal && libc::ioctl(0, libc::TIOCSCTTY as _, 0) != 0 {
            fail(plan, CONNECTING);
        }
        for &(fd, number) in plan.descriptors {
            place(plan, fd, number);
        }
        for &(resource, wanted) in plan.limits {
            limit(plan, resource, wanted);
        }
        tell(plan.started, [READY, libc::getpid()]);
        if let Some(confine) = plan.confine
            && let Err(error) = confine()
        {
            tell(plan.started, [CONFINING, error.raw_os_error().unwrap_or(libc::EPERM)]);
            exit(NOT_EXECUTED);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        close_others(plan);
        libc::execve(plan.program.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
        fail(plan, EXECUTING);
    }
}

fn fail(plan: &Plan<'_>, doing: i32) -> ! {
    tell(plan.started, [doing, errno()]);
    exit(NOT_EXECUTED)
}

/// Gives the program `fd` under `number`.
fn place(plan: &Plan<'_>, fd: RawFd, number: RawFd) {
    // SAFETY: `number` is below every descriptor of the plan, so none of those is closed.
    if unsafe { libc::dup2(fd, number) } < 0 {
        fail(plan, CONNECTING);
    }
}

/// Closes what the program does not get, which executing it would close in any order.
fn close_others(plan: &Plan<'_>) {
    let highest = plan.descriptors.iter().fold(2, |highest, &(_, number)| highest.max(number));
    for number in 3..=highest {
        if !plan.descriptors.iter().any(|&(_, placed)| placed == number) {
            close_range(number, number, 0);
        }
    }
    // All others of the plan have higher numbers.
    close_all_but_started(plan, highest.saturating_add(1));
}

/// Bounds a resource, as far as it is not bounded already.
fn limit(plan: &Plan<'_>, resource: super::Resource, wanted: libc::rlim_t) {
    // SAFETY: `limit` lives, and is written by the first call.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(resource, &raw mut limit) != 0 {
            fail(plan, LIMITING);
        }
        // At the soft limit of processor time a signal tells why; the hard one kills.
        let hard = if resource == libc::RLIMIT_CPU { wanted.saturating_add(1) } else { wanted };
        limit.rlim_max = limit.rlim_max.min(hard);
        limit.rlim_cur = limit.rlim_max.min(wanted);
        if libc::setrlimit(resource, &raw const limit) != 0 {
            fail(plan, LIMITING);
        }
    }
}
