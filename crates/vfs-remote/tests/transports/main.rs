//! Transports: containers, SSH to a server of this machine, HTTP.
//!
//! A trial that needs a program which is missing shows as ignored, with the program's name.
#![expect(clippy::disallowed_methods, reason = "the tests check the effects of a script from outside")]

mod container;
mod engine;
#[cfg(feature = "http")]
mod http;
mod laws;
mod ssh;
mod sshd;

use std::future::Future;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use vfs_remote::{RemoteExec, RemoteExit, RemoteOutput, ScriptInvocation};

fn main() -> ExitCode {
    let mut trials = container::trials();
    trials.extend(engine::trials());
    trials.extend(ssh::trials());
    #[cfg(feature = "http")]
    trials.extend(http::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Creates a trial that runs in a runtime of its own.
fn trial<F>(name: String, missing: Option<&str>, body: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()>,
{
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.map_err(Failed::from)?.block_on(body());
        Ok(())
    };
    match missing {
        None => Trial::test(name, run),
        Some(program) => {
            Trial::test(name, run).with_kind(format!("ignored: {program} is missing")).with_ignored_flag(true)
        }
    }
}

/// Returns the path of a program, if it is installed.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// Time that a test waits for one event, so long that only a failing test reaches it, even on a busy machine.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeouts of a script whose end by time is checked, tried in turn until it got as far as it should before it was ended. On
/// an idle machine the first is enough. They are whole seconds, which is all that some services know.
const TIMES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(6), Duration::from_secs(40)];

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + HANG_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns whether a process has `word` among its arguments.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

/// Returns a number of seconds to sleep that no other test uses, by which the process is identified.
fn long_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{}{:03}", 1_000 + std::process::id() % 100_000, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Runs a script, which does not end by itself, for each of the [`TIMES`] until what it printed `is_enough`.
async fn timed_out(place: &dyn RemoteExec, script: &str, is_enough: impl Fn(&RemoteOutput) -> bool) -> RemoteOutput {
    let mut last = None;
    for time in TIMES {
        let mut invocation = ScriptInvocation::new(script);
        invocation.timeout = time;
        let answer = tokio::time::timeout(time + HANG_TIMEOUT, place.run(invocation)).await.expect("it is ended");
        match &answer {
            Ok(completed) => {
                assert_eq!(completed.exit, RemoteExit::TimedOut);
                if is_enough(completed) {
                    return completed.clone();
                }
            }
            // The script was not started in that time.
            Err(error) => assert_eq!(error.kind(), vfs_core::ErrorKind::Unavailable, "{error}"),
        }
        last = Some(answer);
    }
    panic!("{last:?}");
}

async fn run(place: &dyn RemoteExec, script: &str) -> RemoteOutput {
    place.run(ScriptInvocation::new(script)).await.expect("an answer")
}

fn exited(code: i32, stdout: &str, stderr: &str) -> RemoteOutput {
    RemoteOutput::new(RemoteExit::Exited(code), stdout.to_owned().into(), stderr.to_owned().into())
}

/// Makes a script file that can be run. Another process writes it: a child that this process forks at that moment would inherit the
/// file open for writing, and the kernel runs no such file.
fn write_program(path: &std::path::Path, text: &str) {
    use std::io::Write as _;
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("a shell");
    writer.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(writer.wait().expect("it ends").success(), "{}", path.display());
}

fn silent(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

type Place = Arc<dyn RemoteExec>;
