//! Attacks that exhaust resources of the machine.

use super::Confinement::{All, Landlock, Namespaces, WithoutNamespaces};
use super::Setting::{Disk, Memory, Processes};
use super::{Row, Target};
use crate::system::{call, in_child, open, outcome};

/// Bounds of the sandboxes.
const PROCESSES: u64 = 64;
const MEMORY: u64 = 128 << 20;
const DISK: u64 = 1 << 20;

pub(super) const ATTACKS: &[Row] = &[
    ("fork_bomb", fork_bomb, FORKED, Processes(PROCESSES)),
    (
        "memory_bomb",
        memory_bomb,
        &[
            (All, "signal 9|exit 3"),
            (Namespaces, "signal 9|exit 3"),
            (Landlock, "signal 9|exit 3"),
            (WithoutNamespaces, "signal 9|exit 3"),
        ],
        Memory(MEMORY),
    ),
    ("fill_the_root_with_a_file", |_| filled("big"), FILLED, Disk(DISK)),
    ("fill_tmp", |_| filled_with_many("/tmp"), &[(All, "ENOSPC"), (Namespaces, "ENOSPC")], Disk(DISK)),
    ("fill_shared_memory", |_| filled_with_many("/dev/shm"), &[(All, "ENOSPC"), (Namespaces, "ENOSPC")], Disk(DISK)),
    (
        "raise_a_limit",
        raised,
        &[(All, "EPERM"), (Namespaces, "EPERM"), (Landlock, "EPERM"), (WithoutNamespaces, "EPERM")],
        Disk(DISK),
    ),
];

/// Without a control group and a user namespace, the bound applies to all processes of the user: if others exhaust it,
/// the shell cannot start the bomb.
const FORKED: super::ExpectedErrors = &[
    (All, "EAGAIN"),
    (Namespaces, "EAGAIN"),
    (Landlock, "EAGAIN|exit Some(2) signal None"),
    (WithoutNamespaces, "EAGAIN|exit Some(2) signal None"),
];

const FILLED: super::ExpectedErrors = &[
    (All, "signal 25|exit 3"),
    (Namespaces, "signal 25|exit 3"),
    (Landlock, "signal 25|exit 3"),
    (WithoutNamespaces, "signal 25|exit 3"),
];

/// Starts processes that do nothing until the kernel refuses one.
fn fork_bomb(_: &Target) -> String {
    let mut started = Vec::new();
    let refused = loop {
        match call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) {
            Ok(0) => loop {
                let _ = call(libc::SYS_rt_sigsuspend, [[0_u64; 1].as_ptr() as usize, 8, 0, 0, 0, 0]);
            },
            Ok(process) => started.push(process),
            Err(error) => break error,
        }
        if started.len() as u64 > PROCESSES {
            break "done".to_owned();
        }
    };
    for process in started {
        let _ = call(libc::SYS_kill, [process as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
        let _ = call(libc::SYS_wait4, [process as usize, 0, 0, 0, 0, 0]);
    }
    refused
}

/// Takes four times the memory that there may be, and uses it.
fn memory_bomb(_: &Target) -> String {
    let ended = in_child(|| {
        let (length, page) = (4 * MEMORY as usize, 4096);
        let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let Ok(place) = call(libc::SYS_mmap, [0, length, rights, kind, usize::MAX, 0]) else { return 3 };
        for offset in (0..length).step_by(page) {
            // Reading the clock into a page writes to it.
            if call(libc::SYS_clock_gettime, [0, place as usize + offset, 0, 0, 0, 0]).is_err() {
                return 3;
            }
        }
        0
    });
    ended.unwrap_or_else(|error| error)
}

fn filled(path: &str) -> String {
    let block = vec![b'x'; 64 << 10];
    let ended = in_child(|| {
        let Ok(file) = open(path, libc::O_WRONLY | libc::O_CREAT, 0o644) else { return 2 };
        for _ in 0..2 * (DISK as usize / block.len()) {
            if call(libc::SYS_write, [file as usize, block.as_ptr() as usize, block.len(), 0, 0, 0]).is_err() {
                return 3;
            }
        }
        0
    });
    ended.unwrap_or_else(|error| error)
}

/// Fills a directory with many files, each of which is within the limit.
fn filled_with_many(directory: &str) -> String {
    let block = vec![b'x'; 64 << 10];
    for number in 0..2 * (DISK as usize / block.len()) {
        let written = open(&format!("{directory}/{number}"), libc::O_WRONLY | libc::O_CREAT, 0o644)
            .and_then(|file| call(libc::SYS_write, [file as usize, block.as_ptr() as usize, block.len(), 0, 0, 0]));
        match written {
            Ok(length) if length as usize == block.len() => {}
            Ok(_) => return "ENOSPC".to_owned(),
            Err(error) => return error,
        }
    }
    "done".to_owned()
}

fn raised(_: &Target) -> String {
    let unlimited = [u64::MAX, u64::MAX];
    outcome(call(libc::SYS_prlimit64, [0, libc::RLIMIT_FSIZE as usize, unlimited.as_ptr() as usize, 0, 0, 0]))
}
