//! Local backend with a shell of the host.

use std::path::Path;
use std::sync::Arc;

use vfs_core::Result;
use vfs_local::LocalBackend;

use crate::command_runner::CommandRunner;
use crate::config::ShellConfig;
use crate::host_spawner::HostSpawner;
use crate::with_shell::WithShell;

/// Backend with files below a local root and a shell of the host that runs in its directories.
///
/// # Behaviour
///
/// Files behave as in [`LocalBackend`]; [`CommandRunner`] runs the commands that [`HostSpawner`] starts. The files are
/// confined to the root, the commands are not: use this for trusted commands only.
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
pub type LocalShellBackend = WithShell<CommandRunner<HostSpawner>>;

impl LocalShellBackend {
    /// Opens a backend whose files are confined to `root`, with the default settings of files.
    ///
    /// # Errors
    ///
    /// As [`LocalBackend::open`].
    pub fn open(root: impl AsRef<Path>, config: ShellConfig) -> Result<Self> {
        Ok(Self::with_files(LocalBackend::open(root)?, config))
    }

    /// Creates a backend from `files` and a shell of the host.
    pub fn with_files(files: LocalBackend, config: ShellConfig) -> Self {
        Self::with_spawner(HostSpawner::new(files.clone()), files, config)
    }

    /// Creates a backend from `files` and the shell that `spawner` starts, for another shell than `/bin/sh`.
    pub fn with_spawner(spawner: HostSpawner, files: LocalBackend, config: ShellConfig) -> Self {
        let commands = CommandRunner::new(spawner, config).full_output_files(files.clone());
        Self::new("shell", Arc::new(files), commands)
    }
}
