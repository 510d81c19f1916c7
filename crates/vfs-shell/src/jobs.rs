//! Commands in the background.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::time::sleep_until;
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
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!("{running} commands run in the background already; stop one, or wait for one to end"),
            ));
        }
        state.starting += 1;
        Ok(Room { jobs: self, kept: config.kept_jobs })
    }

    /// All that are known, the oldest first.
    pub(crate) fn list(&self) -> Vec<Job> {
        self.lock().jobs.iter().map(|(&number, job)| job.describe(number)).collect()
    }

    /// The job that is called `id`, and its number.
    pub(crate) fn find(&self, id: &JobId) -> Result<(u64, Arc<Background>)> {
        let state = self.lock();
        let number = id.as_str().strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        let job = number.and_then(|number| Some((number, Arc::clone(state.jobs.get(&number)?))));
        // Only as it is written: `job-01` is no other name of `job-1`.
        job.filter(|&(number, _)| name(number) == *id).ok_or_else(|| {
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
        let number = state.last;
        state.jobs.insert(number, job);
        let ended: Vec<_> =
            state.jobs.iter().filter(|(_, job)| job.exit().is_some()).map(|(&number, _)| number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(self.kept)) {
            state.jobs.remove(number);
        }
        name(number)
    }
}

const PREFIX: &str = "job-";

fn name(number: u64) -> JobId {
    JobId::new(format!("{PREFIX}{number}"))
}

/// A command in the background.
#[derive(Debug)]
pub(crate) struct Background {
    command: String,
    since: DateTime<Utc>,
    control: Arc<Control>,
    stop: CancelToken,
    printed: Mutex<Printed>,
    /// Told of everything that is printed, and of the end.
    news: watch::Sender<()>,
}

/// The last part of what a job printed, and how it ended.
#[derive(Debug)]
struct Printed {
    text: VecDeque<u8>,
    most: usize,
    /// Bytes that are no longer kept.
    gone: u64,
    exit: Option<CommandExit>,
}

/// Says that a job ended, however its task does.
struct Ends(Arc<Background>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.printed().exit.get_or_insert_default();
        self.0.news.send_replace(());
    }
}

impl Background {
    /// A job for what `running` runs, which `stop` ends.
    pub(crate) fn new(req: &ExecuteRequest, running: &Running, stop: CancelToken, config: &ShellConfig) -> Arc<Self> {
        let printed = Printed { text: VecDeque::new(), most: config.job_output_bytes, gone: 0, exit: None };
        Arc::new(Self {
            command: req.command.clone(),
            since: Utc::now(),
            control: running.control(),
            stop,
            printed: Mutex::new(printed),
            news: watch::Sender::new(()),
        })
    }

    /// Sees a command to its end.
    pub(crate) async fn run(self: Arc<Self>, mut running: Running) {
        let ends = Ends(self);
        let job = &ends.0;
        loop {
            match running.next().await {
                Ok(Some((_, text))) => job.printed().push(text.as_bytes()),
                Ok(None) => break,
                // There is nobody to hand it to but those who read the output.
                Err(error) => {
                    job.printed().push(format!("\n{}\n", error.for_model()).as_bytes());
                    break;
                }
            }
            job.news.send_replace(());
        }
        if let Ok((response, _)) = running.outcome() {
            job.printed().exit = Some(response.exit());
        }
        drop(running);
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exit(&self) -> Option<CommandExit> {
        self.printed().exit
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
            let output = self.printed().from(req.cursor, most)?;
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

impl Printed {
    fn push(&mut self, bytes: &[u8]) {
        let over = (self.text.len() + bytes.len()).saturating_sub(self.most);
        let old = over.min(self.text.len());
        self.text.drain(..old);
        self.text.extend(bytes.iter().skip(over - old));
        self.gone += over as u64;
    }

    /// At most `most` bytes from `cursor` on, but at least a character where there is one and any is wanted.
    fn from(&self, cursor: u64, most: u64) -> Result<JobOutput> {
        let end = self.gone + self.text.len() as u64;
        if cursor > end {
            return Err(Error::invalid_argument(format!(
                "the cursor {cursor} is past the end; {end} bytes were printed so far"
            )));
        }
        let kept = self.text.iter().copied();
        let begin = usize::try_from(cursor.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        // What is kept, and any cursor that is not one of ours, may begin within a character.
        let begin = begin + kept.clone().skip(begin).take_while(|&byte| is_continuation(byte)).count();
        let mut length = usize::try_from(most).unwrap_or(usize::MAX).min(self.text.len() - begin);
        let starts = |at: usize| self.text.get(at).is_none_or(|&byte| !is_continuation(byte));
        while length > 0 && !starts(begin + length) {
            length -= 1;
        }
        if length == 0 && most > 0 && begin < self.text.len() {
            length = 1 + kept.clone().skip(begin + 1).take_while(|&byte| is_continuation(byte)).count();
        }
        let bytes: Vec<u8> = kept.skip(begin).take(length).collect();
        let first = self.gone + begin as u64;
        let mut output = JobOutput::default();
        output.output = String::from_utf8_lossy(&bytes).into_owned();
        output.missed_bytes = first - cursor;
        output.cursor = first + length as u64;
        output.exit = self.exit.filter(|_| output.cursor == end);
        Ok(output)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_finds_what_is_kept_and_tells_what_is_not() {
        let mut printed = Printed { text: VecDeque::new(), most: 8, gone: 0, exit: Some(CommandExit::default()) };
        for (push, cursor, most, expected) in [
            ("", 0, 10, ("", 0, 0, true)),
            ("abcd", 0, 10, ("abcd", 4, 0, true)),
            ("", 2, 10, ("cd", 4, 0, true)),
            ("", 4, 10, ("", 4, 0, true)),
            ("", 1, 2, ("bc", 3, 0, false)),
            ("", 0, 0, ("", 0, 0, false)),
            ("efgh", 4, 10, ("efgh", 8, 0, true)),
            ("ij", 0, 100, ("cdefghij", 10, 2, true)),
            ("ij", 10, 100, ("ij", 12, 0, true)),
            // 12 bytes so far; six of `ää🦀` and two before them are kept after the next.
            ("ää🦀", 12, 3, ("ä", 14, 0, false)),
            ("", 12, 1, ("ä", 14, 0, false)),
            ("", 13, 2, ("ä", 16, 1, false)),
            ("", 16, 2, ("🦀", 20, 0, true)),
            ("x", 0, 100, ("ä🦀x", 21, 14, true)),
        ] {
            printed.push(push.as_bytes());
            let output = printed.from(cursor, most).expect("within");
            let found = (output.output.as_str(), output.cursor, output.missed_bytes, output.exit.is_some());
            assert_eq!(found, expected, "{push} {cursor} {most}");
        }
        assert_eq!(printed.from(22, 1).expect_err("past the end").kind(), ErrorKind::InvalidArgument);
    }
}
