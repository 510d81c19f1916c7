//! Shell of a sandbox, with all paths in its namespace.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::runtime::Handle;
use vfs_core::backend::AccessMode;
use vfs_core::shell::{JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, StopJobRequest};
use vfs_core::{
    Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell, StreamingShell, VfsPath,
};
use vfs_shell::{CommandRunner, ShellConfig};

use crate::sandbox::OsSandbox;
use crate::sandbox::sandbox_setup::SandboxSetup;

/// Shell whose commands run in a sandbox.
///
/// Files with the [full output](vfs_core::shell::FullOutputMode) of commands are written to the first writable mount.
#[derive(Debug)]
pub struct SandboxShell {
    commands: Arc<CommandRunner<OsSandbox>>,
    /// Path of the mount with the files of full output.
    outputs: VfsPath,
}

impl SandboxShell {
    /// Returns a shell that runs commands in `sandbox` with these settings.
    pub fn new(sandbox: OsSandbox, config: ShellConfig) -> Self {
        let writable = sandbox.setup.mounts.iter().find(|mount| mount.access == AccessMode::ReadWrite);
        let output_mount = writable.map(|mount| (mount.files.clone(), mount.at.clone()));
        let commands = CommandRunner::new(sandbox, config);
        match output_mount {
            Some((files, outputs)) => Self { commands: Arc::new(commands.full_output_files(files)), outputs },
            None => Self { commands: Arc::new(commands), outputs: VfsPath::root() },
        }
    }

    async fn tidy(&self) {
        tidy(Arc::clone(&self.sandbox().setup)).await;
    }

    /// Returns the sandbox.
    pub fn sandbox(&self) -> &OsSandbox {
        self.commands.spawner()
    }
}

/// Removes the placeholders of missing protected paths, if no command runs any more.
async fn tidy(setup: Arc<SandboxSetup>) {
    // If this fails, the placeholders are removed after a later command.
    let _ = vfs_search::run_blocking(&Handle::current(), move || setup.tidy()).await;
}

/// Adds a problem for each new entry that commands left. If this command runs in the background, earlier commands left
/// them.
async fn with_leftovers(cx: &OpContext, setup: Arc<SandboxSetup>, mut response: ExecuteResponse) -> ExecuteResponse {
    let cx = cx.clone();
    let problems = vfs_search::run_blocking(&Handle::current(), move || setup.new_leftovers(&cx)).await;
    response.problems.extend(problems.unwrap_or_else(|error| vec![error.into()]));
    response
}

/// Returns the response with the path of the full output in the namespace of the sandbox.
fn map_full_output(outputs: &VfsPath, mut response: ExecuteResponse) -> Result<ExecuteResponse> {
    if let Some(path) = response.full_output.take() {
        response.full_output = Some(outputs.join(path.relative())?);
    }
    Ok(response)
}

/// Returns the error with its path in the namespace of the sandbox, if it is about a file of full output.
fn map_error(outputs: &VfsPath, directory: &VfsPath, error: Error) -> Error {
    let path = error.path().and_then(|path| VfsPath::parse(path).ok()).filter(|path| path.starts_with(directory));
    match path.and_then(|path| outputs.join(path.relative()).ok()) {
        Some(path) => error.with_path(&path),
        None => error,
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Shell for SandboxShell {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let directory = &self.commands.config().full_output_directory;
        let response = self.commands.execute(cx, req).await;
        self.tidy().await;
        let response = response.map_err(|error| map_error(&self.outputs, directory, error))?;
        Ok(with_leftovers(cx, Arc::clone(&self.sandbox().setup), map_full_output(&self.outputs, response)?).await)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<JobInfo>> {
        let jobs = self.commands.jobs(cx, req).await;
        self.tidy().await;
        jobs
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        let output = self.commands.job_output(cx, req).await;
        self.tidy().await;
        output
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        let job = self.commands.stop_job(cx, req).await;
        self.tidy().await;
        job
    }
}

impl StreamingShell for SandboxShell {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let outputs = self.outputs.clone();
        let directory = self.commands.config().full_output_directory.clone();
        let setup = Arc::clone(&self.sandbox().setup);
        let events = self.commands.execute_stream(cx.clone(), req);
        let event = move |event| {
            let (cx, outputs, directory, setup) = (cx.clone(), outputs.clone(), directory.clone(), Arc::clone(&setup));
            async move {
                if !matches!(event, Ok(ExecuteEvent::Exit(_)) | Err(_)) {
                    return event;
                }
                tidy(Arc::clone(&setup)).await;
                match event {
                    Ok(ExecuteEvent::Exit(response)) => {
                        Ok(ExecuteEvent::Exit(with_leftovers(&cx, setup, map_full_output(&outputs, response)?).await))
                    }
                    other => other.map_err(|error| map_error(&outputs, &directory, error)),
                }
            }
        };
        events.then(event).boxed()
    }
}
