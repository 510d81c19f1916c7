//! Streamed output.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{
    Backend, BackendExt, ErrorKind, ExecuteEvent, ExecuteRequest, Interceptor, OpContext, Operation, Result,
    StreamingShell as _,
};
use vfs_memory::MemoryBackend;

use crate::support::{HANG_TIMEOUT, TIMES, in_memory, over};

#[tokio::test]
async fn a_stream_starts_while_the_command_runs_and_ends_with_the_exit() {
    let files = in_memory();
    files.create_text("/wait", "").await.expect("a new file");
    // The command continues only when the consumer removes the file after its first output.
    let command = "echo started; while [ -e wait ]; do sleep 0.01; done; echo err >&2; exit 7";
    let mut events = files.execute_stream(OpContext::new(), ExecuteRequest::new(command));
    let first = events.next().await.expect("an item").expect("output");
    assert_eq!(first, ExecuteEvent::Stdout("started\n".to_owned()));
    files.delete_file("/wait").await.expect("removed");
    let rest: Vec<_> = events.map(|event| event.expect("no error")).collect().await;
    let [ExecuteEvent::Stderr(text), ExecuteEvent::Exit(exit)] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!((text.as_str(), exit.exit_code, exit.output_bytes), ("err\n", Some(7), 12));
    assert!(exit.output.is_empty() && exit.stdout.is_empty());
}

#[tokio::test]
async fn a_slow_consumer_blocks_the_command_and_loses_nothing() {
    let files = in_memory();
    let command = "for i in {1..200}; do seq 1000; done";
    let events = files.execute_stream(OpContext::new(), ExecuteRequest::new(command));
    let (mut total, mut last) = (0, None);
    let mut events = events.enumerate();
    while let Some((number, event)) = events.next().await {
        if number < 5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        match event.expect("no error") {
            ExecuteEvent::Stdout(text) => total += text.len(),
            other => last = Some(other),
        }
    }
    let Some(ExecuteEvent::Exit(exit)) = last else { panic!("{last:?}") };
    assert_eq!((total, exit.output_bytes, exit.exit_code), (200 * 3_893, 200 * 3_893, Some(0)));
}

#[tokio::test]
async fn dropping_the_stream_ends_the_command() {
    let files = in_memory();
    let mut events =
        files.execute_stream(OpContext::new(), ExecuteRequest::new("while :; do echo x; echo x >> log; done"));
    events.next().await.expect("an item").expect("output");
    drop(events);
    let mut size = None;
    for _ in 0..1_000 {
        let now = files.stat_path("/log").await.map_or(0, |info| info.size);
        tokio::time::sleep(Duration::from_millis(20)).await;
        if size.replace(now) == Some(now) {
            return;
        }
    }
    panic!("it goes on");
}

#[tokio::test]
async fn a_stream_ends_with_the_timeout_or_an_error() {
    let files = in_memory();
    let mut before = 0;
    for time in TIMES {
        let request = ExecuteRequest::new("echo x; sleep 1000").timeout(time);
        let events: Vec<_> = files.execute_stream(OpContext::new(), request).collect().await;
        let Some(Ok(ExecuteEvent::Exit(exit))) = events.last() else { panic!("{events:?}") };
        assert!(exit.timed_out, "{events:?}");
        before = events.len() - 1;
        if before > 0 {
            break;
        }
    }
    assert_eq!(before, 1);

    let cx = OpContext::new();
    let mut events = files.execute_stream(cx.clone(), ExecuteRequest::new("echo x; sleep 100"));
    events.next().await.expect("an item").expect("output");
    cx.cancel_token().cancel();
    let rest: Vec<_> = events.collect().await;
    let [Err(error)] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!(error.kind(), ErrorKind::Cancelled);

    let request = ExecuteRequest::new("true").background();
    let events: Vec<_> = files.execute_stream(OpContext::new(), request).collect().await;
    assert_eq!(events[0].as_ref().expect_err("refused").kind(), ErrorKind::InvalidArgument);
}

/// Backend whose reads block their thread until the test drops the other end.
#[derive(Debug)]
struct Stuck {
    reads: AtomicUsize,
    held: Mutex<Receiver<()>>,
}

impl Interceptor for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        if Q::OPERATION == Operation::Download {
            self.reads.fetch_add(1, Ordering::SeqCst);
            // The other end is closed, or the test has ended early.
            let _ended = self.held.lock().expect("no panic").recv_timeout(4 * HANG_TIMEOUT);
        }
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_stream_does_not_wait_for_a_stuck_operation() {
    let memory = Arc::new(MemoryBackend::new());
    memory.create_text("/a", "x").await.expect("a new file");
    for by_deadline in [false, true] {
        let mut was_stuck = false;
        for time in TIMES {
            let (hold, held) = mpsc::channel();
            let stuck = Arc::new(Stuck { reads: AtomicUsize::new(0), held: Mutex::new(held) });
            let files = over(Intercepted::new(Arc::clone(&memory) as _, Arc::clone(&stuck)));
            let (cx, timeout) = match by_deadline {
                true => (OpContext::new().with_timeout(time), 2 * HANG_TIMEOUT),
                false => (OpContext::new(), time),
            };
            let request = ExecuteRequest::new("echo x; cat a; echo y").timeout(timeout);
            let events = files.execute_stream(cx, request).collect::<Vec<_>>();
            let events = tokio::time::timeout(time + HANG_TIMEOUT, events).await.expect("it does not wait");
            match events.last().expect("an end") {
                Ok(ExecuteEvent::Exit(exit)) if !by_deadline => {
                    assert!(exit.timed_out && exit.signal == Some(9), "{exit:?}");
                }
                Err(error) if by_deadline => assert_eq!(error.kind(), ErrorKind::Timeout),
                other => panic!("{other:?}"),
            }
            was_stuck = stuck.reads.load(Ordering::SeqCst) > 0;
            drop(hold);
            if was_stuck {
                break;
            }
        }
        assert!(was_stuck, "it did not come to the read");
    }
}

#[tokio::test]
async fn chunks_do_not_split_characters() {
    let files = in_memory();
    let request =
        ExecuteRequest::new("printf '\\303'; printf '\\251'; printf '\\360\\237'; printf '\\230\\200'; printf '\\303'");
    let events: Vec<_> = files.execute_stream(OpContext::new(), request).collect().await;
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            Ok(ExecuteEvent::Stdout(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "é😀\u{fffd}");
}
