//! What a sandbox is to be, decided once when it is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vfs_core::{Access, Error, Result, VfsPath};
pub use vfs_local::Protection;
use vfs_shell::Limits;

use crate::report::guarantee::{Belt, Mechanism};

/// A directory of the host that commands and file tools see at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount {
    /// Where it is seen.
    pub at: VfsPath,
    /// Where the host has it.
    pub directory: PathBuf,
    /// Whether it may be written to.
    pub access: Access,
}

impl Mount {
    /// `directory` at `at`, to be written to.
    pub fn writable(at: VfsPath, directory: impl Into<PathBuf>) -> Self {
        Self { at, directory: directory.into(), access: Access::ReadWrite }
    }

    /// `directory` at `at`, only to be looked at.
    pub fn read_only(at: VfsPath, directory: impl Into<PathBuf>) -> Self {
        Self { at, directory: directory.into(), access: Access::ReadOnly }
    }
}

/// Whether commands have a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// None but a loopback device of their own.
    #[default]
    Off,
    /// That of the host: its loopback device, too, and its abstract sockets where Landlock does not keep commands from
    /// them ([`Belt::LandlockScope`]).
    Host,
}

/// Whether commands may make unix sockets.
///
/// What is a socket when a command starts, below a mount, is covered in either case: it cannot be connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum UnixSockets {
    /// Only pairs that are connected to each other for good (`socketpair` of streams or packets), as programs use them
    /// to talk to the processes that they start. A command cannot connect to a socket with a path or an abstract name,
    /// its own included, since a filter of system calls cannot tell one address from another.
    #[default]
    Deny,
    /// All of them: for test suites that start a server on a unix socket. A socket that a process of the host makes
    /// below a mount while a command runs can be connected to, unless the kernel's Landlock forbids that (Linux 7.1).
    /// Without namespaces this is the same as [`Deny`](Self::Deny).
    Allow,
}

/// A name that is kept from commands and file tools at any depth of every mount.
///
/// Everything that has the name when a command starts is covered in that command, directories with all that is in them. A
/// command can give the name to something new below the root of a mount; the
/// [problems](vfs_core::ExecuteResponse::problems) of its response name that, and the next command finds it covered. File
/// tools cannot give the name to anything. Names that differ by case alone are the same name. A link of that name is not
/// covered: it is reported as a problem, unless what it leads to is covered.
///
/// If `.git` is such a name, commands find every directory covered in which git sees a repository without it: one that holds
/// `HEAD`, with `objects` and `refs` or `commondir`. File tools go by names alone: they can write in such a directory, and
/// make one, which the next response of a command reports. A mount that is such a directory itself is not covered, and
/// reported if it becomes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectedName {
    /// The name.
    pub name: String,
    /// What becomes of it.
    pub protection: Protection,
}

/// A path below every mount that is kept from commands and file tools.
///
/// If it is missing below a writable mount, an empty directory takes its place while commands run, so that they cannot create
/// it. The directory is not writable and has the sticky bit, or, on a file system that does not keep that, a fixed time of
/// modification. git does not list it. It is removed after the last command; if the process was killed, the next sandbox of the
/// same mount removes it.
///
/// Who works on the host can undo this for commands that run: what is moved, or removed and made anew there, is no
/// longer covered for them. So what is protected should not be replaced while they run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protected {
    /// The path, relative to the mount.
    pub path: VfsPath,
    /// What becomes of it.
    pub protection: Protection,
}

/// Where the helper program is that puts Landlock on inside namespaces.
///
/// It is copied when the sandbox is opened, so that nobody can swap it later. A program that others may write to, or
/// that commands are shown by a mount, is not used, unless it is the one that runs: that one is used as it was started, and
/// copied only where the kernel lets somebody write to it (Linux 6.11 and 6.12).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Helper {
    /// `vfs-confine` next to the running program, where the system's programs are, or in `PATH`.
    #[default]
    Found,
    /// This file: `vfs-confine`, or a program that calls [`become_confine_if_asked`](crate::become_confine_if_asked)
    /// first of all.
    At(PathBuf),
    /// Nowhere: Landlock is not used inside namespaces.
    Unused,
}

/// When opening a sandbox runs its self-test: a command that tries what it must not be able to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SelfTest {
    /// If no equal sandbox has passed it since the system was started. Equal are sandboxes with the same settings, opened by the
    /// same program and user, with the same capabilities, in the same namespaces with the same mounts, with the same bubblewrap.
    /// A self-test that failed is always run again. Under a filter of system calls, as in most containers, this is the same as
    /// [`Always`](Self::Always).
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
/// use vfs_sandbox::os::{OsSandbox, SandboxConfig};
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
    /// Directories and files of the host that commands see, at the same path, and cannot change: tool chains. Default:
    /// none beside the system's own.
    pub tools: Vec<PathBuf>,
    /// Whether commands have a network. Default: none.
    pub network: Network,
    /// What is kept from commands and file tools below every mount. Default: `.git` is read-only, since what its hooks
    /// and its configuration name is run by whoever uses the repository next, and `.env` is hidden.
    pub protected: Vec<Protected>,
    /// Names that are kept from commands and file tools at any depth. Default: `.git` is read-only, and `.env` is hidden.
    pub protected_names: Vec<ProtectedName>,
    /// Most entries of all mounts that are looked at for protected names and sockets before a command starts. Where there
    /// are more, the command does not start, since some of what is protected might be missed. Default 1,000,000.
    pub max_scanned_entries: u64,
    /// Whether commands may make unix sockets. Default: only pairs.
    pub unix_sockets: UnixSockets,
    /// What one process may use. Default: 4 GiB of each file. Its `processes` does not count here.
    pub limits: Limits,
    /// Bytes of memory of all commands together. Default 4 GiB.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of all commands together. Default 1,024.
    pub processes: Option<u64>,
    /// Bytes of the private `/tmp` of each command. They count as memory. Default 512 MiB.
    pub tmp_bytes: u64,
    /// What may be used to hold commands. Default: everything that works here.
    pub mechanisms: BTreeSet<Mechanism>,
    /// What must be enforced for the sandbox to open. Default [`Belt::REQUIRED`]. [`Belt::UnixSockets`] is not required where
    /// [`unix_sockets`](Self::unix_sockets) are allowed; the [report](crate::SandboxReport) says whether it holds.
    pub required: BTreeSet<Belt>,
    /// Where the helper program is. Default: next to the running one, or in `PATH`.
    pub helper: Helper,
    /// Where bubblewrap is. It runs on the host, so it must lie where nobody but root and the user of this process may
    /// write, and outside of every mount. Default: `bwrap` in `/usr/bin`, `/bin`, `/usr/local/bin`, or in `PATH`; one
    /// that somebody could have changed is passed over.
    pub bubblewrap: Option<PathBuf>,
    /// When the self-test runs. Default: if no equal sandbox has passed it since the system was started.
    pub self_test: SelfTest,
}

/// The repository, which is a directory but in work trees of another one.
pub(crate) const GIT: &str = ".git";

/// Where secrets of the environment are kept by convention.
const ENV: &str = ".env";

impl SandboxConfig {
    /// Where [`SandboxConfig::new`] shows its directory.
    pub const WORKSPACE: &str = "/workspace";

    /// Commands on `directory`, which they see as [`/workspace`](Self::WORKSPACE).
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        // The text is a constant, and a path.
        let at = VfsPath::parse(Self::WORKSPACE).unwrap_or_default();
        Self::with_mount(Mount::writable(at, directory))
    }

    /// Commands on `directory`, which they see where the host has it. This is the only way where there are no
    /// namespaces.
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

    /// Commands on one mount; [`mount`](Self::mount) adds others.
    pub fn with_mount(mount: Mount) -> Self {
        // All of these are constants, and paths.
        let protected = |path, protection| Protected { path: VfsPath::parse(path).unwrap_or_default(), protection };
        let named = |name: &str, protection| ProtectedName { name: name.to_owned(), protection };
        let mut limits = Limits::default();
        limits.file_bytes = Some(4 << 30);
        Self {
            mounts: vec![mount],
            tools: Vec::new(),
            network: Network::default(),
            protected: vec![protected(GIT, Protection::ReadOnly), protected(ENV, Protection::Hidden)],
            protected_names: vec![named(GIT, Protection::ReadOnly), named(ENV, Protection::Hidden)],
            max_scanned_entries: 1_000_000,
            unix_sockets: UnixSockets::default(),
            limits,
            memory_bytes: Some(4 << 30),
            processes: Some(1024),
            tmp_bytes: 512 << 20,
            mechanisms: Mechanism::ALL.iter().copied().collect(),
            required: Belt::REQUIRED.iter().copied().collect(),
            helper: Helper::default(),
            bubblewrap: None,
            self_test: SelfTest::default(),
        }
    }

    /// Adds a mount.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Shows commands a directory or file of the host, at its own path, to be read and run.
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
    pub fn protect(mut self, path: &str, protection: Protection) -> Result<Self> {
        let path = VfsPath::parse(path)?;
        if path.is_root() {
            return Err(Error::invalid_argument("a whole mount is protected by mounting it read-only"));
        }
        self.protected.retain(|protected| protected.path != path);
        self.protected.push(Protected { path, protection });
        Ok(self)
    }

    /// Protects a name at any depth of every mount, in place of what was said of it before.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for what is not one name.
    pub fn protect_name(mut self, name: &str, protection: Protection) -> Result<Self> {
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

    /// Protects nothing.
    #[must_use]
    pub fn unprotected(mut self) -> Self {
        self.protected.clear();
        self.protected_names.clear();
        self
    }

    /// Sets how many entries of the mounts are looked at before a command starts.
    #[must_use]
    pub fn max_scanned_entries(mut self, entries: u64) -> Self {
        self.max_scanned_entries = entries;
        self
    }

    /// Sets whether commands may make unix sockets.
    #[must_use]
    pub fn unix_sockets(mut self, unix_sockets: UnixSockets) -> Self {
        self.unix_sockets = unix_sockets;
        self
    }

    /// Returns whether the sandbox opens only if `belt` is enforced.
    pub(crate) fn requires(&self, belt: Belt) -> bool {
        self.required.contains(&belt) && !(belt == Belt::UnixSockets && self.unix_sockets == UnixSockets::Allow)
    }

    /// Sets what one process may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many bytes of memory all commands together may take.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory_bytes = bytes.into();
        self
    }

    /// Sets how many processes and threads all commands together may be.
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

    /// Uses nothing but these to hold commands.
    #[must_use]
    pub fn only(mut self, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        self.mechanisms = mechanisms.into_iter().collect();
        self
    }

    /// Opens only where these are enforced, and whatever else is not.
    #[must_use]
    pub fn require(mut self, belts: impl IntoIterator<Item = Belt>) -> Self {
        self.required = belts.into_iter().collect();
        self
    }

    /// Sets where bubblewrap is.
    #[must_use]
    pub fn bubblewrap(mut self, program: impl Into<PathBuf>) -> Self {
        self.bubblewrap = Some(program.into());
        self
    }

    /// Sets when the self-test runs.
    #[must_use]
    pub fn self_test(mut self, self_test: SelfTest) -> Self {
        self.self_test = self_test;
        self
    }

    /// Sets where the helper program is.
    #[must_use]
    pub fn helper(mut self, helper: Helper) -> Self {
        self.helper = helper;
        self
    }
}
