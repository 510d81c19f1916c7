//! A shell of the host, for people who trust what they run.

use std::ffi::OsString;

use async_trait::async_trait;
use vfs_core::{ExecuteRequest, OpContext, Result};
use vfs_local::LocalBackend;

use crate::launch::{Launch, Launcher};

/// Starts a shell of the host in a directory below a local root.
///
/// # Behaviour
///
/// The working directory is found as the files are: by the kernel, below the root, whatever links there are. That is all
/// that confines the command: once it runs, it may do what the serving process may. Commands of somebody who is not
/// trusted belong into a sandbox.
#[derive(Debug, Clone)]
pub struct HostLauncher {
    files: LocalBackend,
    program: OsString,
    arguments: Vec<OsString>,
}

impl HostLauncher {
    /// `/bin/sh -c --` in the directories of `files`.
    pub fn new(files: LocalBackend) -> Self {
        Self { files, program: "/bin/sh".into(), arguments: vec!["-c".into(), "--".into()] }
    }

    /// Starts `program` with `arguments` instead, and the command line after these, such as `/bin/bash` with `-c` and `--`:
    /// without the latter a line that begins with `-` would be options of the shell. `program` is a path on the host; it is not looked for.
    #[must_use]
    pub fn shell(
        mut self,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        self.program = program.into();
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }
}

#[async_trait]
impl Launcher for HostLauncher {
    async fn launch(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Launch> {
        let directory = self.files.open_directory(cx, &req.cwd).await?;
        let mut launch = Launch::new(&self.program, directory);
        launch.arguments.clone_from(&self.arguments);
        launch.arguments.push(OsString::from(&req.command));
        launch.environment = environment;
        Ok(launch)
    }
}
