//! Settings of a sandbox, fixed when it is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vfs_core::backend::AccessMode;
use vfs_core::{Error, Result, VfsPath};
pub use vfs_local::ProtectionLevel;
use vfs_shell::Limits;

use crate::report::guarantee::{Guarantee, Mechanism};

/// A directory of the host that commands and file tools see at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// Path at which commands and file tools see the directory.
    pub at: VfsPath,
    /// Path of the directory on the host.
    pub directory: PathBuf,
    /// Whether the directory may be written to.
    pub access: AccessMode,
}

impl Mount {
    /// Returns a writable mount of `directory` at `at`.
    pub fn writable(at: VfsPath, directory: impl Into<PathBuf>) -> Self {
        Self { at, directory: directory.into(), access: AccessMode::ReadWrite }
    }

    /// Returns a read-only mount of `directory` at `at`.
    pub fn read_only(at: VfsPath, directory: impl Into<PathBuf>) -> Self {
        Self { at, directory: directory.into(), access: AccessMode::ReadOnly }
    }
}

/// Whether commands have a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// No network, except a loopback device of their own.
    #[default]
    Off,
    /// The network of the host, with its loopback device, and its abstract sockets unless Landlock denies them
    /// ([`Guarantee::LandlockScope`]).
    Host,
}

/// Whether commands may create unix sockets.
///
/// A socket that exists below a mount when a command starts is covered in either case, so commands cannot connect to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum UnixSockets {
    /// Only pairs that stay connected to each other (`socketpair` of streams or packets), as programs use them to
    /// communicate with the processes that they start. A command cannot connect to a socket with a path or an abstract
    /// name, its own included, since a filter of system calls cannot see addresses.
    #[default]
    Deny,
    /// All unix sockets, for test suites that start a server on one. Commands can connect to a socket that a process of
    /// the host creates below a mount while they run, unless Landlock denies that (Linux 7.1). Without namespaces this
    /// is the same as [`Deny`](Self::Deny).
    Allow,
}

/// A name that is protected from commands and file tools at any depth of every mount.
///
/// Entries that have the name when a command starts are covered in that command, directories with their contents. A command can
/// create an entry of the name below the root of a mount; the [problems](vfs_core::ExecuteResponse::problems) of its response name
/// the entry, and it is covered in the next command. File tools cannot create an entry of the name. Names that differ only in case
/// are the same name. A link of the name is not covered: it is reported as a problem, unless its target is covered.
///
/// If `.git` is a protected name, directories that git takes for a repository without that name are covered in
/// commands, too: those that contain `HEAD`, with `objects` and `refs` or `commondir`. File tools only check names:
/// they can write in such a directory, and create one, which the next response of a command reports. A mount that is
/// such a directory itself is not covered, and is reported if it becomes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectedName {
    /// The name.
    pub name: String,
    /// How entries of the name are protected.
    pub protection: ProtectionLevel,
}

/// A path below every mount that is protected from commands and file tools.
///
/// If the path is missing below a writable mount, an empty directory is its placeholder while commands run, so that
/// they cannot create it. The placeholder is not writable and has the sticky bit or, on a file system that does not
/// store modes, a fixed time of modification. git does not list it. It is removed after the last command; if the
/// process was killed, the next sandbox of the same mount removes it.
///
/// A protected path that is moved or replaced on the host while commands run is no longer protected from those commands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectedPath {
    /// The path, relative to the mount.
    pub path: VfsPath,
    /// How the path is protected.
    pub protection: ProtectionLevel,
}

/// Where to find the helper program, which applies Landlock inside namespaces.
///
/// The helper is copied when the sandbox is opened, so that nobody can replace it later. A program that other users may
/// write to, or that a mount shows to commands, is not used, unless it is the running program. The running program is
/// used as it was started, and copied only if the kernel does not prevent writing to it (Linux 6.11 and 6.12).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelperLocation {
    /// `vfs-confine` next to the running program, in the system's directories, or in `PATH`.
    #[default]
    Found,
    /// This file: `vfs-confine`, or a program that calls [`sandbox_helper_main`](crate::sandbox_helper_main) first in `main`.
    At(PathBuf),
    /// No helper: Landlock is not used inside namespaces.
    Unused,
}

/// When opening a sandbox runs its self-test: a command that attempts what it must not be able to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SelfTestPolicy {
    /// If no equal sandbox has passed it since the system was started. Sandboxes are equal if they have the same
    /// settings and were opened by the same program and user, with the same capabilities, in the same namespaces with
    /// the same mounts, with the same bubblewrap. A self-test that failed is always run again. Under a filter of system
    /// calls, as in most containers, this is the same as [`Always`](Self::Always).
    #[default]
    Cached,
    /// Each time.
    Always,
}

/// The settings of an [`OsSandbox`](crate::OsSandbox).
///
/// ```no_run
/// # async fn example() -> vfs_core::Result<()> {
/// use vfs_core::{Backend, OpContext, ExecuteRequest, VfsPath};
/// use vfs_sandbox::{OsSandbox, SandboxConfig};
///
/// let sandbox = OsSandbox::open(SandboxConfig::new("/srv/project")).await?;
/// println!("{}", sandbox.report());
///
/// let files = sandbox.into_backend()?;
/// let shell = files.as_shell().expect("a sandbox has a shell");
/// let request = ExecuteRequest::new("cat src/main.rs").cwd(VfsPath::parse("/workspace")?);
/// println!("{}", shell.execute(&OpContext::new(), request).await?.output);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// The directories of the host that commands and file tools see; at least one.
    pub mounts: Vec<Mount>,
    /// Directories and files of the host, such as tool chains, that commands see at the same path and cannot change. Default:
    /// none.
    pub tools: Vec<PathBuf>,
    /// Whether commands have a network. Default: none.
    pub network: Network,
    /// Paths that are protected from commands and file tools below every mount. Default: `.git` is read-only, since the next
    /// user of the repository runs its hooks and the programs of its configuration, and `.env` is hidden.
    pub protected: Vec<ProtectedPath>,
    /// Names that are protected from commands and file tools at any depth. Default: `.git` is read-only, and `.env` is hidden.
    pub protected_names: Vec<ProtectedName>,
    /// Maximum number of entries of all mounts that are searched for protected names and sockets before a command starts. If there
    /// are more, the command does not start, since the search could miss protected entries. Default: 1,000,000.
    pub max_scanned_entries: u64,
    /// Whether commands may create unix sockets. Default: only pairs.
    pub unix_sockets: UnixSockets,
    /// Limits of each process. Default: 4 GiB for each file. The field `processes` is ignored.
    pub limits: Limits,
    /// Bytes of memory of all commands together. Default 4 GiB.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of all commands together. Default 1,024.
    pub processes: Option<u64>,
    /// Bytes of the private `/tmp` of each command. They count as memory. Default 512 MiB.
    pub tmp_bytes: u64,
    /// The mechanisms that may confine commands. Default: all that work on this system.
    pub mechanisms: BTreeSet<Mechanism>,
    /// The guarantees without which the sandbox does not open. Default: [`Guarantee::REQUIRED`]. [`Guarantee::UnixSockets`] is not
    /// required if [`unix_sockets`](Self::unix_sockets) are allowed; the [report](crate::SandboxReport) says whether it is enforced.
    pub required: BTreeSet<Guarantee>,
    /// Where to find the helper program. Default: next to the running program, or in `PATH`.
    pub helper: HelperLocation,
    /// Path of bubblewrap. It runs on the host, so it must be outside of every mount, and in directories to which only
    /// root and the user of this process may write. Default: the first `bwrap` in `/usr/bin`, `/bin`, `/usr/local/bin`
    /// and `PATH` that meets these conditions.
    pub bubblewrap: Option<PathBuf>,
    /// When the self-test runs. Default: if no equal sandbox has passed it since the system was started.
    pub self_test: SelfTestPolicy,
}

/// Name of the repository in a work tree: a directory, or a file that refers to a repository elsewhere.
pub(crate) const GIT: &str = ".git";

/// Name of the file that contains the secrets of the environment by convention.
const ENV: &str = ".env";

impl SandboxConfig {
    /// Path at which [`SandboxConfig::new`] mounts its directory.
    pub const WORKSPACE: &str = "/workspace";

    /// Returns settings for `directory`, mounted writable at [`/workspace`](Self::WORKSPACE).
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        // The constant is a valid path.
        let at = VfsPath::parse(Self::WORKSPACE).unwrap_or_default();
        Self::with_mount(Mount::writable(at, directory))
    }

    /// Returns settings for `directory`, mounted writable at its path on the host. Without namespaces, no other path is possible.
    ///
    /// # Errors
    ///
    /// `invalid_path` for a path that is not absolute or not UTF-8.
    pub fn in_place(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let at = directory.to_str().filter(|text| text.starts_with('/')).ok_or_else(|| {
            Error::new(vfs_core::ErrorKind::InvalidPath, "the directory of a sandbox has to be absolute, and UTF-8")
        })?;
        Ok(Self::with_mount(Mount::writable(VfsPath::parse(at)?, directory)))
    }

    /// Returns settings for one mount; [`mount`](Self::mount) adds others.
    pub fn with_mount(mount: Mount) -> Self {
        // All of these constants are valid paths.
        let protected = |path, protection| ProtectedPath { path: VfsPath::parse(path).unwrap_or_default(), protection };
        let named = |name: &str, protection| ProtectedName { name: name.to_owned(), protection };
        let mut limits = Limits::default();
        limits.file_bytes = Some(4 << 30);
        Self {
            mounts: vec![mount],
            tools: Vec::new(),
            network: Network::default(),
            protected: vec![protected(GIT, ProtectionLevel::ReadOnly), protected(ENV, ProtectionLevel::Hidden)],
            protected_names: vec![named(GIT, ProtectionLevel::ReadOnly), named(ENV, ProtectionLevel::Hidden)],
            max_scanned_entries: 1_000_000,
            unix_sockets: UnixSockets::default(),
            limits,
            memory_bytes: Some(4 << 30),
            processes: Some(1024),
            tmp_bytes: 512 << 20,
            mechanisms: Mechanism::ALL.iter().copied().collect(),
            required: Guarantee::REQUIRED.iter().copied().collect(),
            helper: HelperLocation::default(),
            bubblewrap: None,
            self_test: SelfTestPolicy::default(),
        }
    }

    /// Adds a mount.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Adds a directory or file of the host that commands can read and execute at the same path.
    #[must_use]
    pub fn tool(mut self, path: impl Into<PathBuf>) -> Self {
        self.tools.push(path.into());
        self
    }

    /// Sets whether commands have a network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Protects a path, relative to every mount, and replaces an earlier setting for it.
    ///
    /// # Errors
    ///
    /// Those of [`VfsPath::parse`]; `invalid_argument` for the mount itself.
    pub fn protect(mut self, path: &str, protection: ProtectionLevel) -> Result<Self> {
        let path = VfsPath::parse(path)?;
        if path.is_root() {
            return Err(Error::invalid_argument("a whole mount is protected by mounting it read-only"));
        }
        self.protected.retain(|protected| protected.path != path);
        self.protected.push(ProtectedPath { path, protection });
        Ok(self)
    }

    /// Protects a name at any depth of every mount, and replaces an earlier setting for it.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for a path of more than one name.
    pub fn protect_name(mut self, name: &str, protection: ProtectionLevel) -> Result<Self> {
        let path = VfsPath::parse(name)?;
        if path.name() != Some(name) {
            return Err(Error::invalid_argument(
                "a protected name is one component of a path; protect the path instead",
            ));
        }
        self.protected_names.retain(|protected| protected.name != name);
        self.protected_names.push(ProtectedName { name: name.to_owned(), protection });
        Ok(self)
    }

    /// Removes all protected paths and names.
    #[must_use]
    pub fn unprotected(mut self) -> Self {
        self.protected.clear();
        self.protected_names.clear();
        self
    }

    /// Sets the maximum number of entries that are searched before a command starts.
    #[must_use]
    pub fn max_scanned_entries(mut self, entries: u64) -> Self {
        self.max_scanned_entries = entries;
        self
    }

    /// Sets whether commands may create unix sockets.
    #[must_use]
    pub fn unix_sockets(mut self, unix_sockets: UnixSockets) -> Self {
        self.unix_sockets = unix_sockets;
        self
    }

    /// Returns whether the sandbox opens only if `guarantee` is enforced.
    pub(crate) fn requires(&self, guarantee: Guarantee) -> bool {
        self.required.contains(&guarantee)
            && !(guarantee == Guarantee::UnixSockets && self.unix_sockets == UnixSockets::Allow)
    }

    /// Sets the limits of each process.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the bound on the memory of all commands together.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory_bytes = bytes.into();
        self
    }

    /// Sets the bound on the processes and threads of all commands together.
    #[must_use]
    pub fn processes(mut self, processes: impl Into<Option<u64>>) -> Self {
        self.processes = processes.into();
        self
    }

    /// Sets the size of each command's `/tmp`.
    #[must_use]
    pub fn tmp_bytes(mut self, bytes: u64) -> Self {
        self.tmp_bytes = bytes;
        self
    }

    /// Sets the mechanisms that may confine commands.
    #[must_use]
    pub fn only(mut self, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        self.mechanisms = mechanisms.into_iter().collect();
        self
    }

    /// Sets the guarantees without which the sandbox does not open.
    #[must_use]
    pub fn require(mut self, guarantees: impl IntoIterator<Item = Guarantee>) -> Self {
        self.required = guarantees.into_iter().collect();
        self
    }

    /// Sets the path of bubblewrap.
    #[must_use]
    pub fn bubblewrap(mut self, program: impl Into<PathBuf>) -> Self {
        self.bubblewrap = Some(program.into());
        self
    }

    /// Sets when the self-test runs.
    #[must_use]
    pub fn self_test(mut self, self_test: SelfTestPolicy) -> Self {
        self.self_test = self_test;
        self
    }

    /// Sets where to find the helper program.
    #[must_use]
    pub fn helper(mut self, helper: HelperLocation) -> Self {
        self.helper = helper;
        self
    }
}
