//! Trials in processes of their own: death of the serving process, and measurements of its memory.

use std::ffi::OsString;
use std::fs;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use libtest_mimic::{Failed, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use vfs_core::{ExecuteEvent, ExecuteRequest, OpContext, Shell as _, StreamingShell as _};
use vfs_shell::{CommandRunner, Limits, ShellConfig, SpawnSpec, Spawner};

use crate::marked::{self, Mark};
use crate::{Place, place};

/// Upper bound on the peak memory of a serving process, for any amount of output.
const MOST_MEMORY: u64 = 48_000_000;

/// Upper bound on the private memory of a supervisor, for any memory of the serving process.
const LIGHT: u64 = 4_000_000;
const BALLAST: usize = 200_000_000;

/// Commands whose serving process is killed, with the number of processes of each.
const SERVED: &[(&str, &str, usize)] = &[
    ("a_command", "sleep 1000; sleep 1000", 2),
    ("one_that_ignores_termination", "trap '' TERM HUP; sleep 1000; sleep 1000", 2),
    (
        "a_daemon",
        "(setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' >/dev/null 2>&1 &); sleep 1000; sleep 1000",
        4,
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(name, script, processes) in SERVED {
        for kind in ["call", "job"] {
            trials.push(Trial::test(format!("killed_while_it_serves::{name}::in_a_{kind}"), move || {
                killed(kind, script, processes)
            }));
        }
    }
    trials.push(Trial::test("killed_while_it_serves::one_that_is_not_the_program_yet", killed_early));
    trials.push(Trial::test("full_output::beyond_the_size_of_files_is_an_error", full_output_beyond_the_size_of_files));
    trials.push(Trial::test("a_supervisor_gives_back_what_it_does_not_need", light));
    for kind in ["execute", "execute_stream", "execute_into_a_file", "a_job"] {
        trials.push(Trial::test(format!("memory_is_bounded::{kind}"), move || memory(kind)));
    }
    trials
}

fn again(arguments: &[&str]) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn killed(kind: &str, script: &str, processes: usize) -> Result<(), Failed> {
    let mark = Mark::new();
    let mut serving = again(&["serve", kind, script, mark.name()]);
    let there = mark.wait_until_there(processes);
    let supervisors = marked::children_of(serving.id());
    let killed = serving.kill();
    serving.wait()?;
    killed?;
    there?;
    mark.wait_until_gone()?;
    assert_eq!(supervisors.len(), 1);
    marked::wait_until("its supervisor is left", || {
        supervisors.iter().filter(|pid| marked::lives(**pid)).map(u32::to_string).collect()
    })
}

/// Simulates a program on a file system that does not answer.
fn killed_early() -> Result<(), Failed> {
    let mut serving = again(&["hang"]);
    let programs =
        |supervisors: &[u32]| supervisors.iter().flat_map(|pid| marked::children_of(*pid)).collect::<Vec<_>>();
    let there = marked::wait_until("no program is started", || {
        let is_there = !programs(&marked::children_of(serving.id())).is_empty();
        if is_there { Vec::new() } else { vec!["nothing".to_owned()] }
    });
    let supervisors = marked::children_of(serving.id());
    let started = [programs(&supervisors), supervisors].concat();
    let killed = serving.kill();
    serving.wait()?;
    killed?;
    there?;
    marked::wait_until("it is left", || started.iter().filter(|pid| marked::lives(**pid)).map(u32::to_string).collect())
}

/// The limit on the size of files holds for a whole process, so the trial runs in one of its own.
fn full_output_beyond_the_size_of_files() -> Result<(), Failed> {
    let output = again(&["print-too-much"]).wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.starts_with("too_large") && text.contains("ulimit -f") {
        return Ok(());
    }
    Err(format!("{}: {text}", output.status).into())
}

/// Part of the trial that runs in the child process.
fn print_too_much() -> ExitCode {
    let (place, maximum) = (place(Limits::default()), getrlimit(Resource::Fsize).maximum);
    setrlimit(Resource::Fsize, Rlimit { current: Some(100_000), maximum }).expect("a limit can be lowered");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let request = ExecuteRequest::new("head -c 5000000 /dev/zero | tr '\\0' x").keep_full_output();
    let answer = runtime.block_on(place.backend.shell().execute(&OpContext::new(), request));
    let error = answer.expect_err("it prints too much");
    println!("{} {}", error.kind(), error.message());
    ExitCode::SUCCESS
}

fn light() -> Result<(), Failed> {
    let mark = Mark::new();
    let mut serving = again(&["serve", "large", "sleep 1000; sleep 1000", mark.name()]);
    let there = mark.wait_until_there(2);
    let supervisors = marked::children_of(serving.id());
    let result = marked::wait_until("its memory is still its own", || {
        let sizes = supervisors.iter().map(|pid| memory_of(&pid.to_string(), "RssAnon:"));
        sizes.filter(|&bytes| bytes > LIGHT).map(|bytes| bytes.to_string()).collect()
    });
    let killed = serving.kill();
    serving.wait()?;
    killed?;
    there?;
    assert_eq!(supervisors.len(), 1);
    result
}

fn memory(kind: &str) -> Result<(), Failed> {
    let bytes = std::env::var("VFS_ENDS_BYTES").unwrap_or_else(|_| "1000000000".to_owned());
    let output = again(&["print", kind, &bytes]).wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(printed)), Some(Ok(peak))) = (numbers.next(), numbers.next()) else {
        return Err(format!("unexpected output: {text:?}").into());
    };
    println!("{kind}: {printed} bytes printed, {peak} bytes of memory at the peak");
    if printed.to_string() == bytes && peak < MOST_MEMORY {
        Ok(())
    } else {
        Err(format!("{printed} bytes were printed, and {peak} bytes of memory taken").into())
    }
}

/// Runs the task that this program has as a child process.
pub(crate) fn perform(what: &str, arguments: &[String]) -> Option<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().ok()?;
    let place = place(Limits::default());
    match (what, arguments) {
        ("serve", [kind, script, mark]) => runtime.block_on(serve(&place, kind, script, mark)),
        ("hang", []) => {
            let commands = CommandRunner::new(Hanging, ShellConfig::new());
            runtime.block_on(commands.execute(&OpContext::new(), ExecuteRequest::new("true"))).expect("it runs");
        }
        ("print-too-much", []) => return Some(print_too_much()),
        ("print", [kind, bytes]) => {
            let printed = runtime.block_on(print(&place, kind, bytes));
            println!("{printed} {}", peak());
        }
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

/// Spawner whose process never executes the program.
#[derive(Debug)]
struct Hanging;

#[async_trait]
impl Spawner for Hanging {
    async fn prepare(
        &self,
        _: &OpContext,
        _: &ExecuteRequest,
        _: Vec<(OsString, OsString)>,
    ) -> vfs_core::Result<SpawnSpec> {
        let mut launch = SpawnSpec::new("/bin/sh", fs::File::open("/").expect("there is a root").into());
        launch.confine = Some(Arc::new(|| {
            let time = rustix::event::Timespec { tv_sec: 1000, tv_nsec: 0 };
            rustix::event::poll(&mut [], Some(&time))?;
            Ok(())
        }));
        Ok(launch)
    }
}

async fn serve(place: &Place, kind: &str, script: &str, mark: &str) {
    let ballast = vec![1_u8; if kind == "large" { BALLAST } else { 0 }];
    let request = ExecuteRequest::new(script).env(mark, "1");
    let request = if kind == "job" { request.background() } else { request };
    place.backend.shell().execute(&OpContext::new(), request).await.expect("it runs");
    std::future::pending::<()>().await;
    drop(ballast);
}

/// Runs a command that prints this many bytes, and returns how many arrived.
async fn print(place: &Place, kind: &str, bytes: &str) -> u64 {
    let request = ExecuteRequest::new(format!("head -c {bytes} /dev/zero")).timeout(Duration::from_secs(600));
    let (shell, cx) = (place.backend.shell(), OpContext::new());
    match kind {
        "execute" => shell.execute(&cx, request).await.expect("it runs").output_bytes,
        "execute_into_a_file" => {
            let request = ExecuteRequest::new(format!("head -c {bytes} /dev/zero | head -c 100000000"));
            let request = request.timeout(Duration::from_secs(600));
            let response = shell.execute(&cx, request.keep_full_output()).await.expect("it runs");
            let file = response.full_output.expect("requested");
            let file = place.directory.path().join(file.relative());
            let written = fs::metadata(file).expect("it is there").len();
            assert_eq!(written, response.output_bytes);
            bytes.parse::<u64>().expect("a number").max(written)
        }
        "execute_stream" => {
            let mut events = shell.execute_stream(cx, request);
            let mut printed = 0;
            while let Some(event) = events.next().await {
                match event.expect("no error") {
                    ExecuteEvent::Stdout(text) => printed += text.len() as u64,
                    ExecuteEvent::Exit(exit) => assert_eq!((exit.exit_code, exit.output_bytes), (Some(0), printed)),
                    other => panic!("{other:?}"),
                }
            }
            printed
        }
        _ => {
            let id = shell.execute(&cx, request.background()).await.expect("it runs").job.expect("a job");
            let mut cursor = 0;
            loop {
                let wait = vfs_core::shell::JobOutputRequest::new(id.clone()).from(cursor).wait(Duration::from_secs(1));
                let output = shell.job_output(&cx, wait).await.expect("the job exists");
                cursor = output.cursor;
                if output.exit.is_some() {
                    return cursor;
                }
            }
        }
    }
}

/// Returns the peak memory of this process in bytes.
fn peak() -> u64 {
    memory_of("self", "VmHWM:")
}

/// Returns one figure of the kernel about a process, in bytes.
fn memory_of(process: &str, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field exists");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number") * 1024
}
