//! The sandbox: opened once, proved to hold, and then the launcher of commands.

pub(crate) mod backend;
pub(crate) mod commands;
pub(crate) mod confine;
pub(crate) mod setup;

use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{SecureComputingMode, secure_computing_mode};
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, ExecuteRequest, OpContext, Result};
use vfs_shell::{Launch, Launcher};

use crate::cgroup::Groups;
use crate::config::{SandboxConfig, SelfTest};
use crate::descriptors::few_descriptors;
use crate::namespaces::Isolation;
use crate::namespaces::bubblewrap::Outside;
use crate::protect::open_mount::Held;
use crate::report::assessment;
use crate::report::guarantee::{Belt, Mechanism};
use crate::report::{Holding, SandboxReport};
use crate::sandbox::setup::Setup;
use crate::self_test::{self, SelfTestResult};
use crate::stamp::Stamps;

/// A place of this system for commands of somebody who is not trusted.
///
/// # Behaviour
///
/// * Commands see the system's programs and what the [mounts](SandboxConfig::mounts) show, and nothing else of the
///   host; they can change what is mounted writable, and a `/tmp` that goes with them. File tools of
///   [`into_backend`](Self::into_backend) see the mounts at the same paths.
/// * Opening starts a command, looks at what it can do, and [reports](Self::report). A sandbox that would be weaker
///   than the settings [require](SandboxConfig::required) does not open.
/// * Where namespaces are there, commands run in them as an ordinary user, with a filter over system calls, and with
///   Landlock where the [helper](SandboxConfig::helper) is found. Where they are not, Landlock and the filter hold
///   commands by themselves; that is less, and has to be asked for by requiring
///   [less](crate::Belt::WITHOUT_NAMESPACES).
/// * [Protected](SandboxConfig::protected) paths are covered in every command. A missing
///   path is an empty directory while commands run.
/// * [Protected names](SandboxConfig::protected_names) that are there when a command starts are covered at any depth, and
///   so are unix sockets. That takes the [helper](SandboxConfig::helper). What commands that run at the same time do to the
///   directories on the way is noticed, and the command not run then; one that moves a directory while the tree is searched
///   can keep the search from seeing it, for a command that starts at that moment.
/// * The [problems](vfs_core::ExecuteResponse::problems) of a response name what is new below the mounts and has a protected
///   name or the shape of a git repository: git that is run there on the host runs what the configuration names. New is what
///   was not there when the sandbox was opened, whoever made it, and what was moved or replaced. A hundred are named at once.
///   What a command in the background leaves is named by the next response of `execute`.
/// * Commands can make no [unix sockets](SandboxConfig::unix_sockets) but pairs.
/// * `/proc/self/mountinfo` names where the host has what it mounts, and the devices that hold it. Linux cannot hide that
///   from a command; mount directories whose paths are no secret.
/// * Without namespaces, commands cannot change the mode, owner, times or attributes of files, since nothing could keep
///   them from doing it to files that they may only read. Through an open file a change of mode, owner or times does
///   nothing and is answered as done, as programs that copy or unpack need it; anything else is refused.
/// * In namespaces, a command that a signal ended tells of it as shells do, by an exit code of 128 and the signal's
///   number; without the helper it has no time to end in order. What it leaves running ends with it, always.
/// * Bounds on memory and on the number of processes are for all commands together where this process may make control
///   groups. There is no bound on how much of a mount is filled but the [size of each file](SandboxConfig::limits); a
///   quota of the host's file system does that.
///
/// A clone is a handle on the same sandbox.
#[derive(Debug, Clone)]
pub struct OsSandbox {
    pub(crate) setup: Arc<Setup>,
    report: Arc<SandboxReport>,
}

impl OsSandbox {
    /// Opens a sandbox, and proves that it holds.
    ///
    /// Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// `unsupported` where something that is [required](SandboxConfig::required) is not enforced: the message says
    /// what, why, and what can be done; and for a protected path that is a link. `invalid_argument` for mounts that
    /// overlap, that have files of the host in common with each other or with tools, or that lie where the system is;
    /// those of opening their directories. `busy` if too few file descriptors are left.
    pub async fn open(config: SandboxConfig) -> Result<Self> {
        let stamps = Stamps::open(config.self_test);
        let (setup, report) = tried(config, stamps).await?;
        match setup {
            Some(setup) if report.missing().next().is_none() => {
                // From here on, file tools and commands may write.
                let existing = Arc::clone(&setup);
                let note = move || existing.note_existing(&OpContext::new());
                vfs_search::run_blocking(&Handle::current(), note).await?;
                Ok(Self { setup, report: Arc::new(report) })
            }
            _ => {
                let reasons: Vec<_> =
                    reasons(&report).into_iter().map(|(why, belts)| format!("{}: {why}", belts.join(", "))).collect();
                let message = format!("this system cannot hold commands as it was asked to; {}", reasons.join("; "));
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Tells what a sandbox with these settings would enforce here, also where it would not open.
    ///
    /// The self-test runs, whatever the [settings](SandboxConfig::self_test) say.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), but for what is not enforced.
    pub async fn check(config: SandboxConfig) -> Result<SandboxReport> {
        let stamps = Stamps::open(SelfTest::Always);
        tried(config, stamps).await.map(|(_, report)| report)
    }

    /// What it enforces.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Its settings.
    pub fn config(&self) -> &SandboxConfig {
        &self.setup.config
    }
}

#[async_trait]
impl Launcher for OsSandbox {
    async fn launch(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Launch> {
        self.setup.launch(cx, req, environment, None).await
    }
}

/// Why belts that are required do not hold, each reason once with all of them.
fn reasons(report: &SandboxReport) -> Vec<(&str, Vec<&'static str>)> {
    let mut reasons: Vec<(&str, Vec<&'static str>)> = Vec::new();
    for finding in report.missing() {
        let Holding::Missing(why) = &finding.holding else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, belts)) => belts.push(finding.belt.code()),
            None => reasons.push((why, vec![finding.belt.code()])),
        }
    }
    reasons
}

/// The best sandbox that works here, and what it enforces.
async fn tried(config: SandboxConfig, stamps: Option<Arc<Stamps>>) -> Result<(Option<Arc<Setup>>, SandboxReport)> {
    check_descriptors(&config)?;
    let mounts = Arc::new(Held::open_all(&config).await?);
    // Else it would look as if commands could not be started in namespaces, and they would be held by less.
    for mount in mounts.iter() {
        mount.kept(None)?;
    }
    let config = Arc::new(config);
    let mut reason = "the settings leave namespaces out".to_owned();
    if config.mechanisms.contains(&Mechanism::Namespaces) {
        match in_namespaces(&config, &mounts, stamps.as_ref()).await? {
            Ok((setup, result)) => {
                let report = assessment::report(&setup, &result.deeds, None);
                result.record(report.missing().next().is_none());
                return Ok((Some(setup), report));
            }
            Err(why) => reason = format!("{why}; {}", advice()),
        }
    }
    match started(&config, &mounts, &Setup::direct, stamps.as_ref()).await? {
        Ok((setup, result)) => {
            let report = assessment::report(&setup, &result.deeds, Some(&reason));
            result.record(report.missing().next().is_none());
            Ok((Some(setup), report))
        }
        Err(why) => Ok((None, assessment::nothing(&config, &format!("{reason}; {why}")))),
    }
}

/// Fails if few descriptors are left: its self-test would fail for that reason, and the report would say that the
/// system lacks namespaces.
fn check_descriptors(config: &SandboxConfig) -> Result<()> {
    /// More than a command needs beside what its mounts and protected paths take.
    const SPARE: usize = 56;
    /// Protected paths are protected below each mount, which holds two descriptors for each while a command starts.
    const EACH: usize = 2;
    /// Paths of the directory of stamps that are hidden below a mount; mostly there are none.
    const STAMPS: usize = 2;
    let spare = SPARE + config.mounts.len() * (4 + EACH * (config.protected.len() + STAMPS));
    let spare = (0..spare).map(|_| open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
    match spare.collect::<Result<Vec<_>, _>>() {
        Err(errno @ (Errno::MFILE | Errno::NFILE)) => Err(few_descriptors().with_source(errno)),
        _ => Ok(()),
    }
}

/// Why namespaces most likely do not work, and what can be done.
fn advice() -> String {
    let cause = if secure_computing_mode().is_ok_and(|mode| mode == SecureComputingMode::Filter) {
        "this process is under a filter of system calls, as in a container, which most likely forbids that: start it with a \
         profile that does not"
    } else {
        "where users may not make namespaces, set the sysctls kernel.unprivileged_userns_clone=1 and \
         user.max_user_namespaces above 0, and give bwrap a profile where AppArmor restricts them"
    };
    format!(
        "{cause}; or ask for less: if only a /proc or a host name cannot be had, do not require hidden_processes \
         (--allow-visible-processes), else hold commands by Landlock alone (Belt::WITHOUT_NAMESPACES, --landlock)"
    )
}

/// What could be started, or why it could not be, so that something else may be tried.
type Started = Result<(Arc<Setup>, SelfTestResult), String>;

type Making<'a> = &'a (dyn Fn(&Arc<SandboxConfig>, &Arc<Vec<Held>>, Groups) -> Result<Setup, String> + Sync);

/// A sandbox of namespaces; where they do not work otherwise, and need not hide processes, one that does not.
async fn in_namespaces(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<Held>>,
    stamps: Option<&Arc<Stamps>>,
) -> Result<Started> {
    let why = match isolated(config, mounts, Outside::Hidden, stamps).await? {
        Err(why) if !config.requires(Belt::HiddenProcesses) => why,
        decided => return Ok(decided),
    };
    Ok(isolated(config, mounts, Outside::Visible, stamps).await?.map_err(|_| why))
}

/// A sandbox of namespaces; where the helper cannot make mounts in them, one in which it makes none.
async fn isolated(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<Held>>,
    outside: Outside,
    stamps: Option<&Arc<Stamps>>,
) -> Result<Started> {
    let with = |nested: Result<(), String>| {
        let isolation = Isolation { outside, nested };
        move |config: &Arc<SandboxConfig>, mounts: &Arc<Vec<Held>>, groups: Groups| {
            Setup::in_namespaces(config, mounts, groups, isolation.clone(), stamps)
        }
    };
    let why = match started(config, mounts, &with(Ok(())), stamps).await? {
        Err(why) => why,
        decided => return Ok(decided),
    };
    let unmade = format!("the helper cannot make mounts here: {why}");
    Ok(started(config, mounts, &with(Err(unmade)), stamps).await?.map_err(|_| why))
}

/// A sandbox in which a command could be started, and what that could do. A control group that cannot be entered is
/// done without.
async fn started(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<Held>>,
    make: Making<'_>,
    stamps: Option<&Arc<Stamps>>,
) -> Result<Started> {
    let groups = Groups::make(config.memory_bytes, config.processes);
    let grouped = groups.memory.is_ok() || groups.processes.is_ok();
    let why = match tried_with(config, mounts, make, groups, stamps).await? {
        Err(why) if grouped => why,
        decided => return Ok(decided),
    };
    let groups = Groups::none(&format!("control groups do not work here: {why}"));
    tried_with(config, mounts, make, groups, stamps).await
}

async fn tried_with(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<Held>>,
    make: Making<'_>,
    groups: Groups,
    stamps: Option<&Arc<Stamps>>,
) -> Result<Started> {
    let setup = match make(config, mounts, groups) {
        Ok(setup) => Arc::new(setup),
        Err(why) => return Ok(Err(why)),
    };
    Ok(self_test::result(&setup, stamps).await?.map(|result| (setup, result)))
}
