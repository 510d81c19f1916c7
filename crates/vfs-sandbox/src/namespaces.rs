//! Commands in namespaces, which bubblewrap creates.

pub(crate) mod bubblewrap;
pub(crate) mod inherited_files;
mod nested_cover_selection;
pub(crate) mod system_files;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use vfs_core::backend::AccessMode;
use vfs_core::{Error, ErrorKind, Result};
use vfs_shell::SpawnSpec;

use crate::config::{SandboxConfig, UnixSockets};
use crate::file_descriptors::duplicate;
use crate::file_version::FileVersion;
use crate::helper_program::memfd;
use crate::helper_program::trusted_programs;
use crate::helper_program::{
    self, ENVIRONMENT, ExpectedCoverTarget, FILTER, HelperCoverMode, HelperTask, environment_bytes,
};
use crate::landlock::{LandlockAccess, LandlockRules};
use crate::namespaces::bubblewrap::{
    BindSource, BubblewrapPlan, CoveringMount, HelperMountSupport, HostProcessVisibility, SetsidMode,
    UserNamespacePrevention, arguments,
};
use crate::namespaces::inherited_files::{InheritedFiles, encode_options, no_memory};
use crate::namespaces::nested_cover_selection::nested_entries;
use crate::namespaces::system_files::{CommandUser, SystemFiles, generated_files};
use crate::protect::nested_covers::{self, NestedCoverMethod, NestedEntry};
use crate::protect::open_mount::{OpenMount, PathCover};
use crate::protect::placeholders::Placeholders;
use crate::protect::tree_scan::ScanMatch;
use crate::seccomp;
use crate::self_test_cache::{SelfTestCache, SelfTestCacheSlot};

/// How bubblewrap receives the sources of binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BindSourcePassing {
    /// By descriptor: the file that was checked is bound, even after a rename.
    ByDescriptor,
    /// By path, as versions before 0.11 require.
    ByPath,
}

/// Features of the namespaces of one attempt, without those that did not work on this system.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceVariant {
    pub(crate) outside: HostProcessVisibility,
    /// Whether the helper mounts covers deep in the tree, or why not.
    pub(crate) nested: Result<(), String>,
}

/// Spawner of commands in namespaces.
#[derive(Debug)]
pub(crate) struct NamespaceSpawner {
    program: PathBuf,
    binds: BindSourcePassing,
    nested_users: UserNamespacePrevention,
    identity: CommandUser,
    outside: HostProcessVisibility,
    system: SystemFiles,
    filter: Option<Vec<u8>>,
    /// Filter of system calls for the helper while it mounts covers, if one is used; or why it mounts none.
    nested: Result<Option<Vec<u8>>, String>,
    /// The helper with its task, or why there is none.
    helper: Result<(OwnedFd, HelperTask), String>,
    placeholders: Placeholders,
    description: String,
}

/// A command to start in namespaces.
#[derive(Debug)]
pub(crate) struct CommandSpec<'a> {
    pub(crate) command: &'a str,
    pub(crate) directory: &'a str,
    pub(crate) session: SetsidMode,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Path of a file that only the self-test needs: namespaces show it and Landlock does not.
    pub(crate) decoy: Option<&'static str>,
}

/// File of the self-test that the helper covers like a hidden name.
pub(crate) const COVERED_DECOY: &str = "/etc/vfs-covered-decoy";

impl NamespaceSpawner {
    /// Finds bubblewrap, its options and the helper. `filters` are those of commands and of the helper while it mounts covers.
    pub(crate) fn find(
        config: &SandboxConfig,
        mounts: &[OpenMount],
        filters: Option<[&seccompiler::BpfProgram; 2]>,
        landlock: Result<(), String>,
        processes: Option<u64>,
        isolation: NamespaceVariant,
        cache: Option<&Arc<SelfTestCache>>,
    ) -> Result<Self, String> {
        let NamespaceVariant { outside, nested } = isolation;
        let program = match &config.bubblewrap {
            Some(program) => trusted_programs::verify(program, mounts)?,
            None => trusted_programs::find("bwrap", None, mounts)
                .map_err(|why| format!("{why}; install the package bubblewrap, or name it in the settings"))?,
        };
        let version = FileVersion::at(&program);
        let help = read_help(&program, &version, cache)?;
        let supports = |option: &str| help.contains(option);
        let root = rustix::process::getuid().is_root();
        let identity = if root { CommandUser::Ordinary } else { CommandUser::Same };
        // Bubblewrap disables user namespaces through a file of /proc, which it cannot write if it may not mount a
        // /proc.
        let nested_users = match outside {
            HostProcessVisibility::Hidden if supports("--disable-userns") => UserNamespacePrevention::Disabled,
            _ => UserNamespacePrevention::LeftToFilter,
        };
        let system = SystemFiles::detect(config.network);
        let task = |()| HelperTask { rules: rules(&system, config, mounts), processes, ..HelperTask::default() };
        let helper = landlock.map(task).and_then(|task| Ok((helper_program::open(&config.helper, mounts)?, task)));
        let description = format!(
            "{program:?} {version:?} {:?} {outside:?} {nested:?} {system:?}",
            helper.as_ref().map(|((_, version), task)| (version, task))
        );
        let helper = helper.map(|((file, _), task)| (file, task));
        let placeholders =
            Placeholders::new().map_err(|errno| format!("the lock file of commands cannot be created: {errno}"))?;
        Ok(Self {
            program,
            binds: if supports("--ro-bind-fd") { BindSourcePassing::ByDescriptor } else { BindSourcePassing::ByPath },
            nested_users,
            identity,
            outside,
            filter: filters.map(|[command, _]| seccomp::bytes(command)),
            nested: nested
                .and(helper.as_ref().map(|_| ()).map_err(String::clone))
                .map(|()| filters.map(|[_, covering]| seccomp::bytes(covering))),
            helper,
            system,
            placeholders,
            description,
        })
    }

    /// Describes what a self-test depends on beside the settings and the system.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Returns why a bind over a protected path might not have the file that was checked, if that is possible.
    pub(crate) fn verifies_binds(&self) -> Result<(), String> {
        if self.binds == BindSourcePassing::ByDescriptor || self.helper.is_ok() {
            return Ok(());
        }
        let why = "this bubblewrap binds paths by name, so another writer of the directory could replace them meanwhile; \
                   use bubblewrap 0.11, or the helper, which verifies them";
        Err(why.to_owned())
    }

    /// Removes the placeholders of missing protected paths, unless a command still runs.
    pub(crate) fn tidy(&self) {
        self.placeholders.clear();
    }

    /// Returns why the helper does not apply Landlock, if it does not.
    pub(crate) fn landlock(&self) -> Result<(), &str> {
        self.helper.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Returns why the helper does not cover entries deep in the tree, if it does not.
    pub(crate) fn nested(&self) -> Result<(), &str> {
        self.nested.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Returns how to start a command. `entries` are the entries deep in the mounts that have to be covered.
    pub(crate) fn launch(
        &self,
        config: &SandboxConfig,
        mounts: &[OpenMount],
        entries: &[(usize, ScanMatch)],
        spec: CommandSpec<'_>,
    ) -> Result<SpawnSpec> {
        let mut inherited = InheritedFiles::default();
        // Lock before placeholders are created, so that they are not removed meanwhile.
        let lock = self.placeholders.lock_for_command().map_err(no_memory)?;
        let lock = inherited.add(lock);
        let mut files = Vec::new();
        for path in &self.system.setting_files {
            // A file removed since the sandbox was opened is missing for commands, too.
            if let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
                files.push((inherited.add(file), path.clone()));
            }
        }
        for (at, text) in generated_files(self.identity, config.network) {
            files.push((inherited.add_content(text.as_bytes())?, at.into()));
        }
        // If the filter denies sockets, the command can start even if one vanishes meanwhile.
        let socket = match config.unix_sockets {
            UnixSockets::Deny if self.filter.is_some() => NestedCoverMethod::DeniedSocket,
            _ => NestedCoverMethod::HiddenFile,
        };
        let mut nested_entries = nested_entries(mounts, entries, socket)?;
        if let Some(decoy) = spec.decoy {
            files.push((inherited.add_content(b"decoy\n")?, decoy.into()));
            if self.nested.is_ok() {
                files.push((inherited.add_content(b"decoy\n")?, COVERED_DECOY.into()));
                let (path, cover) = (COVERED_DECOY.into(), NestedCoverMethod::HiddenFile);
                nested_entries.push(NestedEntry { path, cover, file: None });
            }
        }
        if self.helper.is_ok() {
            files.push((inherited.add_content(&environment_bytes(&spec.environment))?, ENVIRONMENT.into()));
        }
        let (covers, covered) = self.covers(mounts, &mut inherited)?;
        let (nested, filter) = self.nested_mounts(&nested_entries, &mut files, &mut inherited)?;
        let plan = BubblewrapPlan {
            system: &self.system,
            tools: &config.tools,
            network: config.network,
            session: spec.session,
            identity: self.identity,
            outside: self.outside,
            nested_users: self.nested_users,
            tmp_bytes: config.tmp_bytes,
            written: files,
            covers,
            nested,
            lock: Some(lock),
            filter,
            directory: spec.directory,
        };
        let mut options = arguments(&plan);
        let mut command: Vec<OsString> = Vec::new();
        if let Ok((helper, task)) = &self.helper {
            let own = inherited.add(duplicate(helper)?);
            command.push(memfd::path(own).into());
            let nested = match nested {
                HelperMountSupport::None => HelperCoverMode::None,
                HelperMountSupport::Made(_) if self.filter.is_some() => HelperCoverMode::ListedBeforeFilter,
                HelperMountSupport::Made(_) => HelperCoverMode::Listed,
            };
            command.extend(HelperTask { own: Some(own), covers: covered, nested, ..task.clone() }.arguments());
        } else {
            let set = |(name, value)| ["--setenv".into(), name, value];
            options.splice(0..0, spec.environment.into_iter().flat_map(set));
        }
        command.extend(["/bin/sh".into(), "-c".into(), "--".into(), spec.command.into()]);
        let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            Error::new(ErrorKind::Unavailable, "the host's root cannot be opened").with_source(errno)
        })?;
        // All users of the host can see arguments, so neither the environment nor paths of the host are among them. Bubblewrap
        // itself runs on the host and gets no environment.
        let mut launch = SpawnSpec::new(&self.program, root);
        launch.arguments =
            vec!["--args".into(), inherited.add_content(&encode_options(&options))?.to_string().into(), "--".into()];
        launch.arguments.extend(command);
        launch.descriptors = inherited.0;
        Ok(launch)
    }

    /// Prepares the files from which the helper covers these entries, and returns the filter that bubblewrap loads.
    fn nested_mounts(
        &self,
        entries: &[NestedEntry],
        files: &mut Vec<(i32, PathBuf)>,
        inherited: &mut InheritedFiles,
    ) -> Result<(HelperMountSupport, Option<i32>)> {
        let command = self.filter.as_ref();
        let covering = match &self.nested {
            Ok(covering) if !entries.is_empty() => covering,
            _ => {
                return Ok((
                    HelperMountSupport::None,
                    command.map(|filter| inherited.add_content(filter)).transpose()?,
                ));
            }
        };
        files.push((inherited.add_content(&nested_covers::encode(entries))?, nested_covers::LIST.into()));
        if let Some(filter) = command {
            files.push((inherited.add_content(filter)?, FILTER.into()));
        }
        let made = HelperMountSupport::Made(inherited.add_content(b"")?);
        Ok((made, covering.as_ref().map(|filter| inherited.add_content(filter)).transpose()?))
    }

    /// Returns the mounts over the tree, and the checks by which the helper verifies them.
    fn covers(&self, mounts: &[OpenMount], inherited: &mut InheritedFiles) -> Result<(CoversByPath, Vec<CoverCheck>)> {
        let (mut covers, mut checks) = (Vec::new(), Vec::new());
        let status = |file: &OwnedFd| {
            rustix::fs::fstat(file).map_err(|errno| Error::of(ErrorKind::Unavailable).with_source(errno))
        };
        for mount in mounts {
            let bind_source = |file: OwnedFd, path: &str, inherited: &mut InheritedFiles| match self.binds {
                BindSourcePassing::ByDescriptor => BindSource::Descriptor(inherited.add(file)),
                BindSourcePassing::ByPath => BindSource::Path(mount.directory.join(path.trim_start_matches('/'))),
            };
            let with_access = |source| match mount.access {
                AccessMode::ReadWrite => CoveringMount::Writable(source),
                _ => CoveringMount::ReadOnly(source),
            };
            let root = status(&mount.root)?;
            let device = root.st_dev;
            checks.push((mount.at.as_str().into(), ExpectedCoverTarget::Exactly { device, inode: root.st_ino }));
            let root = bind_source(duplicate(&mount.root)?, "", inherited);
            covers.push((mount.at.as_str().to_owned(), with_access(root)));
            for (path, what, file) in mount.path_covers(Some(&self.placeholders))? {
                let there = status(&file)?;
                let covered = ExpectedCoverTarget::Exactly { device: there.st_dev, inode: there.st_ino };
                let made = ExpectedCoverTarget::OffDevice { device };
                let (cover, check) = match what {
                    PathCover::InPlace => (with_access(bind_source(file, &path, inherited)), covered),
                    PathCover::ReadOnly => (CoveringMount::ReadOnly(bind_source(file, &path, inherited)), covered),
                    PathCover::HiddenFile => (CoveringMount::HiddenFile(inherited.add_content(b"")?), made),
                    PathCover::HiddenDirectory => (CoveringMount::HiddenDirectory, made),
                    PathCover::Placeholder => (CoveringMount::EmptyDirectory, made),
                };
                let at = format!("{}{path}", mount.at);
                checks.push((at.clone().into(), check));
                covers.push((at, cover));
            }
        }
        Ok((covers, checks))
    }
}

/// Returns the help text of bubblewrap with its options, from the cache if it was recorded.
fn read_help(
    program: &Path,
    version: &Option<FileVersion>,
    cache: Option<&Arc<SelfTestCache>>,
) -> Result<String, String> {
    let entry = cache.map(|cache| cache.entry("bubblewrap", &format!("{program:?} {version:?}")));
    if let Some(help) = entry.as_ref().and_then(SelfTestCacheSlot::load) {
        return Ok(String::from_utf8_lossy(&help).into_owned());
    }
    let output = Command::new(program)
        .arg("--help")
        .env_clear()
        .output()
        .map_err(|error| format!("bubblewrap cannot be started: {error}"))?;
    let help = [output.stdout, output.stderr].concat();
    if let Some(entry) = entry.filter(|_| output.status.success()) {
        entry.store(&help);
    }
    Ok(String::from_utf8_lossy(&help).into_owned())
}

/// Mounts over the tree, with their paths.
type CoversByPath = Vec<(String, CoveringMount)>;
/// A covered path, with the file that the helper expects there.
type CoverCheck = (PathBuf, ExpectedCoverTarget);

/// Landlock rules inside the namespaces: the same access as the mounts give.
fn rules(system: &SystemFiles, config: &SandboxConfig, mounts: &[OpenMount]) -> LandlockRules {
    let mut rules = LandlockRules { network: config.network, ..LandlockRules::default() };
    rules.grant(LandlockAccess::List, "/");
    for path in system.directories.iter().chain(&config.tools) {
        rules.grant(LandlockAccess::Read, path);
    }
    rules.grant(LandlockAccess::Read, "/etc");
    rules.grant(LandlockAccess::Read, "/proc");
    rules.grant(LandlockAccess::Device, "/dev");
    rules.grant(LandlockAccess::Write, "/dev/shm");
    rules.grant(LandlockAccess::Write, "/tmp");
    for mount in mounts {
        let grant = if mount.access == AccessMode::ReadWrite { LandlockAccess::Write } else { LandlockAccess::Read };
        rules.grant(grant, mount.at.as_str());
    }
    rules
}
