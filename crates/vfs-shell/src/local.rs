//! A local backend with a shell of the host.

use std::path::Path;
use std::sync::Arc;

use vfs_core::Result;
use vfs_local::LocalBackend;

use crate::commands::Commands;
use crate::config::ShellConfig;
use crate::host::HostLauncher;
use crate::with_shell::WithShell;

/// Files below a local root, and commands of the host that run in its directories.
///
/// # Behaviour
///
/// Files are those of [`LocalBackend`]; commands are run as [`Commands`] tells, by what [`HostLauncher`] starts. The files
/// are confined to the root, the commands are not: this is for people who trust what they run.
///
/// ```no_run
/// # async fn example() -> vfs_core::Result<()> {
/// use vfs_core::{Backend, ExecuteRequest, OpContext};
/// use vfs_shell::{LocalShellBackend, ShellConfig};
///
/// let project = LocalShellBackend::open("/srv/project", ShellConfig::new())?;
/// let shell = project.as_shell().expect("it has one");
/// let built = shell.execute(&OpContext::new(), ExecuteRequest::new("make 2>&1")).await?;
/// println!("{} {:?}", built.output, built.exit_code);
/// # Ok(())
/// # }
/// ```
pub type LocalShellBackend = WithShell<Commands<HostLauncher>>;

impl LocalShellBackend {
    /// Opens a backend whose files are confined to `root`, with the default settings of files.
    ///
    /// # Errors
    ///
    /// As [`LocalBackend::open`].
    pub fn open(root: impl AsRef<Path>, config: ShellConfig) -> Result<Self> {
        Ok(Self::over(LocalBackend::open(root)?, config))
    }

    /// A shell of the host beside `files`.
    pub fn over(files: LocalBackend, config: ShellConfig) -> Self {
        Self::launched_by(HostLauncher::new(files.clone()), files, config)
    }

    /// Commands started by `launcher` beside `files`, for another shell than `/bin/sh`.
    pub fn launched_by(launcher: HostLauncher, files: LocalBackend, config: ShellConfig) -> Self {
        let commands = Commands::new(launcher, config).full_output_in(files.clone());
        Self::new("shell", Arc::new(files), commands)
    }
}
