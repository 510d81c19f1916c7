//! Attacks by mounts, namespaces, devices, privileges, and parts of the kernel that commands do not need.

use super::Confinement::{All, Landlock, Namespaces, Seccomp, WithoutNamespaces};
use super::Setting::Usual;
use super::{ExpectedErrors, Row, Target};
use crate::system::{HERE, call, in_child, open, outcome, text};

/// The filter forbids the call; so does the lack of every capability.
const EVERYWHERE: ExpectedErrors =
    &[(All, "EPERM"), (Namespaces, "EPERM"), (Landlock, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

/// Only the filter forbids the call.
const FILTERED: ExpectedErrors = &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

/// The filter forbids the call, and bubblewrap prevents further user namespaces.
const NESTED: ExpectedErrors =
    &[(All, "EPERM"), (Namespaces, "ENOSPC|EPERM|EUSERS"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

const NEW_USER: usize = libc::CLONE_NEWUSER as usize;

pub(super) const ATTACKS: &[Row] = &[
    ("mount_a_directory", mounted, EVERYWHERE, Usual),
    ("mount_a_process_file_system", mounted_processes, EVERYWHERE, Usual),
    ("unmount_a_file_system", unmounted, EVERYWHERE, Usual),
    ("make_the_root_writable_again", remounted, EVERYWHERE, Usual),
    ("mount_by_the_new_calls", opened_file_system, EVERYWHERE, Usual),
    ("clone_a_tree_of_mounts", cloned_tree, EVERYWHERE, Usual),
    ("change_the_flags_of_a_mount", changed_flags, EVERYWHERE, Usual),
    ("swap_the_root", swapped_root, EVERYWHERE, Usual),
    ("leave_by_chroot", changed_root, EVERYWHERE, Usual),
    ("make_a_user_namespace", |_| nested(NEW_USER), NESTED, Usual),
    ("make_a_mount_namespace", |_| nested(libc::CLONE_NEWNS as usize), EVERYWHERE, Usual),
    ("make_a_network_namespace_with_a_user", |_| nested(NEW_USER | libc::CLONE_NEWNET as usize), NESTED, Usual),
    ("start_a_process_in_a_user_namespace", cloned, NESTED, Usual),
    (
        "start_one_by_the_new_call",
        cloned_anew,
        &[(All, "ENOSYS"), (Namespaces, "ENOSPC|EPERM|EUSERS"), (Seccomp, "ENOSYS"), (WithoutNamespaces, "ENOSYS")],
        Usual,
    ),
    (
        "enter_the_first_namespace",
        entered,
        &[
            (All, "EPERM|ENOENT|EACCES"),
            (Namespaces, "EPERM|ENOENT|EACCES"),
            (Landlock, "EPERM|EACCES"),
            (WithoutNamespaces, "EPERM|EACCES"),
        ],
        Usual,
    ),
    ("open_a_file_by_its_handle", by_handle, EVERYWHERE, Usual),
    ("make_a_disk_device", |_| device(libc::S_IFBLK, 0x0801), NODES, Usual),
    ("make_a_memory_device", |_| device(libc::S_IFCHR, 0x0101), NODES, Usual),
    ("open_the_memory_of_the_machine", |_| outcome(open("/dev/mem", libc::O_RDWR, 0)), DEVICES, Usual),
    ("open_the_log_of_the_kernel", |_| outcome(open("/dev/kmsg", libc::O_RDWR, 0)), DEVICES, Usual),
    ("open_a_disk", disks, DEVICES, Usual),
    (
        "make_a_ring",
        |_| outcome(call(libc::SYS_io_uring_setup, [8, ring().as_ptr() as usize, 0, 0, 0, 0])),
        FILTERED,
        Usual,
    ),
    ("add_a_key", added_key, FILTERED, Usual),
    (
        "read_the_keys_of_the_session",
        |_| outcome(call(libc::SYS_keyctl, [0, -3_isize as usize, 1, 0, 0, 0])),
        FILTERED,
        Usual,
    ),
    (
        "load_a_kernel_program",
        |_| outcome(call(libc::SYS_bpf, [0, [0_u64; 16].as_ptr() as usize, 128, 0, 0, 0])),
        EVERYWHERE_BPF,
        Usual,
    ),
    (
        "count_what_others_do",
        |_| outcome(call(libc::SYS_perf_event_open, [[0_u64; 16].as_ptr() as usize, 0, usize::MAX, usize::MAX, 0, 0])),
        FILTERED,
        Usual,
    ),
    ("handle_faults_of_pages", |_| outcome(call(libc::SYS_userfaultfd, [0; 6])), FILTERED, Usual),
    (
        "load_a_module",
        |_| outcome(call(libc::SYS_finit_module, [0, c"".as_ptr() as usize, 0, 0, 0, 0])),
        WHERE_THERE,
        Usual,
    ),
    ("load_another_kernel", |_| outcome(call(libc::SYS_kexec_load, [0; 6])), WHERE_THERE, Usual),
    ("restart_the_machine", |_| outcome(call(libc::SYS_reboot, [0; 6])), EVERYWHERE, Usual),
    (
        "read_the_messages_of_the_kernel",
        |_| outcome(call(libc::SYS_syslog, [10, 0, 0, 0, 0, 0])),
        &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    ("set_the_clock", set_clock, EVERYWHERE, Usual),
    ("rename_the_machine", rename_machine, EVERYWHERE, Usual),
    (
        "take_another_personality",
        |_| outcome(call(libc::SYS_personality, [0x004_0000, 0, 0, 0, 0, 0])),
        FILTERED,
        Usual,
    ),
    #[cfg(target_arch = "x86_64")]
    ("call_by_the_x32_numbers", x32, &[(All, "ENOSYS"), (Seccomp, "ENOSYS"), (WithoutNamespaces, "ENOSYS")], Usual),
    ("become_root", become_root, &[(All, "EPERM|EINVAL"), (Namespaces, "EPERM|EINVAL")], Usual),
    (
        "gain_privileges_again",
        gain,
        &[
            (All, "EINVAL"),
            (Namespaces, "EINVAL"),
            (Landlock, "EINVAL"),
            (Seccomp, "EINVAL"),
            (WithoutNamespaces, "EINVAL"),
        ],
        Usual,
    ),
    ("leave_a_set_user_program", |_| marked(0o4755), FILTERED, Usual),
    ("leave_a_set_group_program", |_| marked(0o2755), FILTERED, Usual),
    (
        "make_a_set_user_program",
        |_| outcome(open("setuid", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o4755)),
        FILTERED,
        Usual,
    ),
    (
        "make_an_unnamed_set_user_program",
        |_| outcome(open(".", libc::O_WRONLY | libc::O_TMPFILE, 0o4755)),
        FILTERED,
        Usual,
    ),
    (
        "open_past_the_filter",
        openat2_set_user,
        &[(All, "ENOSYS"), (Seccomp, "ENOSYS"), (WithoutNamespaces, "ENOSYS")],
        Usual,
    ),
    (
        "run_a_set_user_program",
        set_user_program,
        &[
            (All, "exit 0"),
            (Namespaces, "exit 0"),
            (Landlock, "exit 0"),
            (Seccomp, "exit 0"),
            (WithoutNamespaces, "exit 0"),
        ],
        Usual,
    ),
];

/// Expected errors for calls that not every kernel has.
const WHERE_THERE: ExpectedErrors = &[
    (All, "EPERM"),
    (Namespaces, "EPERM|ENOSYS"),
    (Landlock, "EPERM|ENOSYS"),
    (Seccomp, "EPERM"),
    (WithoutNamespaces, "EPERM"),
];

/// Expected errors for creating devices, which Landlock denies.
const NODES: ExpectedErrors = &[
    (All, "EPERM"),
    (Namespaces, "EPERM"),
    (Landlock, "EACCES|EPERM"),
    (Seccomp, "EPERM"),
    (WithoutNamespaces, "EPERM"),
];

const EVERYWHERE_BPF: ExpectedErrors = &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

const DEVICES: ExpectedErrors =
    &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "EACCES|ENOENT"), (WithoutNamespaces, "EACCES|ENOENT")];

/// Creates a directory to mount on, so that an attack that succeeds does no harm.
fn point() -> Result<i64, String> {
    call(libc::SYS_mkdirat, [HERE, c"point".as_ptr() as usize, 0o755, 0, 0, 0])
}

fn mounted(_: &Target) -> String {
    let point_path = c"point".as_ptr() as usize;
    outcome(point().and_then(|_| call(libc::SYS_mount, [point_path, point_path, 0, libc::MS_BIND as usize, 0, 0])))
}

fn mounted_processes(_: &Target) -> String {
    let (kind, at) = (c"proc".as_ptr() as usize, c"point".as_ptr() as usize);
    outcome(point().and_then(|_| call(libc::SYS_mount, [kind, at, kind, 0, 0, 0])))
}

/// Unmounts with `MNT_EXPIRE`, which does not detach a file system that is in use.
fn unmounted(_: &Target) -> String {
    outcome(call(libc::SYS_umount2, [c"/proc".as_ptr() as usize, libc::MNT_EXPIRE as usize, 0, 0, 0, 0]))
}

/// Sets the clock to the current time.
fn set_clock(_: &Target) -> String {
    let mut now = [0_u64; 2];
    let place = std::ptr::from_mut(&mut now) as usize;
    let read = call(libc::SYS_clock_gettime, [0, place, 0, 0, 0, 0]);
    outcome(read.and_then(|_| call(libc::SYS_clock_settime, [0, place, 0, 0, 0, 0])))
}

/// Sets the host name to the current name.
fn rename_machine(_: &Target) -> String {
    let mut names = [0_u8; 65 * 6];
    let read = call(libc::SYS_uname, [names.as_mut_ptr() as usize, 0, 0, 0, 0, 0]);
    let name = &names[65..130];
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    outcome(read.and_then(|_| call(libc::SYS_sethostname, [name.as_ptr() as usize, length, 0, 0, 0, 0])))
}

fn remounted(_: &Target) -> String {
    let flags = (libc::MS_REMOUNT | libc::MS_BIND) as usize;
    outcome(call(libc::SYS_mount, [0, c"/usr".as_ptr() as usize, 0, flags, 0, 0]))
}

fn opened_file_system(_: &Target) -> String {
    outcome(call(libc::SYS_fsopen, [c"tmpfs".as_ptr() as usize, 0, 0, 0, 0, 0]))
}

fn cloned_tree(_: &Target) -> String {
    const OPEN_TREE_CLONE: usize = 1;
    outcome(call(libc::SYS_open_tree, [HERE, c"/".as_ptr() as usize, OPEN_TREE_CLONE, 0, 0, 0]))
}

fn changed_flags(_: &Target) -> String {
    const MOUNT_ATTR_RDONLY: u64 = 1;
    let attributes = [0_u64, MOUNT_ATTR_RDONLY, 0, 0];
    outcome(call(libc::SYS_mount_setattr, [HERE, c"/usr".as_ptr() as usize, 0, attributes.as_ptr() as usize, 32, 0]))
}

fn swapped_root(_: &Target) -> String {
    outcome(call(libc::SYS_pivot_root, [c".".as_ptr() as usize, c".".as_ptr() as usize, 0, 0, 0, 0]))
}

fn changed_root(_: &Target) -> String {
    outcome(call(libc::SYS_chroot, [c".".as_ptr() as usize, 0, 0, 0, 0, 0]))
}

fn nested(flags: usize) -> String {
    outcome(call(libc::SYS_unshare, [flags, 0, 0, 0, 0, 0]))
}

fn cloned(_: &Target) -> String {
    match call(libc::SYS_clone, [NEW_USER | libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) {
        Ok(0) => {
            let _ = call(libc::SYS_exit_group, [0; 6]);
            unreachable!("it has ended")
        }
        other => outcome(other),
    }
}

fn cloned_anew(_: &Target) -> String {
    // The first words of `clone_args`: flags, three that are not used, and the signal at the end.
    let arguments = [NEW_USER as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    match call(libc::SYS_clone3, [arguments.as_ptr() as usize, 64, 0, 0, 0, 0]) {
        Ok(0) => {
            let _ = call(libc::SYS_exit_group, [0; 6]);
            unreachable!("it has ended")
        }
        other => outcome(other),
    }
}

fn entered(_: &Target) -> String {
    match open("/proc/1/ns/mnt", libc::O_RDONLY, 0) {
        Ok(namespace) => outcome(call(libc::SYS_setns, [namespace as usize, libc::CLONE_NEWNS as usize, 0, 0, 0, 0])),
        Err(error) => error,
    }
}

fn by_handle(_: &Target) -> String {
    let place = match open(".", libc::O_RDONLY | libc::O_DIRECTORY, 0) {
        Ok(place) => place,
        Err(error) => return format!("no place: {error}"),
    };
    // The handle of inode 2, the root of most file systems: eight bytes, of type 1.
    let handle = [8_u32, 1, 2, 0];
    outcome(call(
        libc::SYS_open_by_handle_at,
        [place as usize, handle.as_ptr() as usize, libc::O_RDONLY as usize, 0, 0, 0],
    ))
}

fn device(kind: libc::mode_t, number: usize) -> String {
    outcome(call(libc::SYS_mknodat, [HERE, c"device".as_ptr() as usize, (kind | 0o600) as usize, number, 0, 0]))
}

/// Opens the first disk that exists.
fn disks(_: &Target) -> String {
    let tried = ["/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/xvda", "/dev/loop0", "/dev/loop-control"]
        .map(|disk| open(disk, libc::O_RDONLY, 0));
    if tried.iter().any(Result::is_ok) {
        return "done".to_owned();
    }
    tried.into_iter().filter_map(Result::err).find(|error| error != "ENOENT").unwrap_or_else(|| "ENOENT".to_owned())
}

fn ring() -> [u32; 30] {
    [0; 30]
}

fn added_key(_: &Target) -> String {
    const USER_KEYRING: usize = -4_isize as usize;
    let arguments =
        [c"user".as_ptr() as usize, c"planted".as_ptr() as usize, c"x".as_ptr() as usize, 1, USER_KEYRING, 0];
    outcome(call(libc::SYS_add_key, arguments))
}

#[cfg(target_arch = "x86_64")]
fn x32(_: &Target) -> String {
    const X32: i64 = 0x4000_0000;
    outcome(call(X32 + libc::SYS_getpid, [0; 6]))
}

fn become_root(_: &Target) -> String {
    outcome(call(libc::SYS_setresuid, [0, 0, 0, 0, 0, 0]))
}

fn gain(_: &Target) -> String {
    let given = call(libc::SYS_prctl, [libc::PR_GET_NO_NEW_PRIVS as usize, 0, 0, 0, 0, 0]);
    if given != Ok(1) {
        return format!("no_new_privs is {given:?}");
    }
    outcome(call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 0, 0, 0, 0, 0]))
}

fn marked(mode: usize) -> String {
    if let Err(error) = open("program", libc::O_WRONLY | libc::O_CREAT, 0o755) {
        return format!("no file: {error}");
    }
    outcome(call(libc::SYS_fchmodat, [HERE, c"program".as_ptr() as usize, mode, 0, 0, 0]))
}

fn openat2_set_user(_: &Target) -> String {
    let how = [(libc::O_WRONLY | libc::O_CREAT) as u64, 0o4755, 0];
    outcome(call(libc::SYS_openat2, [HERE, c"setuid".as_ptr() as usize, how.as_ptr() as usize, 24, 0, 0]))
}

/// Runs a set-user program of the system, which must not give its caller any privileges.
fn set_user_program(_: &Target) -> String {
    let programs = ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/chsh", "/usr/bin/newgrp"];
    let is_set = |path: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o4000 != 0)
    };
    let Some(program) = programs.iter().find(|path| is_set(path)) else { return "exit 0".to_owned() };
    let path = text(program);
    let arguments = [path.as_ptr() as usize, c"--help".as_ptr() as usize, 0];
    let before = call(libc::SYS_geteuid, [0; 6]);
    let ended = in_child(|| {
        let nothing = open("/dev/null", libc::O_WRONLY, 0).unwrap_or(1) as usize;
        for standard in [1, 2] {
            let _ = call(libc::SYS_dup3, [nothing, standard, 0, 0, 0, 0]);
        }
        let _ = call(
            libc::SYS_execve,
            [path.as_ptr() as usize, arguments.as_ptr() as usize, [0_usize].as_ptr() as usize, 0, 0, 0],
        );
        i32::from(call(libc::SYS_geteuid, [0; 6]) != before)
    });
    ended.unwrap_or_else(|error| error)
}
