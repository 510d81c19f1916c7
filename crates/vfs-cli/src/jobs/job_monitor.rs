//! The monitor process of a job: runs the command, logs its output and handles stop requests.

use std::fs::File;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream, FuturesUnordered};
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};
use vfs_core::shell::{CommandExit, JobId, JobInfo};
use vfs_core::{Backend, CancelToken, Error, ErrorKind, ExecuteEvent, ExecuteRequest, OpContext};

use super::job_directory::JobDirectory;
use super::jobs_directory::{JobsDirectory, STOP_REQUEST};
use super::monitor_launcher::report_started;
use super::output_log::OutputLog;
use crate::escape::escape;
use crate::exit::{Exit, Failure, problem_line};
use crate::shell_selection::streaming_shell;

/// Time within which a command that cannot be started fails. Until its first output or its exit, no event says that a command
/// was started.
const START_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of open connections; others wait until one is closed.
const MAX_CONNECTIONS: usize = 32;

/// Time within which a client has to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Delay before the next `accept` after one has failed, for example because no descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Runs a command as the job `id` until the command exits: logs its output, records its exit status and handles stop requests.
pub(crate) async fn run_monitored(
    id: String,
    cx: OpContext,
    backend: &dyn Backend,
    request: ExecuteRequest,
) -> Result<Exit, Failure> {
    let mut job = JobInfo::new(JobId::new(id), request.command.clone(), Utc::now());
    let directory = JobsDirectory::open_or_create().await?.create_job(&job.id).await?;
    let mut monitor = match JobMonitor::start(&job, &directory, cx, backend, request).await {
        Ok(monitor) => monitor,
        Err(failure) => {
            // A command that was not started is not a job. Its failure is more important than one of the removal.
            let _ignored = directory.remove().await;
            return Err(failure);
        }
    };
    job.exit = Some(monitor.run().await);
    directory.write_record(&job).await?;
    Ok(Exit::Success)
}

/// The state of a running job.
struct JobMonitor {
    events: BoxStream<'static, vfs_core::Result<ExecuteEvent>>,
    started_at: Instant,
    cancel: CancelToken,
    output: OutputLog<File>,
    listener: UnixListener,
    /// Clients that requested the stop. Their connections are closed when this process exits, which signals the end of
    /// the job.
    stop_clients: Vec<UnixStream>,
    terminated: Signal,
    hung_up: Signal,
}

impl JobMonitor {
    /// Starts the command, and reports that to the parent process.
    async fn start(
        job: &JobInfo,
        directory: &JobDirectory,
        cx: OpContext,
        backend: &dyn Backend,
        request: ExecuteRequest,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::Job("signals cannot be received", error);
        let terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let hung_up = signal(SignalKind::hangup()).map_err(failed)?;
        let output = directory.open_output_log()?;
        // Listen before the record exists: a job whose record has no exit status and whose monitor is unreachable counts as lost.
        let listener = directory.listen()?;
        directory.write_record(job).await?;
        let cancel = CancelToken::new();
        let started_at = Instant::now();
        let cx = cx.with_cancel_token(cancel.clone());
        let events = await_start(streaming_shell(backend)?.execute_stream(cx, request)).await?;
        report_started()?;
        Ok(Self { events, started_at, cancel, output, listener, stop_clients: Vec::new(), terminated, hung_up })
    }

    /// Logs the output of the command until the command exits.
    async fn run(&mut self) -> CommandExit {
        let mut requests = FuturesUnordered::new();
        let exit = loop {
            tokio::select! {
                event = self.events.next() => match event {
                    Some(Ok(ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text))) => self.output.append(&text),
                    Some(Ok(ExecuteEvent::Exit(ended))) => {
                        for problem in &ended.problems {
                            self.output.append(&format!("\nvfs: {}\n", escape(&problem_line(problem))));
                        }
                        break ended.exit();
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) if error.kind() == ErrorKind::Cancelled => break self.exit_without_status(),
                    Some(Err(error)) => {
                        self.output.append(&format!("\nvfs: {error}\n"));
                        break self.exit_without_status();
                    }
                    None => break self.exit_without_status(),
                },
                connection = accept(&self.listener), if requests.len() + self.stop_clients.len() < MAX_CONNECTIONS => {
                    requests.push(read_stop_request(connection));
                }
                Some(request) = requests.next() => if let Some(connection) = request {
                    self.stop_clients.push(connection);
                    self.cancel.cancel();
                },
                _ = self.terminated.recv() => self.cancel.cancel(),
                // The job outlives the terminal that it was started from.
                _ = self.hung_up.recv() => {}
            }
        };
        self.output.finish();
        exit
    }

    /// Returns the exit of a command that has no exit status of its own.
    fn exit_without_status(&self) -> CommandExit {
        let mut exit = CommandExit::default();
        exit.duration = self.started_at.elapsed();
        exit
    }
}

/// Waits a moment for the first event, and returns an error if the command cannot be started.
async fn await_start(
    mut events: BoxStream<'static, vfs_core::Result<ExecuteEvent>>,
) -> vfs_core::Result<BoxStream<'static, vfs_core::Result<ExecuteEvent>>> {
    match timeout(START_TIMEOUT, events.next()).await {
        Err(_elapsed) => Ok(events),
        Ok(Some(first)) => Ok(stream::iter([Ok(first?)]).chain(events).boxed()),
        Ok(None) => Err(Error::new(ErrorKind::Internal, "the output of the command ended without an exit status")),
    }
}

/// Accepts the next connection.
async fn accept(listener: &UnixListener) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => return connection,
            Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Returns `connection` if its first byte is a stop request.
async fn read_stop_request(mut connection: UnixStream) -> Option<UnixStream> {
    let request = timeout(REQUEST_TIMEOUT, connection.read_u8()).await;
    matches!(request, Ok(Ok(STOP_REQUEST))).then_some(connection)
}
