//! Commands in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::Utc;
use futures::future::{Either, select};
use std::pin::pin;
use tokio::sync::watch;
use vfs_core::output::{RingLog, Utf8StreamDecoder};
use vfs_core::timer::Timer;
use vfs_core::{
    CancelToken, CommandExit, Error, ErrorKind, ExecuteRequest, ExecuteResponse, Job, JobId, JobOutput,
    JobOutputRequest, OpContext, Result, VfsPath,
};

use crate::backend::Inner;
use crate::run::{Audience, Ended, How, Output, Running, SIGKILL, start};
use crate::stop::{Reason, Stop};

/// How many commands that ended are remembered for each actor and session, so that nobody's are forgotten for others'.
const MAX_ENDED: usize = 64;

/// How much of the output of each is kept.
const MAX_KEPT: usize = 1 << 20;

/// The commands in the background of one shell. Each is known to those of its actor and session alone.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    last: u64,
    jobs: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    actor: Option<String>,
    session: Option<String>,
    logged: Arc<Logged>,
    running: Running,
}

/// What a command in the background has printed, and how it ended.
#[derive(Debug)]
struct Logged {
    text: Mutex<Text>,
    exit: watch::Sender<Option<CommandExit>>,
    /// Changes whenever something is printed.
    printed: watch::Sender<()>,
}

#[derive(Debug)]
struct Text {
    log: RingLog,
    decoders: [Utf8StreamDecoder; 2],
}

impl Inner {
    /// Starts a command in the background.
    pub(crate) fn start_job(self: &Arc<Self>, cx: &OpContext, req: ExecuteRequest) -> Result<ExecuteResponse> {
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let message = "as many commands run as may; wait for one, or stop one";
            Error::new(ErrorKind::Busy, message).with_path(&req.cwd)
        })?;
        let moment = req.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let end = moment.map(|moment| (moment, Reason::Timeout));
        let stop = Arc::new(Stop::new(CancelToken::new()));
        let (cx, command) = (cx.for_cleanup(), req.command.clone());
        let logged = Arc::new(Logged::new());
        let starting = self.starting(&cx, req, stop, permit, end);
        let running = start(self, starting, Arc::clone(&logged) as Arc<dyn Audience>)?;
        let mut response = ExecuteResponse::default();
        response.job = Some(self.jobs.add(&cx, command, logged, running));
        Ok(response)
    }
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, cx: &OpContext, command: String, logged: Arc<Logged>, running: Running) -> JobId {
        let mut known = self.lock();
        known.last += 1;
        let number = known.last;
        let id = JobId::new(format!("job-{number}"));
        let job = Job::new(id.clone(), command, Utc::now());
        let (actor, session) = (cx.actor().map(str::to_owned), cx.session().map(str::to_owned));
        known.jobs.insert(number, Entry { job, actor, session, logged, running });
        let ended = known.jobs.iter().filter(|(_, entry)| entry.is_of(cx) && entry.exit().is_some());
        let ended: Vec<_> = ended.map(|(number, _)| *number).collect();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        for number in &ended[..surplus] {
            known.jobs.remove(number);
        }
        id
    }

    pub(crate) fn list(&self, cx: &OpContext) -> Vec<Job> {
        self.lock().jobs.values().filter(|entry| entry.is_of(cx)).map(Entry::job).collect()
    }

    fn find<T>(&self, cx: &OpContext, id: &JobId, found: impl FnOnce(&Entry) -> T) -> Result<T> {
        let known = self.lock();
        let entry = known.jobs.values().find(|entry| entry.job.id == *id && entry.is_of(cx));
        entry.map(found).ok_or_else(|| {
            let message = "no command in the background has this id; list them to see which there are";
            Error::new(ErrorKind::NotFound, message).with_path(&VfsPath::root())
        })
    }

    pub(crate) async fn output(&self, cx: &OpContext, req: JobOutputRequest) -> Result<JobOutput> {
        cx.check()?;
        let logged = self.find(cx, &req.id, |entry| Arc::clone(&entry.logged))?;
        if let Some(moment) = req.wait.and_then(|wait| Instant::now().checked_add(wait)) {
            logged.wait(cx, req.cursor, moment).await;
            cx.check()?;
        }
        logged.text().log.read(req.cursor, req.max_bytes.unwrap_or(ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES))
    }

    pub(crate) async fn stop(&self, cx: &OpContext, id: &JobId) -> Result<Job> {
        let logged = self.find(cx, id, |entry| {
            if entry.exit().is_none() {
                entry.running.stop.now(Reason::Stopped);
            }
            Arc::clone(&entry.logged)
        })?;
        let mut exit = logged.exit.subscribe();
        // The sender is held here, so this ends with an exit.
        let ended = pin!(exit.wait_for(Option::is_some));
        if let Either::Right(_) = select(ended, pin!(wanted(cx, None))).await {
            cx.check()?;
        }
        self.find(cx, id, Entry::job)
    }
}

/// Waits until nobody wants the answer any more, or until `moment`.
async fn wanted(cx: &OpContext, moment: Option<Instant>) {
    let token = cx.cancel_token().child();
    let moment = moment.into_iter().chain(cx.deadline()).min();
    let rung = token.clone();
    let _alarm = moment.map(|moment| Timer::set(moment, move || rung.cancel()));
    token.cancelled().await;
}

impl Entry {
    fn is_of(&self, cx: &OpContext) -> bool {
        self.actor.as_deref() == cx.actor() && self.session.as_deref() == cx.session()
    }

    fn exit(&self) -> Option<CommandExit> {
        *self.logged.exit.borrow()
    }

    fn job(&self) -> Job {
        let mut job = self.job.clone();
        job.exit = self.exit();
        job
    }
}

impl Logged {
    fn new() -> Self {
        let (exit, printed) = (watch::Sender::new(None), watch::Sender::new(()));
        let text = Text { log: RingLog::new(MAX_KEPT), decoders: Default::default() };
        Self { text: Mutex::new(text), exit, printed }
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something from `cursor` on, or the end, at most until `moment`.
    async fn wait(&self, cx: &OpContext, cursor: u64, moment: Instant) {
        let mut printed = self.printed.subscribe();
        let news = async {
            // Marked as seen before it is looked at, so that nothing is missed between the two.
            while self.text().log.end() == cursor && self.exit.borrow().is_none() {
                if printed.changed().await.is_err() {
                    return;
                }
            }
        };
        select(pin!(news), pin!(wanted(cx, Some(moment)))).await;
    }
}

impl Audience for Logged {
    fn printed(&self, output: Output, bytes: &[u8]) {
        let mut text = self.text();
        let decoded = text.decoders[output as usize].decode(bytes);
        text.log.push(&decoded);
        drop(text);
        self.printed.send_replace(());
    }

    fn ended(&self, ended: Ended) {
        let mut response = ExecuteResponse::default();
        response.duration = ended.duration;
        if let How::Failed(error) = &ended.how {
            self.printed(Output::Error, format!("bash: {}\n", error.for_model()).as_bytes());
            response.signal = Some(SIGKILL);
        } else if let Err(error) = ended.how.tell(&mut response) {
            self.printed(Output::Error, error.for_model().as_bytes());
        }
        let mut text = self.text();
        for output in [Output::Standard, Output::Error] {
            let left = text.decoders[output as usize].finish();
            text.log.push(&left);
        }
        text.log.set_exit(response.exit());
        drop(text);
        self.exit.send_replace(Some(response.exit()));
        self.printed.send_replace(());
    }
}
