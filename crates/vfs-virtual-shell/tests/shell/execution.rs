//! Requests: working directory, input, exit and output.

use std::sync::Arc;
use std::time::Duration;

use vfs_core::shell::{JobOutputRequest, StopJobRequest};
use vfs_core::{Backend as _, BackendExt, CancelToken, ErrorKind, ExecuteRequest, OpContext, Shell as _};

use crate::support::{HANG_TIMEOUT, TIMES, execute, in_memory, path, run};

#[tokio::test]
async fn a_command_runs_in_its_working_directory() {
    let files = in_memory();
    files.create_text("/src/a", "x").await.expect("a new file");
    let at = |at: &str| ExecuteRequest::new("pwd; ls").cwd(path(at));
    assert_eq!(execute(&files, at("/src")).await.expect("it runs").stdout, "/src\na\n");
    assert_eq!(execute(&files, at("/none")).await.expect_err("nothing there").kind(), ErrorKind::NotFound);
    assert_eq!(execute(&files, at("/src/a")).await.expect_err("a file").kind(), ErrorKind::NotADirectory);
    let error = execute(&files, ExecuteRequest::new(" ")).await.expect_err("nothing to run");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_command_reads_its_standard_input() {
    let files = in_memory();
    let request = ExecuteRequest::new("read -r first; echo \"<$first>\"; cat").stdin("one\ntwo\nthree");
    assert_eq!(execute(&files, request).await.expect("it runs").stdout, "<one>\ntwo\nthree");
    assert_eq!(run(&files, "cat; read x; echo $?").await.stdout, "1\n");
}

#[tokio::test]
async fn outputs_are_returned_separately_and_combined() {
    let files = in_memory();
    let answer = run(&files, "echo a; echo b >&2; echo c; { echo d >&2; echo e; }; exit 5").await;
    assert_eq!(answer.output, "a\nb\nc\nd\ne\n");
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("a\nc\ne\n", "b\nd\n"));
    assert_eq!((answer.exit_code, answer.signal, answer.timed_out), (Some(5), None, false));
    assert_eq!((answer.truncated, answer.output_bytes), (false, 10));
}

#[tokio::test]
async fn long_output_keeps_its_head_and_tail() {
    let files = in_memory();
    let request = ExecuteRequest::new("seq 100000").max_output_bytes(1_000).keep_full_output();
    let answer = execute(&files, request).await.expect("it runs");
    assert!(answer.truncated && answer.stdout.len() <= 1_000 + 64, "{}", answer.stdout.len());
    assert!(answer.stdout.starts_with("1\n2\n") && answer.stdout.ends_with("99999\n100000\n"), "{}", answer.stdout);
    assert_eq!(answer.output_bytes, 588_895);
    let full = answer.full_output.expect("a file");
    assert_eq!(files.stat_path(full.as_str()).await.expect("it is there").size, 588_895);
    assert!(files.read_text(full.as_str()).await.expect("text").ends_with("\n100000\n"));
}

/// Attempts for a command whose background process has a fixed time to print its output, which may be too short on a busy
/// machine.
const ATTEMPTS: usize = 5;

#[tokio::test]
async fn background_processes_do_not_delay_the_response() {
    let files = in_memory();
    for (command, stdout, code) in [
        ("sleep 1000 & echo begun", "begun\n", 0),
        ("(sleep 1000; echo late) & echo begun; false", "begun\n", 1),
        ("sleep 1000 & exit 4", "", 4),
        ("echo quick & echo begun", "begun\nquick\n", 0),
        ("sleep 0.02 && echo waited & wait; echo done", "waited\ndone\n", 0),
        ("echo a\\", "a\\\n", 0),
        ("echo x & # a comment", "x\n", 0),
        ("true &", "", 0),
        // An appended `exit` must not repair an incomplete command.
        ("echo hi &&", "", 2),
        ("echo hi & ||", "", 2),
        ("sleep 1000 & (", "", 2),
    ] {
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let mut lines = Vec::new();
        for _ in 0..ATTEMPTS {
            let answer = execute(&files, ExecuteRequest::new(command).timeout(HANG_TIMEOUT)).await.expect("an answer");
            assert_eq!((answer.exit_code, answer.timed_out), (Some(code), false), "{command}: {answer:?}");
            lines = sorted(&answer.stdout);
            if lines == sorted(stdout) {
                break;
            }
        }
        assert_eq!(lines, sorted(stdout), "{command}");
    }
}

#[tokio::test]
async fn a_timeout_keeps_the_output_so_far() {
    let files = in_memory();
    for command in
        ["echo before; sleep 1000; echo after", "echo before; while :; do :; done", "echo before; sleep 1000 & wait"]
    {
        let mut printed = String::new();
        for time in TIMES {
            let call = execute(&files, ExecuteRequest::new(command).timeout(time));
            let answer = tokio::time::timeout(time + HANG_TIMEOUT, call).await.expect("it is ended");
            let answer = answer.expect("an answer");
            assert_eq!((answer.timed_out, answer.exit_code), (true, None), "{command}");
            printed = answer.stdout;
            if !printed.is_empty() {
                break;
            }
        }
        assert_eq!(printed, "before\n", "{command}");
    }
}

#[tokio::test]
async fn cancellation_and_deadline_end_a_command() {
    let files = in_memory();
    for command in ["sleep 100; echo x > late", "while :; do :; done; echo x > late"] {
        let token = CancelToken::new();
        let cx = OpContext::new().with_cancel_token(token.clone());
        let (answer, ()) = futures::join!(files.execute(&cx, ExecuteRequest::new(command)), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            token.cancel();
        });
        assert_eq!(answer.expect_err("cancelled").kind(), ErrorKind::Cancelled, "{command}");
        let cx = OpContext::new().with_timeout(Duration::from_millis(100));
        let error = files.execute(&cx, ExecuteRequest::new(command)).await.expect_err("too late");
        assert_eq!(error.kind(), ErrorKind::Timeout, "{command}");
    }
    assert!(!files.exists("/late").await.expect("looked at"));
}

#[tokio::test(flavor = "multi_thread")]
async fn full_output_is_not_written_for_an_abandoned_call() {
    let files = in_memory();
    let request = || ExecuteRequest::new("echo before; sleep 100").keep_full_output();
    let cx = OpContext::new().with_timeout(Duration::from_millis(100));
    assert_eq!(files.execute(&cx, request()).await.expect_err("too late").kind(), ErrorKind::Timeout);
    let token = CancelToken::new();
    let cx = OpContext::new().with_cancel_token(token.clone());
    let (answer, ()) = futures::join!(files.execute(&cx, request()), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        token.cancel();
    });
    assert_eq!(answer.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    let dropped = tokio::time::timeout(Duration::from_millis(100), execute(&files, request())).await;
    assert!(dropped.is_err(), "{dropped:?}");
    assert!(!files.exists("/.vfs").await.expect("looked at"), "nobody was there for it");

    let mut expected = Vec::new();
    for time in TIMES {
        let answer = execute(&files, request().timeout(time)).await.expect("an answer");
        let full = answer.full_output.expect("what a timeout ends is kept");
        expected.push(files.read_text(full.as_str()).await.expect("it is there"));
        if answer.stdout == "before\n" {
            break;
        }
    }
    assert_eq!(expected.last().map(String::as_str), Some("before\n"));
    let cx = OpContext::new();
    let id = files.execute(&cx, request().background()).await.expect("it starts").job.expect("an id");
    let printed = files.job_output(&cx, JobOutputRequest::new(id.clone()).wait(HANG_TIMEOUT)).await.expect("output");
    assert_eq!(printed.output, "before\n");
    files.stop_job(&cx, StopJobRequest::new(id)).await.expect("stopped");
    expected.push("before\n".to_owned());
    // Full outputs of abandoned calls would exist by now as well.
    let kept = run(&files, "ls /.vfs/output | wc -l; cat /.vfs/output/*").await;
    assert_eq!(kept.stdout, format!("{}\n{}", expected.len(), expected.concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_touches_no_more_files() {
    let files = Arc::new(in_memory());
    let calls = Arc::clone(&files);
    let call = tokio::spawn(async move { run(&*calls, "while :; do echo x >> log; done").await });
    while !files.exists("/log").await.expect("looked at") {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.expect_err("aborted").is_cancelled());
    // One append may have been in progress; after two equal sizes there is no more.
    let mut size = None;
    for _ in 0..1_000 {
        let now = files.stat_path("/log").await.expect("it is there").size;
        tokio::time::sleep(Duration::from_millis(20)).await;
        if size.replace(now) == Some(now) {
            return;
        }
    }
    panic!("it goes on");
}

#[test]
fn a_command_runs_without_a_runtime() {
    let files = in_memory();
    let answer = futures::executor::block_on(run(&files, "sleep 0.01; echo done | tr a-z A-Z"));
    assert_eq!(answer.stdout, "DONE\n");
}

#[test]
fn a_command_runs_on_a_runtime_of_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = runtime.block_on(run(&in_memory(), "sleep 0.01; echo done | tr a-z A-Z"));
    assert_eq!(answer.stdout, "DONE\n");
}

#[tokio::test]
async fn file_operations_are_those_of_the_backend() {
    let files = in_memory();
    files.create_text("/a", "x").await.expect("a new file");
    assert_eq!(files.read_text("/a").await.expect("read"), "x");
    assert!(files.as_streaming_shell().is_some() && files.as_tree_provider().is_some());
    assert!(files.to_string().starts_with("virtual_shell("));
}
