//! Output as it arrives.

use std::time::Duration;

use futures::StreamExt as _;
use vfs_core::{ErrorKind, ExecuteEvent, ExecuteRequest, OpContext, Result, StreamingShell as _};

use super::Place;

impl Place {
    fn stream(&self, request: ExecuteRequest) -> futures::stream::BoxStream<'static, Result<ExecuteEvent>> {
        self.backend.shell().execute_stream(OpContext::new(), request)
    }
}

#[tokio::test]
async fn the_first_piece_arrives_while_the_command_runs_and_the_last_is_the_exit() {
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
async fn what_was_printed_before_a_timeout_comes_first() {
    let place = Place::new();
    let request = ExecuteRequest::new("echo begun; sleep 100").timeout(Duration::from_millis(300));
    let events: Vec<_> = place.stream(request).map(|event| event.expect("no error")).collect().await;
    let [ExecuteEvent::Stdout(text), ExecuteEvent::Exit(exit)] = &events[..] else { panic!("{events:?}") };
    assert!(text == "begun\n" && exit.timed_out, "{events:?}");
}

#[tokio::test]
async fn errors_are_the_last_item() {
    let place = Place::new();
    for (request, kind) in [
        (ExecuteRequest::new(""), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("true").background(), ErrorKind::InvalidArgument),
        (ExecuteRequest::new("true").cwd(super::path("/missing")), ErrorKind::NotFound),
    ] {
        let events: Vec<_> = place.stream(request).collect().await;
        assert!(matches!(&events[..], [Err(error)] if error.kind() == kind), "{events:?}");
    }
    let cx = OpContext::new().with_timeout(Duration::from_millis(300));
    let events: Vec<_> =
        place.backend.shell().execute_stream(cx, ExecuteRequest::new("echo begun; sleep 100")).collect().await;
    assert!(matches!(&events[..], [Ok(_), Err(error)] if error.kind() == ErrorKind::Timeout), "{events:?}");
}

#[tokio::test]
async fn a_slow_consumer_makes_the_command_wait_and_gets_all() {
    let place = Place::new();
    let command = "i=0; while [ $i -lt 200 ]; do head -c 10000 /dev/zero; i=$((i+1)); touch at$i; done";
    let mut events = place.stream(ExecuteRequest::new(command));
    let first = events.next().await.expect("an item").expect("no error");
    let ExecuteEvent::Stdout(text) = first else { panic!("{first:?}") };
    let mut bytes = text.len();
    // As long as nobody takes the next pieces it does not come to its end.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!place.host("at200").exists());
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
async fn a_command_that_has_ended_in_time_is_not_late_because_its_consumer_is() {
    let place = Place::new();
    let command = "echo 1; echo 2; echo 3; echo 4; echo 5; touch ended; exit 7";
    let mut events = place.stream(ExecuteRequest::new(command).timeout(Duration::from_millis(500)));
    events.next().await.expect("an item").expect("no error");
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert!(place.host("ended").exists(), "it did not have to wait for its consumer");
    let rest: Vec<_> = events.map(|event| event.expect("no error")).collect().await;
    let Some(ExecuteEvent::Exit(exit)) = rest.last() else { panic!("{rest:?}") };
    assert_eq!((exit.exit_code, exit.timed_out), (Some(7), false), "{exit:?}");
    assert!(exit.duration < Duration::from_millis(500), "{exit:?}");
}

#[tokio::test]
async fn time_runs_out_even_for_a_consumer_that_takes_nothing() {
    let place = Place::new();
    let request = ExecuteRequest::new("trap 'touch ended; exit' TERM; while :; do echo more; done")
        .timeout(Duration::from_millis(300));
    let mut events = place.stream(request);
    events.next().await.expect("an item").expect("no error");
    // Its shell waits in a write; only being killed gets it out of there, which leaves no file.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let rest: Vec<_> = events.map(|event| event.expect("no error")).collect().await;
    assert!(matches!(rest.last(), Some(ExecuteEvent::Exit(exit)) if exit.timed_out), "{:?}", rest.last());
    assert!(rest.len() < 200, "{}", rest.len());
}
