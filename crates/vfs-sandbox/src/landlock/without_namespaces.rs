//! Commands without namespaces, confined by Landlock and the filter of system calls.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use vfs_core::backend::AccessMode;
use vfs_shell::SpawnSpec;

use crate::config::{Network, SandboxConfig};
use crate::landlock::{LandlockAccess, LandlockRules};
use crate::namespaces::system_files::SystemFiles;
use crate::protect::open_mount::OpenMount;
use crate::seccomp::SeccompProfile;

/// Harmless devices, and the terminal of the command.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Files about the machine that programs read. Files about processes are not readable, since they show all processes of
/// the host.
const MACHINE: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// Returns the Landlock rules for commands.
pub(crate) fn rules(config: &SandboxConfig, mounts: &[OpenMount]) -> LandlockRules {
    let system = SystemFiles::detect(config.network);
    let mut rules = LandlockRules { network: config.network, ..LandlockRules::default() };
    for path in system.directories.iter().chain(&system.settings).chain(&system.setting_files).chain(&config.tools) {
        rules.grant(LandlockAccess::Read, path);
    }
    for path in MACHINE {
        rules.grant(LandlockAccess::Read, path);
    }
    for path in DEVICES {
        rules.grant(LandlockAccess::Device, path);
    }
    for mount in mounts {
        let grant = if mount.access == AccessMode::ReadWrite { LandlockAccess::Write } else { LandlockAccess::Read };
        rules.grant(grant, &mount.directory);
    }
    rules
}

/// Returns the profile of the filter for commands.
pub(crate) fn seccomp_profile(network: Network) -> SeccompProfile {
    match network {
        Network::Off => SeccompProfile::Host,
        Network::Host => SeccompProfile::HostWithInternet,
    }
}

/// Returns how to start a command.
pub(crate) fn launch(command: &str, directory: OwnedFd, environment: Vec<(OsString, OsString)>) -> SpawnSpec {
    let mut launch = SpawnSpec::new("/bin/sh", directory);
    launch.arguments = vec!["-c".into(), "--".into(), command.into()];
    launch.environment = environment;
    launch
}
