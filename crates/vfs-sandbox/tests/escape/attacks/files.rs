//! Reading and writing outside the root, by every path trick.

use super::Confinement::{All, Landlock, Namespaces, WithoutNamespaces};
use super::Setting::Usual;
use super::{ExpectedErrors, Row, Target};
use crate::system::{HERE, call, open, outcome, read, text, write};

/// Expected errors for files that are not mounted, or that Landlock does not allow to open.
const OUT_OF_SIGHT: ExpectedErrors =
    &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")];

/// Expected errors for changes in a directory that is visible only in namespaces, as read-only.
const UNTOUCHABLE: ExpectedErrors = &[
    (All, "EROFS|EACCES|ENOENT"),
    (Namespaces, "EROFS|EACCES|ENOENT"),
    (Landlock, "EACCES|EXDEV"),
    (WithoutNamespaces, "EACCES|EXDEV"),
];

pub(super) const ATTACKS: &[Row] = &[
    ("read_by_absolute_path", |target| read_of(&target.secret()), OUT_OF_SIGHT, Usual),
    ("write_by_absolute_path", |target| outcome(write(&target.planted(), "x")), OUT_OF_SIGHT, Usual),
    ("read_by_parent_directories", |target| read_of(&beyond(target)), OUT_OF_SIGHT, Usual),
    ("read_by_absolute_link", |target| linked(&target.secret(), "absolute"), OUT_OF_SIGHT, Usual),
    (
        "read_by_relative_link",
        |target| linked(&format!("../{}/secret", last(&target.outside)), "relative"),
        OUT_OF_SIGHT,
        Usual,
    ),
    ("read_through_a_link_to_a_directory", through_directory, OUT_OF_SIGHT, Usual),
    ("write_through_a_link", write_through_link, OUT_OF_SIGHT, Usual),
    ("read_by_a_path_descriptor", by_path_descriptor, OUT_OF_SIGHT, Usual),
    ("hard_link_to_a_file_outside", hard_link, UNTOUCHABLE_LINK, Usual),
    ("move_a_file_in", move_in, UNTOUCHABLE_LINK, Usual),
    ("move_a_file_out", move_out, UNTOUCHABLE_LINK, Usual),
    (
        "move_the_root_away",
        move_root,
        &[
            (All, "EBUSY|EACCES|EXDEV"),
            (Namespaces, "EBUSY|EXDEV"),
            (Landlock, "EACCES|EXDEV"),
            (WithoutNamespaces, "EACCES|EXDEV"),
        ],
        Usual,
    ),
    ("cut_a_file", cut, OUT_OF_SIGHT, Usual),
    ("make_a_directory_outside", make_directory, OUT_OF_SIGHT, Usual),
    (
        "change_the_mode_of_a_file_outside",
        change_mode,
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "change_the_time_of_a_file_outside",
        change_time,
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "change_attributes_of_a_file_outside",
        change_attributes,
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    ("change_the_mode_through_a_descriptor", |_| by_open_file(libc::SYS_fchmod), BY_DESCRIPTOR, Usual),
    ("change_the_owner_through_a_descriptor", |_| by_open_file(libc::SYS_fchown), BY_DESCRIPTOR, Usual),
    ("change_the_time_through_a_descriptor", |_| by_open_file(libc::SYS_utimensat), BY_DESCRIPTOR, Usual),
    ("set_an_attribute_through_a_descriptor", |_| attribute(libc::SYS_fsetxattr), BY_DESCRIPTOR, Usual),
    ("remove_an_attribute_through_a_descriptor", |_| attribute(libc::SYS_fremovexattr), BY_DESCRIPTOR, Usual),
    ("read_through_the_roots_of_processes", |target| by_processes(target, "root"), PROCESS_LINKS, Usual),
    ("read_through_the_directories_of_processes", |target| by_processes(target, "cwd"), PROCESS_LINKS, Usual),
    ("read_through_the_descriptors_of_processes", |target| by_processes(target, "fd"), PROCESS_LINKS, Usual),
    (
        "write_to_kernel_settings",
        |_| outcome(open("/proc/sys/kernel/hostname", libc::O_WRONLY, 0)),
        &[(All, "EROFS|EACCES"), (Namespaces, "EROFS|EACCES"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")],
        Usual,
    ),
    (
        "write_the_core_pattern",
        |_| outcome(open("/proc/sys/kernel/core_pattern", libc::O_WRONLY, 0)),
        &[(All, "EROFS|EACCES"), (Namespaces, "EROFS|EACCES"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")],
        Usual,
    ),
    (
        "press_a_system_request_key",
        |_| outcome(open("/proc/sysrq-trigger", libc::O_WRONLY, 0)),
        &[
            (All, "EROFS|EACCES|ENOENT"),
            (Namespaces, "EROFS|EACCES|ENOENT"),
            (Landlock, "EACCES|ENOENT"),
            (WithoutNamespaces, "EACCES|ENOENT"),
        ],
        Usual,
    ),
    (
        "write_to_a_program_of_the_system",
        |_| outcome(open("/usr/bin/env", libc::O_WRONLY, 0)),
        &[(All, "EROFS|EACCES"), (Namespaces, "EROFS|EACCES"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")],
        Usual,
    ),
    (
        "add_a_program_to_the_system",
        |_| outcome(write("/usr/bin/planted-by-escape-test", "x")),
        &[(All, "EROFS|EACCES"), (Namespaces, "EROFS|EACCES"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")],
        Usual,
    ),
    (
        "change_the_users_of_the_system",
        |_| outcome(open("/etc/passwd", libc::O_WRONLY, 0)),
        &[(All, "EROFS|EACCES"), (Namespaces, "EROFS|EACCES"), (Landlock, "EACCES"), (WithoutNamespaces, "EACCES")],
        Usual,
    ),
    ("read_passwords", |_| outcome(open("/etc/shadow", libc::O_RDONLY, 0)), OUT_OF_SIGHT, Usual),
    ("list_a_home", |_| outcome(open("/root", libc::O_RDONLY | libc::O_DIRECTORY, 0)), OUT_OF_SIGHT, Usual),
    (
        "write_beside_the_root",
        |target| outcome(write(&format!("{}/../planted-beside", target.inside), "x")),
        BESIDE,
        Usual,
    ),
    ("write_to_the_root_of_all", |_| outcome(write("/planted-by-escape-test", "x")), UNTOUCHABLE, Usual),
    (
        "enter_a_control_group",
        |_| outcome(open("/sys/fs/cgroup/cgroup.procs", libc::O_WRONLY, 0)),
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "EACCES|ENOENT"), (WithoutNamespaces, "EACCES|ENOENT")],
        Usual,
    ),
    (
        "keep_a_descriptor_of_the_host",
        descriptors,
        &[(All, "EBADF"), (Namespaces, "EBADF"), (Landlock, "EBADF"), (WithoutNamespaces, "EBADF")],
        Usual,
    ),
    (
        "read_the_secrets_of_the_environment",
        environment,
        &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "ENOENT"), (WithoutNamespaces, "ENOENT")],
        Usual,
    ),
];

/// Expected errors for changes through a descriptor: namespaces show the file as read-only; without them, the filter
/// denies the call or reports success without effect.
const BY_DESCRIPTOR: ExpectedErrors =
    &[(All, "EROFS|EPERM"), (Namespaces, "EROFS|EPERM"), (WithoutNamespaces, "EPERM|ignored")];

const UNTOUCHABLE_LINK: ExpectedErrors =
    &[(All, "ENOENT"), (Namespaces, "ENOENT"), (Landlock, "EACCES|EXDEV"), (WithoutNamespaces, "EACCES|EXDEV")];

/// Expected errors for writes beside the mount. In namespaces, bubblewrap creates the parent directory in memory, so
/// they are harmless.
const BESIDE: ExpectedErrors = &[(Landlock, "EACCES"), (WithoutNamespaces, "EACCES")];

/// Expected errors for links of processes: a process namespace shows no process whose root or directory is that of the
/// host; otherwise Landlock denies access.
const PROCESS_LINKS: ExpectedErrors = &[
    (All, "ENOENT|EACCES|EPERM"),
    (Namespaces, "ENOENT|EACCES|EPERM"),
    (Landlock, "EACCES|EPERM"),
    (WithoutNamespaces, "EACCES|EPERM"),
];

fn read_of(path: &str) -> String {
    outcome(read(path).map(|_| 0))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().expect("a name")
}

fn beyond(target: &Target) -> String {
    format!("{}/../{}/secret", target.inside, last(&target.outside))
}

fn linked(to: &str, name: &str) -> String {
    let (to, name) = (text(to), text(name));
    if let Err(error) = call(libc::SYS_symlinkat, [to.as_ptr() as usize, HERE, name.as_ptr() as usize, 0, 0, 0]) {
        return format!("no link: {error}");
    }
    read_of(name.to_str().expect("UTF-8"))
}

fn through_directory(target: &Target) -> String {
    let (to, name) = (text("/"), text("slash"));
    if let Err(error) = call(libc::SYS_symlinkat, [to.as_ptr() as usize, HERE, name.as_ptr() as usize, 0, 0, 0]) {
        return format!("no link: {error}");
    }
    read_of(&format!("slash{}", target.secret()))
}

fn write_through_link(target: &Target) -> String {
    let (to, name) = (text(&target.planted()), text("into"));
    if let Err(error) = call(libc::SYS_symlinkat, [to.as_ptr() as usize, HERE, name.as_ptr() as usize, 0, 0, 0]) {
        return format!("no link: {error}");
    }
    outcome(write("into", "x"))
}

/// Landlock allows to open any path as `O_PATH`, but no file relative to it.
fn by_path_descriptor(target: &Target) -> String {
    let place = match open(&target.outside, libc::O_PATH | libc::O_DIRECTORY, 0) {
        Ok(place) => place,
        Err(error) => return error,
    };
    let name = text("secret");
    outcome(call(libc::SYS_openat, [place as usize, name.as_ptr() as usize, libc::O_RDONLY as usize, 0, 0, 0]))
}

fn two_paths(number: i64, from: &str, to: &str) -> String {
    let (from, to) = (text(from), text(to));
    outcome(call(number, [HERE, from.as_ptr() as usize, HERE, to.as_ptr() as usize, 0, 0]))
}

fn hard_link(target: &Target) -> String {
    two_paths(libc::SYS_linkat, &target.secret(), "hard")
}

fn move_in(target: &Target) -> String {
    two_paths(libc::SYS_renameat2, &target.secret(), "stolen")
}

fn move_out(target: &Target) -> String {
    if let Err(error) = write("mine", "x") {
        return format!("no file: {error}");
    }
    two_paths(libc::SYS_renameat2, "mine", &target.planted())
}

fn move_root(target: &Target) -> String {
    two_paths(libc::SYS_renameat2, &target.inside, &format!("{}-moved", target.inside))
}

fn cut(target: &Target) -> String {
    let path = text(&target.secret());
    outcome(call(libc::SYS_truncate, [path.as_ptr() as usize, 0, 0, 0, 0, 0]))
}

fn make_directory(target: &Target) -> String {
    let path = text(&target.planted());
    outcome(call(libc::SYS_mkdirat, [HERE, path.as_ptr() as usize, 0o755, 0, 0, 0]))
}

fn change_mode(target: &Target) -> String {
    let path = text(&target.secret());
    outcome(call(libc::SYS_fchmodat, [HERE, path.as_ptr() as usize, 0o777, 0, 0, 0]))
}

fn change_time(target: &Target) -> String {
    let path = text(&target.secret());
    outcome(call(libc::SYS_utimensat, [HERE, path.as_ptr() as usize, 0, 0, 0, 0]))
}

fn change_attributes(target: &Target) -> String {
    let (path, name) = (text(&target.secret()), text("user.planted"));
    outcome(call(libc::SYS_setxattr, [path.as_ptr() as usize, name.as_ptr() as usize, name.as_ptr() as usize, 1, 0, 0]))
}

/// Changes the metadata of a file that is open for reading, and checks whether a reported success had an effect.
fn by_open_file(number: i64) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let path = shared_file();
    let look = || {
        let found = std::fs::metadata(&path).expect("it is shown");
        [i64::from(found.mode() & 0o7777), i64::from(found.gid()), found.mtime()]
    };
    let file = open(&path, libc::O_RDONLY, 0).expect("it may be read") as usize;
    let change = |[mode, group, modified]: [i64; 3]| {
        let times = [modified, 0, modified, 0];
        let arguments = match number {
            libc::SYS_fchmod => [file, mode as usize, 0, 0, 0, 0],
            libc::SYS_fchown => [file, usize::MAX, group as usize, 0, 0, 0],
            _ => [file, 0, times.as_ptr() as usize, 0, 0, 0],
        };
        call(number, arguments)
    };
    let before = look();
    let [mode, group, modified] = before;
    match change([mode ^ 1, group + 1, modified + 1]) {
        Err(error) => error,
        Ok(_) if look() == before => "ignored".to_owned(),
        Ok(_) => format!("done, and undone: {:?}", change(before)),
    }
}

fn attribute(number: i64) -> String {
    let file = match open(&shared_file(), libc::O_RDONLY, 0) {
        Ok(file) => file as usize,
        Err(error) => return format!("no file: {error}"),
    };
    let (name, value) = (text("user.planted"), [0_u8; 1]);
    outcome(call(number, [file, name.as_ptr() as usize, value.as_ptr() as usize, 1, 0, 0]))
}

/// Returns a file that every sandbox of this test shows as read-only: the attacking program.
fn shared_file() -> String {
    std::env::args().next().expect("a program has a name")
}

/// Tries all visible processes, and the victim, the first process and the parent.
fn by_processes(target: &Target, link: &str) -> String {
    let parent = call(libc::SYS_getppid, [0; 6]).unwrap_or(1);
    let mut found: Vec<String> = vec!["1".into(), "self".into(), parent.to_string(), target.victim.to_string()];
    if let Ok(entries) = std::fs::read_dir("/proc") {
        found.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
    }
    let mut refused = "ENOENT".to_owned();
    for process in found {
        let beside = format!("../{}/secret", last(&target.outside));
        let tried = match link {
            "root" => vec![format!("root{}", target.secret())],
            "cwd" => vec![format!("cwd/{beside}")],
            _ => (0..64).map(|number| format!("fd/{number}/{beside}")).collect(),
        };
        for way in tried {
            match read(&format!("/proc/{process}/{way}")) {
                Ok(_) => return format!("done by {process}/{way}"),
                Err(error) if error != "ENOENT" && error != "ENOTDIR" && error != "ESRCH" => refused = error,
                Err(_) => {}
            }
        }
    }
    refused
}

/// Only the three standard descriptors are open.
fn descriptors(_: &Target) -> String {
    let open = |number: &usize| call(libc::SYS_fcntl, [*number, libc::F_GETFD as usize, 0, 0, 0, 0]).is_ok();
    match (3..4096).find(open) {
        Some(number) => {
            let place = std::fs::read_link(format!("/proc/self/fd/{number}"));
            format!("done: {number} is {place:?}")
        }
        None => "EBADF".to_owned(),
    }
}

fn environment(_: &Target) -> String {
    let whole = std::fs::read("/proc/self/environ").unwrap_or_default();
    let seen = whole.windows(crate::SECRET.len()).any(|window| window == crate::SECRET.as_bytes());
    let variable = std::env::vars_os().any(|(_, value)| value == crate::SECRET);
    if seen || variable { "done".to_owned() } else { "ENOENT".to_owned() }
}
