//! Setup of a sandbox: one way to start commands, before the self-test shows what it enforces.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::runtime::Handle;
use vfs_core::{Error, ErrorKind, ExecuteRequest, OpContext, Problem, Result, VfsPath};
use vfs_shell::SpawnSpec;

use crate::cgroup::{self, ControlGroups};
use crate::config::{SandboxConfig, SelfTestPolicy};
use crate::landlock;
use crate::landlock::without_namespaces;
use crate::namespaces::bubblewrap::SetsidMode;
use crate::namespaces::inherited_files::check_length;
use crate::namespaces::{CommandSpec, NamespaceSpawner, NamespaceVariant};
use crate::protect::open_mount::OpenMount;
use crate::protect::tree_scan::{ScanBudget, ScanMatch, ScanRules};
use crate::protect::uncovered_entry_reporter::UncoveredEntryReporter;
use crate::report::guarantee::Mechanism;
use crate::sandbox::confinement::{Confinement, PrivilegeHandling, TerminationSignalHandling};
use crate::seccomp::{self, FilterTarget, SeccompProfile};
use crate::self_test_cache::SelfTestCache;

/// How commands are started.
#[derive(Debug)]
pub(crate) enum SpawnMethod {
    /// By bubblewrap, in namespaces.
    Namespaces(Box<NamespaceSpawner>),
    /// Directly, under Landlock and the filter.
    Direct,
}

/// Everything that starting a command takes, and the mechanisms that are used.
#[derive(Debug)]
pub(crate) struct SandboxSetup {
    pub(crate) config: Arc<SandboxConfig>,
    pub(crate) mounts: Arc<Vec<OpenMount>>,
    pub(crate) method: SpawnMethod,
    pub(crate) confine: Arc<Confinement>,
    pub(crate) groups: ControlGroups,
    /// Whether the filter is used, or why not.
    pub(crate) filter: Result<(), String>,
    /// The version of the Landlock interface, or why Landlock is not used.
    pub(crate) landlock: Result<i32, String>,
    scan_rules: ScanRules,
    leftovers: UncoveredEntryReporter,
}

impl SandboxSetup {
    /// Sets up commands in namespaces, or returns why that is impossible.
    pub(crate) fn in_namespaces(
        config: &Arc<SandboxConfig>,
        mounts: &Arc<Vec<OpenMount>>,
        groups: ControlGroups,
        isolation: NamespaceVariant,
        cache: Option<&Arc<SelfTestCache>>,
    ) -> Result<Self, String> {
        let filters = [FilterTarget::Command, FilterTarget::Covering]
            .map(|process| filter_for(config, SeccompProfile::Namespaces, process));
        let [program, covering] = filters;
        let landlock = landlock_for(config);
        // The kernel counts the processes of an ordinary user in a user namespace of its own separately.
        let processes = config.processes.filter(|_| groups.processes.is_err());
        let landlock_status = landlock.as_ref().map(|_| ()).map_err(String::clone);
        let filters = program.as_ref().ok().zip(covering.as_ref().ok()).map(|(program, covering)| [program, covering]);
        let namespaces = NamespaceSpawner::find(config, mounts, filters, landlock_status, processes, isolation, cache)?;
        let termination = if namespaces.landlock().is_ok() {
            TerminationSignalHandling::Ignored
        } else {
            TerminationSignalHandling::Default
        };
        let confine = Confinement { groups: entries(&groups)?, termination, ..Confinement::default() };
        Ok(Self {
            config: Arc::clone(config),
            mounts: Arc::clone(mounts),
            landlock: namespaces.landlock().map_err(str::to_owned).and(landlock),
            method: SpawnMethod::Namespaces(Box::new(namespaces)),
            confine: Arc::new(confine),
            groups,
            filter: program.map(drop),
            scan_rules: ScanRules::new(config),
            leftovers: UncoveredEntryReporter::default(),
        })
    }

    /// Sets up commands without namespaces, or returns why that is impossible.
    pub(crate) fn direct(
        config: &Arc<SandboxConfig>,
        mounts: &Arc<Vec<OpenMount>>,
        groups: ControlGroups,
    ) -> Result<Self, String> {
        if let Some(mount) = mounts.iter().find(|mount| !mount.is_in_place()) {
            return Err(format!("without namespaces, commands cannot see a directory of the host as {}", mount.at));
        }
        if let Some(mount) = mounts.iter().find(|mount| mount.exposes_self_test_cache) {
            let at = &mount.at;
            return Err(format!(
                "without namespaces, nothing hides the directory below {at} in which sandboxes record passed self-tests"
            ));
        }
        let program = filter_for(config, without_namespaces::seccomp_profile(config.network), FilterTarget::Command);
        let landlock = landlock_for(config);
        let rules = landlock.as_ref().ok().map(|_| without_namespaces::rules(config, mounts).ruleset()).transpose()?;
        let confine = Confinement {
            groups: entries(&groups)?,
            termination: TerminationSignalHandling::Default,
            processes: config.processes.filter(|_| groups.processes.is_err()),
            privileges: PrivilegeHandling::Dropped,
            rules,
            filter: program.as_ref().ok().cloned(),
        };
        Ok(Self {
            config: Arc::clone(config),
            mounts: Arc::clone(mounts),
            method: SpawnMethod::Direct,
            confine: Arc::new(confine),
            groups,
            filter: program.map(drop),
            landlock,
            scan_rules: ScanRules::without_paths(config),
            leftovers: UncoveredEntryReporter::default(),
        })
    }

    /// Describes everything in this setup on which the result of a self-test depends.
    pub(crate) fn description(&self) -> String {
        let config = self.config.as_ref().clone().self_test(SelfTestPolicy::default());
        let method = match &self.method {
            SpawnMethod::Namespaces(namespaces) => namespaces.description(),
            SpawnMethod::Direct => "direct",
        };
        let mounts: Vec<_> = self.mounts.iter().map(|mount| (&mount.at, mount.access, mount.identity())).collect();
        let bounds = (&self.groups.memory, &self.groups.processes, &self.filter, &self.landlock);
        format!("{config:?} {mounts:?} {method} {bounds:?}")
    }

    /// Returns how to start `req`. `decoy` is a file for the self-test that Landlock does not let commands read.
    pub(crate) async fn launch(
        self: &Arc<Self>,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
        decoy: Option<&'static str>,
    ) -> Result<SpawnSpec> {
        check_length(&req.command, &environment).map_err(|error| error.with_path(&req.cwd))?;
        let directory = self.directory(cx, &req.cwd).await?;
        let mut launch = match (&self.method, directory) {
            (SpawnMethod::Direct, None) => return Err(not_shown(&req.cwd)),
            (SpawnMethod::Direct, Some(directory)) => {
                let (setup, cx) = (Arc::clone(self), cx.clone());
                vfs_search::run_blocking(&Handle::current(), move || setup.entries_to_cover(&cx)).await??;
                without_namespaces::launch(&req.command, directory, environment)
            }
            (SpawnMethod::Namespaces(_), _) => self.launch_in_namespaces(cx, req, environment, decoy).await?,
        };
        if launch.descriptors.iter().any(|&(_, number)| number >= cgroup::FIRST_ENTRY) {
            let message = "a command cannot be started with so many protected paths and mounts; protect a directory \
                           that contains several of them, or show fewer mounts";
            return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(&req.cwd));
        }
        launch.limits = self.config.limits;
        launch.limits.processes = None;
        launch.terminal = req.terminal;
        let confine = Arc::clone(&self.confine);
        launch.confine = Some(Arc::new(move || confine.apply()));
        Ok(launch)
    }

    /// Removes the placeholders of missing protected paths, unless a command still runs.
    pub(crate) fn tidy(&self) {
        if let SpawnMethod::Namespaces(namespaces) = &self.method {
            namespaces.tidy();
        }
    }

    async fn launch_in_namespaces(
        self: &Arc<Self>,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
        decoy: Option<&'static str>,
    ) -> Result<SpawnSpec> {
        let (setup, cx) = (Arc::clone(self), cx.clone());
        let (command, cwd, terminal) = (req.command.clone(), req.cwd.clone(), req.terminal);
        vfs_search::run_blocking(&Handle::current(), move || {
            let SpawnMethod::Namespaces(namespaces) = &setup.method else { return Err(Error::of(ErrorKind::Internal)) };
            let session = if terminal.is_some() { SetsidMode::OfTerminal } else { SetsidMode::New };
            let spec = CommandSpec { command: &command, directory: cwd.as_str(), session, environment, decoy };
            // The self-test has a decoy of its own to cover.
            let entries = if decoy.is_none() { setup.entries_to_cover(&cx)? } else { Vec::new() };
            namespaces.launch(&setup.config, &setup.mounts, &entries, spec)
        })
        .await?
    }

    /// Returns the entries that have to be covered, or that commands left, each with the number of its mount.
    fn scan(&self, cx: &OpContext) -> Result<Vec<(usize, ScanMatch)>> {
        let mut budget = ScanBudget::new(&self.scan_rules, cx);
        let mut entries = Vec::new();
        for (number, mount) in self.mounts.iter().enumerate() {
            let found = mount.scan(&self.scan_rules, &mut budget)?;
            entries.extend(found.into_iter().map(|entry| (number, entry)));
        }
        Ok(entries)
    }

    /// Returns the entries to cover in a command that starts now, and notes which entries exist.
    fn entries_to_cover(&self, cx: &OpContext) -> Result<Vec<(usize, ScanMatch)>> {
        if let SpawnMethod::Namespaces(namespaces) = &self.method
            && namespaces.nested().is_ok()
        {
            let entries = self.scan(cx)?;
            self.leftovers.note_existing(&entries);
            return Ok(entries);
        }
        self.note_existing(cx);
        Ok(Vec::new())
    }

    /// Notes which entries exist, for the report of those that commands leave.
    pub(crate) fn note_existing(&self, cx: &OpContext) {
        if !self.scan_rules.finds_names() {
            return;
        }
        // If this scan fails, the one after the next command reports the reason.
        if let Ok(entries) = self.scan(cx) {
            self.leftovers.note_existing(&entries);
        }
    }

    /// Returns a problem for each entry that commands left and that has not been reported yet, or for a scan that
    /// failed.
    pub(crate) fn new_leftovers(&self, cx: &OpContext) -> Vec<Problem> {
        if !self.scan_rules.finds_names() {
            return Vec::new();
        }
        match self.scan(cx) {
            Ok(entries) => self.leftovers.new_problems(&self.mounts, &entries),
            Err(error) => vec![error.into()],
        }
    }

    /// Opens the working directory of a command, if it is below a mount.
    async fn directory(&self, cx: &OpContext, cwd: &VfsPath) -> Result<Option<OwnedFd>> {
        if let Some((mount, below)) = self.mounts.iter().find_map(|mount| Some((mount, cwd.strip_prefix(&mount.at)?))) {
            let below = VfsPath::root().join(below)?;
            let found = mount.files.open_directory(cx, &below).await;
            return found.map(Some).map_err(|error| error.with_path(cwd));
        }
        let is_above_mount = self.mounts.iter().any(|mount| mount.at.starts_with(cwd));
        if is_above_mount || cwd.as_str() == "/tmp" { Ok(None) } else { Err(not_shown(cwd)) }
    }
}

fn not_shown(cwd: &VfsPath) -> Error {
    let message = "the sandbox has no directory at this path; start the command in one of its mounts";
    Error::new(ErrorKind::NotFound, message).with_path(cwd)
}

fn entries(groups: &ControlGroups) -> Result<Vec<OwnedFd>, String> {
    groups.entries().map_err(|error| format!("control groups cannot be entered: {error}"))
}

fn check_used(config: &SandboxConfig, mechanism: Mechanism) -> Result<(), String> {
    let used = config.mechanisms.contains(&mechanism);
    if used { Ok(()) } else { Err("the settings exclude it".to_owned()) }
}

fn filter_for(
    config: &SandboxConfig,
    profile: SeccompProfile,
    process: FilterTarget,
) -> Result<seccompiler::BpfProgram, String> {
    check_used(config, Mechanism::Seccomp)?;
    seccomp::program(profile, config.unix_sockets, process)
}

fn landlock_for(config: &SandboxConfig) -> Result<i32, String> {
    check_used(config, Mechanism::Landlock)?;
    landlock::version().ok_or_else(|| landlock::MISSING.to_owned())
}
