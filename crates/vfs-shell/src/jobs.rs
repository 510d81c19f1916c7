//! Commands in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::sleep_until;
use vfs_core::output::RingLog;
use vfs_core::{
    CancelToken, CommandExit, Error, ErrorKind, ExecuteRequest, Job, JobId, JobOutput, JobOutputRequest, OpContext,
    Result,
};

use crate::config::ShellConfig;
use crate::process::Control;
use crate::running::Running;

/// The jobs of a shell, by their numbers. When dropped, all are ended.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// How many are being started.
    starting: usize,
    jobs: BTreeMap<u64, Arc<Background>>,
}

impl State {
    /// Forgets the oldest of the jobs that have ended and that `is_meant` is true of, but for so many.
    fn forget(&mut self, kept: usize, is_meant: impl Fn(&Background) -> bool) {
        let ended = self.jobs.iter().filter(|(_, job)| job.exit().is_some() && is_meant(job));
        let ended: Vec<_> = ended.map(|(&number, _)| number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(kept)) {
            self.jobs.remove(number);
        }
    }
}

/// Room for one more job.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    jobs: &'a Jobs,
    kept: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.jobs.lock().starting -= 1;
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in self.lock().jobs.values() {
            job.control.end();
        }
    }
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more, unless there are too many.
    pub(crate) fn room(&self, config: &ShellConfig) -> Result<Room<'_>> {
        let mut state = self.lock();
        let running = state.jobs.values().filter(|job| job.exit().is_none()).count();
        if running + state.starting >= config.max_jobs {
            let message = "as many commands run in the background as may; stop one of yours, or wait for one to end";
            return Err(Error::new(ErrorKind::QuotaExceeded, message));
        }
        state.starting += 1;
        Ok(Room { jobs: self, kept: config.kept_jobs })
    }

    /// All that the caller knows, the oldest first.
    pub(crate) fn list(&self, cx: &OpContext) -> Vec<Job> {
        let state = self.lock();
        state.jobs.iter().filter(|(_, job)| job.owner.is(cx)).map(|(&number, job)| job.describe(number)).collect()
    }

    /// The caller's job that is called `id`, and its number.
    pub(crate) fn find(&self, cx: &OpContext, id: &JobId) -> Result<(u64, Arc<Background>)> {
        let state = self.lock();
        let number = id.as_str().strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        let job = number.and_then(|number| Some((number, Arc::clone(state.jobs.get(&number)?))));
        // Only as it is written: `job-01` is no other name of `job-1`.
        job.filter(|(number, job)| name(*number) == *id && job.owner.is(cx)).ok_or_else(|| {
            let id: String = id.as_str().chars().take(64).collect();
            Error::new(ErrorKind::NotFound, format!("there is no job {id:?}, or it ended long ago; list the jobs"))
        })
    }
}

impl Room<'_> {
    /// Takes the room for a command that has been started.
    pub(crate) fn take(self, job: Arc<Background>) -> JobId {
        let mut state = self.jobs.lock();
        state.last += 1;
        let (number, owner) = (state.last, job.owner.clone());
        state.jobs.insert(number, job);
        state.forget(self.kept, |other| other.owner == owner);
        state.forget(MOST_ENDED, |_| true);
        name(number)
    }
}

/// Most jobs that have ended and are still known, whoever started them.
const MOST_ENDED: usize = 512;

const PREFIX: &str = "job-";

fn name(number: u64) -> JobId {
    JobId::new(format!("{PREFIX}{number}"))
}

/// A command in the background.
#[derive(Debug)]
pub(crate) struct Background {
    owner: Owner,
    command: String,
    since: DateTime<Utc>,
    control: Arc<Control>,
    stop: CancelToken,
    printed: Mutex<RingLog>,
    /// Told of everything that is printed, and of the end.
    news: watch::Sender<()>,
}

/// Who started a job. Nobody else knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    actor: Option<String>,
    session: Option<String>,
}

impl Owner {
    fn of(cx: &OpContext) -> Self {
        Self { actor: cx.actor().map(str::to_owned), session: cx.session().map(str::to_owned) }
    }

    fn is(&self, cx: &OpContext) -> bool {
        self.actor.as_deref() == cx.actor() && self.session.as_deref() == cx.session()
    }
}

/// Says that a job ended, however its task does.
struct Ends(Arc<Background>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.printed().set_exit(CommandExit::default());
        self.0.news.send_replace(());
    }
}

impl Background {
    /// A job for what `running` runs, which `stop` ends.
    pub(crate) fn new(
        cx: &OpContext,
        req: &ExecuteRequest,
        running: &Running,
        stop: CancelToken,
        config: &ShellConfig,
    ) -> Arc<Self> {
        Arc::new(Self {
            owner: Owner::of(cx),
            command: req.command.clone(),
            since: Utc::now(),
            control: running.control(),
            stop,
            printed: Mutex::new(RingLog::new(config.job_output_bytes)),
            news: watch::Sender::new(()),
        })
    }

    /// Sees a command to its end.
    pub(crate) async fn run(self: Arc<Self>, mut running: Running) {
        let ends = Ends(self);
        let job = &ends.0;
        loop {
            match running.next().await {
                Ok(Some((_, text))) => job.printed().push(&text),
                Ok(None) => break,
                // There is nobody to hand it to but those who read the output.
                Err(error) => {
                    job.printed().push(&format!("\n{}\n", error.for_model()));
                    break;
                }
            }
            job.news.send_replace(());
        }
        if let Ok((response, _)) = running.outcome() {
            job.printed().set_exit(response.exit());
        }
        drop(running);
    }

    fn printed(&self) -> MutexGuard<'_, RingLog> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exit(&self) -> Option<CommandExit> {
        self.printed().exit()
    }

    /// What is known of it.
    pub(crate) fn describe(&self, number: u64) -> Job {
        let mut job = Job::new(name(number), &self.command, self.since);
        job.exit = self.exit();
        job
    }

    /// What it printed from the request's cursor on, once there is something, or it ended, or it was waited for long enough.
    pub(crate) async fn output(&self, cx: &OpContext, req: &JobOutputRequest) -> Result<JobOutput> {
        let most = req.max_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES);
        let until = req.wait.and_then(|wait| Instant::now().checked_add(wait));
        let mut news = self.news.subscribe();
        loop {
            cx.check()?;
            let output = self.printed().read(req.cursor, most)?;
            let is_late = match (req.wait, until) {
                (None, _) => true,
                (Some(_), until) => until.is_some_and(|until| until <= Instant::now()),
            };
            if !output.output.is_empty() || output.exit.is_some() || is_late {
                return Ok(output);
            }
            wait(cx, until, &mut news).await;
        }
    }

    /// Has all its processes ended, and waits until they are gone.
    pub(crate) async fn end(&self, cx: &OpContext) -> Result<()> {
        let mut news = self.news.subscribe();
        self.stop.cancel();
        while self.exit().is_none() {
            cx.check()?;
            wait(cx, None, &mut news).await;
        }
        Ok(())
    }
}

/// Waits for news, until then, and as `cx` allows.
async fn wait(cx: &OpContext, until: Option<Instant>, news: &mut watch::Receiver<()>) {
    let until = [until, cx.deadline()].into_iter().flatten().min();
    let clock = async {
        match until {
            Some(until) => sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The sender lives as long as the job, which the caller holds.
        _ = news.changed() => {}
        () = cx.cancel_token().cancelled() => {}
        () = clock => {}
    }
}
