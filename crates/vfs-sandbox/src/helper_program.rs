//! Helper program that applies Landlock inside namespaces, just before a command starts.
//!
//! Landlock forbids mounts, so it cannot be applied before bubblewrap has made them.

pub(crate) mod memfd;
pub(crate) mod termination_signal_handling;
pub(crate) mod trusted_programs;

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, statat};
use rustix::io::Errno;

use crate::config::{self, Network};
use crate::file_descriptors::is_same;
use crate::file_version::FileVersion;
use crate::landlock::{LandlockAccess, LandlockRules};
use crate::protect::nested_covers;
use crate::protect::open_mount::OpenMount;
use crate::sandbox::confinement::limit_processes;
use crate::seccomp;

const HELPER_OPTION: &str = "--vfs-confine";

/// Steps that the helper performs before it becomes the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HelperTask {
    pub(crate) rules: LandlockRules,
    pub(crate) processes: Option<u64>,
    /// Inherited descriptor of the helper's own program.
    pub(crate) own: Option<i32>,
    /// The files expected at these paths.
    pub(crate) covers: Vec<(PathBuf, ExpectedCoverTarget)>,
    /// Whether the helper covers the entries listed in [`nested_covers::LIST`], and then applies the filter in
    /// [`FILTER`].
    pub(crate) nested: HelperCoverMode,
}

/// Whether the helper mounts covers, and whether it applies the filter afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HelperCoverMode {
    #[default]
    None,
    /// The helper mounts the listed covers; the command needs no other filter.
    Listed,
    /// The helper mounts the listed covers, and then applies the filter for the command.
    ListedBeforeFilter,
}

impl HelperCoverMode {
    const OPTIONS: [(Self, &str); 2] =
        [(Self::Listed, "--nested-covers"), (Self::ListedBeforeFilter, "--nested-covers-before-filter")];
}

/// The file with the filter of a command, which cannot be applied before the helper has mounted covers.
pub(crate) const FILTER: &str = "/run/vfs-filter";

/// The file expected at a path that is covered. Bubblewrap resolves the path, so another writer of the host's directory could
/// make bubblewrap cover another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedCoverTarget {
    /// This file or directory.
    Exactly { device: u64, inode: u64 },
    /// A file created for the command, which is not on the device of the mount.
    OffDevice { device: u64 },
}

impl ExpectedCoverTarget {
    fn is_at(self, path: &Path) -> bool {
        let there = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| match self {
            Self::Exactly { device, inode } => (there.st_dev, there.st_ino) == (device, inode),
            Self::OffDevice { device } => there.st_dev != device,
        })
    }
}

impl HelperTask {
    /// Returns the arguments for this task, up to the command.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![HELPER_OPTION.into()];
        for (access, path) in &self.rules.grants {
            let option = LandlockAccess::OPTIONS
                .iter()
                .find(|(other, _)| other == access)
                .map_or("--list", |(_, option)| option);
            line.extend([option.into(), path.into()]);
        }
        if self.rules.network == Network::Host {
            line.push("--network".into());
        }
        if let Some(processes) = self.processes {
            line.extend(["--processes".into(), processes.to_string().into()]);
        }
        if let Some(own) = self.own {
            line.extend(["--own".into(), own.to_string().into()]);
        }
        if let Some((_, option)) = HelperCoverMode::OPTIONS.iter().find(|(nested, _)| *nested == self.nested) {
            line.push(option.into());
        }
        for (path, covered) in &self.covers {
            match covered {
                ExpectedCoverTarget::Exactly { device, inode } => {
                    line.extend(["--covered-by".into(), device.to_string().into(), inode.to_string().into()]);
                }
                ExpectedCoverTarget::OffDevice { device } => {
                    line.extend(["--covered-by-other-than".into(), device.to_string().into()]);
                }
            }
            line.push(path.into());
        }
        line.push("--".into());
        line
    }

    /// Parses the arguments into a task and the command that follows.
    fn parse(mut line: impl Iterator<Item = OsString>) -> Result<(Self, Vec<OsString>), String> {
        let mut task = Self::default();
        while let Some(option) = line.next() {
            match option.to_str() {
                Some("--") => return Ok((task, line.collect())),
                Some("--network") => task.rules.network = Network::Host,
                Some("--processes") => task.processes = Some(number(line.next())?),
                Some("--own") => task.own = Some(number(line.next())?),
                Some("--covered-by") => {
                    let covered =
                        ExpectedCoverTarget::Exactly { device: number(line.next())?, inode: number(line.next())? };
                    task.covers.push((line.next().ok_or("a path is missing")?.into(), covered));
                }
                Some("--covered-by-other-than") => {
                    let covered = ExpectedCoverTarget::OffDevice { device: number(line.next())? };
                    task.covers.push((line.next().ok_or("a path is missing")?.into(), covered));
                }
                _ if let Some((nested, _)) =
                    HelperCoverMode::OPTIONS.iter().find(|(_, name)| OsStr::new(name) == option) =>
                {
                    task.nested = *nested;
                }
                _ => {
                    let grant = LandlockAccess::OPTIONS.iter().find(|(_, name)| OsStr::new(name) == option);
                    let (grant, _) = grant.ok_or_else(|| format!("unknown option {option:?}"))?;
                    task.rules.grant(*grant, line.next().ok_or("a path is missing")?);
                }
            }
        }
        Err("the command is missing".to_owned())
    }

    /// Performs the task and becomes the command. Returns only if that fails.
    fn become_command(&self, command: &[OsString]) -> Result<Infallible, String> {
        let (program, arguments) = command.split_first().ok_or("the command is missing")?;
        let mut command = Command::new(program);
        let environment = read_environment().map_err(|error| format!("the environment cannot be read: {error}"))?;
        command.args(arguments).env_clear().envs(environment);
        self.apply()?;
        termination_signal_handling::restore()
            .map_err(|error| format!("the handling of signals cannot be reset: {error}"))?;
        Err(command.exec().to_string())
    }

    fn apply(&self) -> Result<(), String> {
        if let Some(own) = self.own {
            memfd::close(own).map_err(|error| format!("the program of the helper cannot be closed: {error}"))?;
        }
        if let Some((path, _)) = self.covers.iter().find(|(path, covered)| !covered.is_at(path)) {
            let path = path.display();
            return Err(format!("{path} was replaced while the command was started, which is not run; try again"));
        }
        let filter = match self.nested {
            HelperCoverMode::ListedBeforeFilter => Some(read_filter()?),
            HelperCoverMode::None | HelperCoverMode::Listed => None,
        };
        if self.nested != HelperCoverMode::None {
            nested_covers::mount_covers()?;
        }
        if let Some(processes) = self.processes {
            limit_processes(processes).map_err(|error| format!("processes cannot be bounded: {error}"))?;
        }
        let status = self.rules.ruleset()?.restrict_self().map_err(|error| error.to_string())?;
        if status.ruleset == landlock::RulesetStatus::NotEnforced {
            return Err("Landlock is not enforced".to_owned());
        }
        if let Some(filter) = filter {
            seccompiler::apply_filter(&filter).map_err(|error| format!("the filter cannot be applied: {error}"))?;
        }
        Ok(())
    }
}

/// Reads the filter for the command.
fn read_filter() -> Result<seccompiler::BpfProgram, String> {
    let bytes = nested_covers::read_file(FILTER).map_err(|error| format!("the filter cannot be read: {error}"))?;
    seccomp::from_bytes(&bytes)
}

fn number<N: std::str::FromStr>(text: Option<OsString>) -> Result<N, String> {
    let text = text.ok_or("a number is missing")?;
    text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| format!("{text:?} is not a number"))
}

/// The file with the command's environment. The helper itself has an empty environment: `LD_PRELOAD` would load code
/// into it that it has to confine.
pub(crate) const ENVIRONMENT: &str = "/run/vfs-environment";

fn read_environment() -> std::io::Result<Vec<(OsString, OsString)>> {
    let bytes = nested_covers::read_file(ENVIRONMENT)?;
    let variable = |text: &[u8]| {
        let equals = text.iter().position(|&byte| byte == b'=')?;
        let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((part(&text[..equals]), part(&text[equals + 1..])))
    };
    Ok(bytes.split(|&byte| byte == 0).filter_map(variable).collect())
}

/// Encodes an environment as the helper reads it.
pub(crate) fn environment_bytes(environment: &[(OsString, OsString)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in environment {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Runs this process as the helper of a sandbox and does not return, if its arguments request that. Otherwise does
/// nothing.
///
/// A program that is the [helper](crate::HelperLocation::At) of its own sandboxes calls this function first in `main`, before it starts
/// threads.
pub fn sandbox_helper_main() {
    let mut line = std::env::args_os().skip(1);
    if line.next().as_deref() != Some(OsStr::new(HELPER_OPTION)) {
        return;
    }
    let error = match HelperTask::parse(line).and_then(|(task, command)| task.become_command(&command)) {
        Err(error) => error,
        Ok(never) => match never {},
    };
    // A failure to write the message cannot be reported either.
    let _ = writeln!(std::io::stderr(), "vfs-confine: {error}");
    std::process::exit(126);
}

/// Path of the running program, also after its file was moved or removed.
const RUNNING: &str = "/proc/self/exe";

/// Opens the helper as a file that nobody can change, and returns it with the version of its program, or the reason for
/// which there is none.
pub(crate) fn open(
    helper: &config::HelperLocation,
    mounts: &[OpenMount],
) -> Result<(OwnedFd, Option<FileVersion>), String> {
    const NAME: &str = "vfs-confine";
    let advice = |why: String| format!("{why}; put {NAME} next to the program or in PATH, or name it in the settings");
    let path = match helper {
        config::HelperLocation::Unused => return Err("the settings exclude the helper".to_owned()),
        config::HelperLocation::At(path) if is_running(path) => PathBuf::from(RUNNING),
        config::HelperLocation::At(path) => trusted_programs::verify(path, mounts).map_err(advice)?,
        config::HelperLocation::Found => {
            let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(NAME)));
            trusted_programs::find(NAME, beside, mounts).map_err(advice)?
        }
    };
    let version = FileVersion::at(&path);
    let file = if path == Path::new(RUNNING) { open_running() } else { memfd::copy(&path) };
    Ok((file.map_err(|error| format!("the helper cannot be copied: {error}"))?, version))
}

/// Opens the running program, or copies it to memory if its file can be written to. While a program runs, the kernel
/// refuses writes with `ETXTBSY`, except Linux 6.11 and 6.12.
fn open_running() -> std::io::Result<OwnedFd> {
    match rustix::fs::open(RUNNING, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::TXTBSY) => Ok(rustix::fs::open(RUNNING, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
        _ => memfd::copy(Path::new(RUNNING)),
    }
}

/// Returns whether `path` is the running program, which is trusted already.
fn is_running(path: &Path) -> bool {
    let [running, named] = [Path::new(RUNNING), path].map(rustix::fs::stat);
    running.is_ok_and(|running| named.is_ok_and(|named| is_same(&running, &named)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_parsed_as_it_was_written() {
        let mut task = HelperTask { processes: Some(64), own: Some(7), ..HelperTask::default() };
        task.covers = vec![
            ("/w/.git".into(), ExpectedCoverTarget::Exactly { device: u64::MAX, inode: 2 }),
            ("/w/.env".into(), ExpectedCoverTarget::OffDevice { device: 3 }),
        ];
        for (grant, _) in LandlockAccess::OPTIONS {
            task.rules.grant(grant, format!("/a path/{grant:?}"));
        }
        for (network, nested) in [
            (Network::Off, HelperCoverMode::None),
            (Network::Host, HelperCoverMode::Listed),
            (Network::Host, HelperCoverMode::ListedBeforeFilter),
        ] {
            (task.rules.network, task.nested) = (network, nested);
            let mut line = task.arguments();
            line.extend(["/bin/sh".into(), "--read".into()]);
            let (parsed, command) = HelperTask::parse(line.into_iter().skip(1)).expect("parsed");
            assert_eq!(parsed, task);
            assert_eq!(command, ["/bin/sh", "--read"]);
        }
    }

    #[test]
    fn a_replaced_cover_is_detected() {
        let directory = tempfile::tempdir().expect("a directory");
        let status = rustix::fs::stat(directory.path()).expect("there");
        let (device, inode) = (status.st_dev, status.st_ino);
        let link = directory.path().join("link");
        rustix::fs::symlinkat(directory.path(), CWD, &link).expect("made");
        for (path, covered, matches) in [
            (directory.path(), ExpectedCoverTarget::Exactly { device, inode }, true),
            (directory.path(), ExpectedCoverTarget::Exactly { device, inode: inode + 1 }, false),
            (&link, ExpectedCoverTarget::Exactly { device, inode }, false),
            (directory.path(), ExpectedCoverTarget::OffDevice { device }, false),
            (Path::new("/proc"), ExpectedCoverTarget::OffDevice { device }, true),
        ] {
            assert_eq!(covered.is_at(path), matches, "{} {covered:?}", path.display());
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in [&["--read"][..], &["--read", "/usr"], &["--what", "--"], &["--processes", "x", "--"]] {
            HelperTask::parse(line.iter().map(OsString::from)).expect_err("refused");
        }
    }
}
