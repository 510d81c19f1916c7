//! Commands of a sandbox, with every path in its namespace.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::runtime::Handle;
use vfs_core::{
    Access, Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, Job, JobOutput, JobOutputRequest, JobsRequest,
    OpContext, Result, Shell, StopJobRequest, StreamingShell, VfsPath,
};
use vfs_shell::{Commands, ShellConfig};

use crate::sandbox::OsSandbox;
use crate::sandbox::setup::Setup;

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

    async fn tidy(&self) {
        tidy(Arc::clone(&self.sandbox().setup)).await;
    }

    /// The sandbox.
    pub fn sandbox(&self) -> &OsSandbox {
        self.commands.launcher()
    }
}

/// Removes what stood for missing protected paths, where this was the last command that ran.
async fn tidy(setup: Arc<Setup>) {
    // What it leaves is removed after a later command.
    let _ = vfs_search::run_blocking(&Handle::current(), move || setup.tidy()).await;
}

/// The same with what commands left that is to be known. If this one runs in the background, earlier ones left it.
async fn with_leftovers(cx: &OpContext, setup: Arc<Setup>, mut response: ExecuteResponse) -> ExecuteResponse {
    let cx = cx.clone();
    let problems = vfs_search::run_blocking(&Handle::current(), move || setup.new_leftovers(&cx)).await;
    response.problems.extend(problems.unwrap_or_else(|error| vec![error.into()]));
    response
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
        let response = self.commands.execute(cx, req).await;
        self.tidy().await;
        let response = response.map_err(|error| told(&self.outputs, directory, error))?;
        Ok(with_leftovers(cx, Arc::clone(&self.sandbox().setup), shown(&self.outputs, response)?).await)
    }

    async fn jobs(&self, cx: &OpContext, req: JobsRequest) -> Result<Vec<Job>> {
        let jobs = self.commands.jobs(cx, req).await;
        self.tidy().await;
        jobs
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        let output = self.commands.job_output(cx, req).await;
        self.tidy().await;
        output
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        let job = self.commands.stop_job(cx, req).await;
        self.tidy().await;
        job
    }
}

impl StreamingShell for SandboxCommands {
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
                        Ok(ExecuteEvent::Exit(with_leftovers(&cx, setup, shown(&outputs, response)?).await))
                    }
                    other => other.map_err(|error| told(&outputs, &directory, error)),
                }
            }
        };
        events.then(event).boxed()
    }
}
