//! Starting a process in a sandbox, and looking at what it can do.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::Pid;
use rustix::thread::{SecureComputingMode, no_new_privs, secure_computing_mode};
use vfs_core::{Error, ExecuteRequest, OpContext, Result, Shell as _};
use vfs_shell::{Commands, Launch, Launcher, ShellConfig};

use crate::namespaces::DECOY;
use crate::protect::open_mount::Held;
use crate::sandbox::setup::{Setup, Way};
use crate::seccomp;
use crate::stamp::{Stamp, Stamps};

/// A file that namespaces show and Landlock does not.
const BAIT: &str = "/run/vfs-bait";

/// Something that a command tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Deed {
    /// It read a file of the host that it is not shown.
    ReadOutside,
    /// It opened such a file to write to it.
    WroteOutside,
    /// It opened a program of the system to write to it.
    WroteSystem,
    /// It read what Landlock does not allow.
    TookBait,
    /// It read what the helper was to cover.
    ReadDecoy,
    /// No filter answered it in the way of ours: one may be there that was inherited.
    Unfiltered,
    /// It may gain privileges.
    MayGain,
    /// It has a network.
    FoundNetwork,
    /// It made a socket that can be connected to one of the host.
    MadeUnixSocket,
    /// It reached a process outside.
    ReachedProcess,
    /// It saw a process outside.
    SawProcess,
    /// It could not write to its own `/tmp`, or that is the host's.
    SharedTmp,
    /// The number of its processes is not bounded by the kernel.
    UnboundedProcesses,
}

impl Deed {
    const ALL: [Self; 13] = [
        Self::ReadOutside,
        Self::WroteOutside,
        Self::WroteSystem,
        Self::TookBait,
        Self::ReadDecoy,
        Self::Unfiltered,
        Self::MayGain,
        Self::FoundNetwork,
        Self::MadeUnixSocket,
        Self::ReachedProcess,
        Self::SawProcess,
        Self::SharedTmp,
        Self::UnboundedProcesses,
    ];
}

/// What a command could do.
pub(crate) type Deeds = BTreeSet<Deed>;

/// What a self-test found, and the stamp to record it in.
#[derive(Debug)]
pub(crate) struct SelfTestResult {
    pub(crate) deeds: Deeds,
    /// `None` if there are no stamps.
    stamp: Option<Stamp>,
    is_recorded: bool,
}

impl SelfTestResult {
    /// Records the result if it is enough for the sandbox to open, and else removes a record of an earlier one.
    pub(crate) fn record(&self, is_enough: bool) {
        match &self.stamp {
            Some(stamp) if !is_enough => stamp.remove(),
            Some(stamp) if !self.is_recorded => {
                stamp.store(&self.deeds.iter().map(|deed| *deed as u8).collect::<Vec<_>>());
            }
            _ => {}
        }
    }
}

/// Returns what a command in the sandbox can do, or why it could not be run: as an equal sandbox recorded it, else by running
/// one.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) async fn result(setup: &Arc<Setup>, stamps: Option<&Arc<Stamps>>) -> Result<Result<SelfTestResult, String>> {
    let stamp = stamps.map(|stamps| stamps.stamp("self-test", &setup.description()));
    if let Some(deeds) = stamp.as_ref().and_then(Stamp::load).and_then(|record| decode(&record)) {
        return Ok(Ok(SelfTestResult { deeds, stamp, is_recorded: true }));
    }
    let found = run(setup).await;
    if let (Err(_) | Ok(Err(_)), Some(stamp)) = (&found, &stamp) {
        stamp.remove();
    }
    Ok(found?.map(|deeds| SelfTestResult { deeds, stamp, is_recorded: false }))
}

fn decode(record: &[u8]) -> Option<Deeds> {
    record.iter().map(|number| Deed::ALL.into_iter().find(|deed| *deed as u8 == *number)).collect()
}

/// Runs a command in the sandbox, and tells what it could do; or why it could not be run.
///
/// # Errors
///
/// Why a command is refused before it is started: nothing else may be tried in place of this sandbox then.
async fn run(setup: &Arc<Setup>) -> Result<Result<Deeds, String>> {
    let refused = Arc::default();
    let tried = tried(setup, &refused).await;
    setup.tidy();
    match refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(tried),
    }
}

type Refused = Arc<Mutex<Option<Error>>>;

async fn tried(setup: &Arc<Setup>, refused: &Refused) -> Result<Deeds, String> {
    let canary = Canary::new(&setup.mounts)?;
    let script = match setup.way {
        Way::Namespaces(_) => canary.script(),
        Way::Direct => "echo started".to_owned(),
    };
    let cwd = setup.mounts.first().map(|mount| mount.at.clone()).unwrap_or_default();
    let (told, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|errno| errno.to_string())?;
    let launcher =
        Trial { setup: Arc::clone(setup), attempts: Arc::new(canary.attempts(tells)?), refused: Arc::clone(refused) };
    let commands = Commands::new(launcher, ShellConfig::new());
    let request = ExecuteRequest::new(script).cwd(cwd).timeout(Duration::from_secs(20));
    let ended = commands.execute(&OpContext::new(), request).await.map_err(|error| chain(&error))?;
    drop(commands);
    if ended.exit_code != Some(0) || !ended.stdout.contains("started") {
        let said = ended.stderr.lines().next().unwrap_or("nothing was said");
        return Err(format!("a command could not be started: {said}"));
    }
    match setup.way {
        Way::Namespaces(_) => Ok(from_script(&ended.stdout)),
        Way::Direct => from_attempts(&told),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A file of the host that no sandbox shows.
struct Canary(tempfile::NamedTempFile);

impl Canary {
    fn new(mounts: &[Held]) -> Result<Self, String> {
        let places = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from("/dev/shm")];
        let free = |place: &&PathBuf| !mounts.iter().any(|mount| place.starts_with(&mount.directory));
        let failed = |error: io::Error| format!("no file for a trial can be made: {error}");
        let mut made = Err("every place for temporary files is in the sandbox".to_owned());
        // Some of them may be read-only.
        for place in places.iter().filter(free) {
            made = tempfile::Builder::new().prefix("vfs-canary-").tempfile_in(place).map_err(failed);
            if made.is_ok() {
                break;
            }
        }
        let mut file = made?;
        io::Write::write_all(&mut file, b"canary\n").map_err(failed)?;
        Ok(Self(file))
    }

    /// What a shell can find out with nothing but itself.
    fn script(&self) -> String {
        let canary = quoted(self.0.path());
        let system = quoted(program());
        let reads = "while read -r name value rest; do echo \"$name $value $rest\"; done";
        format!(
            "(read -r line <{canary}) 2>/dev/null && echo did read\n\
             [ -e {canary} ] && (: >>{canary}) 2>/dev/null && echo did write\n\
             (: >>{system}) 2>/dev/null && echo did system\n\
             (: >>/proc/sys/kernel/core_pattern) 2>/dev/null && echo did system\n\
             (read -r line <{BAIT}) 2>/dev/null && echo did bait\n\
             (read -r line <{DECOY}) 2>/dev/null && echo did decoy\n\
             (: >/tmp/probe) 2>/dev/null && echo tmp writable\n\
             {reads} </proc/self/status\n\
             {reads} </proc/self/limits\n\
             while read -r name rest; do echo \"route $name\"; done </proc/net/route\n\
             while read -r line; do echo \"route ${{line##* }}\"; done </proc/net/ipv6_route\n\
             read -r first </proc/1/comm && echo \"first $first\"\n\
             kill -0 {number} 2>&1\n\
             echo started\n",
            number = seccomp::SIGN,
        )
    }

    fn attempts(&self, tells: OwnedFd) -> Result<Attempts, String> {
        let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string());
        let own = rustix::process::getpid();
        Ok(Attempts {
            canary: path(self.0.path())?,
            system: path(program())?,
            process: path(Path::new(&format!("/proc/{own}/status")))?,
            own,
            tells,
        })
    }
}

/// A program of the system that nobody runs while it is tried whether it can be opened for writing.
fn program() -> &'static Path {
    ["/usr/bin/env", "/bin/env", "/usr/bin/id"]
        .map(Path::new)
        .into_iter()
        .find(|path| rustix::fs::stat(*path).is_ok())
        .unwrap_or(Path::new("/usr"))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn from_script(said: &str) -> Deeds {
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    let says = |words: &[&str]| lines.iter().any(|line| line.starts_with(words));
    let leads_out = |line: &&Vec<&str>| matches!(line[..], ["route", device] if !["Iface", "lo"].contains(&device));
    let has_own_proc = says(&["first", "bwrap"]);
    // What shows a process under more than one number shows the processes of a namespace around its own.
    let is_nested = lines.iter().any(|line| line[..].starts_with(&["NSpid:"]) && line.len() > 2);
    let has_route = lines.iter().any(|line| leads_out(&line));
    let deeds = [
        (Deed::ReadOutside, says(&["did", "read"])),
        (Deed::WroteOutside, says(&["did", "write"])),
        (Deed::WroteSystem, says(&["did", "system"])),
        (Deed::TookBait, says(&["did", "bait"])),
        (Deed::ReadDecoy, says(&["did", "decoy"])),
        (Deed::Unfiltered, !said.contains("not permitted") || !says(&["Seccomp:", "2"])),
        (Deed::MayGain, !says(&["NoNewPrivs:", "1"]) || !says(&["CapEff:", "0000000000000000"])),
        (Deed::FoundNetwork, has_route),
        (Deed::ReachedProcess, !has_own_proc && !is_nested),
        (Deed::SawProcess, !has_own_proc),
        (Deed::SharedTmp, !says(&["tmp", "writable"])),
        (Deed::UnboundedProcesses, says(&["Max", "processes", "unlimited"])),
    ];
    deeds.into_iter().filter_map(|(deed, done)| done.then_some(deed)).collect()
}

/// What a process tries when it is confined and has not yet become the command: with system calls only.
#[derive(Debug)]
struct Attempts {
    canary: CString,
    system: CString,
    process: CString,
    own: Pid,
    tells: OwnedFd,
}

impl Attempts {
    fn make(&self) -> io::Result<()> {
        let open =
            |path: &CString, flags| rustix::fs::open(path.as_c_str(), flags | OFlags::CLOEXEC, Mode::empty()).is_ok();
        let sign = Pid::from_raw(seccomp::SIGN).map(rustix::process::test_kill_process);
        let filtered = sign == Some(Err(Errno::PERM))
            && secure_computing_mode().is_ok_and(|mode| mode == SecureComputingMode::Filter);
        let internet = [AddressFamily::INET, AddressFamily::INET6];
        let unix = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
        for (deed, done) in [
            (Deed::ReadOutside, open(&self.canary, OFlags::RDONLY)),
            (Deed::WroteOutside, open(&self.canary, OFlags::WRONLY)),
            (Deed::WroteSystem, open(&self.system, OFlags::WRONLY)),
            (Deed::Unfiltered, !filtered),
            (Deed::MayGain, !no_new_privs().unwrap_or(false)),
            (Deed::FoundNetwork, internet.into_iter().any(|family| socket(family, SocketType::DGRAM, None).is_ok())),
            (Deed::MadeUnixSocket, unix.is_ok()),
            (Deed::ReachedProcess, rustix::process::test_kill_process(self.own).is_ok()),
            (Deed::SawProcess, open(&self.process, OFlags::RDONLY)),
            (Deed::SharedTmp, true),
        ] {
            if done {
                rustix::io::write(&self.tells, &[deed as u8])?;
            }
        }
        Ok(())
    }
}

fn from_attempts(told: &OwnedFd) -> Result<Deeds, String> {
    let mut bytes = [0; 64];
    let flags = rustix::fs::fcntl_getfl(told).map_err(|errno| errno.to_string())?;
    rustix::fs::fcntl_setfl(told, flags | OFlags::NONBLOCK).map_err(|errno| errno.to_string())?;
    let read = rustix::io::read(told, &mut bytes).map_err(|errno| format!("nothing was tried: {errno}"))?;
    Ok(Deed::ALL.into_iter().filter(|deed| bytes[..read].contains(&(*deed as u8))).collect())
}

/// The sandbox's launcher, with a trial.
#[derive(Debug)]
struct Trial {
    setup: Arc<Setup>,
    attempts: Arc<Attempts>,
    refused: Refused,
}

#[async_trait]
impl Launcher for Trial {
    async fn launch(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Launch> {
        let launch = self.setup.launch(cx, req, environment, Some(BAIT)).await;
        let mut launch = launch.inspect_err(|error| {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        })?;
        if matches!(self.setup.way, Way::Direct) {
            let (confine, attempts) = (Arc::clone(&self.setup.confine), Arc::clone(&self.attempts));
            launch.confine = Some(Arc::new(move || {
                confine.apply()?;
                attempts.make()
            }));
        }
        Ok(launch)
    }
}
