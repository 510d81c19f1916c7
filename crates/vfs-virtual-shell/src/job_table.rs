//! Table of background jobs and their output logs.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::Utc;
use futures::future::{Either, select};
use tokio::sync::watch;
use vfs_core::output::{RingLog, Utf8StreamDecoder};
use vfs_core::shell::{CommandExit, JobId, JobInfo, JobOutputRequest, JobOutputResult};
use vfs_core::timer::Timer;
use vfs_core::{Error, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, VfsPath};

use crate::interpreter::RunningScript;
use crate::output_sink::{OutputSink, OutputStream};
use crate::script_exit::{ExitCause, SIGKILL, ScriptExit};
use crate::stop_signal::StopReason;

/// Upper bound on ended jobs that are remembered, separately for each actor and session.
const MAX_ENDED_JOBS: usize = 64;

/// Capacity in bytes of a job's output log.
const JOB_LOG_CAPACITY: usize = 1 << 20;

/// Background jobs of one shell. A job is visible only to its actor and session.
#[derive(Debug, Default)]
pub(crate) struct JobTable(Mutex<JobTableState>);

/// State of a [`JobTable`].
#[derive(Debug, Default)]
struct JobTableState {
    last: u64,
    jobs: BTreeMap<u64, JobEntry>,
}

/// One background job.
#[derive(Debug)]
struct JobEntry {
    job: JobInfo,
    actor: Option<String>,
    session: Option<String>,
    log: Arc<JobLogSink>,
    running: RunningScript,
}

/// Output log and exit of a job.
#[derive(Debug)]
pub(crate) struct JobLogSink {
    state: Mutex<JobLogState>,
    exit: watch::Sender<Option<CommandExit>>,
    /// Notifies readers of new output.
    updates: watch::Sender<()>,
}

/// State of a [`JobLogSink`].
#[derive(Debug)]
struct JobLogState {
    log: RingLog,
    decoders: [Utf8StreamDecoder; 2],
}

impl JobTable {
    fn lock(&self) -> MutexGuard<'_, JobTableState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, cx: &OpContext, command: String, log: Arc<JobLogSink>, running: RunningScript) -> JobId {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        let id = JobId::new(format!("job-{number}"));
        let job = JobInfo::new(id.clone(), command, Utc::now());
        let (actor, session) = (cx.actor().map(str::to_owned), cx.session().map(str::to_owned));
        state.jobs.insert(number, JobEntry { job, actor, session, log, running });
        let ended = state.jobs.iter().filter(|(_, entry)| entry.is_of(cx) && entry.exit().is_some());
        let ended: Vec<_> = ended.map(|(number, _)| *number).collect();
        let surplus = ended.len().saturating_sub(MAX_ENDED_JOBS);
        for number in &ended[..surplus] {
            state.jobs.remove(number);
        }
        id
    }

    pub(crate) fn list(&self, cx: &OpContext) -> Vec<JobInfo> {
        self.lock().jobs.values().filter(|entry| entry.is_of(cx)).map(JobEntry::job).collect()
    }

    fn find<T>(&self, cx: &OpContext, id: &JobId, read: impl FnOnce(&JobEntry) -> T) -> Result<T> {
        let state = self.lock();
        let entry = state.jobs.values().find(|entry| entry.job.id == *id && entry.is_of(cx));
        entry.map(read).ok_or_else(|| {
            let message = "finding the job failed: no job has this id; list the jobs";
            Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
        })
    }

    pub(crate) async fn output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutputResult> {
        cx.check()?;
        let log = self.find(cx, &req.id, |entry| Arc::clone(&entry.log))?;
        if let Some(moment) = req.wait.and_then(|wait| Instant::now().checked_add(wait)) {
            log.wait(cx, req.cursor, moment).await;
            cx.check()?;
        }
        log.lock().log.read(req.cursor, req.max_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES))
    }

    pub(crate) async fn stop(&self, cx: &OpContext, id: &JobId) -> Result<JobInfo> {
        let log = self.find(cx, id, |entry| {
            if entry.exit().is_none() {
                entry.running.stop.trigger(StopReason::Stopped);
            }
            Arc::clone(&entry.log)
        })?;
        let mut exit = log.exit.subscribe();
        // The sender is borrowed from the log, so the wait ends with an exit.
        let ended = pin!(exit.wait_for(Option::is_some));
        if let Either::Right(_) = select(ended, pin!(wait_for_cancel(cx, None))).await {
            cx.check()?;
        }
        self.find(cx, id, JobEntry::job)
    }
}

/// Waits until the call is cancelled, its deadline has passed, or `moment` is reached.
async fn wait_for_cancel(cx: &OpContext, moment: Option<Instant>) {
    let token = cx.cancel_token().child();
    let moment = moment.into_iter().chain(cx.deadline()).min();
    let signal = token.clone();
    let _alarm = moment.map(|moment| Timer::set(moment, move || signal.cancel()));
    token.cancelled().await;
}

impl JobEntry {
    fn is_of(&self, cx: &OpContext) -> bool {
        self.actor.as_deref() == cx.actor() && self.session.as_deref() == cx.session()
    }

    fn exit(&self) -> Option<CommandExit> {
        *self.log.exit.borrow()
    }

    fn job(&self) -> JobInfo {
        let mut job = self.job.clone();
        job.exit = self.exit();
        job
    }
}

impl JobLogSink {
    pub(crate) fn new() -> Self {
        let (exit, updates) = (watch::Sender::new(None), watch::Sender::new(()));
        let state = JobLogState { log: RingLog::new(JOB_LOG_CAPACITY), decoders: Default::default() };
        Self { state: Mutex::new(state), exit, updates }
    }

    fn lock(&self) -> MutexGuard<'_, JobLogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is output from `cursor` on, the job has ended, or `moment` is reached.
    async fn wait(&self, cx: &OpContext, cursor: u64, moment: Instant) {
        let mut updates = self.updates.subscribe();
        let progress = async {
            // The change is marked as seen before the log is checked, so no update is lost in between.
            while self.lock().log.end() == cursor && self.exit.borrow().is_none() {
                if updates.changed().await.is_err() {
                    return;
                }
            }
        };
        select(pin!(progress), pin!(wait_for_cancel(cx, Some(moment)))).await;
    }
}

impl OutputSink for JobLogSink {
    fn write(&self, output: OutputStream, bytes: &[u8]) {
        let mut state = self.lock();
        let decoded = state.decoders[output as usize].decode(bytes);
        state.log.push(&decoded);
        drop(state);
        self.updates.send_replace(());
    }

    fn finish(&self, exit: ScriptExit) {
        let mut response = ExecuteResponse::default();
        response.duration = exit.duration;
        if let ExitCause::Failed(error) = &exit.cause {
            self.write(OutputStream::Stderr, format!("bash: {}\n", error.for_model()).as_bytes());
            response.signal = Some(SIGKILL);
        } else if let Err(error) = exit.cause.apply_to(&mut response) {
            self.write(OutputStream::Stderr, error.for_model().as_bytes());
        }
        let mut state = self.lock();
        for output in [OutputStream::Stdout, OutputStream::Stderr] {
            let rest = state.decoders[output as usize].finish();
            state.log.push(&rest);
        }
        state.log.set_exit(response.exit());
        drop(state);
        self.exit.send_replace(Some(response.exit()));
        self.updates.send_replace(());
    }
}
