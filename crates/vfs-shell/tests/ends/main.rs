//! Commands that do not want to end, do: by a timeout, a cancelled call, a dropped call or stream, and the death of the
//! process that serves them. And what they print, however much, takes no memory.
//!
//! Some of it is done by processes of their own: this program again. `VFS_ENDS_RUNS` sets how many runs there are in all
//! (default 216), and `VFS_ENDS_BYTES` how much is printed through bounded memory (default 1,000,000,000).

#![allow(clippy::disallowed_methods, reason = "processes are looked at from outside")]
#![expect(clippy::print_stdout, reason = "what was measured is part of what this test tells")]

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

/// How long a call may take after its end has come.
const RETURNS_WITHIN: Duration = Duration::from_millis(500);

/// How long any of its processes may live after that.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How long a command runs before its end comes.
const RUNS_FOR: Duration = Duration::from_millis(250);

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
    // One at a time: each measures.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// How its end comes.
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
    let mark = Mark::new();
    let place = place(command.limits());
    let request = ExecuteRequest::new(command.script).env(mark.name(), "1");
    let late = runtime.block_on(run(&place.backend, request, ending))?;
    let ended = Instant::now();
    mark.wait_until_gone(ended + GONE_WITHIN)?;
    marked::wait_until_childless(ended + GONE_WITHIN)?;
    if late > RETURNS_WITHIN {
        return Err(format!("it returned {late:?} after its end").into());
    }
    Ok(())
}

/// Runs it, and tells how long after its end the call returned.
async fn run(backend: &LocalShellBackend, request: ExecuteRequest, ending: Ending) -> Result<Duration, Failed> {
    let shell = backend.shell();
    let started = Instant::now();
    let due = started + RUNS_FOR;
    match ending {
        Ending::Timeout => {
            let response = shell.execute(&OpContext::new(), request.timeout(RUNS_FOR)).await?;
            let late = due.elapsed();
            has_begun(&response.output, response.timed_out)?;
            Ok(late)
        }
        Ending::Deadline => {
            let error = shell.execute(&OpContext::new().with_deadline(due), request).await;
            let late = due.elapsed();
            ended_by(error.err(), ErrorKind::Timeout)?;
            Ok(late)
        }
        Ending::Cancel => {
            let cancel = CancelToken::new();
            let cx = OpContext::new().with_cancel_token(cancel.clone());
            let cancelled = async {
                tokio::time::sleep(RUNS_FOR).await;
                cancel.cancel();
                Instant::now()
            };
            let (error, at) = tokio::join!(
                async {
                    let answer = shell.execute(&cx, request).await;
                    (answer.err(), Instant::now())
                },
                cancelled
            );
            let (error, returned) = error;
            ended_by(error, ErrorKind::Cancelled)?;
            Ok(returned - at)
        }
        Ending::Drop => {
            let cx = OpContext::new();
            let call = shell.execute(&cx, request);
            let dropped = tokio::time::timeout(RUNS_FOR, call).await;
            if let Ok(answer) = dropped {
                return Err(format!("it ended by itself: {answer:?}").into());
            }
            Ok(due.elapsed())
        }
        Ending::DropStream => {
            let mut events = shell.execute_stream(OpContext::new(), request);
            events.next().await.ok_or("an item")??;
            let taking = async { while events.next().await.is_some() {} };
            let dropped = tokio::time::timeout(RUNS_FOR, taking).await;
            if dropped.is_ok() {
                return Err("it ended by itself".into());
            }
            let at = Instant::now();
            drop(events);
            Ok(at.elapsed())
        }
        Ending::StreamTimeout => {
            let mut events = shell.execute_stream(OpContext::new(), request.timeout(RUNS_FOR));
            let mut text = String::new();
            let mut last = None;
            while let Some(event) = events.next().await {
                last = Some(event?);
                if let Some(ExecuteEvent::Stdout(piece)) = &last
                    && text.len() < 100
                {
                    text.push_str(piece);
                }
            }
            let late = due.elapsed();
            let Some(ExecuteEvent::Exit(exit)) = last else { return Err(format!("the last item is {last:?}").into()) };
            has_begun(&text, exit.timed_out)?;
            Ok(late)
        }
    }
}

fn has_begun(output: &str, timed_out: bool) -> Result<(), Failed> {
    let begun = output.starts_with("begun\n");
    if begun && timed_out {
        return Ok(());
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
