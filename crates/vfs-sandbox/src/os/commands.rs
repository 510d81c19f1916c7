//! Commands of a sandbox, with every path in its namespace.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use vfs_core::{
    Access, Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, Job, JobOutput, JobOutputRequest, JobsRequest,
    OpContext, Result, Shell, StopJobRequest, StreamingShell, VfsPath,
};
use vfs_shell::{Commands, ShellConfig};

use super::sandbox::OsSandbox;

/// Commands that run in a sandbox.
///
/// Files with [all output](vfs_core::FullOutput) of a command are kept in the first mount that may be written to.
#[derive(Debug)]
pub struct SandboxCommands {
    commands: Arc<Commands<OsSandbox>>,
    /// Where the files with all output are seen.
    outputs: VfsPath,
}

impl SandboxCommands {
    /// Commands in `sandbox`, run as `config` says.
    pub fn new(sandbox: OsSandbox, config: ShellConfig) -> Self {
        let writable = sandbox.setup.mounts.iter().find(|mount| mount.access == Access::ReadWrite);
        let place = writable.map(|mount| (mount.files.clone(), mount.at.clone()));
        let commands = Commands::new(sandbox, config);
        match place {
            Some((files, outputs)) => Self { commands: Arc::new(commands.full_output_in(files)), outputs },
            None => Self { commands: Arc::new(commands), outputs: VfsPath::root() },
        }
    }

    /// The sandbox.
    pub fn sandbox(&self) -> &OsSandbox {
        self.commands.launcher()
    }
}

/// The same with the file of all output where it is seen.
fn shown(outputs: &VfsPath, mut response: ExecuteResponse) -> Result<ExecuteResponse> {
    if let Some(path) = response.full_output.take() {
        response.full_output = Some(outputs.join(path.relative())?);
    }
    Ok(response)
}

/// The same about the path by which the file of all output is seen, where it is about that file.
fn told(outputs: &VfsPath, directory: &VfsPath, error: Error) -> Error {
    let path = error.path().and_then(|path| VfsPath::parse(path).ok()).filter(|path| path.starts_with(directory));
    match path.and_then(|path| outputs.join(path.relative()).ok()) {
        Some(path) => error.with_path(&path),
        None => error,
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for SandboxCommands {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let directory = &self.commands.config().full_output_directory;
        let response = self.commands.execute(cx, req).await.map_err(|error| told(&self.outputs, directory, error))?;
        shown(&self.outputs, response)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<Job>> {
        self.commands.jobs(cx, req).await
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        self.commands.job_output(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        self.commands.stop_job(cx, req).await
    }
}

impl StreamingShell for SandboxCommands {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let outputs = self.outputs.clone();
        let directory = self.commands.config().full_output_directory.clone();
        let events = self.commands.execute_stream(cx, req);
        let event = move |event| match event {
            Ok(ExecuteEvent::Exit(response)) => shown(&outputs, response).map(ExecuteEvent::Exit),
            Err(error) => Err(told(&outputs, &directory, error)),
            other => other,
        };
        events.map(event).boxed()
    }
}
