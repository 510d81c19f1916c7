//! Shells for `vfs exec` and `vfs batch`: selection by arguments, and configuration of the sandbox.

use std::path::Path;

use vfs_core::{Backend, Error, ErrorKind, Result, StreamingShell};
use vfs_local::LocalBackend;
use vfs_sandbox::{
    Guarantee, HelperLocation, Mechanism, Network, OsSandbox, SandboxConfig, SelfTestPolicy, UnixSockets,
};

use crate::args::{SandboxArgs, ShellBackendArgs};
use crate::exit::Failure;

/// The shell that runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellBackendKind {
    /// The host, as the current user.
    Host,
    /// A sandbox on the host.
    Sandbox(SandboxArgs),
    /// An interpreter in this process.
    Virtual,
}

impl ShellBackendKind {
    /// Returns the shell that the arguments select.
    pub(crate) fn from_args(args: ShellBackendArgs) -> Result<Self, Failure> {
        if !args.sandbox && args.sandbox_args != SandboxArgs::default() {
            return Err(Failure::Usage(
                "--landlock, --network, --unix-sockets, --allow-visible-processes, --allow-unprotected-names, \
                 --max-scanned-entries and --self-test need --sandbox",
            ));
        }
        Ok(match (args.sandbox, args.virtual_shell) {
            (true, _) => Self::Sandbox(args.sandbox_args),
            (_, true) => Self::Virtual,
            _ => Self::Host,
        })
    }
}

/// Returns an error that names the root if it is not a directory that can be opened.
pub(crate) fn check_root(root: Option<&Path>) -> Result<(), Failure> {
    let root = root.unwrap_or(Path::new("."));
    LocalBackend::open(root).map(drop).map_err(|error| Failure::Root(root.to_owned(), error))
}

/// Returns the configuration of a sandbox with the root directory.
pub(crate) fn sandbox_config(root: Option<&Path>, args: SandboxArgs) -> Result<SandboxConfig, Failure> {
    let directory = std::path::absolute(root.unwrap_or(Path::new(".")))
        .map_err(|error| Failure::Environment("working directory", error))?;
    // `main` calls `sandbox_helper_main` first, so this program is its own helper.
    let helper = std::env::current_exe().map_err(|error| Failure::Environment("file of this program", error))?;
    let config = if args.landlock {
        let mechanisms = [Mechanism::Landlock, Mechanism::Seccomp];
        SandboxConfig::in_place(directory)?.only(mechanisms).require(Guarantee::WITHOUT_NAMESPACES.iter().copied())
    } else {
        SandboxConfig::new(directory)
    };
    let mut config = config.helper(HelperLocation::At(helper));
    if args.network {
        config = config.network(Network::Host);
    }
    if args.unix_sockets {
        config = config.unix_sockets(UnixSockets::Allow);
    }
    if args.allow_visible_processes {
        config.required.remove(&Guarantee::HiddenProcesses);
    }
    if args.allow_unprotected_names {
        config.required.remove(&Guarantee::ProtectedNames);
    }
    if let Some(entries) = args.max_scanned_entries {
        config = config.max_scanned_entries(entries);
    }
    if args.self_test {
        config = config.self_test(SelfTestPolicy::Always);
    }
    Ok(config)
}

/// Opens a sandbox. If only the protection of names is unavailable, the error names the option that permits that.
pub(crate) async fn open_sandbox(config: SandboxConfig) -> Result<OsSandbox> {
    let error = match OsSandbox::open(config.clone()).await {
        Err(error) if error.kind() == ErrorKind::Unsupported => error,
        opened => return opened,
    };
    let report = OsSandbox::check(config).await?;
    let missing: Vec<Guarantee> = report.missing().map(|result| result.guarantee).collect();
    if missing != [Guarantee::ProtectedNames] {
        return Err(error);
    }
    let advice =
        "'--allow-unprotected-names' runs the command without that protection, and reports such names afterwards";
    Err(Error::new(ErrorKind::Unsupported, format!("{}; {advice}", error.message())))
}

/// Returns the streaming shell of `backend`.
pub(crate) fn streaming_shell(backend: &dyn Backend) -> Result<&dyn StreamingShell, Failure> {
    backend.as_streaming_shell().ok_or_else(no_shell)
}

/// Creates the error of a backend that cannot run commands.
pub(crate) fn no_shell() -> Failure {
    Failure::Usage("these files have no shell; run commands with --virtual")
}
