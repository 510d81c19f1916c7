//! Preparation of the program between `vfork` and `execve`.

use std::os::fd::RawFd;

use libc::pid_t;

use super::{
    ForkPlan, MAX_FD, STAGE_CHDIR, STAGE_CONFINE, STAGE_DUP, STAGE_EXEC, STAGE_LIMITS, STAGE_READY,
    close_all_but_started, close_range, errno, exit, write_record,
};

/// Exit code of shells for a command that cannot be executed.
const EXIT_NOT_EXECUTED: i32 = 127;

/// Highest signal number of the kernel.
const MAX_SIGNAL: i32 = 64;

/// Prepares this process and executes the program, or reports the failure and exits.
pub(super) fn run(plan: &ForkPlan<'_>, supervisor: pid_t) -> ! {
    // SAFETY: every call takes plain numbers or memory of `plan`, which is valid and null-terminated where needed.
    unsafe {
        libc::setsid();
        // If the supervisor is killed, the kernel kills the program.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        if libc::getppid() != supervisor {
            exit(EXIT_NOT_EXECUTED);
        }
        for signal in 1..=MAX_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        close_range(3, MAX_FD, libc::CLOSE_RANGE_CLOEXEC);
        if libc::fchdir(plan.directory) != 0 {
            fail(plan, STAGE_CHDIR);
        }
        for (number, &fd) in (0..).zip(&plan.standard) {
            install_fd(plan, fd, number);
        }
        if plan.terminal && libc::ioctl(0, libc::TIOCSCTTY as _, 0) != 0 {
            fail(plan, STAGE_DUP);
        }
        for &(fd, number) in plan.descriptors {
            install_fd(plan, fd, number);
        }
        for &(resource, value) in plan.limits {
            set_limit(plan, resource, value);
        }
        write_record(plan.started, [STAGE_READY, libc::getpid()]);
        if let Some(confine) = plan.confine
            && let Err(error) = confine()
        {
            write_record(plan.started, [STAGE_CONFINE, error.raw_os_error().unwrap_or(libc::EPERM)]);
            exit(EXIT_NOT_EXECUTED);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        close_others(plan);
        libc::execve(plan.program.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
        fail(plan, STAGE_EXEC);
    }
}

fn fail(plan: &ForkPlan<'_>, doing: i32) -> ! {
    write_record(plan.started, [doing, errno()]);
    exit(EXIT_NOT_EXECUTED)
}

/// Installs `fd` under `number`.
fn install_fd(plan: &ForkPlan<'_>, fd: RawFd, number: RawFd) {
    // SAFETY: `number` is below every descriptor of the plan, so none of those is closed.
    if unsafe { libc::dup2(fd, number) } < 0 {
        fail(plan, STAGE_DUP);
    }
}

/// Closes the descriptors that the program does not get. `execve` would close them in an unspecified order.
fn close_others(plan: &ForkPlan<'_>) {
    let highest = plan.descriptors.iter().fold(2, |highest, &(_, number)| highest.max(number));
    for number in 3..=highest {
        if !plan.descriptors.iter().any(|&(_, placed)| placed == number) {
            close_range(number, number, 0);
        }
    }
    // All other descriptors of the plan have higher numbers.
    close_all_but_started(plan, highest.saturating_add(1));
}

/// Lowers a resource limit to `value`, unless it is lower already.
fn set_limit(plan: &ForkPlan<'_>, resource: super::RlimitResource, value: libc::rlim_t) {
    // SAFETY: `limit` lives and is written by the first call.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(resource, &raw mut limit) != 0 {
            fail(plan, STAGE_LIMITS);
        }
        // The soft limit of processor time sends a signal, by which the cause is visible; the hard limit kills.
        let hard = if resource == libc::RLIMIT_CPU { value.saturating_add(1) } else { value };
        limit.rlim_max = limit.rlim_max.min(hard);
        limit.rlim_cur = limit.rlim_max.min(value);
        if libc::setrlimit(resource, &raw const limit) != 0 {
            fail(plan, STAGE_LIMITS);
        }
    }
}
