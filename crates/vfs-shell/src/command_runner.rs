//! Command execution: foreground, background and streamed commands of any spawner.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;
use vfs_core::output::HeadTailBuffer;
use vfs_core::shell::{
    FullOutputMode, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, RunMode, StopJobRequest,
};
use vfs_core::{
    CancelToken, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell,
    StreamingShell,
};
use vfs_local::LocalBackend;

use crate::command_environment::build_environment;
use crate::config::ShellConfig;
use crate::full_output_file::FullOutputFile;
use crate::job_table::{BackgroundJob, JobTable};
use crate::output_reader::OutputStream;
use crate::running_command::{RunningCommand, TerminationReason, run_until_due};
use crate::spawner::Spawner;
use crate::tokio_runtime::current_runtime;

/// Number of output events that may wait for the consumer of a stream.
const EVENT_CHANNEL_CAPACITY: usize = 4;

/// Runs the programs that a [`Spawner`] describes, and terminates them when they have to end.
///
/// # Behaviour
///
/// * Every command has a supervisor: a small process that adopts each descendant of the command that loses its parent,
///   whatever its group or session. At the timeout, when the call is cancelled or dropped, and when the serving process
///   exits, even by `SIGKILL`, the supervisor sends `SIGTERM` to all of them, and after a [grace period](ShellConfig::grace)
///   `SIGKILL`, until none is left. The call waits for that, but at most a quarter of a second longer than the grace period;
///   dropping a call waits for nothing.
/// * Processes that a command leaves running when it exits are killed, unless [`OrphanPolicy`](crate::OrphanPolicy) says
///   otherwise.
/// * Outputs are read in the order of arrival; for a program that prints from one thread this is exactly its order for the
///   first 4096 writes. A character whose bytes arrive in two chunks stays whole. However much is printed, memory is bounded
///   by the size of the response.
/// * Standard input is a file in memory, so that a command need not read it; without input it is `/dev/null`. In a
///   [terminal](ExecuteRequest::terminal) the input is typed, with Control-D at its end, lines of over 4095 bytes are cut by
///   the kernel, and all output is `stdout`.
/// * A command gets no descriptor, signal disposition or signal mask of the serving process.
/// * A clone is a handle on the same jobs. Jobs are terminated when the last handle is dropped, or when their runtime is.
///
/// # Limits
///
/// * A command can kill or stop its supervisor, as both run as the same user. It is then killed with its process group, but
///   processes that have left the group may survive. Run untrusted commands in a sandbox.
/// * Processes of another user, such as those started by `sudo`, cannot be terminated and are not waited for.
/// * The supervisor is a copy of the serving process that shares its memory: pages that the serving process writes while a
///   command runs are copied once for all commands that began before. The time of a start grows with that memory.
///
/// Needs Linux 5.4 and a tokio runtime with its drivers for IO and time. Outside of a runtime, calls fail with
/// `unsupported`.
pub struct CommandRunner<S> {
    spawner: Arc<S>,
    config: Arc<ShellConfig>,
    files: Option<LocalBackend>,
    jobs: Arc<JobTable>,
}

impl<S: Spawner> CommandRunner<S> {
    /// Creates a runner for the programs of `spawner`.
    pub fn new(spawner: S, config: ShellConfig) -> Self {
        Self { spawner: Arc::new(spawner), config: Arc::new(config), files: None, jobs: Arc::default() }
    }

    /// Sets the backend for files with the [full output](FullOutputMode::File). Without one, a request for such a file fails
    /// with `unsupported`.
    #[must_use]
    pub fn full_output_files(mut self, files: LocalBackend) -> Self {
        self.files = Some(files);
        self
    }

    /// Returns the spawner.
    pub fn spawner(&self) -> &S {
        &self.spawner
    }

    /// Returns the settings.
    pub fn config(&self) -> &ShellConfig {
        &self.config
    }

    /// Starts `req`; the command is terminated when `cx` ends.
    async fn start(&self, cx: OpContext, req: &ExecuteRequest) -> Result<RunningCommand> {
        current_runtime()?;
        cx.check()?;
        req.check()?;
        let files = match (req.full_output, &self.files) {
            (FullOutputMode::Dropped, _) => None,
            (_, Some(files)) => Some(files),
            (_, None) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "writing the full output failed: this shell has no files for it; redirect the output in the command",
                )
                .with_path(&req.cwd));
            }
        };
        let timeout = match req.run {
            RunMode::Foreground => Some(req.timeout.unwrap_or(self.config.default_timeout)),
            _ => req.timeout,
        };
        let starts = async {
            let mut spec = self.spawner.prepare(&cx, req, build_environment(&self.config, req)).await?;
            // Create the file last, so that a refused command leaves none.
            let full_output = match files {
                Some(files) => Some(FullOutputFile::create(files, &self.config, &cx).await?),
                None => None,
            };
            spec.limits = spec.limits.or(self.config.limits);
            spec.terminal = req.terminal;
            RunningCommand::start(cx.clone(), spec, req, timeout, &self.config, full_output).await
        };
        run_until_due(&cx, timeout, starts).await
    }

    /// Runs a command in the foreground and collects its output.
    async fn wait(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let mut running = self.start(cx.clone(), &req).await?;
        let max_bytes = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let max_bytes = usize::try_from(max_bytes.min(self.config.max_output_bytes)).unwrap_or(usize::MAX);
        let buffer = || HeadTailBuffer::new(max_bytes);
        let (mut output, mut split) = (buffer(), [buffer(), buffer()]);
        while let Some((stream, text)) = running.next().await? {
            output.push(text.as_bytes());
            split[stream as usize].push(text.as_bytes());
        }
        let mut response = exit_response(&running)?;
        let [stdout, stderr] = split;
        response.truncated = output.is_cut();
        response.output = output.text();
        response.stdout = stdout.text();
        response.stderr = stderr.text();
        Ok(response)
    }

    /// Starts a command in the background.
    async fn detach(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let slot = self.jobs.reserve(&self.config)?;
        let stop = CancelToken::new();
        let running = self.start(cx.clone(), &req).await?.detach(stop.clone());
        let mut response = ExecuteResponse::default();
        response.full_output = running.full_output().cloned();
        let job = BackgroundJob::new(cx, &req, &running, stop, &self.config);
        current_runtime()?.spawn(Arc::clone(&job).run(running));
        response.job = Some(slot.register(job));
        Ok(response)
    }

    /// Runs a command and sends its output to `to` until the receiver is dropped.
    async fn send(&self, cx: OpContext, req: ExecuteRequest, to: &mpsc::Sender<Result<ExecuteEvent>>) -> Result<()> {
        if req.run != RunMode::Foreground {
            return Err(Error::invalid_argument(
                "streaming the command failed: it runs in the background; start it without streaming and read the job's output",
            ));
        }
        let mut running = self.start(cx, &req).await?;
        while let Some((stream, text)) = running.next().await? {
            let permit = loop {
                tokio::select! {
                    permit = to.reserve() => break permit,
                    // A slow consumer does not extend the time limit of the command.
                    handled = running.watch() => handled?,
                }
            };
            let Ok(permit) = permit else { return Ok(()) };
            permit.send(Ok(match stream {
                OutputStream::Stdout => ExecuteEvent::Stdout(text),
                OutputStream::Stderr => ExecuteEvent::Stderr(text),
            }));
        }
        let response = exit_response(&running)?;
        // Sending fails only if the receiver is dropped, and then no result is needed.
        let _dropped = to.send(Ok(ExecuteEvent::Exit(response))).await;
        Ok(())
    }
}

/// Returns the result of a command that is over, or the error of a call that was cancelled.
fn exit_response(running: &RunningCommand) -> Result<ExecuteResponse> {
    match running.outcome()? {
        (response, None | Some(TerminationReason::TimedOut)) => Ok(response),
        (_, Some(TerminationReason::Cancelled)) => Err(Error::of(ErrorKind::Cancelled)),
        (_, Some(TerminationReason::DeadlinePassed)) => Err(Error::of(ErrorKind::Timeout)),
    }
}

impl<S> Clone for CommandRunner<S> {
    fn clone(&self) -> Self {
        Self {
            spawner: Arc::clone(&self.spawner),
            config: Arc::clone(&self.config),
            files: self.files.clone(),
            jobs: Arc::clone(&self.jobs),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for CommandRunner<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings contain environment variables, which may hold secrets.
        f.debug_struct("CommandRunner").field("spawner", &self.spawner).finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Spawner> Shell for CommandRunner<S> {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        match req.run {
            RunMode::Foreground => self.wait(cx, req).await,
            _ => self.detach(cx, req).await,
        }
    }

    async fn jobs(&self, cx: &OpContext, _req: JobsRequest) -> Result<Vec<JobInfo>> {
        cx.check()?;
        Ok(self.jobs.list(cx))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        current_runtime()?;
        let (_, job) = self.jobs.find(cx, &req.id)?;
        job.output(cx, &req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        current_runtime()?;
        cx.check()?;
        let (number, job) = self.jobs.find(cx, &req.id)?;
        job.stop(cx).await?;
        Ok(job.describe(number))
    }
}

impl<S: Spawner> StreamingShell for CommandRunner<S> {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let commands = self.clone();
        let started = move || {
            let runtime = match current_runtime() {
                Ok(runtime) => runtime,
                Err(error) => return stream::iter([Err(error)]).left_stream(),
            };
            let (sender, receiver) = mpsc::channel(EVENT_CHANNEL_CAPACITY);
            // A separate task enforces the time limit even while the stream is not polled.
            runtime.spawn(async move {
                let sent = tokio::select! {
                    sent = commands.send(cx, req, &sender) => sent,
                    () = sender.closed() => Ok(()),
                };
                if let Err(error) = sent {
                    // As above: the receiver is dropped.
                    let _dropped = sender.send(Err(error)).await;
                }
            });
            stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver))).right_stream()
        };
        stream::once(async move { started() }).flatten().boxed()
    }
}
