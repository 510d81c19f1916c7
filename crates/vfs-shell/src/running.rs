//! One command, from its start to the end of all its processes.

use std::future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::consume_budget;
use tokio::time::sleep_until;
use vfs_core::output::Utf8StreamDecoder;
use vfs_core::{CancelToken, Error, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Result, VfsPath};

use crate::config::{Leftovers, ShellConfig};
use crate::full_output::FullOutput;
use crate::hop::hop;
use crate::launch::Launch;
use crate::outputs::{self, Ends, Outputs, Stream};
use crate::process::{self, Control, Ended, Process, RECORD_BYTES, Turn};
use crate::ready::watched;
use crate::typing::Typing;

/// How long processes that a command leaves running have to end by themselves.
const LINGER: Duration = Duration::from_millis(50);

/// How long the supervisor has to kill what did not end in its grace, before nobody waits for it.
const KILLING: Duration = Duration::from_millis(200);

/// How long outputs may stay open when all processes are gone, as they do where another process was given one of them.
const CLOSING: Duration = Duration::from_millis(100);

/// The most that is still read of outputs that somebody holds open and goes on writing to.
const LAST_BYTES: usize = 1 << 20;

/// Why a command is ended before it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    TimedOut,
    Cancelled,
    DeadlinePassed,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It runs.
    Running,
    /// It ended; what it left has until then to do so, too.
    Lingering(Instant),
    /// Its processes are being ended, or have; until then their outputs are waited for.
    Ending(Instant),
    /// Nothing is waited for any longer; so many bytes are read of what is there.
    Draining(usize),
    Over,
}

/// A running command. When dropped, all its processes are ended.
#[derive(Debug)]
pub(crate) struct Running {
    process: Process,
    status: Option<AsyncFd<OwnedFd>>,
    outputs: Outputs,
    decoders: [Utf8StreamDecoder; 2],
    typing: Option<Typing>,
    full_output: Option<FullOutput>,
    cx: OpContext,
    due: Option<Instant>,
    grace: Duration,
    leftovers: Leftovers,
    phase: Phase,
    reason: Option<Reason>,
    ended: Option<Ended>,
    started: Instant,
    duration: Option<Duration>,
    output_bytes: u64,
}

impl Running {
    /// Starts what is launched for `req`. It may run as long as `timeout`, and as `cx` allows.
    pub(crate) async fn start(
        cx: OpContext,
        launch: Launch,
        req: &ExecuteRequest,
        timeout: Option<Duration>,
        config: &ShellConfig,
        full_output: Option<FullOutput>,
    ) -> Result<Self> {
        let started = Instant::now();
        let (stdin, size, cwd, grace) = (req.stdin.clone(), launch.terminal, req.cwd.clone(), config.grace);
        let due = timeout.and_then(|timeout| started.checked_add(timeout));
        let asked = cx.clone();
        let (process, status, ends) = hop(move || {
            let turn = Turn::wait();
            asked.check().map_err(|error| error.or_path(&cwd))?;
            let made = match size {
                Some(size) => outputs::terminal(size),
                None => input(stdin.as_deref()).and_then(outputs::pipes),
            };
            let (standard, ends) = made.map_err(unavailable)?;
            let (process, status) = process::start(turn, launch, standard, grace, &cwd)?;
            Ok::<_, Error>((process, status, ends))
        })
        .await??;
        let typing = match &ends {
            Ends::Terminal(ours) => {
                let ours = ours.try_clone().map_err(unavailable)?;
                Some(Typing::new(ours, req.stdin.as_deref().unwrap_or_default()).map_err(unavailable)?)
            }
            Ends::Pipes { .. } => None,
        };
        Ok(Self {
            process,
            status: Some(watched(status, Interest::READABLE).map_err(unavailable)?),
            outputs: Outputs::new(ends).map_err(unavailable)?,
            decoders: Default::default(),
            typing,
            full_output,
            cx,
            due,
            grace: config.grace,
            leftovers: config.leftovers,
            phase: Phase::Running,
            reason: None,
            ended: None,
            started,
            duration: None,
            output_bytes: 0,
        })
    }

    /// It goes on when the call that started it has ended, until `stop` is cancelled.
    pub(crate) fn outliving(mut self, stop: CancelToken) -> Self {
        self.cx = self.cx.for_cleanup().with_cancel_token(stop);
        self
    }

    /// The file that all it prints is written to.
    pub(crate) fn full_output(&self) -> Option<&VfsPath> {
        self.full_output.as_ref().map(FullOutput::path)
    }

    /// The way to end it from elsewhere.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.process.control)
    }

    /// The next piece of what it prints; `None` once it is over. A call that is dropped loses nothing but, within a
    /// character or while a file is written, the piece at hand.
    pub(crate) async fn next(&mut self) -> Result<Option<(Stream, String)>> {
        loop {
            if self.phase == Phase::Over {
                return self.finish().await;
            }
            if let Phase::Draining(left) = self.phase {
                let piece =
                    self.outputs.try_read().map_err(unreadable)?.map(|(stream, bytes)| (stream, bytes.to_vec()));
                self.phase = match &piece {
                    Some((_, bytes)) if bytes.len() < left => Phase::Draining(left - bytes.len()),
                    _ => Phase::Over,
                };
                if let Some((stream, bytes)) = piece
                    && let Some(text) = self.printed(stream, &bytes).await?
                {
                    return Ok(Some((stream, text)));
                }
                continue;
            }
            // Output that comes without a pause would never let anything else run, not even the clock.
            consume_budget().await;
            match self.happens().await? {
                Happened::Alarm(alarm) => self.on_alarm(alarm),
                Happened::Status(status) => self.on_status(status),
                Happened::Typed => self.typing = None,
                Happened::Lagged => self.flush().await?,
                Happened::Closed => {}
                Happened::Printed(stream, bytes) => {
                    if let Some(text) = self.printed(stream, &bytes).await? {
                        return Ok(Some((stream, text)));
                    }
                }
            }
            if self.status.is_none() && self.outputs.are_closed() {
                self.phase = Phase::Over;
            }
        }
    }

    /// Waits until the command ends, or it is time to end it, and does what is to be done then. For those who wait for
    /// something else than [`next`](Self::next).
    pub(crate) async fn watch(&mut self) -> Result<()> {
        tokio::select! {
            biased;
            status = read_status(self.status.as_ref()) => self.on_status(status.map_err(unreadable)?),
            alarm = alarm(&self.cx, self.phase, self.due) => self.on_alarm(alarm),
        }
        Ok(())
    }

    /// How it went, once it is over, without what it printed; or why it was ended.
    pub(crate) fn outcome(&self) -> Result<(ExecuteResponse, Option<Reason>)> {
        if self.ended.is_none() && self.status.is_none() && self.reason.is_none() {
            return Err(Error::new(
                ErrorKind::Internal,
                "the process that watches over the command was killed, and the command with it; how far it came is not \
                 known",
            ));
        }
        let mut response = ExecuteResponse::default();
        response.exit_code = self.ended.and_then(|ended| ended.exit_code);
        response.signal = self.ended.and_then(|ended| ended.signal);
        response.timed_out = self.reason == Some(Reason::TimedOut);
        response.output_bytes = self.output_bytes;
        response.duration = self.duration.unwrap_or_else(|| self.started.elapsed());
        response.full_output = self.full_output().cloned();
        Ok((response, self.reason))
    }

    async fn happens(&mut self) -> Result<Happened> {
        let typing = async {
            match &mut self.typing {
                Some(typing) => typing.finish().await,
                None => future::pending().await,
            }
        };
        let is_open = !self.outputs.are_closed();
        let lag = self.full_output.as_ref().and_then(FullOutput::due);
        tokio::select! {
            // That it ended comes before that it should, and both before what it prints, however much that is.
            biased;
            status = read_status(self.status.as_ref()) => status.map(Happened::Status).map_err(unreadable),
            alarm = alarm(&self.cx, self.phase, self.due) => Ok(Happened::Alarm(alarm)),
            () = at(lag) => Ok(Happened::Lagged),
            () = typing => Ok(Happened::Typed),
            piece = self.outputs.read(), if is_open => Ok(match piece.map_err(unreadable)? {
                Some((stream, bytes)) => Happened::Printed(stream, bytes.to_vec()),
                None => Happened::Closed,
            }),
        }
    }

    fn on_alarm(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Reason(reason) => {
                self.reason = Some(reason);
                self.end();
            }
            Alarm::Lingered => self.end(),
            Alarm::GiveUp => self.phase = Phase::Draining(LAST_BYTES),
        }
    }

    fn end(&mut self) {
        self.process.control.end();
        self.phase = Phase::Ending(Instant::now() + self.grace + KILLING);
    }

    fn on_status(&mut self, status: Option<Ended>) {
        let Some(ended) = status else {
            // The supervisor has gone: nothing is left that could print.
            self.status = None;
            self.duration.get_or_insert_with(|| self.started.elapsed());
            if !matches!(self.phase, Phase::Draining(_) | Phase::Over) {
                self.phase = Phase::Ending(Instant::now() + CLOSING);
            }
            return;
        };
        self.ended = Some(ended);
        self.duration = Some(self.started.elapsed());
        if self.phase != Phase::Running {
            return;
        }
        match self.leftovers {
            _ if !ended.left_others => self.phase = Phase::Ending(Instant::now() + CLOSING),
            Leftovers::End => self.phase = Phase::Lingering(Instant::now() + LINGER),
            Leftovers::Keep => {
                self.process.control.release();
                self.phase = Phase::Draining(LAST_BYTES);
            }
        }
    }

    async fn printed(&mut self, stream: Stream, bytes: &[u8]) -> Result<Option<String>> {
        self.output_bytes += bytes.len() as u64;
        if let Some(file) = &mut self.full_output {
            file.push(bytes).await?;
        }
        let text = self.decoders[stream as usize].decode(bytes);
        Ok((!text.is_empty()).then_some(text))
    }

    async fn flush(&mut self) -> Result<()> {
        match &mut self.full_output {
            Some(file) => file.flush().await,
            None => Ok(()),
        }
    }

    /// What is left to be told when it is over.
    async fn finish(&mut self) -> Result<Option<(Stream, String)>> {
        self.flush().await?;
        let left = |stream: Stream, decoder: &mut Utf8StreamDecoder| {
            Some((stream, decoder.finish())).filter(|(_, text)| !text.is_empty())
        };
        let [stdout, stderr] = &mut self.decoders;
        Ok(left(Stream::Stdout, stdout).or_else(|| left(Stream::Stderr, stderr)))
    }
}

enum Happened {
    Alarm(Alarm),
    /// It ended so, or the last process did.
    Status(Option<Ended>),
    Typed,
    /// What was gathered for the file has waited for long enough.
    Lagged,
    Closed,
    Printed(Stream, Vec<u8>),
}

enum Alarm {
    Reason(Reason),
    Lingered,
    GiveUp,
}

/// Waits for the next thing that time, or the caller, does to a command.
async fn alarm(cx: &OpContext, phase: Phase, due: Option<Instant>) -> Alarm {
    match phase {
        Phase::Running => tokio::select! {
            biased;
            () = cx.cancel_token().cancelled() => Alarm::Reason(Reason::Cancelled),
            () = at(cx.deadline()) => Alarm::Reason(Reason::DeadlinePassed),
            () = at(due) => Alarm::Reason(Reason::TimedOut),
        },
        Phase::Lingering(until) => {
            at(Some(until)).await;
            Alarm::Lingered
        }
        Phase::Ending(until) => {
            at(Some(until)).await;
            Alarm::GiveUp
        }
        Phase::Draining(_) | Phase::Over => future::pending().await,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => future::pending().await,
    }
}

/// Waits for what a command `starts` with, as long as it may run and `cx` allows: all threads that it could be started on may
/// be busy for long.
pub(crate) async fn in_time<T>(
    cx: &OpContext,
    timeout: Option<Duration>,
    starts: impl Future<Output = Result<T>>,
) -> Result<T> {
    let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    tokio::select! {
        started = starts => started,
        alarm = alarm(cx, Phase::Running, due) => Err(match alarm {
            Alarm::Reason(Reason::Cancelled) => Error::of(ErrorKind::Cancelled),
            Alarm::Reason(Reason::DeadlinePassed) => Error::of(ErrorKind::Timeout),
            _ => Error::new(
                ErrorKind::Unavailable,
                "all threads were busy, so the command was not started; try again later",
            ),
        }),
    }
}

/// Waits for what the supervisor tells; `None` is its end.
async fn read_status(status: Option<&AsyncFd<OwnedFd>>) -> io::Result<Option<Ended>> {
    let Some(status) = status else { return future::pending().await };
    let mut bytes = [0; RECORD_BYTES];
    // A record is written, and so read, in one piece.
    let read = status.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut bytes)?)).await?;
    Ok((read > 0).then(|| Ended::read(bytes)))
}

/// What a command reads that has no terminal.
fn input(text: Option<&str>) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    match text {
        Some(text) => process::input(text),
        None => Ok(rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
    }
}

fn unavailable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "no process can be started now; try again later").with_source(error)
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "what the command printed could not be read").with_source(error)
}
