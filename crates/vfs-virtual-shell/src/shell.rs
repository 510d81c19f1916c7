//! Running a command and waiting for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::{Either, select};
use std::pin::pin;
use tokio::sync::{OwnedSemaphorePermit, watch};
use vfs_core::output::HeadTailBuffer;
use vfs_core::timer::Timer;
use vfs_core::{
    BaseEnvironment, Error, ErrorKind, ExecuteRequest, ExecuteResponse, Job, JobOutput, JobOutputRequest, JobsRequest,
    Mutations, OpContext, Result, RunMode, Shell, StatRequest, StopJobRequest,
};

use crate::backend::{Inner, VirtualShell};
use crate::guard::MAX_SCRIPT;
use crate::run::{Audience, Ended, How, Output, Running, SIGKILL, Start, start};
use crate::stop::{Reason, Stop};

#[async_trait]
impl Shell for VirtualShell {
    async fn execute(&self, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        self.0.check(cx, &req).await?;
        if req.run == RunMode::Background {
            return self.0.start_job(cx, req);
        }
        let begun = Instant::now();
        let cwd = req.cwd.clone();
        let max_output = req.max_output_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let collected = Arc::new(Collected::new(max_output.min(self.0.config.max_output_bytes)));
        let stop = Arc::new(Stop::new(cx.cancel_token().child()));
        let end = self.0.end(cx, &req, begun);
        let Some(permit) = self.0.place(&stop, end).await? else {
            return collected.response(begun.elapsed(), stop.reason(), None, cx);
        };
        let start_it = self.0.starting(cx, req, Arc::clone(&stop), permit, end);
        let running = start(&self.0, start_it, Arc::clone(&collected) as Arc<dyn Audience>)?;
        let ended = collected.ended_or_stopped(&running).await;
        let answer = collected.response(begun.elapsed(), stop.reason(), ended, cx);
        answer.map_err(|error| error.or_path(&cwd))
    }

    async fn jobs(&self, cx: &OpContext, _req: JobsRequest) -> Result<Vec<Job>> {
        Ok(self.0.jobs.list(cx))
    }

    async fn job_output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        self.0.jobs.output(cx, req).await
    }

    async fn stop_job(&self, cx: &OpContext, req: StopJobRequest) -> Result<Job> {
        self.0.jobs.stop(cx, &req.id).await
    }
}

impl Inner {
    /// Refuses what cannot be run here.
    pub(crate) async fn check(&self, cx: &OpContext, req: &ExecuteRequest) -> Result<()> {
        req.check()?;
        let refuse = |message: &'static str| Err(Error::new(ErrorKind::Unsupported, message).with_path(&req.cwd));
        if req.terminal.is_some() {
            return refuse("there are no terminals here; leave it out");
        }
        if req.base_env != BaseEnvironment::Clean {
            return refuse("nothing of the serving process is shown here; pass the variables that are needed");
        }
        if req.command.len() > MAX_SCRIPT {
            let message = "a command is at most 128 KiB here; write it to a file, and run that";
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(&req.cwd));
        }
        if self.backend.capabilities(&req.cwd).mutations == Mutations::Returned {
            return refuse("changes are returned here and not made, so a command could not see its own");
        }
        cx.check().map_err(|error| error.or_path(&req.cwd))?;
        let info = self.backend.stat(cx, StatRequest::new(req.cwd.clone())).await?;
        if info.is_dir { Ok(()) } else { Err(Error::at(ErrorKind::NotADirectory, &req.cwd)) }
    }

    /// When a command in the foreground is to end.
    pub(crate) fn end(&self, cx: &OpContext, req: &ExecuteRequest, begun: Instant) -> Option<(Instant, Reason)> {
        let timeout = begun.checked_add(req.timeout.unwrap_or(self.config.timeout));
        let timeout = timeout.map(|moment| (moment, Reason::Timeout));
        let deadline = cx.deadline().map(|moment| (moment, Reason::Deadline));
        timeout.into_iter().chain(deadline).min_by_key(|(moment, _)| *moment)
    }

    /// Waits until the command may run; none where it is to stop before.
    pub(crate) async fn place(
        &self,
        stop: &Arc<Stop>,
        end: Option<(Instant, Reason)>,
    ) -> Result<Option<OwnedSemaphorePermit>> {
        let rung = Arc::clone(stop);
        let _alarm = end.map(|(moment, reason)| Timer::set(moment, move || rung.now(reason)));
        let place = pin!(Arc::clone(&self.places).acquire_owned());
        match select(place, pin!(stop.stopped())).await {
            Either::Left((Ok(permit), _)) => Ok(Some(permit)),
            // The semaphore is never closed.
            Either::Left((Err(error), _)) => Err(Error::of(ErrorKind::Internal).with_source(error)),
            Either::Right(_) => Ok(None),
        }
    }

    /// A command with a context of its own, which ends with `stop`.
    pub(crate) fn starting(
        &self,
        cx: &OpContext,
        request: ExecuteRequest,
        stop: Arc<Stop>,
        permit: OwnedSemaphorePermit,
        end: Option<(Instant, Reason)>,
    ) -> Start {
        let cx = cx.clone().with_cancel_token(stop.token().clone());
        let cx = match end {
            Some((moment, _)) => cx.with_deadline(moment),
            None => cx,
        };
        Start { cx, request, stop, permit, end }
    }
}

/// What a command in the foreground has printed.
struct Collected {
    kept: Mutex<Kept>,
    ended: watch::Sender<Option<Ended>>,
}

struct Kept {
    both: HeadTailBuffer,
    standard: HeadTailBuffer,
    error: HeadTailBuffer,
}

impl Collected {
    fn new(max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let part = || HeadTailBuffer::new(max);
        let kept = Kept { both: part(), standard: part(), error: part() };
        Self { kept: Mutex::new(kept), ended: watch::Sender::new(None) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end; where it is to stop, not for long.
    async fn ended_or_stopped(&self, running: &Running) -> Option<Ended> {
        let mut ending = self.ended.subscribe();
        match select(pin!(ending.wait_for(Option::is_some)), pin!(running.stop.stopped_for_long())).await {
            Either::Left((ended, _)) => ended.ok().and_then(|ended| ended.clone()),
            Either::Right(_) => None,
        }
    }

    fn response(
        &self,
        duration: Duration,
        stopped: Option<Reason>,
        ended: Option<Ended>,
        cx: &OpContext,
    ) -> Result<ExecuteResponse> {
        let mut response = ExecuteResponse::default();
        let how = ended.as_ref().map(|ended| ended.how.clone());
        match how.unwrap_or(How::Stopped(stopped.unwrap_or(Reason::Cancelled))) {
            How::Stopped(reason) if reason.is_given_up() => return Err(given_up(reason, cx)),
            how => how.tell(&mut response)?,
        }
        let kept = self.kept();
        response.output = kept.both.text();
        response.stdout = kept.standard.text();
        response.stderr = kept.error.text();
        response.output_bytes = kept.both.total();
        response.truncated = kept.both.is_cut() || ended.as_ref().is_some_and(|ended| ended.is_cut);
        response.full_output = ended.and_then(|ended| ended.full_output);
        response.duration = duration;
        Ok(response)
    }
}

impl Audience for Collected {
    fn printed(&self, output: Output, bytes: &[u8]) {
        let mut kept = self.kept();
        kept.both.push(bytes);
        match output {
            Output::Standard => kept.standard.push(bytes),
            Output::Error => kept.error.push(bytes),
        }
    }

    fn ended(&self, ended: Ended) {
        self.ended.send_replace(Some(ended));
    }
}

impl How {
    /// Says it in `response`.
    pub(crate) fn tell(self, response: &mut ExecuteResponse) -> Result<()> {
        match self {
            How::Exited(code) => response.exit_code = Some(code),
            How::Killed | How::Stopped(_) => response.signal = Some(SIGKILL),
            How::Failed(error) => return Err(error),
        }
        response.timed_out = matches!(self, How::Stopped(Reason::Timeout));
        Ok(())
    }
}

/// What a caller is told who gave up.
pub(crate) fn given_up(reason: Reason, cx: &OpContext) -> Error {
    match (reason, cx.check()) {
        (_, Err(error)) => error,
        (Reason::Deadline, Ok(())) => Error::of(ErrorKind::Timeout),
        (_, Ok(())) => Error::of(ErrorKind::Cancelled),
    }
}
