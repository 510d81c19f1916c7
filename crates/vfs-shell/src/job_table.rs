//! Table of background jobs, with one task and one output log per job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::sleep_until;
use vfs_core::output::RingLog;
use vfs_core::shell::{CommandExit, JobId, JobInfo, JobOutputRequest, JobOutputResult};
use vfs_core::{CancelToken, Error, ErrorKind, ExecuteRequest, OpContext, Result};

use crate::config::ShellConfig;
use crate::process::SupervisorControl;
use crate::running_command::RunningCommand;

/// Jobs of one shell by number. Dropping the table terminates all of them.
#[derive(Debug, Default)]
pub(crate) struct JobTable(Mutex<JobTableState>);

/// State of a [`JobTable`].
#[derive(Debug, Default)]
struct JobTableState {
    last: u64,
    /// Number of jobs that have a reserved slot but are not in `jobs` yet.
    starting: usize,
    jobs: BTreeMap<u64, Arc<BackgroundJob>>,
}

impl JobTableState {
    /// Removes the oldest ended jobs that match `filter`, so that at most `max_ended` remain.
    fn evict_ended(&mut self, max_ended: usize, is_evictable: impl Fn(&BackgroundJob) -> bool) {
        let ended = self.jobs.iter().filter(|(_, job)| job.exit().is_some() && is_evictable(job));
        let ended: Vec<_> = ended.map(|(&number, _)| number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(max_ended)) {
            self.jobs.remove(number);
        }
    }
}

/// Reserved slot for a job that is being started. Dropping the guard gives the slot back.
#[derive(Debug)]
pub(crate) struct JobSlotReservation<'a> {
    jobs: &'a JobTable,
    max_ended: usize,
}

impl Drop for JobSlotReservation<'_> {
    fn drop(&mut self) {
        self.jobs.lock().starting -= 1;
    }
}

impl Drop for JobTable {
    fn drop(&mut self) {
        for job in self.lock().jobs.values() {
            job.control.terminate();
        }
    }
}

impl JobTable {
    fn lock(&self) -> MutexGuard<'_, JobTableState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for one more job, or fails if `max_jobs` run already.
    pub(crate) fn reserve(&self, config: &ShellConfig) -> Result<JobSlotReservation<'_>> {
        let mut state = self.lock();
        let running = state.jobs.values().filter(|job| job.exit().is_none()).count();
        if running + state.starting >= config.max_jobs {
            let message = "starting a job failed: too many jobs are running; stop one or wait for one to end";
            return Err(Error::new(ErrorKind::QuotaExceeded, message));
        }
        state.starting += 1;
        Ok(JobSlotReservation { jobs: self, max_ended: config.max_ended_jobs })
    }

    /// Lists the jobs of the caller, oldest first.
    pub(crate) fn list(&self, cx: &OpContext) -> Vec<JobInfo> {
        let state = self.lock();
        state.jobs.iter().filter(|(_, job)| job.owner.is(cx)).map(|(&number, job)| job.describe(number)).collect()
    }

    /// Returns the caller's job with the id `id`, and its number.
    pub(crate) fn find(&self, cx: &OpContext, id: &JobId) -> Result<(u64, Arc<BackgroundJob>)> {
        let state = self.lock();
        let number = id.as_str().strip_prefix(JOB_ID_PREFIX).and_then(|number| number.parse().ok());
        let job = number.and_then(|number| Some((number, Arc::clone(state.jobs.get(&number)?))));
        // Compare the id as text: `job-01` parses to the number of `job-1` but is another id.
        job.filter(|(number, job)| job_id(*number) == *id && job.owner.is(cx)).ok_or_else(|| {
            let id: String = id.as_str().chars().take(64).collect();
            Error::new(
                ErrorKind::NotFound,
                format!("finding job {id:?} failed: it does not exist or ended long ago; list the jobs"),
            )
        })
    }
}

impl JobSlotReservation<'_> {
    /// Adds a started job to the table and returns its id.
    pub(crate) fn register(self, job: Arc<BackgroundJob>) -> JobId {
        let mut state = self.jobs.lock();
        state.last += 1;
        let (number, owner) = (state.last, job.owner.clone());
        state.jobs.insert(number, job);
        state.evict_ended(self.max_ended, |other| other.owner == owner);
        state.evict_ended(MAX_ENDED_JOBS, |_| true);
        job_id(number)
    }
}

/// Upper bound on the ended jobs that the table remembers, over all owners.
const MAX_ENDED_JOBS: usize = 512;

const JOB_ID_PREFIX: &str = "job-";

fn job_id(number: u64) -> JobId {
    JobId::new(format!("{JOB_ID_PREFIX}{number}"))
}

/// Command that runs in the background.
#[derive(Debug)]
pub(crate) struct BackgroundJob {
    owner: JobOwner,
    command: String,
    since: DateTime<Utc>,
    control: Arc<SupervisorControl>,
    stop: CancelToken,
    log: Mutex<RingLog>,
    /// Notifies readers of new output and of the end.
    updates: watch::Sender<()>,
}

/// Actor and session that started a job. Other callers cannot see the job.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JobOwner {
    actor: Option<String>,
    session: Option<String>,
}

impl JobOwner {
    fn of(cx: &OpContext) -> Self {
        Self { actor: cx.actor().map(str::to_owned), session: cx.session().map(str::to_owned) }
    }

    fn is(&self, cx: &OpContext) -> bool {
        self.actor.as_deref() == cx.actor() && self.session.as_deref() == cx.session()
    }
}

/// Marks the job as ended when its task finishes, panics or is dropped with the runtime.
struct JobExitGuard(Arc<BackgroundJob>);

impl Drop for JobExitGuard {
    fn drop(&mut self) {
        self.0.log().set_exit(CommandExit::default());
        self.0.updates.send_replace(());
    }
}

impl BackgroundJob {
    /// Creates the job for `running`; cancelling `stop` terminates the command.
    pub(crate) fn new(
        cx: &OpContext,
        req: &ExecuteRequest,
        running: &RunningCommand,
        stop: CancelToken,
        config: &ShellConfig,
    ) -> Arc<Self> {
        Arc::new(Self {
            owner: JobOwner::of(cx),
            command: req.command.clone(),
            since: Utc::now(),
            control: running.control(),
            stop,
            log: Mutex::new(RingLog::new(config.job_output_bytes)),
            updates: watch::Sender::new(()),
        })
    }

    /// Reads the output of the command until it ends.
    pub(crate) async fn run(self: Arc<Self>, mut running: RunningCommand) {
        let ends = JobExitGuard(self);
        let job = &ends.0;
        loop {
            match running.next().await {
                Ok(Some((_, text))) => job.log().push(&text),
                Ok(None) => break,
                // No call waits for this result, so the error goes to the readers of the output.
                Err(error) => {
                    job.log().push(&format!("\n{}\n", error.for_model()));
                    break;
                }
            }
            job.updates.send_replace(());
        }
        if let Ok((response, _)) = running.outcome() {
            job.log().set_exit(response.exit());
        }
        drop(running);
    }

    fn log(&self) -> MutexGuard<'_, RingLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exit(&self) -> Option<CommandExit> {
        self.log().exit()
    }

    /// Returns the description of this job under the number `number`.
    pub(crate) fn describe(&self, number: u64) -> JobInfo {
        let mut job = JobInfo::new(job_id(number), &self.command, self.since);
        job.exit = self.exit();
        job
    }

    /// Returns the output from the request's cursor on. Waits until there is output, the job has ended, or the request's
    /// `wait` is over.
    pub(crate) async fn output(&self, cx: &OpContext, req: &JobOutputRequest) -> Result<JobOutputResult> {
        let max_bytes = req.max_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let until = req.wait.and_then(|wait| Instant::now().checked_add(wait));
        let mut updates = self.updates.subscribe();
        loop {
            cx.check()?;
            let output = self.log().read(req.cursor, max_bytes)?;
            let is_late = match (req.wait, until) {
                (None, _) => true,
                (Some(_), until) => until.is_some_and(|until| until <= Instant::now()),
            };
            if !output.output.is_empty() || output.exit.is_some() || is_late {
                return Ok(output);
            }
            wait(cx, until, &mut updates).await;
        }
    }

    /// Terminates all processes of the job and waits until they have exited.
    pub(crate) async fn stop(&self, cx: &OpContext) -> Result<()> {
        let mut updates = self.updates.subscribe();
        self.stop.cancel();
        while self.exit().is_none() {
            cx.check()?;
            wait(cx, None, &mut updates).await;
        }
        Ok(())
    }
}

/// Waits for an update until `until`, the deadline of `cx` or its cancellation.
async fn wait(cx: &OpContext, until: Option<Instant>, updates: &mut watch::Receiver<()>) {
    let until = [until, cx.deadline()].into_iter().flatten().min();
    let clock = async {
        match until {
            Some(until) => sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The sender is a field of the job, which the caller borrows, so it cannot be closed.
        _ = updates.changed() => {}
        () = cx.cancel_token().cancelled() => {}
        () = clock => {}
    }
}
