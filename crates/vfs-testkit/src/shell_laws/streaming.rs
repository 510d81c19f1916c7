//! Output as a stream.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use vfs_core::{ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result};

use super::ShellTarget;
use super::invalid_requests::impossible;
use super::law_helpers::{TIMES, WAIT, assert_success, cx, lines, patiently};
use super::orphan_detector::HOLD_PREFIX;
use crate::laws::LawResult;

shell_laws! { "streaming":
    "XS1" has(Streaming) the_last_item_is_the_exit_and_the_only_one in Smoke,
    "XS2" has(Streaming) the_first_output_comes_while_the_command_runs in Wrapper,
    "XS3" has(Streaming) all_items_together_are_the_output_of_the_command,
    "XS4" has(Streaming) items_are_in_the_order_of_printing,
    "XS5" has(Streaming) no_character_is_cut_between_items,
    "XS6" has(Streaming) output_comes_before_the_timeout,
    "XS7" has(Streaming) a_cancelled_stream_ends_with_an_error in Wrapper,
    "XS8" has(Streaming) an_invalid_command_is_an_error_and_nothing_else in Wrapper,
    "XS9" has(Streaming) a_stream_that_is_not_polled_runs_nothing in Wrapper,
    "XS10" has(Streaming, Processes) dropping_the_stream_ends_every_process in Wrapper,
    "XS11" has(Streaming, Processes) cancelling_the_stream_ends_every_process,
    "XS12" has(Streaming, Processes) a_timeout_of_the_stream_ends_every_process,
    "XS13" has(Streaming, Processes) a_slow_reader_makes_the_command_wait in Wrapper,
    "XS14" has(Streaming, Processes) a_stream_ends_though_a_process_is_left_running,
    "XS15" has(Streaming, Processes) much_output_comes_whole,
}

/// A running command whose output is read as a stream.
struct StreamedCommand<'a> {
    target: &'a ShellTarget,
    items: BoxStream<'static, Result<ExecuteEvent>>,
}

/// The items of a stream: each output, both outputs in order, and the exit.
#[derive(Default)]
struct StreamedOutput {
    stdout: String,
    stderr: String,
    output: String,
    exit: ExecuteResponse,
}

impl ShellTarget {
    fn stream(&self, cx: OpContext, request: ExecuteRequest) -> StreamedCommand<'_> {
        let shell = self.files.backend.as_streaming_shell().expect("the law is for shells that stream");
        StreamedCommand { target: self, items: shell.execute_stream(cx, request) }
    }

    fn reads(&self, command: &str) -> StreamedCommand<'_> {
        self.stream(cx(), self.command(command))
    }

    /// Does the same as [`timed_out`](Self::timed_out) with a stream, and collects all items.
    async fn stream_timed_out(&self, request: &ExecuteRequest, time: Duration) -> Result<Option<StreamedOutput>> {
        match self.stream(cx(), request.clone().timeout(time)).all().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(None),
            answer => {
                let streamed = answer?;
                assert!(streamed.exit.timed_out && streamed.exit.exit_code != Some(0), "{:?}", streamed.exit);
                Ok(Some(streamed))
            }
        }
    }
}

impl StreamedCommand<'_> {
    async fn item(&mut self) -> Option<Result<ExecuteEvent>> {
        patiently("an item of the stream", self.items.next()).await
    }

    /// Returns the next item, which is output.
    async fn output(&mut self) -> Result<ExecuteEvent> {
        let item = self.item().await.expect("a stream ends with an exit or an error")?;
        let (ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text)) = &item else { panic!("it ended: {item:?}") };
        assert!(!text.is_empty(), "an item has output in it");
        Ok(item)
    }

    /// Collects all items until the end, which has to be an exit.
    async fn all(mut self) -> Result<StreamedOutput> {
        let mut streamed = StreamedOutput::default();
        loop {
            match self.item().await.expect("a stream ends with an exit or an error")? {
                ExecuteEvent::Stdout(text) => {
                    streamed.stdout.push_str(&text);
                    streamed.output.push_str(&text);
                }
                ExecuteEvent::Stderr(text) => {
                    streamed.stderr.push_str(&text);
                    streamed.output.push_str(&text);
                }
                ExecuteEvent::Exit(exit) => {
                    streamed.exit = exit;
                    break;
                }
                other => panic!("an unexpected kind of item: {other:?}"),
            }
        }
        assert!(self.item().await.is_none(), "nothing comes after the exit");
        let output = (streamed.exit.output.as_str(), streamed.exit.stdout.as_str(), streamed.exit.stderr.as_str());
        assert_eq!(output, ("", "", ""), "all output was streamed");
        Ok(streamed)
    }

    /// Returns the output until the end, which has to be an error of `kind`.
    async fn fails(mut self, kind: ErrorKind) -> String {
        let mut output = String::new();
        loop {
            match self.item().await.expect("a stream ends with an exit or an error") {
                Ok(ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text)) => output.push_str(&text),
                ended => {
                    self.target.files.refused(ended, kind);
                    assert!(self.item().await.is_none(), "nothing comes after an error");
                    return output;
                }
            }
        }
    }
}

async fn the_last_item_is_the_exit_and_the_only_one(t: &ShellTarget) -> LawResult {
    for (command, code) in [("true", 0), ("exit 42", 42), ("echo a; echo b >&2; exit 3", 3), ("no-such-program", 127)] {
        let streamed = t.reads(command).all().await?;
        let exit = streamed.exit;
        assert_eq!((exit.exit_code, exit.signal, exit.timed_out), (Some(code), None, false), "{command}");
        assert_eq!(exit.output_bytes, streamed.output.len() as u64, "{command}");
        assert_eq!((exit.job, exit.truncated), (None, false), "{command}");
    }
    Ok(())
}

/// The command continues only when the test has received the output so far.
async fn the_first_output_comes_while_the_command_runs(t: &ShellTarget) -> LawResult {
    for to in ["", ">&2"] {
        let mut reading = t.reads(&format!("rm -f go; echo first {to}; {WAIT}; echo second {to}"));
        let mut first = String::new();
        while !first.ends_with('\n') {
            let (ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text)) = reading.output().await? else { continue };
            first.push_str(&text);
        }
        assert_eq!(first, "first\n");
        t.go().await?;
        let streamed = reading.all().await?;
        assert_eq!((streamed.output.as_str(), streamed.exit.exit_code), ("second\n", Some(0)));
    }
    Ok(())
}

async fn all_items_together_are_the_output_of_the_command(t: &ShellTarget) -> LawResult {
    t.files.put("/much", lines(20_000)).await?;
    t.files.put("/bytes", &b"a\0b\xff\xfec\r\n\xe2\x82"[..]).await?;
    for command in [
        "echo out; echo err >&2",
        "cat much",
        "cat much >&2",
        "cat bytes",
        "cat bytes >&2",
        "cat much; cat bytes; exit 4",
    ] {
        let streamed = t.reads(command).all().await?;
        let ended = t.execute(t.command(command).max_output_bytes(1 << 20)).await?;
        assert!(streamed.stdout == ended.stdout && streamed.stderr == ended.stderr, "{command}: other output");
        assert_eq!(
            (streamed.exit.exit_code, streamed.exit.output_bytes),
            (ended.exit_code, ended.output_bytes),
            "{command}"
        );
    }
    let streamed = t.stream(cx(), t.command("cat").stdin(lines(50_000))).all().await?;
    assert!(streamed.stdout == lines(50_000), "the output is the input");
    Ok(())
}

/// The command continues only when its output so far was received.
async fn items_are_in_the_order_of_printing(t: &ShellTarget) -> LawResult {
    let step = |n: u32, to: &str| format!("echo {n} {to}; until test -e go{n}; do sleep 0.05; done;");
    let command: String = (0..6).map(|n| step(n, if n % 2 == 0 { "" } else { ">&2" })).collect();
    let mut reading = t.reads(&command);
    for n in 0..6 {
        let expected = format!("{n}\n");
        match reading.output().await? {
            ExecuteEvent::Stdout(text) if n % 2 == 0 => assert_eq!(text, expected),
            ExecuteEvent::Stderr(text) if n % 2 == 1 => assert_eq!(text, expected),
            other => panic!("{n} is to come, and not {other:?}"),
        }
        t.files.put(&format!("/go{n}"), "").await?;
    }
    assert_eq!(reading.all().await?.exit.exit_code, Some(0));
    Ok(())
}

async fn no_character_is_cut_between_items(t: &ShellTarget) -> LawResult {
    let text = format!("x{}", "\u{e9}\u{20ac}\u{1f600}".repeat(30_000));
    t.files.put("/much", text.clone()).await?;
    let streamed = t.reads("cat much; cat much >&2").all().await?;
    assert!(streamed.stdout == text && streamed.stderr == text, "characters are cut");
    Ok(())
}

async fn output_comes_before_the_timeout(t: &ShellTarget) -> LawResult {
    let request = t.command("echo before; sleep 60; echo after");
    for time in TIMES {
        if t.stream_timed_out(&request, time).await?.is_some_and(|streamed| streamed.stdout == "before\n") {
            return Ok(());
        }
    }
    panic!("what was printed is lost");
}

async fn a_cancelled_stream_ends_with_an_error(t: &ShellTarget) -> LawResult {
    let cx = cx();
    let mut reading = t.stream(cx.clone(), t.command("echo before; sleep 60"));
    reading.output().await?;
    cx.cancel_token().cancel();
    reading.fails(ErrorKind::Cancelled).await;
    t.stream(cx, t.command("touch ran")).fails(ErrorKind::Cancelled).await;
    let late = OpContext::new().with_timeout(TIMES[0]);
    t.stream(late, t.command("echo before; sleep 60")).fails(ErrorKind::Timeout).await;
    let late = OpContext::new().with_timeout(Duration::ZERO);
    t.stream(late, t.command("touch ran")).fails(ErrorKind::Timeout).await;
    assert!(!t.files.has("/ran").await?, "what is cancelled or late does not run");
    Ok(())
}

async fn an_invalid_command_is_an_error_and_nothing_else(t: &ShellTarget) -> LawResult {
    for request in impossible(t) {
        assert_eq!(t.stream(cx(), request).fails(ErrorKind::InvalidArgument).await, "");
    }
    let background = t.command("touch ran").background();
    assert_eq!(t.stream(cx(), background).fails(ErrorKind::InvalidArgument).await, "");
    t.files.put("/file", "x").await?;
    for (at, kind) in [("/missing", ErrorKind::NotFound), ("/file", ErrorKind::NotADirectory)] {
        let request = t.command("touch ran").cwd(t.files.path(at));
        assert_eq!(t.stream(cx(), request).fails(kind).await, "");
    }
    assert_eq!(t.files.tree().await?, ["/file"], "what is refused does not run");
    Ok(())
}

async fn a_stream_that_is_not_polled_runs_nothing(t: &ShellTarget) -> LawResult {
    drop(t.reads("touch ran"));
    assert_success(&t.run("sleep 0.2").await?);
    assert!(!t.files.has("/ran").await?);
    Ok(())
}

const FAMILY: &str = "sleep 60 & (sleep 60; :) & (trap '' TERM; sleep 60; sleep 60) & echo started; sleep 60";

async fn dropping_the_stream_ends_every_process(t: &ShellTarget) -> LawResult {
    let hold = t.hold().await?;
    let mut reading = t.reads(&format!("{HOLD_PREFIX} {FAMILY}"));
    reading.output().await?;
    drop(reading);
    hold.released().await
}

async fn cancelling_the_stream_ends_every_process(t: &ShellTarget) -> LawResult {
    let (hold, cx) = (t.hold().await?, cx());
    let mut reading = t.stream(cx.clone(), t.command(format!("{HOLD_PREFIX} {FAMILY}")));
    reading.output().await?;
    cx.cancel_token().cancel();
    reading.fails(ErrorKind::Cancelled).await;
    hold.released().await
}

async fn a_timeout_of_the_stream_ends_every_process(t: &ShellTarget) -> LawResult {
    let request = t.command(format!("{HOLD_PREFIX} {FAMILY}"));
    for time in TIMES {
        let hold = t.hold().await?;
        if t.stream_timed_out(&request, time).await?.is_some_and(|streamed| !streamed.stdout.is_empty()) {
            return hold.released().await;
        }
        hold.give_up();
    }
    panic!("it did not start");
}

/// The stream is not read any further, so that the command blocks before it has printed everything.
async fn a_slow_reader_makes_the_command_wait(t: &ShellTarget) -> LawResult {
    const MIB: usize = 1 << 20;
    t.files.put("/mib", "0123456789abcde\n".repeat(MIB / 16)).await?;
    let command = "n=0; while test $n -lt 64; do cat mib; n=$((n + 1)); echo $n >reached; done; echo end >reached";
    let mut reading = t.reads(command);
    reading.output().await?;
    let reached =
        async || if t.files.has("/reached").await? { t.files.text("/reached").await } else { Ok(String::new()) };
    let writer = "n=0; while test $n -lt 8; do cat mib; n=$((n + 1)); echo $n >written; done";
    let reached = t.settled("it blocks", writer, reached).await?;
    assert_ne!(reached, "end\n", "64 MiB wait for their reader");
    let streamed = reading.all().await?;
    assert_eq!(streamed.exit.exit_code, Some(0));
    assert_eq!(streamed.exit.output_bytes, 64 * MIB as u64);
    Ok(())
}

async fn a_stream_ends_though_a_process_is_left_running(t: &ShellTarget) -> LawResult {
    let streamed = t.reads("sleep 60 & echo begun").all().await?;
    assert_eq!((streamed.stdout.as_str(), streamed.exit.exit_code), ("begun\n", Some(0)));
    Ok(())
}

async fn much_output_comes_whole(t: &ShellTarget) -> LawResult {
    let mut reading = t.reads("yes 0123456789abcde | head -c 100000000; echo; echo end >&2");
    let (mut bytes, mut strange) = (0, 0);
    loop {
        match reading.item().await.expect("a stream ends with an exit or an error")? {
            ExecuteEvent::Stdout(text) => {
                bytes += text.len();
                strange += text.bytes().filter(|byte| !b"0123456789abcde\n".contains(byte)).count();
            }
            ExecuteEvent::Stderr(text) => assert_eq!(text, "end\n"),
            ExecuteEvent::Exit(exit) => {
                assert_eq!((exit.exit_code, exit.output_bytes), (Some(0), bytes as u64 + 4));
                break;
            }
            other => panic!("an unexpected kind of item: {other:?}"),
        }
    }
    assert_eq!((bytes, strange), (100_000_001, 0));
    Ok(())
}
