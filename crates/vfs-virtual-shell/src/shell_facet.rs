//! Shell facet: foreground commands and background jobs.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::{Either, select};
use tokio::sync::{OwnedSemaphorePermit, watch};
use vfs_core::backend::MutationMode;
use vfs_core::output::HeadTailBuffer;
use vfs_core::shell::{
    BaseEnvironment, JobInfo, JobOutputRequest, JobOutputResult, JobsRequest, RunMode, StopJobRequest,
};
use vfs_core::timer::Timer;
use vfs_core::{CancelToken, Error, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, Shell, StatRequest};

use crate::backend::{VirtualShell, VirtualShellInner};
use crate::builtin_guard::MAX_SCRIPT_BYTES;
use crate::interpreter::{ReadyScript, RunningScript, spawn_script};
use crate::job_table::JobLogSink;
use crate::output_sink::{OutputSink, OutputStream};
use crate::script_exit::{ExitCause, ScriptExit, abandoned_error};
use crate::stop_signal::{ScriptStopSignal, StopReason};

#[async_trait]
impl Shell for VirtualShell {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.0.check(cx, &req).await?;
        if req.run == RunMode::Background {
            return self.0.start_job(cx, req);
        }
        let started_at = Instant::now();
        let cwd = req.cwd.clone();
        let max_output = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let collector = Arc::new(OutputCollector::new(max_output.min(self.0.config.max_output_bytes)));
        let stop = Arc::new(ScriptStopSignal::new(cx.cancel_token().child()));
        let limit = self.0.time_limit(cx, &req, started_at);
        let Some(permit) = self.0.acquire_permit(&stop, limit).await? else {
            return collector.response(started_at.elapsed(), stop.reason(), None, cx);
        };
        let start = self.0.script_start(cx, req, Arc::clone(&stop), permit, limit);
        let running = spawn_script(start, Arc::clone(&collector) as Arc<dyn OutputSink>)?;
        let exit = collector.wait_for_exit(&running).await;
        let response = collector.response(started_at.elapsed(), stop.reason(), exit, cx);
        response.map_err(|error| error.or_path(&cwd))
    }

    async fn jobs(&self, cx: &OpContext, _req: JobsRequest) -> Result<Vec<JobInfo>> {
        Ok(self.0.jobs.list(cx))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        self.0.jobs.output(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<JobInfo> {
        self.0.jobs.stop(cx, &req.id).await
    }
}

impl VirtualShellInner {
    /// Checks the request, and refuses features that this shell lacks.
    pub(crate) async fn check(&self, cx: &OpContext, req: &ExecuteRequest) -> Result<()> {
        req.check()?;
        let refuse = |message: &'static str| Err(Error::new(ErrorKind::Unsupported, message).with_path(&req.cwd));
        if req.terminal.is_some() {
            return refuse("running the command failed: this shell has no terminals; omit the terminal");
        }
        if req.base_env != BaseEnvironment::Clean {
            return refuse(
                "running the command failed: this shell cannot inherit the environment of the serving process; pass the variables in the request",
            );
        }
        if req.command.len() > MAX_SCRIPT_BYTES {
            let message = "running the command failed: it is longer than 128 KiB; write it to a file and run that";
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&req.cwd));
        }
        if self.backend.capabilities(&req.cwd).mutations == MutationMode::Returned {
            return refuse(
                "running the command failed: this backend returns changes instead of making them, so a command could not see its own",
            );
        }
        cx.check().map_err(|error| error.or_path(&req.cwd))?;
        let info = self.backend.stat(cx, StatRequest::new(req.cwd.clone())).await?;
        if info.is_dir { Ok(()) } else { Err(Error::at(ErrorKind::NotADirectory, &req.cwd)) }
    }

    /// Returns when a foreground command is stopped, and the reason.
    pub(crate) fn time_limit(
        &self,
        cx: &OpContext,
        req: &ExecuteRequest,
        started_at: Instant,
    ) -> Option<(Instant, StopReason)> {
        let timeout = started_at.checked_add(req.timeout.unwrap_or(self.config.timeout));
        let timeout = timeout.map(|moment| (moment, StopReason::Timeout));
        let deadline = cx.deadline().map(|moment| (moment, StopReason::Deadline));
        timeout.into_iter().chain(deadline).min_by_key(|(moment, _)| *moment)
    }

    /// Waits for a permit to run; `None` means that the command was stopped first.
    pub(crate) async fn acquire_permit(
        &self,
        stop: &Arc<ScriptStopSignal>,
        limit: Option<(Instant, StopReason)>,
    ) -> Result<Option<OwnedSemaphorePermit>> {
        let signal = Arc::clone(stop);
        let _alarm = limit.map(|(moment, reason)| Timer::set(moment, move || signal.trigger(reason)));
        let permit = pin!(Arc::clone(&self.permits).acquire_owned());
        match select(permit, pin!(stop.wait())).await {
            Either::Left((Ok(permit), _)) => Ok(Some(permit)),
            // The semaphore is never closed.
            Either::Left((Err(error), _)) => Err(Error::of(ErrorKind::Internal).with_source(error)),
            Either::Right(_) => Ok(None),
        }
    }

    /// Starts a command in the background.
    pub(crate) fn start_job(self: &Arc<Self>, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| {
            let message = "starting the job failed: too many commands are running; wait for one or stop one";
            Error::new(ErrorKind::Busy, message).with_path(&req.cwd)
        })?;
        let moment = req.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let limit = moment.map(|moment| (moment, StopReason::Timeout));
        let stop = Arc::new(ScriptStopSignal::new(CancelToken::new()));
        let (cx, command) = (cx.for_cleanup(), req.command.clone());
        let log = Arc::new(JobLogSink::new());
        let start = self.script_start(&cx, req, stop, permit, limit);
        let running = spawn_script(start, Arc::clone(&log) as Arc<dyn OutputSink>)?;
        let mut response = ExecuteResponse::default();
        response.job = Some(self.jobs.add(&cx, command, log, running));
        Ok(response)
    }

    /// Returns the start of a script whose context is cancelled by `stop`.
    pub(crate) fn script_start(
        &self,
        cx: &OpContext,
        request: ExecuteRequest,
        stop: Arc<ScriptStopSignal>,
        permit: OwnedSemaphorePermit,
        limit: Option<(Instant, StopReason)>,
    ) -> ReadyScript {
        // The id is that of the command, which may change one file several times.
        let cx = cx.without_operation_id().with_cancel_token(stop.token().clone());
        let cx = match limit {
            Some((moment, _)) => cx.with_deadline(moment),
            None => cx,
        };
        let (backend, config) = (Arc::clone(&self.backend), self.config.clone());
        ReadyScript { backend, config, cx, request, stop, permit, limit }
    }
}

/// Output and exit of a foreground command.
struct OutputCollector {
    output: Mutex<CollectedOutput>,
    exit: watch::Sender<Option<ScriptExit>>,
}

/// State of an [`OutputCollector`].
struct CollectedOutput {
    combined: HeadTailBuffer,
    stdout: HeadTailBuffer,
    stderr: HeadTailBuffer,
}

impl OutputCollector {
    fn new(max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let part = || HeadTailBuffer::new(max);
        let output = CollectedOutput { combined: part(), stdout: part(), stderr: part() };
        Self { output: Mutex::new(output), exit: watch::Sender::new(None) }
    }

    fn output(&self) -> MutexGuard<'_, CollectedOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the exit. Once the command is stopped, the wait ends after a short grace period.
    async fn wait_for_exit(&self, running: &RunningScript) -> Option<ScriptExit> {
        let mut exit = self.exit.subscribe();
        match select(pin!(exit.wait_for(Option::is_some)), pin!(running.stop.wait_with_grace())).await {
            Either::Left((exit, _)) => exit.ok().and_then(|exit| exit.clone()),
            Either::Right(_) => None,
        }
    }

    fn response(
        &self,
        duration: Duration,
        stopped: Option<StopReason>,
        exit: Option<ScriptExit>,
        cx: &OpContext,
    ) -> Result<ExecuteResponse> {
        let mut response = ExecuteResponse::default();
        let cause = exit.as_ref().map(|exit| exit.cause.clone());
        match cause.unwrap_or(ExitCause::Stopped(stopped.unwrap_or(StopReason::Cancelled))) {
            ExitCause::Stopped(reason) if reason.is_abandoned() => return Err(abandoned_error(reason, cx)),
            cause => cause.apply_to(&mut response)?,
        }
        let output = self.output();
        response.output = output.combined.text();
        response.stdout = output.stdout.text();
        response.stderr = output.stderr.text();
        response.output_bytes = output.combined.total();
        response.truncated = output.combined.is_cut() || exit.as_ref().is_some_and(|exit| exit.is_cut);
        response.full_output = exit.and_then(|exit| exit.full_output);
        response.duration = duration;
        Ok(response)
    }
}

impl OutputSink for OutputCollector {
    fn write(&self, stream: OutputStream, bytes: &[u8]) {
        let mut output = self.output();
        output.combined.push(bytes);
        match stream {
            OutputStream::Stdout => output.stdout.push(bytes),
            OutputStream::Stderr => output.stderr.push(bytes),
        }
    }

    fn finish(&self, exit: ScriptExit) {
        self.exit.send_replace(Some(exit));
    }
}
