//! Handing output on as it is printed.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream};
use tokio::sync::Notify;
use vfs_core::output::Utf8StreamDecoder;
use vfs_core::{Error, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Result, RunMode, StreamingShell};

use crate::backend::{Inner, VirtualShell};
use crate::run::{Audience, Ended, How, Output, Running, start};
use crate::shell::given_up;
use crate::stop::{Reason, Stop};

/// How many bytes wait for a slow consumer before the command does.
const QUEUE: usize = 64 << 10;

/// How often a command that waits for its consumer looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

impl StreamingShell for VirtualShell {
    fn execute_stream(&self, cx: OpContext, req: ExecuteRequest) -> BoxStream<'static, Result<ExecuteEvent>> {
        let shell = Arc::clone(&self.0);
        let begin = async move {
            match begin(&shell, &cx, req).await {
                Ok(stream) => stream.events(cx).left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            }
        };
        stream::once(begin).flatten().boxed()
    }
}

async fn begin(shell: &Arc<Inner>, cx: &OpContext, req: ExecuteRequest) -> Result<Streamed> {
    shell.check(cx, &req).await?;
    if req.run == RunMode::Background {
        let message = "a command in the background cannot be streamed; poll its output";
        return Err(Error::invalid_argument(message).with_path(&req.cwd));
    }
    let begun = Instant::now();
    let stop = Arc::new(Stop::new(cx.cancel_token().child()));
    let end = shell.end(cx, &req, begun);
    let pipe = Arc::new(Pipe::new(Arc::clone(&stop), begun));
    let Some(permit) = shell.place(&stop, end).await? else {
        pipe.ended(Ended::new(How::Stopped(stop.reason().unwrap_or(Reason::Cancelled))));
        return Ok(Streamed { pipe, _running: None });
    };
    let running = start(shell, shell.starting(cx, req, stop, permit, end), Arc::clone(&pipe) as Arc<dyn Audience>)?;
    Ok(Streamed { pipe, _running: Some(running) })
}

/// What is printed, on its way to the consumer, who ends the command when dropping it.
struct Streamed {
    pipe: Arc<Pipe>,
    _running: Option<Running>,
}

impl Streamed {
    fn events(self, cx: OpContext) -> impl futures::Stream<Item = Result<ExecuteEvent>> + Send + 'static {
        stream::unfold(Some((self, cx)), |state| async {
            let (streamed, cx) = state?;
            match streamed.pipe.next(&cx).await {
                Ok(event @ (ExecuteEvent::Stdout(_) | ExecuteEvent::Stderr(_))) => {
                    Some((Ok(event), Some((streamed, cx))))
                }
                last => Some((last, None)),
            }
        })
    }
}

struct Pipe {
    state: Mutex<State>,
    room: Condvar,
    ready: Notify,
    stop: Arc<Stop>,
    begun: Instant,
}

#[derive(Default)]
struct State {
    queue: VecDeque<ExecuteEvent>,
    queued: usize,
    total: u64,
    decoders: [Utf8StreamDecoder; 2],
    ended: Option<Ended>,
}

impl Pipe {
    fn new(stop: Arc<Stop>, begun: Instant) -> Self {
        Self { state: Mutex::default(), room: Condvar::new(), ready: Notify::new(), stop, begun }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes next; where the command is to stop and does not, soon its end.
    async fn next(&self, cx: &OpContext) -> Result<ExecuteEvent> {
        match select(pin!(self.ready(cx)), pin!(self.stop.stopped_for_long())).await {
            Either::Left((event, _)) => event,
            Either::Right((reason, _)) => self.end(Ended::new(How::Stopped(reason)), cx),
        }
    }

    async fn ready(&self, cx: &OpContext) -> Result<ExecuteEvent> {
        loop {
            let ready = self.ready.notified();
            if let Some(event) = self.take(cx) {
                return event;
            }
            ready.await;
        }
    }

    fn take(&self, cx: &OpContext) -> Option<Result<ExecuteEvent>> {
        let mut state = self.lock();
        if let Some(event) = state.queue.pop_front() {
            state.queued -= text(&event).len();
            self.room.notify_all();
            return Some(Ok(event));
        }
        let ended = state.ended.take()?;
        drop(state);
        Some(self.end(ended, cx))
    }

    fn end(&self, ended: Ended, cx: &OpContext) -> Result<ExecuteEvent> {
        let mut response = ExecuteResponse::default();
        response.output_bytes = self.lock().total;
        response.duration = self.begun.elapsed();
        response.truncated = ended.is_cut;
        response.full_output = ended.full_output;
        match ended.how {
            How::Stopped(reason) if reason.is_given_up() => Err(given_up(reason, cx)),
            how => how.tell(&mut response).map(|()| ExecuteEvent::Exit(response)),
        }
    }
}

fn text(event: &ExecuteEvent) -> &str {
    match event {
        ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text) => text,
        _ => "",
    }
}

impl State {
    fn push(&mut self, output: Output, bytes: &[u8]) {
        let text = self.decoders[output as usize].decode(bytes);
        self.queue(output, text);
    }

    fn queue(&mut self, output: Output, text: String) {
        if text.is_empty() {
            return;
        }
        self.queued += text.len();
        self.queue.push_back(match output {
            Output::Standard => ExecuteEvent::Stdout(text),
            Output::Error => ExecuteEvent::Stderr(text),
        });
    }
}

impl Audience for Pipe {
    fn printed(&self, output: Output, bytes: &[u8]) {
        for part in bytes.chunks(QUEUE / 4) {
            let mut state = self.lock();
            // The one who waits is the command's own thread.
            while state.queued >= QUEUE && self.stop.reason().is_none() {
                state = self.room.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
            if self.stop.reason().is_some() && state.queued >= QUEUE {
                return;
            }
            state.total += part.len() as u64;
            state.push(output, part);
            drop(state);
            self.ready.notify_one();
        }
    }

    fn ended(&self, ended: Ended) {
        let mut state = self.lock();
        for output in [Output::Standard, Output::Error] {
            let rest = state.decoders[output as usize].finish();
            state.queue(output, rest);
        }
        state.ended = Some(ended);
        drop(state);
        self.ready.notify_one();
    }
}
