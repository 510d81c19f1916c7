//! Files of the host's system that commands see.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, lstat, readlink, stat};

use crate::config::Network;

/// User as whom a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandUser {
    /// The user who started it.
    Same,
    /// An ordinary user, since root started it.
    Ordinary,
}

impl CommandUser {
    /// The user and group that an ordinary user has inside.
    pub(crate) const ORDINARY: u32 = 1000;
}

/// The host's directories with programs, and the settings that programs need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SystemFiles {
    /// Directories, at their own paths.
    pub(crate) directories: Vec<PathBuf>,
    /// Links, as target and path.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Directories of `/etc`.
    pub(crate) settings: Vec<PathBuf>,
    /// Files of `/etc`, which are copied, since that is cheaper than a mount for each.
    pub(crate) setting_files: Vec<PathBuf>,
    /// Parts of `/proc` that root of the host may write to even where it has no capabilities.
    pub(crate) kernel_settings: Vec<PathBuf>,
    /// Files of `/proc` that root of the host may read even where it has no capabilities.
    pub(crate) kernel_memory: Vec<PathBuf>,
}

/// Everything in `/proc` that is not about processes and that root may write to.
const KERNEL_SETTINGS: &[&str] = &[
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Files of `/proc` about the whole machine that only root may read.
const KERNEL_MEMORY: &[&str] = &["/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/timer_list"];

/// Directories in which distributions keep programs and libraries. Others have to be added as tools.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Settings without which programs fail. None of them is secret, unlike other files of `/etc`.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Settings that the network needs.
const NETWORK_SETTINGS: &[&str] = &["/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf"];

impl SystemFiles {
    /// Finds the files of this host, with those that `network` needs.
    pub(crate) fn detect(network: Network) -> Self {
        let mut system = Self::default();
        for path in PROGRAMS.iter().map(Path::new) {
            let Ok(status) = lstat(path) else { continue };
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => system.directories.push(path.to_owned()),
                FileType::Symlink => {
                    if let Some(target) = link_target(path) {
                        system.links.push((target, path.to_owned()));
                    }
                }
                _ => {}
            }
        }
        let others = if network == Network::Host { NETWORK_SETTINGS } else { &[] };
        for path in SETTINGS.iter().chain(others).map(PathBuf::from) {
            match stat(&path).map(|status| FileType::from_raw_mode(status.st_mode)) {
                Ok(FileType::Directory) => system.settings.push(path),
                Ok(FileType::RegularFile) => system.setting_files.push(path),
                _ => {}
            }
        }
        let existing = |paths: &[&str]| paths.iter().map(PathBuf::from).filter(|path| stat(path).is_ok()).collect();
        system.kernel_settings = existing(KERNEL_SETTINGS);
        system.kernel_memory = existing(KERNEL_MEMORY);
        system
    }

    /// Returns whether `path` is in or above a system directory, so that no mount may be there.
    pub(crate) fn reserves(path: &Path) -> bool {
        let places = ["/etc", "/proc", "/dev", "/sys", "/run"];
        let below =
            PROGRAMS.iter().chain(&places).any(|place| path.starts_with(place) || Path::new(place).starts_with(path));
        below || path == Path::new("/tmp")
    }
}

fn link_target(link: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let target = readlink(link, Vec::new()).ok()?;
    Some(std::ffi::OsString::from_vec(target.into_bytes()).into())
}

/// Returns the files of `/etc` that are generated for commands, so that they reveal no users and names of the host.
pub(crate) fn generated_files(identity: CommandUser, network: Network) -> Vec<(&'static str, String)> {
    let (user, group) = match identity {
        CommandUser::Ordinary => (CommandUser::ORDINARY, CommandUser::ORDINARY),
        CommandUser::Same => (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
    };
    let mut users = format!("sandbox:x:{user}:{group}:sandbox:/tmp:/bin/sh\n");
    let mut groups = format!("sandbox:x:{group}:\n");
    const NOBODY: u32 = 65534;
    if user != NOBODY {
        users.push_str("nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n");
    }
    if group != NOBODY {
        groups.push_str("nogroup:x:65534:\n");
    }
    let names = match network {
        Network::Off => "files",
        Network::Host => "files dns",
    };
    let mut files = vec![
        ("/etc/passwd", users),
        ("/etc/group", groups),
        (
            "/etc/nsswitch.conf",
            format!("passwd: files\ngroup: files\nhosts: {names}\nservices: files\nprotocols: files\n"),
        ),
    ];
    if network == Network::Off {
        files.push(("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n".to_owned()));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mount_takes_the_place_of_the_system() {
        for (path, owned) in [
            ("/", true),
            ("/usr", true),
            ("/usr/local/x", true),
            ("/etc/ssl", true),
            ("/tmp", true),
            ("/nix", true),
            ("/tmp/project", false),
            ("/workspace", false),
            ("/home/me/project", false),
            ("/usrx", false),
        ] {
            assert_eq!(SystemFiles::reserves(Path::new(path)), owned, "{path}");
        }
    }

    #[test]
    fn the_system_of_this_host_has_a_shell() {
        let system = SystemFiles::detect(Network::Off);
        assert!(system.directories.iter().any(|path| path == Path::new("/usr")), "{system:?}");
    }
}
