//! Commands without namespaces: held by Landlock and a filter over system calls.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use vfs_core::Access;
use vfs_shell::Launch;

use crate::config::{Network, SandboxConfig};
use crate::landlock::{Grant, Rules};
use crate::namespaces::system::System;
use crate::protect::open_mount::Held;
use crate::seccomp::Reach;

/// The devices that are no danger, with the terminal that was made for the command.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What programs read about the machine. What `/proc` says of processes stays closed: it is about everybody's.
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

/// What Landlock allows.
pub(crate) fn rules(config: &SandboxConfig, mounts: &[Held]) -> Rules {
    let system = System::found(config.network);
    let mut rules = Rules { network: config.network, ..Rules::default() };
    for path in system.directories.iter().chain(&system.settings).chain(&system.setting_files).chain(&config.tools) {
        rules.grant(Grant::Read, path);
    }
    for path in MACHINE {
        rules.grant(Grant::Read, path);
    }
    for path in DEVICES {
        rules.grant(Grant::Device, path);
    }
    for mount in mounts {
        let grant = if mount.access == Access::ReadWrite { Grant::Write } else { Grant::Read };
        rules.grant(grant, &mount.directory);
    }
    rules
}

/// What the filter has to keep a command from.
pub(crate) fn reach(network: Network) -> Reach {
    match network {
        Network::Off => Reach::Host,
        Network::Host => Reach::HostWithInternet,
    }
}

/// What to start for a command.
pub(crate) fn launch(command: &str, directory: OwnedFd, environment: Vec<(OsString, OsString)>) -> Launch {
    let mut launch = Launch::new("/bin/sh", directory);
    launch.arguments = vec!["-c".into(), "--".into(), command.into()];
    launch.environment = environment;
    launch
}
