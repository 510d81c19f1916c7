//! The program that puts Landlock on inside namespaces, just before a command starts.
//!
//! Landlock forbids mounts, so it cannot be put on before bubblewrap has made them.

pub(crate) mod memfd;
pub(crate) mod programs;
pub(crate) mod signals;

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
use crate::descriptors::is_same;
use crate::landlock::{Grant, Rules};
use crate::protect::nested_covers;
use crate::protect::open_mount::Held;
use crate::sandbox::confine::limit_processes;
use crate::seccomp;
use crate::stamp::FileVersion;

const ASKED: &str = "--vfs-confine";

/// What the helper does to itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) rules: Rules,
    pub(crate) processes: Option<u64>,
    /// The descriptor that it was started from.
    pub(crate) own: Option<i32>,
    /// What is to be at these paths.
    pub(crate) covers: Vec<(PathBuf, Covered)>,
    /// Whether it covers what [`nested_covers::LIST`] names, and then puts on the filter that is in [`FILTER`].
    pub(crate) nested: NestedCovers,
}

/// Whether the helper makes mounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum NestedCovers {
    #[default]
    None,
    /// It does, and the command needs no other filter then.
    Listed,
    /// It does, and then puts on the filter for the command.
    ListedBeforeFilter,
}

impl NestedCovers {
    const OPTIONS: [(Self, &str); 2] =
        [(Self::Listed, "--nested-covers"), (Self::ListedBeforeFilter, "--nested-covers-before-filter")];
}

/// Where the filter for a command is that cannot be put on before the helper has made mounts.
pub(crate) const FILTER: &str = "/run/vfs-filter";

/// What a path leads to where it is covered as it is to be. Bubblewrap puts covers by path, and whoever can change the
/// host's directory could have it put one elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Covered {
    /// This file or directory.
    By { device: u64, inode: u64 },
    /// Something that was made for the command, so that it is not where the mount is.
    ByOtherThan { device: u64 },
}

impl Covered {
    fn holds(self, path: &Path) -> bool {
        let there = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| match self {
            Self::By { device, inode } => (there.st_dev, there.st_ino) == (device, inode),
            Self::ByOtherThan { device } => there.st_dev != device,
        })
    }
}

impl Task {
    /// The arguments that ask for it, up to those that name the command.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec![ASKED.into()];
        for (grant, path) in &self.rules.grants {
            let option = Grant::OPTIONS.iter().find(|(other, _)| other == grant).map_or("--list", |(_, option)| option);
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
        if let Some((_, option)) = NestedCovers::OPTIONS.iter().find(|(nested, _)| *nested == self.nested) {
            line.push(option.into());
        }
        for (path, covered) in &self.covers {
            match covered {
                Covered::By { device, inode } => {
                    line.extend(["--covered-by".into(), device.to_string().into(), inode.to_string().into()]);
                }
                Covered::ByOtherThan { device } => {
                    line.extend(["--covered-by-other-than".into(), device.to_string().into()]);
                }
            }
            line.push(path.into());
        }
        line.push("--".into());
        line
    }

    /// What these arguments ask for, and the command that follows.
    fn parse(mut line: impl Iterator<Item = OsString>) -> Result<(Self, Vec<OsString>), String> {
        let mut task = Self::default();
        while let Some(option) = line.next() {
            match option.to_str() {
                Some("--") => return Ok((task, line.collect())),
                Some("--network") => task.rules.network = Network::Host,
                Some("--processes") => task.processes = Some(number(line.next())?),
                Some("--own") => task.own = Some(number(line.next())?),
                Some("--covered-by") => {
                    let covered = Covered::By { device: number(line.next())?, inode: number(line.next())? };
                    task.covers.push((line.next().ok_or("a path is missing")?.into(), covered));
                }
                Some("--covered-by-other-than") => {
                    let covered = Covered::ByOtherThan { device: number(line.next())? };
                    task.covers.push((line.next().ok_or("a path is missing")?.into(), covered));
                }
                _ if let Some((nested, _)) =
                    NestedCovers::OPTIONS.iter().find(|(_, name)| OsStr::new(name) == option) =>
                {
                    task.nested = *nested;
                }
                _ => {
                    let grant = Grant::OPTIONS.iter().find(|(_, name)| OsStr::new(name) == option);
                    let (grant, _) = grant.ok_or_else(|| format!("{option:?} is not known"))?;
                    task.rules.grant(*grant, line.next().ok_or("a path is missing")?);
                }
            }
        }
        Err("the command is missing".to_owned())
    }

    /// Does it, and becomes the command. Returns only why that failed.
    fn become_command(&self, command: &[OsString]) -> Result<Infallible, String> {
        let (program, arguments) = command.split_first().ok_or("the command is missing")?;
        let mut command = Command::new(program);
        let environment = read_environment().map_err(|error| format!("the environment cannot be read: {error}"))?;
        command.args(arguments).env_clear().envs(environment);
        self.apply()?;
        signals::heed().map_err(|error| format!("signals cannot be heeded: {error}"))?;
        Err(command.exec().to_string())
    }

    fn apply(&self) -> Result<(), String> {
        if let Some(own) = self.own {
            memfd::close(own).map_err(|error| format!("the helper cannot be left behind: {error}"))?;
        }
        if let Some((path, _)) = self.covers.iter().find(|(path, covered)| !covered.holds(path)) {
            let path = path.display();
            return Err(format!("{path} was replaced while the command was started, which is not run; try again"));
        }
        let filter = match self.nested {
            NestedCovers::ListedBeforeFilter => Some(read_filter()?),
            NestedCovers::None | NestedCovers::Listed => None,
        };
        if self.nested != NestedCovers::None {
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
            seccompiler::apply_filter(&filter).map_err(|error| format!("the filter cannot be put on: {error}"))?;
        }
        Ok(())
    }
}

/// The filter for the command.
fn read_filter() -> Result<seccompiler::BpfProgram, String> {
    let bytes = nested_covers::read_file(FILTER).map_err(|error| format!("the filter cannot be read: {error}"))?;
    seccomp::from_bytes(&bytes)
}

fn number<N: std::str::FromStr>(text: Option<OsString>) -> Result<N, String> {
    let text = text.ok_or("a number is missing")?;
    text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| format!("{text:?} is not a number"))
}

/// Where the command's environment is. The helper itself has none: a name such as `LD_PRELOAD` would have it run what it is
/// to confine.
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

/// An environment as the helper reads it.
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

/// Becomes a confined command, where the arguments of the process ask for that, and does not return then. Else it does
/// nothing.
///
/// A program that [names itself](crate::Helper::At) as the helper of its sandboxes calls this first of all, before it
/// starts threads.
pub fn become_confine_if_asked() {
    let mut line = std::env::args_os().skip(1);
    if line.next().as_deref() != Some(OsStr::new(ASKED)) {
        return;
    }
    let told = match Task::parse(line).and_then(|(task, command)| task.become_command(&command)) {
        Err(told) => told,
        Ok(never) => match never {},
    };
    // There is nobody to tell where this cannot be written.
    let _ = writeln!(std::io::stderr(), "vfs-confine: {told}");
    std::process::exit(126);
}

/// The program that runs, whatever has become of its path.
const RUNNING: &str = "/proc/self/exe";

/// The helper as a file that nobody can change, and the version of the program that it is; or why there is none.
pub(crate) fn found(helper: &config::Helper, mounts: &[Held]) -> Result<(OwnedFd, Option<FileVersion>), String> {
    const NAME: &str = "vfs-confine";
    let advice = |why: String| format!("{why}; put {NAME} next to the program or in PATH, or name it in the settings");
    let place = match helper {
        config::Helper::Unused => return Err("the settings leave the helper out".to_owned()),
        config::Helper::At(path) if is_running(path) => PathBuf::from(RUNNING),
        config::Helper::At(path) => programs::trusted(path, mounts).map_err(advice)?,
        config::Helper::Found => {
            let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(NAME)));
            programs::find(NAME, beside, mounts).map_err(advice)?
        }
    };
    let version = FileVersion::at(&place);
    let file = if place == Path::new(RUNNING) { running() } else { memfd::copy(&place) };
    Ok((file.map_err(|error| format!("the helper cannot be copied: {error}"))?, version))
}

/// The program that runs. A copy of it is as large as the program, and needed only if somebody could write to the file: while a
/// program runs, the kernel refuses that with `ETXTBSY`, but for Linux 6.11 and 6.12.
fn running() -> std::io::Result<OwnedFd> {
    match rustix::fs::open(RUNNING, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::TXTBSY) => Ok(rustix::fs::open(RUNNING, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
        _ => memfd::copy(Path::new(RUNNING)),
    }
}

/// Whether this is the program that runs: it is trusted already.
fn is_running(path: &Path) -> bool {
    let [running, named] = [Path::new(RUNNING), path].map(rustix::fs::stat);
    running.is_ok_and(|running| named.is_ok_and(|named| is_same(&running, &named)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_what_is_done() {
        let mut task = Task { processes: Some(64), own: Some(7), ..Task::default() };
        task.covers = vec![
            ("/w/.git".into(), Covered::By { device: u64::MAX, inode: 2 }),
            ("/w/.env".into(), Covered::ByOtherThan { device: 3 }),
        ];
        for (grant, _) in Grant::OPTIONS {
            task.rules.grant(grant, format!("/a place/{grant:?}"));
        }
        for (network, nested) in [
            (Network::Off, NestedCovers::None),
            (Network::Host, NestedCovers::Listed),
            (Network::Host, NestedCovers::ListedBeforeFilter),
        ] {
            (task.rules.network, task.nested) = (network, nested);
            let mut line = task.arguments();
            line.extend(["/bin/sh".into(), "--read".into()]);
            let (parsed, command) = Task::parse(line.into_iter().skip(1)).expect("parsed");
            assert_eq!(parsed, task);
            assert_eq!(command, ["/bin/sh", "--read"]);
        }
    }

    #[test]
    fn another_file_in_the_place_of_a_cover_is_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let status = rustix::fs::stat(directory.path()).expect("there");
        let (device, inode) = (status.st_dev, status.st_ino);
        let link = directory.path().join("link");
        rustix::fs::symlinkat(directory.path(), CWD, &link).expect("made");
        for (path, covered, holds) in [
            (directory.path(), Covered::By { device, inode }, true),
            (directory.path(), Covered::By { device, inode: inode + 1 }, false),
            (&link, Covered::By { device, inode }, false),
            (directory.path(), Covered::ByOtherThan { device }, false),
            (Path::new("/proc"), Covered::ByOtherThan { device }, true),
        ] {
            assert_eq!(covered.holds(path), holds, "{} {covered:?}", path.display());
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for line in [&["--read"][..], &["--read", "/usr"], &["--what", "--"], &["--processes", "x", "--"]] {
            Task::parse(line.iter().map(OsString::from)).expect_err("refused");
        }
    }
}
