//! The engine: commands of whatever a launcher starts.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;
use vfs_core::output::HeadTailBuffer;
use vfs_core::{
    CancelToken, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, FullOutput as FullOutputWanted, Job,
    JobOutput, JobOutputRequest, JobsRequest, OpContext, Result, RunMode, Shell, StopJobRequest, StreamingShell,
};
use vfs_local::LocalBackend;

use crate::config::ShellConfig;
use crate::environment::environment;
use crate::full_output::FullOutput;
use crate::hop::runtime;
use crate::jobs::{Background, Jobs};
use crate::launch::Launcher;
use crate::outputs::Stream;
use crate::running::{Reason, Running, in_time};

/// How many pieces of a streamed output wait for its consumer.
const WAITING_PIECES: usize = 4;

/// Runs what a [`Launcher`] starts, and sees to its end.
///
/// # Behaviour
///
/// * Every command has a supervisor: a small process that adopts each descendant of the command which loses its parent, in
///   whatever group or session that is. At the timeout, when the call is cancelled or dropped, and when the serving process
///   is gone, even by `SIGKILL`, the supervisor sends all of them `SIGTERM`, and after a [grace](ShellConfig::grace)
///   `SIGKILL`, until none is left. The call waits for that, but at most a quarter of a second longer than the grace;
///   dropping a call waits for nothing.
/// * What a command leaves running when it ends by itself is ended, too, unless [`Leftovers`](crate::Leftovers) says
///   otherwise.
/// * Outputs are read in the order of arrival; for a program that prints from one thread it is exactly its order for the
///   first 4096 writes. A character whose bytes come in two pieces is kept whole. However much is printed, memory is bounded
///   by what is kept of it.
/// * Standard input is a file in memory, so that a command need not read it; without one it is `/dev/null`. In a
///   [terminal](ExecuteRequest::terminal) the input is typed, with Control-D at its end, lines of over 4095 bytes are cut by
///   the kernel, and all output is `stdout`.
/// * A command gets no descriptor, signal disposition or signal mask of the serving process.
/// * A clone is a handle on the same jobs. When the last one is dropped, all jobs are ended; so are those whose runtime is.
///
/// # Limits
///
/// * A command that kills or stops its supervisor, as it may where both run as the same user, is killed with its process
///   group; what left the group before may survive. Who means harm belongs into a sandbox.
/// * What a process of another user does, such as one started by `sudo`, cannot be ended, and is not waited for.
/// * The supervisor is a copy of the serving process that shares its memory: pages that the serving process writes while a
///   command runs are copied once for all commands that began before. Starting takes time in proportion to that memory.
///
/// Needs Linux 5.4, and a tokio runtime with its drivers for IO and time: `unsupported` outside of one.
pub struct Commands<L> {
    launcher: Arc<L>,
    config: Arc<ShellConfig>,
    files: Option<LocalBackend>,
    jobs: Arc<Jobs>,
}

impl<L: Launcher> Commands<L> {
    /// Runs what `launcher` starts.
    pub fn new(launcher: L, config: ShellConfig) -> Self {
        Self { launcher: Arc::new(launcher), config: Arc::new(config), files: None, jobs: Arc::default() }
    }

    /// Writes the files that have [all output](FullOutputWanted::File) to `files`. Without it a request for one is
    /// `unsupported`.
    #[must_use]
    pub fn full_output_in(mut self, files: LocalBackend) -> Self {
        self.files = Some(files);
        self
    }

    /// What decides what is started.
    pub fn launcher(&self) -> &L {
        &self.launcher
    }

    /// The settings.
    pub fn config(&self) -> &ShellConfig {
        &self.config
    }

    /// Starts `req`, to be ended as `cx` says.
    async fn start(&self, cx: OpContext, req: &ExecuteRequest) -> Result<Running> {
        runtime()?;
        cx.check()?;
        req.check()?;
        let files = match (req.full_output, &self.files) {
            (FullOutputWanted::Dropped, _) => None,
            (_, Some(files)) => Some(files),
            (_, None) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "output is written to no file here; send it to one in the command",
                )
                .with_path(&req.cwd));
            }
        };
        let timeout = match req.run {
            RunMode::Foreground => Some(req.timeout.unwrap_or(self.config.default_timeout)),
            _ => req.timeout,
        };
        let starts = async {
            let mut launch = self.launcher.launch(&cx, req, environment(&self.config, req)).await?;
            // Only now: what is refused leaves no file.
            let full_output = match files {
                Some(files) => Some(FullOutput::create(files, &self.config, &cx).await?),
                None => None,
            };
            launch.limits = launch.limits.or(self.config.limits);
            launch.terminal = req.terminal;
            Running::start(cx.clone(), launch, req, timeout, &self.config, full_output).await
        };
        in_time(&cx, timeout, starts).await
    }

    /// Runs a command and keeps what it prints.
    async fn wait(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let mut running = self.start(cx.clone(), &req).await?;
        let most = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let most = usize::try_from(most.min(self.config.max_output_bytes)).unwrap_or(usize::MAX);
        let kept = || HeadTailBuffer::new(most);
        let (mut output, mut split) = (kept(), [kept(), kept()]);
        while let Some((stream, text)) = running.next().await? {
            output.push(text.as_bytes());
            split[stream as usize].push(text.as_bytes());
        }
        let mut response = finished(&running)?;
        let [stdout, stderr] = split;
        response.truncated = output.is_cut();
        response.output = output.text();
        response.stdout = stdout.text();
        response.stderr = stderr.text();
        Ok(response)
    }

    /// Starts a command and leaves it to a task.
    async fn detach(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let room = self.jobs.room(&self.config)?;
        let stop = CancelToken::new();
        let running = self.start(cx.clone(), &req).await?.outliving(stop.clone());
        let mut response = ExecuteResponse::default();
        response.full_output = running.full_output().cloned();
        let job = Background::new(cx, &req, &running, stop, &self.config);
        runtime()?.spawn(Arc::clone(&job).run(running));
        response.job = Some(room.take(job));
        Ok(response)
    }

    /// Runs a command and sends what it prints, until nobody takes it any longer.
    async fn send(&self, cx: OpContext, req: ExecuteRequest, to: &mpsc::Sender<Result<ExecuteEvent>>) -> Result<()> {
        if req.run != RunMode::Foreground {
            return Err(Error::invalid_argument(
                "a command in the background is not streamed; start it, and ask for its output",
            ));
        }
        let mut running = self.start(cx, &req).await?;
        while let Some((stream, text)) = running.next().await? {
            let permit = loop {
                tokio::select! {
                    permit = to.reserve() => break permit,
                    // A consumer that takes its time does not give the command more of it.
                    watched = running.watch() => watched?,
                }
            };
            let Ok(permit) = permit else { return Ok(()) };
            permit.send(Ok(match stream {
                Stream::Stdout => ExecuteEvent::Stdout(text),
                Stream::Stderr => ExecuteEvent::Stderr(text),
            }));
        }
        let response = finished(&running)?;
        // Where nobody takes it, nobody wants to know.
        let _dropped = to.send(Ok(ExecuteEvent::Exit(response))).await;
        Ok(())
    }
}

/// How a command ended, which may be why it was ended.
fn finished(running: &Running) -> Result<ExecuteResponse> {
    match running.outcome()? {
        (response, None | Some(Reason::TimedOut)) => Ok(response),
        (_, Some(Reason::Cancelled)) => Err(Error::of(ErrorKind::Cancelled)),
        (_, Some(Reason::DeadlinePassed)) => Err(Error::of(ErrorKind::Timeout)),
    }
}

impl<L> Clone for Commands<L> {
    fn clone(&self) -> Self {
        Self {
            launcher: Arc::clone(&self.launcher),
            config: Arc::clone(&self.config),
            files: self.files.clone(),
            jobs: Arc::clone(&self.jobs),
        }
    }
}

impl<L: fmt::Debug> fmt::Debug for Commands<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings have an environment, which may have secrets.
        f.debug_struct("Commands").field("launcher", &self.launcher).finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<L: Launcher> Shell for Commands<L> {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        match req.run {
            RunMode::Foreground => self.wait(cx, req).await,
            _ => self.detach(cx, req).await,
        }
    }

    async fn jobs(&self, cx: &OpContext, _req: JobsRequest) -> Result<Vec<Job>> {
        cx.check()?;
        Ok(self.jobs.list(cx))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        runtime()?;
        let (_, job) = self.jobs.find(cx, &req.id)?;
        job.output(cx, &req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        runtime()?;
        cx.check()?;
        let (number, job) = self.jobs.find(cx, &req.id)?;
        job.end(cx).await?;
        Ok(job.describe(number))
    }
}

impl<L: Launcher> StreamingShell for Commands<L> {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let commands = self.clone();
        let started = move || {
            let runtime = match runtime() {
                Ok(runtime) => runtime,
                Err(error) => return stream::iter([Err(error)]).left_stream(),
            };
            let (sender, receiver) = mpsc::channel(WAITING_PIECES);
            // In a task of its own, so that time ends the command even while nobody asks for its output.
            runtime.spawn(async move {
                let sent = tokio::select! {
                    sent = commands.send(cx, req, &sender) => sent,
                    () = sender.closed() => Ok(()),
                };
                if let Err(error) = sent {
                    // As above: nobody wants to know.
                    let _dropped = sender.send(Err(error)).await;
                }
            });
            stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver))).right_stream()
        };
        stream::once(async move { started() }).flatten().boxed()
    }
}
