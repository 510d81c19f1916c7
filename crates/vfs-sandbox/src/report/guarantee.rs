//! What holds a command, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the operating system that can hold commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mechanism {
    /// Namespaces, made by bubblewrap (`bwrap`).
    Namespaces,
    /// Landlock, which needs no privilege and no namespaces.
    Landlock,
    /// A seccomp filter over system calls.
    Seccomp,
}

impl Mechanism {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Namespaces, Self::Landlock, Self::Seccomp];
}

/// One thing that a sandbox enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Belt {
    /// Commands have a file tree, processes, users, and names of their own.
    Namespaces,
    /// System calls that commands have no use for are refused.
    Seccomp,
    /// Landlock refuses files beyond what is allowed.
    LandlockFiles,
    /// Landlock refuses TCP where there is to be no network.
    LandlockNetwork,
    /// Landlock keeps signals and abstract sockets inside.
    LandlockScope,
    /// No program gains privileges when it starts.
    NoNewPrivileges,
    /// Nothing of the host can be changed but what is mounted writable.
    ReadOnlySystem,
    /// Nothing of the host can be read but the system's programs, and what is mounted.
    PrivateFiles,
    /// `/tmp` is the command's own.
    PrivateTmp,
    /// There is no network, where none was asked for.
    NoNetwork,
    /// Processes outside cannot be signalled or traced.
    PrivateProcesses,
    /// Processes outside, with their arguments, and the name of the machine cannot be seen. In namespaces this takes a `/proc`
    /// and a name of their own, which the filters of some containers forbid: where this is not required, commands see the
    /// container's.
    HiddenProcesses,
    /// Protected paths are kept, and cannot be made where they are missing. Who replaces one on the host while a command
    /// runs takes the cover off it, for that command.
    ProtectedPaths,
    /// Protected names are kept at any depth where they are when a command starts.
    ProtectedNames,
    /// Unix sockets of the host cannot be reached.
    UnixSockets,
    /// Commands cannot find out where the host has what it mounts.
    HostPaths,
    /// The number of processes is bounded.
    Processes,
    /// The memory of all commands together is bounded.
    Memory,
}

impl Belt {
    /// All of them.
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

    /// What a sandbox requires unless it is told otherwise: what it is for, by whatever mechanism. The bounds and the
    /// second belts are used where they are there.
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

    /// What Landlock and seccomp enforce on their own, where namespaces are forbidden: for
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

    /// The word for it.
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

impl fmt::Display for Belt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}
