//! What Landlock allows.

pub(crate) mod direct;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope,
};

use crate::config::Network;

/// What may be done below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Directories may be listed.
    List,
    /// Files may be read and run.
    Read,
    /// Files may be read, run, made, changed and removed.
    Write,
    /// Devices may be used.
    Device,
}

impl Grant {
    /// Every grant with the option of the helper that makes it.
    pub(crate) const OPTIONS: [(Self, &str); 4] =
        [(Self::List, "--list"), (Self::Read, "--read"), (Self::Write, "--write"), (Self::Device, "--device")];

    fn access(self) -> BitFlags<AccessFs> {
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

/// The newest interface whose rights are handled; an older kernel handles those that it knows.
const NEWEST: ABI = ABI::V7;

/// The interface from which on Landlock keeps commands from unix sockets with a path that were made outside: Linux 7.1.
pub(crate) const UNIX_SOCKETS: i32 = ABI::V9 as i32;

/// Everything that a command may do with files and with others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) grants: Vec<(Grant, PathBuf)>,
    pub(crate) network: Network,
}

impl Rules {
    pub(crate) fn grant(&mut self, grant: Grant, path: impl Into<PathBuf>) {
        self.grants.push((grant, path.into()));
    }

    /// The kernel's form of them. A path that is not there is left out.
    pub(crate) fn ruleset(&self) -> Result<RulesetCreated, String> {
        let told = |error: landlock::RulesetError| format!("the kernel does not take the rules: {error}");
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            // No grant allows the second: a command reaches the sockets that were made in the sandbox, and no others.
            .handle_access(AccessFs::from_all(NEWEST) | AccessFs::ResolveUnix)
            .map_err(told)?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)
            .map_err(told)?;
        if self.network == Network::Off {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(told)?;
        }
        let mut created = ruleset.create().map_err(told)?;
        for (grant, path) in &self.grants {
            if let Some(directory) = opened(path)? {
                created = created.add_rule(PathBeneath::new(directory, grant.access())).map_err(told)?;
            }
        }
        Ok(created)
    }
}

pub(crate) const MISSING: &str =
    "the kernel has no Landlock; use Linux 5.13 or newer, built with it, and name landlock in the boot option lsm=";

fn opened(path: &Path) -> Result<Option<PathFd>, String> {
    match rustix::fs::stat(path) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => Ok(None),
        _ => PathFd::new(path).map(Some).map_err(|error| format!("a rule for Landlock cannot be made: {error}")),
    }
}

/// The version of Landlock's interface that the kernel has; `None` where it has none.
pub(crate) fn version() -> Option<i32> {
    // Only a thread that puts rules on is told, so one does, and ends.
    let tried = std::thread::Builder::new().name("landlock".to_owned()).spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeChar).ok()?.create().ok()?;
        match ruleset.restrict_self().ok()?.landlock {
            LandlockStatus::Available { effective_abi, kernel_abi } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
            _ => None,
        }
    });
    tried.ok()?.join().ok()?
}
