//! State machine of one running command, from its start to the exit of all its processes.

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

use crate::async_fd::register;
use crate::config::{OrphanPolicy, ShellConfig};
use crate::full_output_file::FullOutputFile;
use crate::output_reader::{self, OutputReadEnds, OutputReader, OutputStream};
use crate::process::{self, ProcessStartLock, ProgramExit, STATUS_RECORD_BYTES, SupervisedProcess, SupervisorControl};
use crate::pty_input::PtyInput;
use crate::spawner::SpawnSpec;
use crate::tokio_runtime::run_blocking;

/// Time that orphaned processes get to exit by themselves after the command has ended.
const LINGER_TIMEOUT: Duration = Duration::from_millis(50);

/// Time after the grace period in which the supervisor kills what is left. The call does not wait longer.
const KILL_TIMEOUT: Duration = Duration::from_millis(200);

/// Time that outputs may stay open after all processes have exited. Another process may have got a copy of one.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Upper bound on the bytes that are still read from outputs that another process holds open and writes to.
const MAX_DRAIN_BYTES: usize = 1 << 20;

/// Why a command is terminated before it exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminationReason {
    TimedOut,
    Cancelled,
    DeadlinePassed,
}

/// Stage in the life of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandPhase {
    /// The program runs.
    Running,
    /// The program has exited; its orphans have until this moment to exit, too.
    Lingering(Instant),
    /// The processes are being terminated or have exited; their outputs are read until this moment.
    Terminating(Instant),
    /// Nothing more is waited for; at most this many bytes that are already there are read.
    Draining(usize),
    Finished,
}

/// Running command. Dropping it terminates all its processes.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    process: SupervisedProcess,
    status: Option<AsyncFd<OwnedFd>>,
    outputs: OutputReader,
    decoders: [Utf8StreamDecoder; 2],
    pty_input: Option<PtyInput>,
    full_output: Option<FullOutputFile>,
    cx: OpContext,
    due: Option<Instant>,
    grace: Duration,
    orphan_policy: OrphanPolicy,
    phase: CommandPhase,
    reason: Option<TerminationReason>,
    ended: Option<ProgramExit>,
    started: Instant,
    duration: Option<Duration>,
    output_bytes: u64,
}

impl RunningCommand {
    /// Starts the command of `req` as `spec` describes. It is terminated after `timeout`, or when `cx` ends.
    pub(crate) async fn start(
        cx: OpContext,
        spec: SpawnSpec,
        req: &ExecuteRequest,
        timeout: Option<Duration>,
        config: &ShellConfig,
        full_output: Option<FullOutputFile>,
    ) -> Result<Self> {
        let started = Instant::now();
        let (stdin, size, cwd, grace) = (req.stdin.clone(), spec.terminal, req.cwd.clone(), config.grace);
        let due = timeout.and_then(|timeout| started.checked_add(timeout));
        let start_cx = cx.clone();
        let (process, status, ends) = run_blocking(move || {
            let lock = ProcessStartLock::acquire();
            start_cx.check().map_err(|error| error.or_path(&cwd))?;
            let created = match size {
                Some(size) => output_reader::terminal(size),
                None => open_stdin(stdin.as_deref()).and_then(output_reader::pipes),
            };
            let (standard, ends) = created.map_err(unavailable)?;
            let (process, status) = process::start(lock, spec, standard, grace, &cwd)?;
            Ok::<_, Error>((process, status, ends))
        })
        .await??;
        let pty_input = match &ends {
            OutputReadEnds::Terminal(ours) => {
                let ours = ours.try_clone().map_err(unavailable)?;
                Some(PtyInput::new(ours, req.stdin.as_deref().unwrap_or_default()).map_err(unavailable)?)
            }
            OutputReadEnds::Pipes { .. } => None,
        };
        Ok(Self {
            process,
            status: Some(register(status, Interest::READABLE).map_err(unavailable)?),
            outputs: OutputReader::new(ends).map_err(unavailable)?,
            decoders: Default::default(),
            pty_input,
            full_output,
            cx,
            due,
            grace: config.grace,
            orphan_policy: config.orphan_policy,
            phase: CommandPhase::Running,
            reason: None,
            ended: None,
            started,
            duration: None,
            output_bytes: 0,
        })
    }

    /// Detaches the command from the call that started it: from now on only cancelling `stop` terminates it.
    pub(crate) fn detach(mut self, stop: CancelToken) -> Self {
        self.cx = self.cx.for_cleanup().with_cancel_token(stop);
        self
    }

    /// Returns the path of the file with the full output.
    pub(crate) fn full_output(&self) -> Option<&VfsPath> {
        self.full_output.as_ref().map(FullOutputFile::path)
    }

    /// Returns a handle that terminates the command from elsewhere.
    pub(crate) fn control(&self) -> Arc<SupervisorControl> {
        Arc::clone(&self.process.control)
    }

    /// Returns the next chunk of output, or `None` after the end. Cancel safe, except that a call which is dropped inside a
    /// character or during a write to the output file loses the chunk at hand.
    pub(crate) async fn next(&mut self) -> Result<Option<(OutputStream, String)>> {
        loop {
            if self.phase == CommandPhase::Finished {
                return self.flush_remainder().await;
            }
            if let CommandPhase::Draining(left) = self.phase {
                let chunk =
                    self.outputs.try_read().map_err(unreadable)?.map(|(stream, bytes)| (stream, bytes.to_vec()));
                self.phase = match &chunk {
                    Some((_, bytes)) if bytes.len() < left => CommandPhase::Draining(left - bytes.len()),
                    _ => CommandPhase::Finished,
                };
                if let Some((stream, bytes)) = chunk
                    && let Some(text) = self.decode(stream, &bytes).await?
                {
                    return Ok(Some((stream, text)));
                }
                continue;
            }
            // Let other tasks and timers run, also if output arrives without a pause.
            consume_budget().await;
            match self.next_event().await? {
                CommandEvent::Timer(alarm) => self.handle_timer(alarm),
                CommandEvent::Exit(status) => self.handle_status(status),
                CommandEvent::InputWritten => self.pty_input = None,
                CommandEvent::FlushDue => self.flush().await?,
                CommandEvent::Closed => {}
                CommandEvent::Output(stream, bytes) => {
                    if let Some(text) = self.decode(stream, &bytes).await? {
                        return Ok(Some((stream, text)));
                    }
                }
            }
            if self.status.is_none() && self.outputs.are_closed() {
                self.phase = CommandPhase::Finished;
            }
        }
    }

    /// Waits for the exit or the next timer event and handles it, for callers that wait for something else than
    /// [`next`](Self::next).
    pub(crate) async fn watch(&mut self) -> Result<()> {
        tokio::select! {
            biased;
            status = read_status(self.status.as_ref()) => self.handle_status(status.map_err(unreadable)?),
            alarm = next_timer_event(&self.cx, self.phase, self.due) => self.handle_timer(alarm),
        }
        Ok(())
    }

    /// Returns the result without the output, and the reason if the command was terminated.
    pub(crate) fn outcome(&self) -> Result<(ExecuteResponse, Option<TerminationReason>)> {
        if self.ended.is_none() && self.status.is_none() && self.reason.is_none() {
            return Err(Error::new(
                ErrorKind::Internal,
                "running the command failed: its supervisor was killed, and the command with it; check which of its changes \
                 were made",
            ));
        }
        let mut response = ExecuteResponse::default();
        response.exit_code = self.ended.and_then(|ended| ended.exit_code);
        response.signal = self.ended.and_then(|ended| ended.signal);
        response.timed_out = self.reason == Some(TerminationReason::TimedOut);
        response.output_bytes = self.output_bytes;
        response.duration = self.duration.unwrap_or_else(|| self.started.elapsed());
        response.full_output = self.full_output().cloned();
        Ok((response, self.reason))
    }

    async fn next_event(&mut self) -> Result<CommandEvent> {
        let pty_input = async {
            match &mut self.pty_input {
                Some(pty_input) => pty_input.write_all().await,
                None => future::pending().await,
            }
        };
        let is_open = !self.outputs.are_closed();
        let flush_due = self.full_output.as_ref().and_then(FullOutputFile::due);
        tokio::select! {
            // Poll in this order: exit status, stop request, output; so heavy output cannot delay noticing the exit.
            biased;
            status = read_status(self.status.as_ref()) => status.map(CommandEvent::Exit).map_err(unreadable),
            alarm = next_timer_event(&self.cx, self.phase, self.due) => Ok(CommandEvent::Timer(alarm)),
            () = sleep_until_some(flush_due) => Ok(CommandEvent::FlushDue),
            () = pty_input => Ok(CommandEvent::InputWritten),
            chunk = self.outputs.read(), if is_open => Ok(match chunk.map_err(unreadable)? {
                Some((stream, bytes)) => CommandEvent::Output(stream, bytes.to_vec()),
                None => CommandEvent::Closed,
            }),
        }
    }

    fn handle_timer(&mut self, alarm: CommandTimerEvent) {
        match alarm {
            CommandTimerEvent::Terminate(reason) => {
                self.reason = Some(reason);
                self.terminate();
            }
            CommandTimerEvent::LingerOver => self.terminate(),
            CommandTimerEvent::GiveUp => self.phase = CommandPhase::Draining(MAX_DRAIN_BYTES),
        }
    }

    fn terminate(&mut self) {
        self.process.control.terminate();
        self.phase = CommandPhase::Terminating(Instant::now() + self.grace + KILL_TIMEOUT);
    }

    fn handle_status(&mut self, status: Option<ProgramExit>) {
        let Some(ended) = status else {
            // The supervisor has exited, so no process is left that could print.
            self.status = None;
            self.duration.get_or_insert_with(|| self.started.elapsed());
            if !matches!(self.phase, CommandPhase::Draining(_) | CommandPhase::Finished) {
                self.phase = CommandPhase::Terminating(Instant::now() + CLOSE_TIMEOUT);
            }
            return;
        };
        self.ended = Some(ended);
        self.duration = Some(self.started.elapsed());
        if self.phase != CommandPhase::Running {
            return;
        }
        match self.orphan_policy {
            _ if !ended.has_orphans => self.phase = CommandPhase::Terminating(Instant::now() + CLOSE_TIMEOUT),
            OrphanPolicy::Kill => self.phase = CommandPhase::Lingering(Instant::now() + LINGER_TIMEOUT),
            OrphanPolicy::Detach => {
                self.process.control.release();
                self.phase = CommandPhase::Draining(MAX_DRAIN_BYTES);
            }
        }
    }

    async fn decode(&mut self, stream: OutputStream, bytes: &[u8]) -> Result<Option<String>> {
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

    /// Flushes the output file and returns the text that the decoders still hold.
    async fn flush_remainder(&mut self) -> Result<Option<(OutputStream, String)>> {
        self.flush().await?;
        let remainder = |stream: OutputStream, decoder: &mut Utf8StreamDecoder| {
            Some((stream, decoder.finish())).filter(|(_, text)| !text.is_empty())
        };
        let [stdout, stderr] = &mut self.decoders;
        Ok(remainder(OutputStream::Stdout, stdout).or_else(|| remainder(OutputStream::Stderr, stderr)))
    }
}

/// Next event in the life of a command.
enum CommandEvent {
    Timer(CommandTimerEvent),
    /// Exit of the program, or `None` when the supervisor has exited.
    Exit(Option<ProgramExit>),
    InputWritten,
    /// The output file is due for a flush.
    FlushDue,
    Closed,
    Output(OutputStream, Vec<u8>),
}

/// Event of the timer of a command.
enum CommandTimerEvent {
    Terminate(TerminationReason),
    LingerOver,
    GiveUp,
}

/// Waits for the next event that a timer or the caller causes in `phase`.
async fn next_timer_event(cx: &OpContext, phase: CommandPhase, due: Option<Instant>) -> CommandTimerEvent {
    match phase {
        CommandPhase::Running => tokio::select! {
            biased;
            () = cx.cancel_token().cancelled() => CommandTimerEvent::Terminate(TerminationReason::Cancelled),
            () = sleep_until_some(cx.deadline()) => CommandTimerEvent::Terminate(TerminationReason::DeadlinePassed),
            () = sleep_until_some(due) => CommandTimerEvent::Terminate(TerminationReason::TimedOut),
        },
        CommandPhase::Lingering(until) => {
            sleep_until_some(Some(until)).await;
            CommandTimerEvent::LingerOver
        }
        CommandPhase::Terminating(until) => {
            sleep_until_some(Some(until)).await;
            CommandTimerEvent::GiveUp
        }
        CommandPhase::Draining(_) | CommandPhase::Finished => future::pending().await,
    }
}

async fn sleep_until_some(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => future::pending().await,
    }
}

/// Runs `start` until it is done, `timeout` is over or `cx` ends. The start may have to wait for a thread of the blocking
/// pool.
pub(crate) async fn run_until_due<T>(
    cx: &OpContext,
    timeout: Option<Duration>,
    start: impl Future<Output = Result<T>>,
) -> Result<T> {
    let due = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    tokio::select! {
        started = start => started,
        alarm = next_timer_event(cx, CommandPhase::Running, due) => Err(match alarm {
            CommandTimerEvent::Terminate(TerminationReason::Cancelled) => Error::of(ErrorKind::Cancelled),
            CommandTimerEvent::Terminate(TerminationReason::DeadlinePassed) => Error::of(ErrorKind::Timeout),
            _ => Error::new(
                ErrorKind::Unavailable,
                "starting the command failed: all threads of the runtime are busy; try again later",
            ),
        }),
    }
}

/// Waits for the next record of the supervisor; `None` means that the supervisor has exited.
async fn read_status(status: Option<&AsyncFd<OwnedFd>>) -> io::Result<Option<ProgramExit>> {
    let Some(status) = status else { return future::pending().await };
    let mut bytes = [0; STATUS_RECORD_BYTES];
    // Records are smaller than `PIPE_BUF`, so they are written and read in one chunk.
    let read = status.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut bytes)?)).await?;
    Ok((read > 0).then(|| ProgramExit::read(bytes)))
}

/// Opens the standard input of a command without a terminal.
fn open_stdin(text: Option<&str>) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    match text {
        Some(text) => process::sealed_input(text),
        None => Ok(rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
    }
}

fn unavailable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "starting a process failed: the system refused it; try again later")
        .with_source(error)
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "reading the output of the command failed").with_source(error)
}
