//! Guarantees that a sandbox can enforce, and the mechanisms of the kernel behind them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mechanism of the operating system that can confine commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mechanism {
    /// Namespaces, created by bubblewrap (`bwrap`).
    Namespaces,
    /// Landlock, which needs no privilege and no namespaces.
    Landlock,
    /// A seccomp filter over system calls.
    Seccomp,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: &[Self] = &[Self::Namespaces, Self::Landlock, Self::Seccomp];
}

/// One property that a sandbox enforces for its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Guarantee {
    /// Commands have mount, process, user and host name namespaces of their own.
    Namespaces,
    /// System calls that commands do not need are refused.
    Seccomp,
    /// Landlock refuses access to files that the sandbox does not show.
    LandlockFiles,
    /// Landlock refuses TCP if the network is off.
    LandlockNetwork,
    /// Landlock keeps signals and abstract sockets inside.
    LandlockScope,
    /// Programs cannot gain privileges.
    NoNewPrivileges,
    /// Writable mounts are the only files of the host that can be changed.
    ReadOnlySystem,
    /// The system's programs and the mounts are the only files of the host that can be read.
    PrivateFiles,
    /// Each command has a `/tmp` of its own.
    PrivateTmp,
    /// There is no network, if the network is off.
    NoNetwork,
    /// Processes outside cannot be signalled or traced.
    PrivateProcesses,
    /// Processes outside, with their arguments, and the name of the machine cannot be seen. In namespaces this takes a `/proc`
    /// and a host name of their own, which the filters of some containers forbid: if this is not required there, commands see
    /// those of the container.
    HiddenProcesses,
    /// Protected paths are protected, and cannot be created if they are missing. If one is replaced on the host while a command
    /// runs, it is no longer protected from that command.
    ProtectedPaths,
    /// Entries that have a protected name when a command starts are protected, at any depth.
    ProtectedNames,
    /// Unix sockets of the host cannot be reached.
    UnixSockets,
    /// Commands cannot determine the paths of the mounts on the host.
    HostPaths,
    /// The number of processes is bounded.
    Processes,
    /// The memory of all commands together is bounded.
    Memory,
}

impl Guarantee {
    /// All guarantees, in the order of reports.
    pub const ALL: &[Self] = &[
        Self::Namespaces,
        Self::Seccomp,
        Self::LandlockFiles,
        Self::LandlockNetwork,
        Self::LandlockScope,
        Self::NoNewPrivileges,
        Self::ReadOnlySystem,
        Self::PrivateFiles,
        Self::PrivateTmp,
        Self::NoNetwork,
        Self::PrivateProcesses,
        Self::HiddenProcesses,
        Self::ProtectedPaths,
        Self::ProtectedNames,
        Self::UnixSockets,
        Self::HostPaths,
        Self::Processes,
        Self::Memory,
    ];

    /// The guarantees that a sandbox requires by default, by any mechanism. Bounds and additional mechanisms are used
    /// if they are available.
    pub const REQUIRED: &[Self] = &[
        Self::Seccomp,
        Self::NoNewPrivileges,
        Self::ReadOnlySystem,
        Self::PrivateFiles,
        Self::PrivateTmp,
        Self::NoNetwork,
        Self::PrivateProcesses,
        Self::HiddenProcesses,
        Self::ProtectedPaths,
        Self::ProtectedNames,
        Self::UnixSockets,
    ];

    /// The guarantees of Landlock and seccomp alone, for systems that forbid namespaces: for
    /// [`SandboxConfig::require`](crate::SandboxConfig::require).
    pub const WITHOUT_NAMESPACES: &[Self] = &[
        Self::Seccomp,
        Self::LandlockFiles,
        Self::NoNewPrivileges,
        Self::ReadOnlySystem,
        Self::PrivateFiles,
        Self::NoNetwork,
        Self::PrivateProcesses,
        Self::HiddenProcesses,
        Self::UnixSockets,
    ];

    /// Returns the name of the guarantee, as in reports.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Seccomp => "seccomp",
            Self::LandlockFiles => "landlock_files",
            Self::LandlockNetwork => "landlock_network",
            Self::LandlockScope => "landlock_scope",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::ReadOnlySystem => "read_only_system",
            Self::PrivateFiles => "private_files",
            Self::PrivateTmp => "private_tmp",
            Self::NoNetwork => "no_network",
            Self::PrivateProcesses => "private_processes",
            Self::HiddenProcesses => "hidden_processes",
            Self::ProtectedPaths => "protected_paths",
            Self::ProtectedNames => "protected_names",
            Self::UnixSockets => "unix_sockets",
            Self::HostPaths => "host_paths",
            Self::Processes => "processes",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}
