//! Description of everything but the settings on which the result of a self-test depends.
#![expect(clippy::disallowed_methods, reason = "files of the kernel are in no backend")]

use std::fmt::Write as _;
use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

use super::mount_table;
use crate::file_version::FileVersion;

/// Fields of `/proc/thread-self/status` with the credentials of this thread.
const CREDENTIALS: [&str; 9] = ["Uid", "Gid", "Groups", "NoNewPrivs", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

const NAMESPACES: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// The state of security modules, and the settings of the kernel that govern namespaces. Few kernels have all of them.
const SECURITY: [&str; 15] = [
    "/proc/thread-self/attr/current",
    "/proc/thread-self/attr/apparmor/current",
    "/sys/kernel/security/lsm",
    "/sys/fs/selinux/enforce",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/user/max_cgroup_namespaces",
    "/proc/sys/user/max_ipc_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/user/max_net_namespaces",
    "/proc/sys/user/max_pid_namespaces",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_uts_namespaces",
];

/// Files whose versions are described: the running program, which contains the filter and the rules; the shell of
/// commands; and the list of the libraries that bubblewrap loads.
const FILES: [&str; 3] = ["/proc/self/exe", "/bin/sh", "/etc/ld.so.cache"];

/// Returns a description of the system; `None` under a filter of system calls, whose effect the kernel does not reveal,
/// or if `/proc` is incomplete.
pub(super) fn describe() -> Option<String> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    if field("Seccomp") != Some("0") {
        return None;
    }
    let mut text = format!("{:?}\n", uname());
    text.push_str(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?);
    for name in CREDENTIALS {
        writeln!(text, "{name} {}", field(name)?).ok()?;
    }
    for name in NAMESPACES {
        // Not every kernel has all of them.
        writeln!(text, "{name} {:?}", fs::read_link(format!("/proc/thread-self/ns/{name}")).ok()).ok()?;
    }
    for path in SECURITY {
        writeln!(text, "{path} {:?}", fs::read(path).map_err(|error| error.raw_os_error())).ok()?;
    }
    for path in FILES {
        writeln!(text, "{path} {:?}", FileVersion::at(path)).ok()?;
    }
    writeln!(text, "{:?}", getrlimit(Resource::Nproc)).ok()?;
    text.push_str(&fs::read_to_string(mount_table::FILE).ok()?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_stays_as_long_as_the_system_does() {
        let Some(text) = describe() else { return };
        assert_eq!(describe().as_deref(), Some(text.as_str()));
        for part in ["Uid", "CapEff", "mnt Some", "/proc/self/exe Some", " / / "] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }
}
