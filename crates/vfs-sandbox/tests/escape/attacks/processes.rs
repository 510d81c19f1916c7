//! Attacks on processes outside.

use super::Confinement::{All, Landlock, Namespaces, Seccomp, WithoutNamespaces};
use super::Setting::{Terminal, Usual};
use super::{ExpectedErrors, Row, Target};
use crate::system::{call, open, outcome, read};

/// A process namespace does not have the process; Landlock forbids the signal.
const SIGNAL: ExpectedErrors =
    &[(All, "ESRCH"), (Namespaces, "ESRCH"), (Landlock, "EPERM"), (WithoutNamespaces, "EPERM")];

/// The filter forbids the call, a process namespace does not have the process, and Landlock forbids the access.
const TRACE: ExpectedErrors =
    &[(All, "EPERM"), (Namespaces, "ESRCH"), (Landlock, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

/// The process cannot be seen.
const INSPECT: ExpectedErrors =
    &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "EACCES|EPERM"), (WithoutNamespaces, "EACCES|EPERM")];

pub(super) const ATTACKS: &[Row] = &[
    ("trace_a_process_outside", |target| traced(target.victim), TRACE, Usual),
    ("seize_a_process_outside", seized, TRACE, Usual),
    ("trace_the_parent", parent_traced, &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")], Usual),
    ("read_memory_of_a_process_outside", |target| memory(target, libc::SYS_process_vm_readv), TRACE, Usual),
    ("write_memory_of_a_process_outside", |target| memory(target, libc::SYS_process_vm_writev), TRACE, Usual),
    (
        "open_memory_of_a_process_outside",
        |target| outcome(open(&format!("/proc/{}/mem", target.victim), libc::O_RDWR, 0)),
        INSPECT,
        Usual,
    ),
    (
        "read_the_environment_of_a_process_outside",
        |target| outcome(read(&format!("/proc/{}/environ", target.victim)).map(|_| 0)),
        INSPECT,
        Usual,
    ),
    (
        "read_the_command_line_of_a_process_outside",
        |target| outcome(read(&format!("/proc/{}/cmdline", target.victim)).map(|_| 0)),
        INSPECT,
        Usual,
    ),
    ("end_a_process_outside", |target| signalled(target.victim), SIGNAL, Usual),
    ("end_a_process_group_outside", |target| signalled(-target.victim), SIGNAL, Usual),
    ("queue_a_signal_outside", queued, SIGNAL, Usual),
    ("end_a_process_outside_by_its_descriptor", by_descriptor, SIGNAL, Usual),
    (
        "take_a_descriptor_of_a_process_outside",
        take_descriptor,
        &[
            (All, "EPERM|ESRCH"),
            (Namespaces, "ESRCH"),
            (Landlock, "EPERM"),
            (Seccomp, "EPERM"),
            (WithoutNamespaces, "EPERM"),
        ],
        Usual,
    ),
    (
        "end_a_process_outside_by_its_limits",
        by_limits,
        &[(All, "ESRCH"), (Namespaces, "ESRCH"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "move_a_process_outside_to_another_processor",
        moved,
        &[(All, "ESRCH"), (Namespaces, "ESRCH"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "compare_with_a_process_outside",
        compared,
        &[(All, "EPERM"), (Namespaces, "ESRCH"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "open_shared_memory_of_the_host",
        shared_memory,
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    ("type_into_the_terminal", typed, &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")], Terminal),
    ("paste_into_the_terminal", pasted, &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")], Terminal),
    (
        "open_the_terminal_of_the_host",
        |_| outcome(open("/dev/tty", libc::O_RDWR, 0)),
        &[(All, "ENXIO"), (Namespaces, "ENXIO"), (Landlock, "ENXIO|EACCES"), (WithoutNamespaces, "ENXIO|EACCES")],
        Usual,
    ),
];

fn traced(process: i32) -> String {
    outcome(call(libc::SYS_ptrace, [libc::PTRACE_ATTACH as usize, process as usize, 0, 0, 0, 0]))
}

fn seized(target: &Target) -> String {
    outcome(call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as usize, target.victim as usize, 0, 0, 0, 0]))
}

fn parent_traced(_: &Target) -> String {
    let parent = call(libc::SYS_getppid, [0; 6]).expect("always works");
    traced(i32::try_from(parent).expect("a process"))
}

fn memory(target: &Target, number: i64) -> String {
    let mut buffer = [0_u8; 16];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(0x40_0000), iov_len: buffer.len() };
    let (local, remote) = (std::ptr::from_ref(&local) as usize, std::ptr::from_ref(&remote) as usize);
    outcome(call(number, [target.victim as usize, local, 1, remote, 1, 0]))
}

fn signalled(process: i32) -> String {
    outcome(call(libc::SYS_kill, [process as usize, libc::SIGTERM as usize, 0, 0, 0, 0]))
}

fn queued(target: &Target) -> String {
    // The first words of a `siginfo_t`: a signal that a process queues.
    let information =
        [libc::SIGTERM, 0, libc::SI_QUEUE, 0, 0, 0, 0, 0].into_iter().chain([0; 24]).collect::<Vec<i32>>();
    outcome(call(
        libc::SYS_rt_sigqueueinfo,
        [target.victim as usize, libc::SIGTERM as usize, information.as_ptr() as usize, 0, 0, 0],
    ))
}

fn by_descriptor(target: &Target) -> String {
    match call(libc::SYS_pidfd_open, [target.victim as usize, 0, 0, 0, 0, 0]) {
        Ok(process) => {
            outcome(call(libc::SYS_pidfd_send_signal, [process as usize, libc::SIGTERM as usize, 0, 0, 0, 0]))
        }
        Err(error) => error,
    }
}

fn take_descriptor(target: &Target) -> String {
    match call(libc::SYS_pidfd_open, [target.victim as usize, 0, 0, 0, 0, 0]) {
        Ok(process) => outcome(call(libc::SYS_pidfd_getfd, [process as usize, 0, 0, 0, 0, 0])),
        Err(error) => error,
    }
}

fn by_limits(target: &Target) -> String {
    let nothing = [0_u64, 0];
    outcome(call(
        libc::SYS_prlimit64,
        [target.victim as usize, libc::RLIMIT_CPU as usize, nothing.as_ptr() as usize, 0, 0, 0],
    ))
}

fn moved(target: &Target) -> String {
    let first = [1_u64];
    outcome(call(libc::SYS_sched_setaffinity, [target.victim as usize, 8, first.as_ptr() as usize, 0, 0, 0]))
}

fn compared(target: &Target) -> String {
    const KCMP_FILES: usize = 2;
    let own = call(libc::SYS_getpid, [0; 6]).expect("always works");
    outcome(call(libc::SYS_kcmp, [own as usize, target.victim as usize, KCMP_FILES, 0, 0, 0]))
}

fn shared_memory(_: &Target) -> String {
    outcome(call(libc::SYS_shmget, [crate::world::SHARED_KEY as usize, 1, 0, 0, 0, 0]))
}

fn typed(_: &Target) -> String {
    let byte = b'x';
    outcome(call(libc::SYS_ioctl, [0, libc::TIOCSTI as usize, std::ptr::from_ref(&byte) as usize, 0, 0, 0]))
}

fn pasted(_: &Target) -> String {
    const TIOCLINUX: usize = 0x541c;
    // The kernel ignores the upper half of the argument, so set bits there.
    let request = TIOCLINUX | 1 << 40;
    let paste = 3_u8;
    outcome(call(libc::SYS_ioctl, [0, request, std::ptr::from_ref(&paste) as usize, 0, 0, 0]))
}
