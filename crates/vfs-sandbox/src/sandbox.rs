//! Sandbox that is tested when it opens, and then starts commands.

pub(crate) mod backend;
pub(crate) mod confinement;
pub(crate) mod sandbox_setup;
pub(crate) mod sandbox_shell;

use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{SecureComputingMode, secure_computing_mode};
use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, ExecuteRequest, OpContext, Result};
use vfs_shell::{SpawnSpec, Spawner};

use crate::cgroup::ControlGroups;
use crate::config::{SandboxConfig, SelfTestPolicy};
use crate::file_descriptors::few_descriptors;
use crate::namespaces::NamespaceVariant;
use crate::namespaces::bubblewrap::HostProcessVisibility;
use crate::protect::open_mount::OpenMount;
use crate::report::guarantee::{Guarantee, Mechanism};
use crate::report::guarantee_assessor;
use crate::report::{EnforcementStatus, SandboxReport};
use crate::sandbox::sandbox_setup::SandboxSetup;
use crate::self_test::{self, SelfTestResult};
use crate::self_test_cache::SelfTestCache;

/// A sandbox of this machine for untrusted commands.
///
/// # Behaviour
///
/// * Commands see the system's programs and the [mounts](SandboxConfig::mounts), and nothing else of the host. They can
///   change writable mounts, and a `/tmp` that is removed after each command. File tools of
///   [`into_backend`](Self::into_backend) see the mounts at the same paths.
/// * Opening runs a [self-test](SandboxConfig::self_test), unless an equal sandbox has passed it, and [reports](Self::report) what
///   is enforced. A sandbox weaker than the settings [require](SandboxConfig::required) does not open.
/// * If namespaces are available, commands run in them as an ordinary user, with a filter of system calls, and with Landlock if the
///   [helper](SandboxConfig::helper) is found. Otherwise Landlock and the filter alone confine commands; that is weaker, and has to
///   be requested by requiring [less](crate::Guarantee::WITHOUT_NAMESPACES).
/// * [Protected](SandboxConfig::protected) paths are covered in every command. A missing path is an empty directory while commands
///   run.
/// * Entries that have a [protected name](SandboxConfig::protected_names) when a command starts are covered at any depth, and so
///   are unix sockets. This takes the [helper](SandboxConfig::helper). If another command changes a directory above such an entry
///   while a command starts, the command is not run. One that moves a directory during the search can hide an entry in it from the
///   search, for a command that starts at that moment.
/// * The [problems](vfs_core::ExecuteResponse::problems) of a response name new entries below the mounts that have a
///   protected name or the shape of a git repository, since git on the host runs programs that their configuration
///   names. Entries are new if they did not exist when the sandbox was opened, or were moved or replaced, by commands
///   or by other programs. A response names at most a hundred. Entries that a background command leaves are named by
///   the next response of `execute`.
/// * Commands can create no [unix sockets](SandboxConfig::unix_sockets) except pairs.
/// * `/proc/self/mountinfo` has the paths of the mounts on the host, and their devices. Linux cannot hide that from a command; mount
///   directories whose paths are no secret.
/// * Without namespaces, commands cannot change the mode, owner, times or attributes of files, since nothing could
///   prevent such changes to files that they may only read. Through an open file, a change of mode, owner or times has
///   no effect and reports success, as programs that copy or unpack need it; other changes are refused.
/// * In namespaces, the exit code of a command that a signal ended is 128 and the number of the signal, as in shells. Without the
///   helper, a command that is stopped is killed at once. Processes that a command leaves running always end with it.
/// * Bounds on memory and processes apply to all commands together if this process may create control groups. The space of a mount
///   is not bounded, only the [size of each file](SandboxConfig::limits); use a quota of the host's file system.
///
/// A clone is a handle on the same sandbox.
#[derive(Debug, Clone)]
pub struct OsSandbox {
    pub(crate) setup: Arc<SandboxSetup>,
    report: Arc<SandboxReport>,
}

impl OsSandbox {
    /// Opens a sandbox that enforces what its settings require.
    ///
    /// Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// * `unsupported` if a [required](SandboxConfig::required) guarantee is not enforced: the message has the reason and the
    ///   remedy. Also for a protected path that is a link.
    /// * `invalid_argument` for mounts that overlap, that have files of the host in common with each other or with tools, or that
    ///   take the place of a system directory, and for mounts and tools that show the directory in which passed self-tests are
    ///   recorded and cannot hide it.
    /// * `busy` if too few file descriptors are left.
    /// * Errors of opening the mounts.
    pub async fn open(config: SandboxConfig) -> Result<Self> {
        let cache = SelfTestCache::open(config.self_test);
        let (setup, report) = open_strongest(config, cache).await?;
        match setup {
            Some(setup) if report.missing().next().is_none() => {
                // Note existing entries first: file tools and commands may write to an open sandbox.
                let existing = Arc::clone(&setup);
                let note = move || existing.note_existing(&OpContext::new());
                vfs_search::run_blocking(&Handle::current(), note).await?;
                Ok(Self { setup, report: Arc::new(report) })
            }
            _ => {
                let reasons: Vec<_> =
                    reasons(&report).into_iter().map(|(why, codes)| format!("{}: {why}", codes.join(", "))).collect();
                let message = format!("this system cannot enforce what the sandbox requires; {}", reasons.join("; "));
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Reports what a sandbox with these settings would enforce on this system, also if it would not open.
    ///
    /// Always runs the self-test, whatever the [settings](SandboxConfig::self_test) say.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), except for guarantees that are not enforced.
    pub async fn check(config: SandboxConfig) -> Result<SandboxReport> {
        let cache = SelfTestCache::open(SelfTestPolicy::Always);
        open_strongest(config, cache).await.map(|(_, report)| report)
    }

    /// Returns what the sandbox enforces.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Returns the settings of the sandbox.
    pub fn config(&self) -> &SandboxConfig {
        &self.setup.config
    }
}

#[async_trait]
impl Spawner for OsSandbox {
    async fn prepare(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<SpawnSpec> {
        self.setup.launch(cx, req, environment, None).await
    }
}

/// Returns the reasons for which required guarantees are not enforced, each with the names of the guarantees.
fn reasons(report: &SandboxReport) -> Vec<(&str, Vec<&'static str>)> {
    let mut reasons: Vec<(&str, Vec<&'static str>)> = Vec::new();
    for result in report.missing() {
        let EnforcementStatus::Missing(why) = &result.enforcement else { continue };
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, codes)) => codes.push(result.guarantee.code()),
            None => reasons.push((why, vec![result.guarantee.code()])),
        }
    }
    reasons
}

/// Returns the strongest sandbox that works on this system, if any, and the report on it.
async fn open_strongest(
    config: SandboxConfig,
    cache: Option<Arc<SelfTestCache>>,
) -> Result<(Option<Arc<SandboxSetup>>, SandboxReport)> {
    check_descriptors(&config)?;
    let mounts = Arc::new(OpenMount::open_all(&config).await?);
    // Report a path that cannot be protected here: otherwise the self-test would fail, and a weaker sandbox would be
    // tried.
    for mount in mounts.iter() {
        mount.path_covers(None)?;
    }
    let config = Arc::new(config);
    let mut reason = "the settings exclude namespaces".to_owned();
    if config.mechanisms.contains(&Mechanism::Namespaces) {
        match attempt_in_namespaces(&config, &mounts, cache.as_ref()).await? {
            Ok((setup, result)) => {
                let report = guarantee_assessor::report(&setup, &result.observations, None);
                result.record(report.missing().next().is_none());
                return Ok((Some(setup), report));
            }
            Err(why) => reason = format!("{why}; {}", advice()),
        }
    }
    match attempt(&config, &mounts, &SandboxSetup::direct, cache.as_ref()).await? {
        Ok((setup, result)) => {
            let report = guarantee_assessor::report(&setup, &result.observations, Some(&reason));
            result.record(report.missing().next().is_none());
            Ok((Some(setup), report))
        }
        Err(why) => Ok((None, guarantee_assessor::report_unavailable(&config, &format!("{reason}; {why}")))),
    }
}

/// Fails if few descriptors are left: the self-test would fail by that, and the report would blame namespaces.
fn check_descriptors(config: &SandboxConfig) -> Result<()> {
    /// Upper bound on the descriptors that a command needs beside those of its mounts and protected paths.
    const SPARE_DESCRIPTORS: usize = 56;
    /// Descriptors of each protected path below each mount while a command starts.
    const DESCRIPTORS_PER_PATH: usize = 2;
    /// Upper bound on the paths of the directory of the self-test cache that are hidden below a mount; usually there are none.
    const CACHE_PATHS: usize = 2;
    let spare =
        SPARE_DESCRIPTORS + config.mounts.len() * (4 + DESCRIPTORS_PER_PATH * (config.protected.len() + CACHE_PATHS));
    let spare = (0..spare).map(|_| open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
    match spare.collect::<Result<Vec<_>, _>>() {
        Err(errno @ (Errno::MFILE | Errno::NFILE)) => Err(few_descriptors().with_source(errno)),
        _ => Ok(()),
    }
}

/// Returns the likely reason for which namespaces do not work, and the remedy.
fn advice() -> String {
    let cause = if secure_computing_mode().is_ok_and(|mode| mode == SecureComputingMode::Filter) {
        "this process is under a filter of system calls, as in a container, which most likely forbids namespaces: start the \
         container with a profile that allows them"
    } else {
        "if users may not create namespaces, set the sysctls kernel.unprivileged_userns_clone=1 and \
         user.max_user_namespaces above 0, and give bwrap a profile if AppArmor restricts them"
    };
    format!(
        "{cause}; or require less: if only a /proc or a host name is missing, do not require hidden_processes \
         (--allow-visible-processes), else confine commands by Landlock alone (Guarantee::WITHOUT_NAMESPACES, --landlock)"
    )
}

/// Result of one attempt to set up a sandbox. After the inner error, a weaker sandbox may be tried.
type SetupAttempt = Result<(Arc<SandboxSetup>, SelfTestResult), String>;

/// Constructor of a setup that uses the given control groups.
type SetupFactory<'a> =
    &'a (dyn Fn(&Arc<SandboxConfig>, &Arc<Vec<OpenMount>>, ControlGroups) -> Result<SandboxSetup, String> + Sync);

/// Attempts a sandbox in namespaces; if that fails and processes need not be hidden, one that shows them.
async fn attempt_in_namespaces(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<OpenMount>>,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<SetupAttempt> {
    let why = match attempt_isolated(config, mounts, HostProcessVisibility::Hidden, cache).await? {
        Err(why) if !config.requires(Guarantee::HiddenProcesses) => why,
        decided => return Ok(decided),
    };
    Ok(attempt_isolated(config, mounts, HostProcessVisibility::Visible, cache).await?.map_err(|_| why))
}

/// Attempts a sandbox in namespaces; if the helper cannot mount in them, one in which it does not.
async fn attempt_isolated(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<OpenMount>>,
    outside: HostProcessVisibility,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<SetupAttempt> {
    let with = |nested: Result<(), String>| {
        let isolation = NamespaceVariant { outside, nested };
        move |config: &Arc<SandboxConfig>, mounts: &Arc<Vec<OpenMount>>, groups: ControlGroups| {
            SandboxSetup::in_namespaces(config, mounts, groups, isolation.clone(), cache)
        }
    };
    let why = match attempt(config, mounts, &with(Ok(())), cache).await? {
        Err(why) => why,
        decided => return Ok(decided),
    };
    let reason = format!("the helper cannot mount on this system: {why}");
    Ok(attempt(config, mounts, &with(Err(reason)), cache).await?.map_err(|_| why))
}

/// Attempts a sandbox with control groups; if they cannot be entered, one without.
async fn attempt(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<OpenMount>>,
    make: SetupFactory<'_>,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<SetupAttempt> {
    let groups = ControlGroups::create(config.memory_bytes, config.processes);
    let grouped = groups.memory.is_ok() || groups.processes.is_ok();
    let why = match attempt_with_groups(config, mounts, make, groups, cache).await? {
        Err(why) if grouped => why,
        decided => return Ok(decided),
    };
    let groups = ControlGroups::none(&format!("control groups do not work on this system: {why}"));
    attempt_with_groups(config, mounts, make, groups, cache).await
}

async fn attempt_with_groups(
    config: &Arc<SandboxConfig>,
    mounts: &Arc<Vec<OpenMount>>,
    make: SetupFactory<'_>,
    groups: ControlGroups,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<SetupAttempt> {
    let setup = match make(config, mounts, groups) {
        Ok(setup) => Arc::new(setup),
        Err(why) => return Ok(Err(why)),
    };
    Ok(self_test::result(&setup, cache).await?.map(|result| (setup, result)))
}
