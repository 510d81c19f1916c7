//! Streaming shell facet, with a bounded queue between script and consumer.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream};
use tokio::sync::Notify;
use vfs_core::output::Utf8StreamDecoder;
use vfs_core::shell::RunMode;
use vfs_core::{Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, StreamingShell};

use crate::backend::{VirtualShell, VirtualShellInner};
use crate::interpreter::{RunningScript, spawn_script};
use crate::output_sink::{OutputSink, OutputStream};
use crate::script_exit::{ExitCause, ScriptExit, abandoned_error};
use crate::stop_signal::{ScriptStopSignal, StopReason};

/// Number of queued bytes at which the script has to wait for its consumer.
const QUEUE_CAPACITY: usize = 64 << 10;

/// Interval at which a script that waits for its consumer checks whether it was stopped.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl StreamingShell for VirtualShell {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let shell = Arc::clone(&self.0);
        let start = async move {
            match start_stream(&shell, &cx, req).await {
                Ok(stream) => stream.events(cx).left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            }
        };
        stream::once(start).flatten().boxed()
    }
}

async fn start_stream(shell: &Arc<VirtualShellInner>, cx: &OpContext, req: ExecuteRequest) -> Result<ScriptStream> {
    shell.check(cx, &req).await?;
    if req.run == RunMode::Background {
        let message = "streaming the command failed: it runs in the background; start it without streaming and read the job's output";
        return Err(Error::invalid_argument(message).with_path(&req.cwd));
    }
    let started_at = Instant::now();
    let stop = Arc::new(ScriptStopSignal::new(cx.cancel_token().child()));
    let limit = shell.time_limit(cx, &req, started_at);
    let queue = Arc::new(ScriptEventQueue::new(Arc::clone(&stop), started_at));
    let Some(permit) = shell.acquire_permit(&stop, limit).await? else {
        queue.finish(ScriptExit::new(ExitCause::Stopped(stop.reason().unwrap_or(StopReason::Cancelled))));
        return Ok(ScriptStream { queue, _running: None });
    };
    let start = shell.script_start(cx, req, stop, permit, limit);
    let running = spawn_script(start, Arc::clone(&queue) as Arc<dyn OutputSink>)?;
    Ok(ScriptStream { queue, _running: Some(running) })
}

/// Event stream of a script. Dropping it stops the script.
struct ScriptStream {
    queue: Arc<ScriptEventQueue>,
    _running: Option<RunningScript>,
}

impl ScriptStream {
    fn events(self, cx: OpContext) -> impl futures::Stream<Item = Result<ExecuteEvent>> + Send + 'static {
        stream::unfold(Some((self, cx)), |state| async {
            let (streamed, cx) = state?;
            match streamed.queue.next(&cx).await {
                Ok(event @ (ExecuteEvent::Stdout(_) | ExecuteEvent::Stderr(_))) => {
                    Some((Ok(event), Some((streamed, cx))))
                }
                last => Some((last, None)),
            }
        })
    }
}

/// Bounded queue of events between a script and its consumer.
struct ScriptEventQueue {
    state: Mutex<ScriptEventQueueState>,
    room: Condvar,
    ready: Notify,
    stop: Arc<ScriptStopSignal>,
    started_at: Instant,
}

/// State of a [`ScriptEventQueue`].
#[derive(Default)]
struct ScriptEventQueueState {
    events: VecDeque<ExecuteEvent>,
    queued_bytes: usize,
    total: u64,
    decoders: [Utf8StreamDecoder; 2],
    exit: Option<ScriptExit>,
}

impl ScriptEventQueue {
    fn new(stop: Arc<ScriptStopSignal>, started_at: Instant) -> Self {
        Self { state: Mutex::default(), room: Condvar::new(), ready: Notify::new(), stop, started_at }
    }

    fn lock(&self) -> MutexGuard<'_, ScriptEventQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next event. If the script is stopped and does not exit, this is soon the exit.
    async fn next(&self, cx: &OpContext) -> Result<ExecuteEvent> {
        match select(pin!(self.wait_for_event(cx)), pin!(self.stop.wait_with_grace())).await {
            Either::Left((event, _)) => event,
            Either::Right((reason, _)) => self.exit_event(ScriptExit::new(ExitCause::Stopped(reason)), cx),
        }
    }

    async fn wait_for_event(&self, cx: &OpContext) -> Result<ExecuteEvent> {
        loop {
            let ready = self.ready.notified();
            if let Some(event) = self.pop(cx) {
                return event;
            }
            ready.await;
        }
    }

    fn pop(&self, cx: &OpContext) -> Option<Result<ExecuteEvent>> {
        let mut state = self.lock();
        if let Some(event) = state.events.pop_front() {
            state.queued_bytes -= text(&event).len();
            self.room.notify_all();
            return Some(Ok(event));
        }
        let exit = state.exit.take()?;
        drop(state);
        Some(self.exit_event(exit, cx))
    }

    fn exit_event(&self, exit: ScriptExit, cx: &OpContext) -> Result<ExecuteEvent> {
        let mut response = ExecuteResponse::default();
        response.output_bytes = self.lock().total;
        response.duration = self.started_at.elapsed();
        response.truncated = exit.is_cut;
        response.full_output = exit.full_output;
        match exit.cause {
            ExitCause::Stopped(reason) if reason.is_abandoned() => Err(abandoned_error(reason, cx)),
            cause => cause.apply_to(&mut response).map(|()| ExecuteEvent::Exit(response)),
        }
    }
}

fn text(event: &ExecuteEvent) -> &str {
    match event {
        ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text) => text,
        _ => "",
    }
}

impl ScriptEventQueueState {
    fn push(&mut self, output: OutputStream, bytes: &[u8]) {
        let text = self.decoders[output as usize].decode(bytes);
        self.push_event(output, text);
    }

    fn push_event(&mut self, output: OutputStream, text: String) {
        if text.is_empty() {
            return;
        }
        self.queued_bytes += text.len();
        self.events.push_back(match output {
            OutputStream::Stdout => ExecuteEvent::Stdout(text),
            OutputStream::Stderr => ExecuteEvent::Stderr(text),
        });
    }
}

impl OutputSink for ScriptEventQueue {
    fn write(&self, output: OutputStream, bytes: &[u8]) {
        for chunk in bytes.chunks(QUEUE_CAPACITY / 4) {
            let mut state = self.lock();
            // This blocks the script's own thread.
            while state.queued_bytes >= QUEUE_CAPACITY && self.stop.reason().is_none() {
                state = self.room.wait_timeout(state, STOP_POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
            }
            if self.stop.reason().is_some() && state.queued_bytes >= QUEUE_CAPACITY {
                return;
            }
            state.total += chunk.len() as u64;
            state.push(output, chunk);
            drop(state);
            self.ready.notify_one();
        }
    }

    fn finish(&self, exit: ScriptExit) {
        let mut state = self.lock();
        for output in [OutputStream::Stdout, OutputStream::Stderr] {
            let rest = state.decoders[output as usize].finish();
            state.push_event(output, rest);
        }
        state.exit = Some(exit);
        drop(state);
        self.ready.notify_one();
    }
}
