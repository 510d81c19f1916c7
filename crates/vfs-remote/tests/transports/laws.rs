//! Laws of transports that start a client program.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use tempfile::TempDir;
use vfs_core::ErrorKind;
use vfs_remote::{RemoteExec, RemoteExit, RemoteOutput, RetainedOutputPart, ScriptInvocation};

use crate::{HANG_TIMEOUT, Place, exited, long_sleep, run, runs, timed_out, until};

type Law = fn(Place) -> BoxFuture<'static, ()>;

macro_rules! laws {
    ($($name:ident),+ $(,)?) => { &[$((stringify!($name), |place| Box::pin($name(place)))),+] };
}

/// Laws of any place that shares the files of this machine.
pub(crate) const ALL: &[(&str, Law)] = laws![
    an_exit_code_is_the_script_s,
    outputs_are_apart_and_byte_for_byte,
    input_of_any_size_arrives_whole,
    input_that_is_not_read_is_no_failure,
    a_script_arrives_as_it_is_written,
    a_script_of_the_largest_size_arrives,
    a_nul_byte_is_refused,
    an_output_over_the_limit_is_truncated_and_reported,
    a_process_left_behind_delays_no_caller,
    many_at_a_time_get_their_own_answers,
    a_timeout_keeps_what_was_printed_and_ends_the_script,
    a_call_that_is_dropped_ends_the_script,
    a_script_that_ignores_signals_is_ended_too,
    input_that_breaks_off_has_no_end,
    a_script_that_kills_its_group_is_no_answer,
    a_flood_passes_in_bounded_memory,
];

fn invocation(script: &str, stdin: impl Into<Bytes>) -> ScriptInvocation {
    let mut invocation = ScriptInvocation::new(script);
    invocation.stdin = stdin.into();
    invocation
}

async fn give(place: &dyn RemoteExec, script: &str, stdin: impl Into<Bytes>) -> RemoteOutput {
    place.run(invocation(script, stdin)).await.expect("an answer")
}

async fn an_exit_code_is_the_script_s(place: Place) {
    for code in [0, 1, 2, 7, 124, 125, 126, 127, 128, 130, 137, 254, 255] {
        assert_eq!(run(&*place, &format!("exit {code}")).await, exited(code, "", ""), "{place}");
    }
    assert_eq!(run(&*place, "").await, exited(0, "", ""));
    assert_eq!(run(&*place, "nosuchprogram 2>/dev/null").await, exited(127, "", ""));
    assert_eq!(run(&*place, "kill -9 $$").await, exited(137, "", ""));
}

async fn outputs_are_apart_and_byte_for_byte(place: Place) {
    assert_eq!(run(&*place, "printf out; printf err >&2; exit 3").await, exited(3, "out", "err"));
    assert_eq!(run(&*place, "printf '\\n\\n'; echo >&2").await, exited(0, "\n\n", "\n"));
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let answer = give(&*place, "cat; printf 'vfs0\\nvfs\\n' >&2", all.clone()).await;
    assert_eq!(answer.stdout, all);
    assert_eq!(answer.stderr, "vfs0\nvfs\n");
}

async fn input_of_any_size_arrives_whole(place: Place) {
    for size in [0, 1, 1_000, 65_535, 65_536, 65_537, 131_072, 3_000_001] {
        let data: Vec<u8> = (0..size).map(|index: usize| (index * 31 % 251) as u8).collect();
        let answer = give(&*place, "cat", data.clone()).await;
        assert_eq!(answer.exit, RemoteExit::Exited(0));
        assert!(answer.stdout == data, "{size} bytes");
    }
    // Without input, the script reads an end of input, and not the input of the connection.
    assert_eq!(run(&*place, "cat; wc -c | tr -d ' '").await, exited(0, "0\n", ""));
}

async fn input_that_is_not_read_is_no_failure(place: Place) {
    for script in ["exit 4", "exec <&-; exit 4", "head -c 5 >/dev/null; exit 4"] {
        assert_eq!(give(&*place, script, vec![b'\n'; 1_000_000]).await, exited(4, "", ""), "{script}");
    }
}

async fn a_script_arrives_as_it_is_written(place: Place) {
    let hostile = "'\"\\ \\\\ \\n \\0101 %s %b $HOME $(id) `id` ! !! \t\r\u{b}\u{7f} é 😀 #;&|<>(){}[]*?~";
    let quoted = hostile.replace('\'', "'\\''");
    let script = format!("printf %s '{quoted}'\n\n");
    assert_eq!(run(&*place, &script).await, exited(0, hostile, ""));
    assert_eq!(run(&*place, "cat <<'end'\na\\nb 'c'\n\nend\n").await, exited(0, "a\\nb 'c'\n\n", ""));
    assert_eq!(run(&*place, "-e 2>/dev/null").await.exit, RemoteExit::Exited(127), "no option of sh");
    assert_eq!(run(&*place, "printf %s \"$0$#\"").await, exited(0, "sh0", ""));
}

async fn a_script_of_the_largest_size_arrives(place: Place) {
    let most = place.transport().max_script_bytes;
    for filler in ["x", "'", "\n", "é"] {
        let (start, end) = ("cat >/dev/null <<'eof'\n", "\neof\nprintf done");
        let count = (most - start.len() - end.len()) / filler.len();
        let script = format!("{start}{}{end}", filler.repeat(count));
        assert_eq!(give(&*place, &script, "input").await, exited(0, "done", ""), "{filler:?}");
    }
}

async fn a_nul_byte_is_refused(place: Place) {
    let error = place.run(ScriptInvocation::new("echo a\0b")).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

async fn an_output_over_the_limit_is_truncated_and_reported(place: Place) {
    let mut limited = ScriptInvocation::new("printf 0123456789; printf abcdefghij >&2; exit 5");
    limited.max_output_bytes = 4;
    let answer = place.run(limited.clone()).await.expect("an answer");
    assert_eq!((&answer.stdout[..], &answer.stderr[..]), (&b"0123"[..], &b"abcd"[..]));
    assert_eq!((answer.exit, answer.truncated), (RemoteExit::Exited(5), true));
    assert_eq!((answer.stdout_bytes, answer.stderr_bytes), (10, 10));
    limited.keep = RetainedOutputPart::Ends;
    assert_eq!(place.run(limited.clone()).await.expect("an answer").stdout, "0189");
    limited.max_output_bytes = 10;
    assert!(!place.run(limited).await.expect("an answer").truncated);
}

async fn a_process_left_behind_delays_no_caller(place: Place) {
    let name = long_sleep();
    let script = format!("sleep {name} & echo $!");
    let answer = tokio::time::timeout(HANG_TIMEOUT, run(&*place, &script)).await;
    let answer = answer.expect("it does not wait for what is left behind");
    assert_eq!(answer.exit, RemoteExit::Exited(0));
    let pid = String::from_utf8(answer.stdout.to_vec()).expect("a number");
    assert_eq!(run(&*place, &format!("kill {pid}")).await.exit, RemoteExit::Exited(0), "it was still there");
    until("it ended", || !runs(&name)).await;
}

async fn many_at_a_time_get_their_own_answers(place: Place) {
    let calls = (0..24).map(|number| {
        let place = Arc::clone(&place);
        async move {
            let answer = give(&*place, &format!("cat; echo {number}; exit {number}"), format!("in {number} ")).await;
            assert_eq!(answer, exited(number, &format!("in {number} {number}\n"), ""));
        }
    });
    join_all(calls).await;
}

async fn a_timeout_keeps_what_was_printed_and_ends_the_script(place: Place) {
    let name = long_sleep();
    let script = format!("printf before; printf also >&2; sleep {name}; printf after");
    let is_enough = |answer: &RemoteOutput| !answer.stdout.is_empty() && !answer.stderr.is_empty();
    let answer = timed_out(&*place, &script, is_enough).await;
    assert_eq!((&answer.stdout[..], &answer.stderr[..]), (&b"before"[..], &b"also"[..]));
    until("the script ended", || !runs(&name)).await;
    assert_eq!(run(&*place, "echo next").await, exited(0, "next\n", ""));
}

async fn a_call_that_is_dropped_ends_the_script(place: Place) {
    let name = long_sleep();
    let script = format!("sleep {name} & sleep {name}; wait");
    let call = tokio::spawn({
        let (place, script) = (Arc::clone(&place), script.clone());
        async move { place.run(ScriptInvocation::new(script)).await }
    });
    until("the script started", || runs(&name)).await;
    call.abort();
    until("the script ended", || !runs(&name)).await;
}

async fn a_script_that_ignores_signals_is_ended_too(place: Place) {
    let name = long_sleep();
    let script = format!("trap '' TERM INT HUP; printf begun; (sleep {name}) & sleep {name}; sleep {name}");
    timed_out(&*place, &script, |answer| answer.stdout == "begun").await;
    until("the script ended", || !runs(&name)).await;
}

async fn input_that_breaks_off_has_no_end(place: Place) {
    let directory = TempDir::new().expect("a directory");
    let at = directory.path().display().to_string();
    let name = long_sleep();
    // The script ignores the first signal, and continues to read when the call is dropped: the input must not look
    // complete.
    let script = format!(
        "trap '' TERM; cd '{at}'; touch started; until [ -e go ]; do sleep 0.01; done; \
         cat >copy; touch whole; sleep {name}"
    );
    let call = tokio::spawn({
        let place = Arc::clone(&place);
        async move { place.run(invocation(&script, vec![7; 4_000_000])).await }
    });
    let is_there = |file: &str| directory.path().join(file).exists();
    until("the script started", || is_there("started")).await;
    call.abort();
    // The call is dropped with its task.
    let _ = call.await;
    std::fs::write(directory.path().join("go"), "").expect("a file");
    until("the script ended", || !runs(&name) && !script_runs(&at)).await;
    assert!(!is_there("whole"), "a part of the input was taken for all of it");
}

/// Returns whether a process has this text in its arguments.
fn script_runs(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let own = std::process::id().to_string();
    processes
        .filter(|process| process.file_name() != own.as_str())
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| memchr::memmem::find(&arguments, text.as_bytes()).is_some())
}

async fn a_script_that_kills_its_group_is_no_answer(place: Place) {
    let error = place.run(ScriptInvocation::new("echo half; kill -9 0; sleep 5")).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("killed"), "{error}");
    assert_eq!(run(&*place, "echo next").await, exited(0, "next\n", ""));
}

async fn a_flood_passes_in_bounded_memory(place: Place) {
    let mut flood = ScriptInvocation::new("head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; exit 6");
    flood.max_output_bytes = 1_000;
    let answer = place.run(flood).await.expect("an answer");
    assert_eq!((answer.exit, answer.truncated), (RemoteExit::Exited(6), true));
    assert_eq!((answer.stdout.len(), answer.stderr.len()), (1_000, 1_000));
}
