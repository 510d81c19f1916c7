//! Shells for `vfs exec` and `vfs batch`: selection by arguments.

use std::path::Path;

use vfs_core::{Backend, StreamingShell};
use vfs_local::LocalBackend;

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

/// Returns the streaming shell of `backend`.
pub(crate) fn streaming_shell(backend: &dyn Backend) -> Result<&dyn StreamingShell, Failure> {
    backend.as_streaming_shell().ok_or_else(no_shell)
}

/// Creates the error of a backend that cannot run commands.
pub(crate) fn no_shell() -> Failure {
    Failure::Usage("these files have no shell; run commands with --virtual")
}
