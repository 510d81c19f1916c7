//! Self-test of a sandbox: a command that attempts what it must not be able to do.

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
use vfs_shell::{CommandRunner, ShellConfig, SpawnSpec, Spawner};

use crate::namespaces::COVERED_DECOY;
use crate::protect::open_mount::OpenMount;
use crate::sandbox::sandbox_setup::{SandboxSetup, SpawnMethod};
use crate::seccomp;
use crate::self_test_cache::{SelfTestCache, SelfTestCacheSlot};

/// A file that namespaces show and Landlock does not let commands read.
const LANDLOCK_DECOY: &str = "/run/vfs-landlock-decoy";

/// An ability of the command that the self-test started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum SelfTestObservation {
    /// The command read a file of the host that the sandbox does not show.
    ReadOutside,
    /// The command opened such a file for writing.
    WroteOutside,
    /// The command opened a program of the system for writing.
    WroteSystem,
    /// The command read a file that Landlock does not allow.
    ReadLandlockDecoy,
    /// The command read a file that the helper had to cover.
    ReadCoveredDecoy,
    /// The filter of this crate did not deny its probe; there may be an inherited filter.
    Unfiltered,
    /// The command may gain privileges.
    MayGainPrivileges,
    /// The command has a network.
    HasNetwork,
    /// The command created a socket that could be connected to one of the host.
    CreatedUnixSocket,
    /// The command could signal a process outside.
    ReachedProcess,
    /// The command saw a process outside.
    SawProcess,
    /// The `/tmp` of the command is not writable, or is that of the host.
    SharedTmp,
    /// The kernel does not bound the number of processes of the command.
    UnboundedProcesses,
}

impl SelfTestObservation {
    const ALL: [Self; 13] = [
        Self::ReadOutside,
        Self::WroteOutside,
        Self::WroteSystem,
        Self::ReadLandlockDecoy,
        Self::ReadCoveredDecoy,
        Self::Unfiltered,
        Self::MayGainPrivileges,
        Self::HasNetwork,
        Self::CreatedUnixSocket,
        Self::ReachedProcess,
        Self::SawProcess,
        Self::SharedTmp,
        Self::UnboundedProcesses,
    ];
}

/// All that a self-test observed.
pub(crate) type SelfTestObservations = BTreeSet<SelfTestObservation>;

/// Result of a self-test, with the cache entry to record it in.
#[derive(Debug)]
pub(crate) struct SelfTestResult {
    pub(crate) observations: SelfTestObservations,
    /// `None` if there is no cache.
    cache_entry: Option<SelfTestCacheSlot>,
    is_recorded: bool,
}

impl SelfTestResult {
    /// Records the result if the sandbox may open with it; otherwise removes the record of an earlier one.
    pub(crate) fn record(&self, may_open: bool) {
        match &self.cache_entry {
            Some(entry) if !may_open => entry.remove(),
            Some(entry) if !self.is_recorded => {
                entry.store(&self.observations.iter().map(|observation| *observation as u8).collect::<Vec<_>>());
            }
            _ => {}
        }
    }
}

/// Returns the result that an equal sandbox recorded, or runs the self-test. The inner error is why no command could be run.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) async fn result(
    setup: &Arc<SandboxSetup>,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<Result<SelfTestResult, String>> {
    let cache_entry = cache.map(|cache| cache.entry("self-test", &setup.description()));
    if let Some(observations) =
        cache_entry.as_ref().and_then(SelfTestCacheSlot::load).and_then(|record| decode(&record))
    {
        return Ok(Ok(SelfTestResult { observations, cache_entry, is_recorded: true }));
    }
    let found = run(setup).await;
    if let (Err(_) | Ok(Err(_)), Some(entry)) = (&found, &cache_entry) {
        entry.remove();
    }
    Ok(found?.map(|observations| SelfTestResult { observations, cache_entry, is_recorded: false }))
}

fn decode(record: &[u8]) -> Option<SelfTestObservations> {
    record
        .iter()
        .map(|number| SelfTestObservation::ALL.into_iter().find(|observation| *observation as u8 == *number))
        .collect()
}

/// Runs a command in the sandbox and observes what it can do. The inner error is why no command could be run.
///
/// # Errors
///
/// The error with which the command was refused before its start. No weaker sandbox may be tried then.
async fn run(setup: &Arc<SandboxSetup>) -> Result<Result<SelfTestObservations, String>> {
    let refused = Arc::default();
    let observed = probe(setup, &refused).await;
    setup.tidy();
    match refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(observed),
    }
}

/// Slot for the error with which a command was refused before its start.
type RefusalSlot = Arc<Mutex<Option<Error>>>;

async fn probe(setup: &Arc<SandboxSetup>, refused: &RefusalSlot) -> Result<SelfTestObservations, String> {
    let canary = CanaryFile::new(&setup.mounts)?;
    let script = match setup.method {
        SpawnMethod::Namespaces(_) => canary.script(),
        SpawnMethod::Direct => "echo started".to_owned(),
    };
    let cwd = setup.mounts.first().map(|mount| mount.at.clone()).unwrap_or_default();
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|errno| errno.to_string())?;
    let spawner = SelfTestSpawner {
        setup: Arc::clone(setup),
        probes: Arc::new(canary.probes(writer)?),
        refused: Arc::clone(refused),
    };
    let commands = CommandRunner::new(spawner, ShellConfig::new());
    let request = ExecuteRequest::new(script).cwd(cwd).timeout(Duration::from_secs(20));
    let ended = commands.execute(&OpContext::new(), request).await.map_err(|error| format_chain(&error))?;
    drop(commands);
    if ended.exit_code != Some(0) || !ended.stdout.contains("started") {
        let reason = ended.stderr.lines().next().unwrap_or("nothing was printed");
        return Err(format!("a command could not be started: {reason}"));
    }
    match setup.method {
        SpawnMethod::Namespaces(_) => Ok(parse_output(&ended.stdout)),
        SpawnMethod::Direct => read_observations(&reader),
    }
}

/// Formats an error with its causes.
fn format_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A file of the host that the sandbox does not show.
struct CanaryFile(tempfile::NamedTempFile);

impl CanaryFile {
    fn new(mounts: &[OpenMount]) -> Result<Self, String> {
        let places = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from("/dev/shm")];
        let free = |place: &&PathBuf| !mounts.iter().any(|mount| place.starts_with(&mount.directory));
        let failed = |error: io::Error| format!("the self-test cannot create a file: {error}");
        let mut made = Err("the sandbox shows every directory for temporary files".to_owned());
        // Some directories may be read-only.
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

    /// Returns the script of the self-test, which needs only a shell.
    fn script(&self) -> String {
        let canary = quote(self.0.path());
        let system = quote(system_program());
        let reads = "while read -r name value rest; do echo \"$name $value $rest\"; done";
        format!(
            "(read -r line <{canary}) 2>/dev/null && echo did read\n\
             [ -e {canary} ] && (: >>{canary}) 2>/dev/null && echo did write\n\
             (: >>{system}) 2>/dev/null && echo did system\n\
             (: >>/proc/sys/kernel/core_pattern) 2>/dev/null && echo did system\n\
             (read -r line <{LANDLOCK_DECOY}) 2>/dev/null && echo did landlock\n\
             (read -r line <{COVERED_DECOY}) 2>/dev/null && echo did covered\n\
             (: >/tmp/probe) 2>/dev/null && echo tmp writable\n\
             {reads} </proc/self/status\n\
             {reads} </proc/self/limits\n\
             while read -r name rest; do echo \"route $name\"; done </proc/net/route\n\
             while read -r line; do echo \"route ${{line##* }}\"; done </proc/net/ipv6_route\n\
             read -r first </proc/1/comm && echo \"first $first\"\n\
             kill -0 {number} 2>&1\n\
             echo started\n",
            number = seccomp::FILTER_PROBE_PID,
        )
    }

    fn probes(&self, writer: OwnedFd) -> Result<SystemCallProbes, String> {
        let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string());
        let own = rustix::process::getpid();
        Ok(SystemCallProbes {
            canary: path(self.0.path())?,
            system: path(system_program())?,
            process: path(Path::new(&format!("/proc/{own}/status")))?,
            own,
            writer,
        })
    }
}

/// Returns a program of the system that nobody is likely to run while the self-test opens it for writing.
fn system_program() -> &'static Path {
    ["/usr/bin/env", "/bin/env", "/usr/bin/id"]
        .map(Path::new)
        .into_iter()
        .find(|path| rustix::fs::stat(*path).is_ok())
        .unwrap_or(Path::new("/usr"))
}

fn quote(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Returns the observations in the output of the script.
fn parse_output(stdout: &str) -> SelfTestObservations {
    let lines: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let has_line = |words: &[&str]| lines.iter().any(|line| line.starts_with(words));
    let leads_out = |line: &&Vec<&str>| matches!(line[..], ["route", device] if !["Iface", "lo"].contains(&device));
    let has_own_proc = has_line(&["first", "bwrap"]);
    // A process with more than one number is in a namespace of its own, and `/proc` is that of an outer one.
    let is_nested = lines.iter().any(|line| line[..].starts_with(&["NSpid:"]) && line.len() > 2);
    let has_route = lines.iter().any(|line| leads_out(&line));
    let observations = [
        (SelfTestObservation::ReadOutside, has_line(&["did", "read"])),
        (SelfTestObservation::WroteOutside, has_line(&["did", "write"])),
        (SelfTestObservation::WroteSystem, has_line(&["did", "system"])),
        (SelfTestObservation::ReadLandlockDecoy, has_line(&["did", "landlock"])),
        (SelfTestObservation::ReadCoveredDecoy, has_line(&["did", "covered"])),
        (SelfTestObservation::Unfiltered, !stdout.contains("not permitted") || !has_line(&["Seccomp:", "2"])),
        (
            SelfTestObservation::MayGainPrivileges,
            !has_line(&["NoNewPrivs:", "1"]) || !has_line(&["CapEff:", "0000000000000000"]),
        ),
        (SelfTestObservation::HasNetwork, has_route),
        (SelfTestObservation::ReachedProcess, !has_own_proc && !is_nested),
        (SelfTestObservation::SawProcess, !has_own_proc),
        (SelfTestObservation::SharedTmp, !has_line(&["tmp", "writable"])),
        (SelfTestObservation::UnboundedProcesses, has_line(&["Max", "processes", "unlimited"])),
    ];
    observations.into_iter().filter_map(|(observation, done)| done.then_some(observation)).collect()
}

/// Attempts that a confined process makes before it becomes the command, with system calls only.
#[derive(Debug)]
struct SystemCallProbes {
    canary: CString,
    system: CString,
    process: CString,
    own: Pid,
    writer: OwnedFd,
}

impl SystemCallProbes {
    fn run(&self) -> io::Result<()> {
        let open =
            |path: &CString, flags| rustix::fs::open(path.as_c_str(), flags | OFlags::CLOEXEC, Mode::empty()).is_ok();
        let probe = Pid::from_raw(seccomp::FILTER_PROBE_PID).map(rustix::process::test_kill_process);
        let filtered = probe == Some(Err(Errno::PERM))
            && secure_computing_mode().is_ok_and(|mode| mode == SecureComputingMode::Filter);
        let internet = [AddressFamily::INET, AddressFamily::INET6];
        let unix = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
        for (observation, done) in [
            (SelfTestObservation::ReadOutside, open(&self.canary, OFlags::RDONLY)),
            (SelfTestObservation::WroteOutside, open(&self.canary, OFlags::WRONLY)),
            (SelfTestObservation::WroteSystem, open(&self.system, OFlags::WRONLY)),
            (SelfTestObservation::Unfiltered, !filtered),
            (SelfTestObservation::MayGainPrivileges, !no_new_privs().unwrap_or(false)),
            (
                SelfTestObservation::HasNetwork,
                internet.into_iter().any(|family| socket(family, SocketType::DGRAM, None).is_ok()),
            ),
            (SelfTestObservation::CreatedUnixSocket, unix.is_ok()),
            (SelfTestObservation::ReachedProcess, rustix::process::test_kill_process(self.own).is_ok()),
            (SelfTestObservation::SawProcess, open(&self.process, OFlags::RDONLY)),
            (SelfTestObservation::SharedTmp, true),
        ] {
            if done {
                rustix::io::write(&self.writer, &[observation as u8])?;
            }
        }
        Ok(())
    }
}

/// Reads the observations that the process wrote before it became the command.
fn read_observations(reader: &OwnedFd) -> Result<SelfTestObservations, String> {
    let mut bytes = [0; 64];
    let flags = rustix::fs::fcntl_getfl(reader).map_err(|errno| errno.to_string())?;
    rustix::fs::fcntl_setfl(reader, flags | OFlags::NONBLOCK).map_err(|errno| errno.to_string())?;
    let read = rustix::io::read(reader, &mut bytes).map_err(|errno| format!("nothing was tried: {errno}"))?;
    Ok(SelfTestObservation::ALL
        .into_iter()
        .filter(|observation| bytes[..read].contains(&(*observation as u8)))
        .collect())
}

/// Spawner that adds the decoys and the attempts of the self-test.
#[derive(Debug)]
struct SelfTestSpawner {
    setup: Arc<SandboxSetup>,
    probes: Arc<SystemCallProbes>,
    refused: RefusalSlot,
}

#[async_trait]
impl Spawner for SelfTestSpawner {
    async fn prepare(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<SpawnSpec> {
        let launch = self.setup.launch(cx, req, environment, Some(LANDLOCK_DECOY)).await;
        let mut launch = launch.inspect_err(|error| {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        })?;
        if matches!(self.setup.method, SpawnMethod::Direct) {
            let (confine, probes) = (Arc::clone(&self.setup.confine), Arc::clone(&self.probes));
            launch.confine = Some(Arc::new(move || {
                confine.apply()?;
                probes.run()
            }));
        }
        Ok(launch)
    }
}
