//! Client process of this machine that runs a script in a place, as `ssh` or `docker` does.

use std::ffi::OsString;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use vfs_core::{Error, ErrorKind, Result};

use super::diagnostics::{self, ClientDiagnostics, ErrorClassifier};
use super::frame_decoder::FrameDecoder;
use super::script_bootstrap::ScriptBootstrap;
use crate::exec::{RemoteExit, RemoteOutput, ScriptInvocation};

/// Time that a client has to exit by itself when the script has ended, and after a cancellation.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for which outputs are read after the client has exited: processes that it started may keep them open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A program with its arguments, to which the words of a bootstrap are added.
#[derive(Clone)]
pub(super) struct ClientProgram {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Converts the diagnostics of the program to an error.
    pub(super) classify: ErrorClassifier,
}

impl fmt::Debug for ClientProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientProgram").field("program", &self.program).finish_non_exhaustive()
    }
}

impl ClientProgram {
    /// Runs a script through the program.
    ///
    /// A task of its own does the work, so that it ends the script and reaps the program even if the caller drops the
    /// future. The task holds `permit` until the program has exited.
    pub(super) async fn run(
        self,
        bootstrap: ScriptBootstrap,
        invocation: ScriptInvocation,
        permit: impl Send + 'static,
    ) -> Result<RemoteOutput> {
        let (mut running, streams) = ClientProcess::start(&self.program, &self.arguments)?;
        let (cancel, cancelled) = oneshot::channel::<()>();
        let (response_sender, response) = oneshot::channel();
        tokio::spawn(async move {
            let conversation = ClientExchange::new(streams, bootstrap, &invocation);
            let (outcome, shutdown) = conversation.run(&mut running, invocation.timeout, cancelled).await;
            // If the caller has dropped the future, nothing receives the response.
            let _ = response_sender.send(outcome.into_result(self.classify));
            running.shut_down(shutdown).await;
            drop(permit);
        });
        let response = response.await;
        drop(cancel);
        response.unwrap_or_else(|_| Err(Error::new(ErrorKind::Cancelled, "the runtime was shut down")))
    }
}

/// This process's ends of a program's standard streams.
#[derive(Debug)]
pub(super) struct ChildStreams {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A running program. Its process group is killed on drop.
#[derive(Debug)]
pub(super) struct ClientProcess {
    child: Child,
    group: Option<Pid>,
}

impl ClientProcess {
    /// Starts a program with pipes to all its standard streams.
    pub(super) fn start(program: &OsString, arguments: &[OsString]) -> Result<(Self, ChildStreams)> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| diagnostics::not_started(program, error))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let running = Self { child, group };
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(Error::new(ErrorKind::Internal, "a program was started without its standard streams"));
        };
        Ok((running, ChildStreams { stdin, stdout, stderr }))
    }

    /// Waits until the program has exited. Returns its exit code, or `None` if a signal ended the program.
    pub(super) async fn wait(&mut self) -> Option<i32> {
        // An error would mean that the program is reaped already.
        self.child.wait().await.ok()?.code()
    }

    /// Waits for the program to exit by itself, and kills it if it does not.
    async fn shut_down(mut self, shutdown: ClientShutdown) {
        match shutdown {
            ClientShutdown::ExitMessage(writing) => {
                let _ = timeout(EXIT_TIMEOUT, async {
                    // The writer ends when all input is written, or when the program reads no more.
                    let _ = writing.await;
                    self.wait().await;
                })
                .await;
            }
            ClientShutdown::StdinClosed => {
                let _ = timeout(CANCEL_TIMEOUT, self.wait()).await;
            }
        }
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // While the leader is not reaped, no other group can have its number.
        if let Some(group) = self.group.filter(|_| self.child.id().is_some()) {
            // The program may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The way in which a program is asked to exit after an exchange.
#[derive(Debug)]
enum ClientShutdown {
    /// The script has ended, and this task sends the bootstrap its exit message.
    ExitMessage(JoinHandle<()>),
    /// The standard input of the program is closed, which ends the script.
    StdinClosed,
}

/// An exchange with a running program.
struct ClientExchange {
    stdin: ChildStdin,
    stdout: FramedReader<ChildStdout>,
    stderr: FramedReader<ChildStderr>,
    input: [Bytes; 3],
    exit_message: Bytes,
}

/// The outcome of the exchange.
struct ExchangeOutcome {
    stdout: FrameDecoder,
    stderr: FrameDecoder,
    end: ExchangeEnd,
    /// The program's exit code, if this process has waited for it.
    exit_code: Option<i32>,
}

/// The reason for the end of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeEnd {
    /// Both outputs are complete, or have ended early.
    Outputs,
    /// The timeout passed.
    TimedOut,
    /// The caller has dropped the future.
    Cancelled,
}

impl ClientExchange {
    fn new(streams: ChildStreams, bootstrap: ScriptBootstrap, invocation: &ScriptInvocation) -> Self {
        let framed = || FrameDecoder::new(&bootstrap.marker, invocation.output_buffer());
        Self {
            stdin: streams.stdin,
            stdout: FramedReader::new(streams.stdout, framed()),
            stderr: FramedReader::new(streams.stderr, framed()),
            input: bootstrap.input,
            exit_message: bootstrap.exit_message,
        }
    }

    /// Writes the input and reads the outputs to their end, or until the timeout passes or the caller drops the future.
    async fn run(
        self,
        running: &mut ClientProcess,
        time: Duration,
        cancelled: oneshot::Receiver<()>,
    ) -> (ExchangeOutcome, ClientShutdown) {
        let Self { stdin, mut stdout, mut stderr, input, exit_message } = self;
        let (release, released) = oneshot::channel::<()>();
        let writing = tokio::spawn(write(stdin, input, exit_message, released));
        let end = {
            let outputs = async { tokio::join!(stdout.read_to_end(), stderr.read_to_end()) };
            tokio::pin!(outputs);
            let whole = async {
                tokio::select! {
                    _ = &mut outputs => {}
                    _ = running.wait() => {
                        let _ = timeout(DRAIN_TIMEOUT, &mut outputs).await;
                    }
                }
            };
            tokio::select! {
                () = whole => ExchangeEnd::Outputs,
                () = sleep(time) => ExchangeEnd::TimedOut,
                _ = cancelled => ExchangeEnd::Cancelled,
            }
        };
        let is_whole = stdout.framed.ending().is_some() && stderr.framed.ending().is_some();
        // The exit code may explain an incomplete response.
        let exit_code = match end {
            ExchangeEnd::Outputs if !is_whole => timeout(DRAIN_TIMEOUT, running.wait()).await.ok().flatten(),
            _ => None,
        };
        let shutdown = if is_whole {
            // If the writer has ended early, there is nothing left to release.
            let _ = release.send(());
            ClientShutdown::ExitMessage(writing)
        } else {
            writing.abort();
            ClientShutdown::StdinClosed
        };
        (ExchangeOutcome { stdout: stdout.finish(), stderr: stderr.finish(), end, exit_code }, shutdown)
    }
}

/// Writes the input, and the exit message once `released` completes. Aborting this task closes standard input.
async fn write(mut stdin: ChildStdin, input: [Bytes; 3], exit_message: Bytes, released: oneshot::Receiver<()>) {
    let written = async {
        for mut piece in input {
            stdin.write_all_buf(&mut piece).await?;
        }
        stdin.flush().await?;
        if released.await.is_ok() {
            stdin.write_all(&exit_message).await?;
            stdin.flush().await?;
        }
        Ok::<(), std::io::Error>(())
    };
    // A failed write means that the program has exited or soon will, which its outputs show.
    let _ = written.await;
}

/// Reader of one output, which is decoded as it arrives.
struct FramedReader<R> {
    source: R,
    buffer: BytesMut,
    framed: FrameDecoder,
}

impl<R: AsyncRead + Unpin> FramedReader<R> {
    fn new(source: R, framed: FrameDecoder) -> Self {
        Self { source, buffer: BytesMut::with_capacity(64 * 1024), framed }
    }

    /// Reads until the output is complete or ends early.
    async fn read_to_end(&mut self) {
        while self.framed.ending().is_none() {
            self.buffer.clear();
            // An output that cannot be read any more has ended early.
            if !matches!(self.source.read_buf(&mut self.buffer).await, Ok(1..)) {
                return;
            }
            self.framed.feed(&self.buffer);
        }
    }

    fn finish(mut self) -> FrameDecoder {
        self.framed.finish();
        self.framed
    }
}

impl ExchangeOutcome {
    fn into_result(self, classify: ErrorClassifier) -> Result<RemoteOutput> {
        let Self { stdout, stderr, end, exit_code } = self;
        let exit = match (stdout.ending(), stderr.ending()) {
            (_, Some("input")) => return Err(diagnostics::no_input()),
            (Some(code), Some(again)) if code == again => match code.parse() {
                Ok(code) => RemoteExit::Exited(code),
                Err(_) => return Err(diagnostics::broken_answer()),
            },
            (Some(_), Some(_)) => return Err(diagnostics::broken_answer()),
            _ if end == ExchangeEnd::TimedOut && stdout.is_started() => RemoteExit::TimedOut,
            _ if end == ExchangeEnd::Cancelled => return Err(Error::of(ErrorKind::Cancelled)),
            _ => {
                let started = stdout.is_started() || stderr.is_started();
                let late = end == ExchangeEnd::TimedOut;
                let diagnostics = ClientDiagnostics::new(stderr.preface(), stdout.preface(), started, late);
                return Err(classify(&diagnostics.with_exit_code(exit_code)));
            }
        };
        Ok(RemoteOutput::from_buffers(exit, stdout.into_output(), stderr.into_output()))
    }
}
