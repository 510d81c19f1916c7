//! Termination of resistant commands, and bounded memory for any amount of output.
//!
//! Commands are terminated by a timeout, a cancelled call, a dropped call or stream, and the death of the serving process.
//! Some trials run in processes of their own, which execute this program again. `VFS_ENDS_RUNS` sets the number of runs
//! (default 216), and `VFS_ENDS_BYTES` the amount of output printed through bounded memory (default 1,000,000,000).

#![allow(clippy::disallowed_methods, reason = "processes are looked at from outside")]
#![expect(clippy::print_stdout, reason = "the measurements are part of the report of this test")]

mod commands;
mod marked;
mod served;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;
use vfs_core::{CancelToken, ErrorKind, ExecuteEvent, ExecuteRequest, OpContext, Shell as _, StreamingShell as _};
use vfs_shell::{Limits, LocalShellBackend, ShellConfig};

use commands::{COMMANDS, Command};
use marked::Mark;

/// Time limit for one event, such as the end of a call or of its processes. Without termination each command would run for
/// more than a quarter of an hour.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeouts and deadlines of a command, tried in turn until it has begun before it is terminated. On an idle machine the
/// first is enough.
const TIMES: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(40)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, rest @ ..] = &arguments[..]
        && let Some(code) = served::perform(first, rest)
    {
        return code;
    }
    let runs = std::env::var("VFS_ENDS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(216_usize);
    let times = runs.div_ceil(COMMANDS.len() * ENDINGS.len());
    let mut trials = Vec::new();
    for command in COMMANDS {
        for &(name, ending) in ENDINGS {
            let trial = Trial::test(format!("ends::{}::by_{name}", command.name), move || {
                (0..times).try_for_each(|_| ends(command, ending))
            });
            trials.push(command.ignored_where_it_cannot_run(trial));
        }
    }
    trials.extend(served::trials());
    let mut arguments = Arguments::from_args();
    // One at a time: each trial checks all children of this process.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Cause of the termination.
#[derive(Clone, Copy)]
enum Ending {
    Timeout,
    Deadline,
    Cancel,
    Drop,
    DropStream,
    StreamTimeout,
}

const ENDINGS: &[(&str, Ending)] = &[
    ("timeout", Ending::Timeout),
    ("deadline", Ending::Deadline),
    ("cancel", Ending::Cancel),
    ("drop", Ending::Drop),
    ("dropped_stream", Ending::DropStream),
    ("timeout_of_a_stream", Ending::StreamTimeout),
];

struct Place {
    directory: TempDir,
    backend: LocalShellBackend,
}

fn place(limits: Limits) -> Place {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let backend = LocalShellBackend::open(directory.path(), ShellConfig::new().limits(limits)).expect("it is there");
    Place { directory, backend }
}

fn ends(command: &'static Command, ending: Ending) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    for time in TIMES {
        let run = Run { command, mark: Mark::new(), place: place(command.limits()), time };
        let has_begun = runtime.block_on(async {
            let ended = tokio::time::timeout(time + 2 * HANG_TIMEOUT, run.end(ending)).await;
            ended.map_err(|_| Failed::from("the call goes on after its end has come"))?
        })?;
        run.mark.wait_until_gone()?;
        marked::wait_until_childless()?;
        if has_begun {
            return Ok(());
        }
    }
    Err("it does not begin".into())
}

/// One run of a command.
struct Run {
    command: &'static Command,
    mark: Mark,
    place: Place,
    time: Duration,
}

impl Run {
    /// Runs the command until it is terminated: after its timeout or, for causes without one, once all of it runs. Returns
    /// whether it had begun by then.
    async fn end(&self, ending: Ending) -> Result<bool, Failed> {
        let shell = self.place.backend.shell();
        let request = ExecuteRequest::new(self.command.script).env(self.mark.name(), "1");
        match ending {
            Ending::Timeout => {
                let answer = shell.execute(&OpContext::new(), request.timeout(self.time)).await;
                match answer {
                    Err(error) if error.kind() == ErrorKind::Unavailable => Ok(false),
                    answer => {
                        let response = answer?;
                        has_begun(&response.output, response.timed_out)
                    }
                }
            }
            Ending::Deadline => {
                let error = shell.execute(&OpContext::new().with_timeout(self.time), request).await;
                ended_by(error.err(), ErrorKind::Timeout)?;
                Ok(self.has_marked())
            }
            Ending::Cancel => {
                let cancel = CancelToken::new();
                let cx = OpContext::new().with_cancel_token(cancel.clone());
                let cancelled = async {
                    let runs = self.runs().await;
                    cancel.cancel();
                    runs
                };
                let (answer, runs) = tokio::join!(shell.execute(&cx, request), cancelled);
                runs?;
                ended_by(answer.err(), ErrorKind::Cancelled)?;
                Ok(true)
            }
            Ending::Drop => {
                let cx = OpContext::new();
                tokio::select! {
                    answer = shell.execute(&cx, request) => Err(format!("it ended by itself: {answer:?}").into()),
                    runs = self.runs() => runs.map(|()| true),
                }
            }
            Ending::DropStream => {
                let mut events = shell.execute_stream(OpContext::new(), request);
                events.next().await.ok_or("an item")??;
                let taking = async { while events.next().await.is_some() {} };
                tokio::select! {
                    () = taking => Err("it ended by itself".into()),
                    runs = self.runs() => runs.map(|()| true),
                }
            }
            Ending::StreamTimeout => {
                let mut events = shell.execute_stream(OpContext::new(), request.timeout(self.time));
                let mut text = String::new();
                let mut last = None;
                while let Some(event) = events.next().await {
                    match &event {
                        Ok(ExecuteEvent::Stdout(piece)) if text.len() < 100 => text.push_str(piece),
                        Err(error) if error.kind() == ErrorKind::Unavailable => return Ok(false),
                        _ => {}
                    }
                    last = Some(event?);
                }
                let Some(ExecuteEvent::Exit(exit)) = last else {
                    return Err(format!("the last item is {last:?}").into());
                };
                has_begun(&text, exit.timed_out)
            }
        }
    }

    fn has_marked(&self) -> bool {
        self.place.directory.path().join("begun").exists()
    }

    /// Waits until all processes of the command run.
    async fn runs(&self) -> Result<(), Failed> {
        let end = Instant::now() + HANG_TIMEOUT;
        while !self.has_marked() || self.mark.living().len() < self.command.processes {
            if Instant::now() > end {
                return Err(format!("it has not begun after {HANG_TIMEOUT:?}: {:?}", self.mark.living()).into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// Returns whether a command that timed out had printed its first line.
fn has_begun(output: &str, timed_out: bool) -> Result<bool, Failed> {
    let has_begun = output.starts_with("begun\n");
    if timed_out && (has_begun || output.is_empty()) {
        return Ok(has_begun);
    }
    let output: String = output.chars().take(200).collect();
    Err(format!("timed out: {timed_out}, and it printed {output:?}").into())
}

fn ended_by(error: Option<vfs_core::Error>, kind: ErrorKind) -> Result<(), Failed> {
    match error {
        Some(error) if error.kind() == kind => Ok(()),
        other => Err(format!("it ended with {other:?}").into()),
    }
}
