//! Landlock rules: the access to files, TCP and other processes that commands have.

pub(crate) mod without_namespaces;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};

use crate::config::Network;

/// Access that Landlock grants to the files below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LandlockAccess {
    /// Directories can be listed.
    List,
    /// Files can be read and executed.
    Read,
    /// Files can be read, executed, created, changed and removed.
    Write,
    /// Devices can be used.
    Device,
}

impl LandlockAccess {
    /// Every grant with its option of the helper.
    pub(crate) const OPTIONS: [(Self, &str); 4] =
        [(Self::List, "--list"), (Self::Read, "--read"), (Self::Write, "--write"), (Self::Device, "--device")];

    fn rights(self) -> BitFlags<AccessFs> {
        let read = AccessFs::from_read(NEWEST);
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => read,
            Self::Write => {
                AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
            }
            Self::Device => (read & !AccessFs::Execute) | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
        }
    }
}

/// The newest version of the interface whose rights are handled. An older kernel handles those that it supports.
const NEWEST: ABI = ABI::V7;

/// The first version of the interface that denies unix sockets with a path that were created outside: Linux 7.1.
pub(crate) const UNIX_SOCKETS: i32 = ABI::V9 as i32;

/// The Landlock rules for one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LandlockRules {
    pub(crate) grants: Vec<(LandlockAccess, PathBuf)>,
    pub(crate) network: Network,
}

impl LandlockRules {
    pub(crate) fn grant(&mut self, access: LandlockAccess, path: impl Into<PathBuf>) {
        self.grants.push((access, path.into()));
    }

    /// Creates the ruleset of the kernel. Missing paths are left out.
    pub(crate) fn ruleset(&self) -> Result<RulesetCreated, String> {
        let refused = |error: landlock::RulesetError| format!("the kernel refuses the rules: {error}");
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            // No grant includes `ResolveUnix`: commands reach only sockets that were created in the sandbox.
            .handle_access(AccessFs::from_all(NEWEST) | AccessFs::ResolveUnix)
            .map_err(refused)?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)
            .map_err(refused)?;
        if self.network == Network::Off {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(refused)?;
        }
        let mut created = ruleset.create().map_err(refused)?;
        for (access, path) in &self.grants {
            if let Some(directory) = open(path)? {
                created = created.add_rule(PathBeneath::new(directory, access.rights())).map_err(refused)?;
            }
        }
        Ok(created)
    }
}

/// Reason and remedy for a kernel without Landlock.
pub(crate) const MISSING: &str =
    "the kernel has no Landlock; use Linux 5.13 or newer, built with it, and name landlock in the boot option lsm=";

/// Opens the path of a rule; `None` if this process cannot reach it.
fn open(path: &Path) -> Result<Option<PathFd>, String> {
    match rustix::fs::stat(path) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => Ok(None),
        _ => PathFd::new(path).map(Some).map_err(|error| format!("a Landlock rule cannot be created: {error}")),
    }
}

/// Returns the version of the Landlock interface; `None` if the kernel has none.
pub(crate) fn version() -> Option<i32> {
    // The version is returned only to a thread that applies rules, so a thread is started for that alone.
    let thread = std::thread::Builder::new().name("landlock".to_owned()).spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeChar).ok()?.create().ok()?;
        match ruleset.restrict_self().ok()?.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
            _ => None,
        }
    });
    thread.ok()?.join().ok()?
}
