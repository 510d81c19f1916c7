//! Streamed output of commands.

use futures::StreamExt as _;
use vfs_core::{ErrorKind, ExecuteEvent, ExecuteRequest, OpContext, Result, StreamingShell as _};

use super::{Place, TIMES};

impl Place {
    fn stream(&self, request: ExecuteRequest) -> futures::stream::BoxStream<'static, Result<ExecuteEvent>> {
        self.backend.shell().execute_stream(OpContext::new(), request)
    }
}

#[tokio::test]
async fn a_stream_starts_while_the_command_runs_and_ends_with_the_exit() {
    let place = Place::new();
    let command = "echo out; while [ ! -e go ]; do sleep 0.02; done; echo err >&2; exit 7";
    let mut events = place.stream(ExecuteRequest::new(command));
    let first = events.next().await.expect("an item").expect("no error");
    assert_eq!(first, ExecuteEvent::Stdout("out\n".into()));
    std::fs::write(place.host("go"), "").expect("written");
    let rest: Vec<_> = events.map(|event| event.expect("no error")).collect().await;
    let [ExecuteEvent::Stderr(text), ExecuteEvent::Exit(exit)] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!(text, "err\n");
    assert_eq!((exit.exit_code, exit.output_bytes, exit.timed_out), (Some(7), 8, false));
    assert_eq!((exit.output.as_str(), exit.stdout.as_str(), exit.stderr.as_str()), ("", "", ""));
}

#[tokio::test]
async fn output_before_a_timeout_precedes_the_exit() {
    let place = Place::new();
    let mut last = Vec::new();
    for time in TIMES {
        last = place.stream(ExecuteRequest::new("echo begun; sleep 1000").timeout(time)).collect().await;
        if let [Ok(ExecuteEvent::Stdout(text)), Ok(ExecuteEvent::Exit(exit))] = &last[..] {
            assert!(text == "begun\n" && exit.timed_out, "{last:?}");
            return;
        }
    }
    panic!("{last:?}");
}

#[tokio::test]
async fn an_error_is_the_last_item_of_a_stream() {
    let place = Place::new();
    for (request, kind) in [
        (ExecuteRequest::new(""), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("true").background(), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("true").cwd(super::path("/missing")), ErrorKind::NotFound),
    ] {
        let events: Vec<_> = place.stream(request).collect().await;
        assert!(matches!(&events[..], [Err(error)] if error.kind() == kind), "{events:?}");
    }
    for time in TIMES {
        let (cx, request) = (OpContext::new().with_timeout(time), ExecuteRequest::new("echo begun; sleep 1000"));
        let events: Vec<_> = place.backend.shell().execute_stream(cx, request).collect().await;
        let (last, before) = events.split_last().expect("an item");
        assert!(last.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout), "{events:?}");
        if matches!(before, [Ok(ExecuteEvent::Stdout(_))]) {
            return;
        }
    }
    panic!("it printed nothing");
}

#[tokio::test]
async fn a_slow_consumer_blocks_the_command_and_loses_nothing() {
    let place = Place::new();
    let command =
        |name: &str| format!("i=0; while [ $i -lt 200 ]; do head -c 10000 /dev/zero; i=$((i+1)); touch {name}$i; done");
    let mut events = place.stream(ExecuteRequest::new(command("at")));
    let first = events.next().await.expect("an item").expect("no error");
    let ExecuteEvent::Stdout(text) = first else { panic!("{first:?}") };
    let mut bytes = text.len();
    // The command blocks while its next chunks are not taken, and ends once they are read.
    place.sh(&command("other")).await;
    assert!(place.host("other200").exists() && !place.host("at200").exists());
    while let Some(event) = events.next().await {
        match event.expect("no error") {
            ExecuteEvent::Stdout(text) => bytes += text.len(),
            ExecuteEvent::Exit(exit) => assert_eq!((exit.exit_code, exit.output_bytes), (Some(0), 2_000_000)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bytes, 2_000_000);
}

#[tokio::test]
async fn a_slow_consumer_does_not_time_out_a_command_that_ended_in_time() {
    let command = "echo 1; echo 2; echo 3; echo 4; echo 5; touch ended; exit 7";
    let mut last = Vec::new();
    for time in TIMES {
        let place = Place::new();
        let mut events = place.stream(ExecuteRequest::new(command).timeout(time));
        let first = events.next().await.expect("an item");
        // The consumer polls again after the timeout.
        tokio::time::sleep(time).await;
        let has_ended = place.host("ended").exists();
        last = futures::stream::iter([first]).chain(events).collect().await;
        if let Some(Ok(ExecuteEvent::Exit(exit))) = last.last()
            && has_ended
            && !exit.timed_out
        {
            assert_eq!(exit.exit_code, Some(7), "{exit:?}");
            assert!(exit.duration < time, "{exit:?}");
            return;
        }
    }
    panic!("it had to wait for its consumer: {last:?}");
}

#[tokio::test]
async fn a_timeout_ends_a_command_whose_stream_is_not_polled() {
    for time in TIMES {
        let place = Place::new();
        let hold = place.hold();
        let request = ExecuteRequest::new("exec 9>hold; trap exit TERM; while :; do echo more; done").timeout(time);
        let mut events = place.stream(request);
        if !matches!(events.next().await.expect("an item"), Ok(ExecuteEvent::Stdout(_))) {
            continue;
        }
        // The shell blocks in a write and is killed there, before another chunk is taken.
        hold.released().await;
        let rest: Vec<_> = events.map(|event| event.expect("no error")).collect().await;
        assert!(matches!(rest.last(), Some(ExecuteEvent::Exit(exit)) if exit.timed_out), "{:?}", rest.last());
        assert!(rest.len() < 200, "{}", rest.len());
        return;
    }
    panic!("it printed nothing");
}
