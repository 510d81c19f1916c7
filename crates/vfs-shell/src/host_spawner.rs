//! Spawner of an unconfined shell on the host.

use std::ffi::OsString;

use async_trait::async_trait;
use vfs_core::{ExecuteRequest, OpContext, Result};
use vfs_local::LocalBackend;

use crate::spawner::{SpawnSpec, Spawner};

/// Spawner that starts a shell of the host in a directory below a local root.
///
/// # Behaviour
///
/// The kernel resolves the working directory below the root, as it does for files. Nothing else confines the command: it has
/// all rights of the serving process. Run untrusted commands in a sandbox.
#[derive(Debug, Clone)]
pub struct HostSpawner {
    files: LocalBackend,
    program: OsString,
    arguments: Vec<OsString>,
}

impl HostSpawner {
    /// Creates a spawner for `/bin/sh -c --` in the directories of `files`.
    pub fn new(files: LocalBackend) -> Self {
        Self { files, program: "/bin/sh".into(), arguments: vec!["-c".into(), "--".into()] }
    }

    /// Replaces the shell by `program` with `arguments`, to which the command line is appended, for example `/bin/bash` with
    /// `-c` and `--`. Without `--`, the shell takes a command line that begins with `-` for options. `program` is a path on
    /// the host and is not searched in `PATH`.
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
impl Spawner for HostSpawner {
    async fn prepare(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<SpawnSpec> {
        let directory = self.files.open_directory(cx, &req.cwd).await?;
        let mut spec = SpawnSpec::new(&self.program, directory);
        spec.arguments.clone_from(&self.arguments);
        spec.arguments.push(OsString::from(&req.command));
        spec.environment = environment;
        Ok(spec)
    }
}
