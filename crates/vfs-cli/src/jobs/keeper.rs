//! The process that keeps a job.

use std::fs::File;
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream, FuturesUnordered};
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};
use vfs_core::{
    Backend, CancelToken, CommandExit, Error, ErrorKind, ExecuteEvent, ExecuteRequest, Job, JobId, OpContext,
};

use super::directory::Directory;
use super::kept::{Jobs, STOP};
use super::recording::Recording;
use super::tell_started;
use crate::commands::streaming;
use crate::escape::escaped;
use crate::exit::{Exit, Failure, warning};

/// How long a command that cannot be started has to fail. Nothing tells that one was started until it prints or ends.
const STARTING: Duration = Duration::from_millis(200);

/// How many connections are open at a time; others wait until one is closed.
const CONNECTIONS: usize = 32;

/// How long who connects has to say something.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long is waited before another connection is accepted, where the machine has no room for one.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a command to its end as the job `id`: records what it prints and how it ends, and ends it when that is asked for.
pub(crate) async fn keep(
    id: String,
    cx: OpContext,
    backend: &dyn Backend,
    request: ExecuteRequest,
) -> Result<Exit, Failure> {
    let mut job = Job::new(JobId::new(id), request.command.clone(), Utc::now());
    let directory = Jobs::open_or_make().await?.make(&job.id).await?;
    let mut keeper = match Keeper::begin(&job, &directory, cx, backend, request).await {
        Ok(keeper) => keeper,
        Err(failure) => {
            // What never began is no job. Why it did not matters more than that it cannot be removed.
            let _removed = directory.remove().await;
            return Err(failure);
        }
    };
    job.exit = Some(keeper.end().await);
    directory.save(&job).await?;
    Ok(Exit::Success)
}

/// Keeps one job.
struct Keeper {
    events: BoxStream<'static, vfs_core::Result<ExecuteEvent>>,
    begun: Instant,
    cancel: CancelToken,
    output: Recording<File>,
    asked: UnixListener,
    /// Those who asked for the end, and see it when their connections are closed: with this process.
    waiting: Vec<UnixStream>,
    terminated: Signal,
    hung_up: Signal,
}

impl Keeper {
    /// Starts the command, and tells so.
    async fn begin(
        job: &Job,
        directory: &Directory,
        cx: OpContext,
        backend: &dyn Backend,
        request: ExecuteRequest,
    ) -> Result<Self, Failure> {
        let unheard = |error| Failure::Job("signals cannot be received", error);
        let terminated = signal(SignalKind::terminate()).map_err(unheard)?;
        let hung_up = signal(SignalKind::hangup()).map_err(unheard)?;
        let output = directory.record()?;
        // Where there is a record, somebody listens.
        let asked = directory.listen()?;
        directory.save(job).await?;
        let cancel = CancelToken::new();
        let begun = Instant::now();
        let cx = cx.with_cancel_token(cancel.clone());
        let events = started(streaming(backend)?.execute_stream(cx, request)).await?;
        tell_started()?;
        Ok(Self { events, begun, cancel, output, asked, waiting: Vec::new(), terminated, hung_up })
    }

    /// Records what the command prints until it ends.
    async fn end(&mut self) -> CommandExit {
        let mut asking = FuturesUnordered::new();
        let exit = loop {
            tokio::select! {
                event = self.events.next() => match event {
                    Some(Ok(ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text))) => self.output.add(&text),
                    Some(Ok(ExecuteEvent::Exit(ended))) => {
                        for problem in &ended.problems {
                            self.output.add(&format!("\nvfs: {}\n", escaped(&warning(problem))));
                        }
                        break ended.exit();
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) if error.kind() == ErrorKind::Cancelled => break self.given_up(),
                    Some(Err(error)) => {
                        self.output.add(&format!("\nvfs: {error}\n"));
                        break self.given_up();
                    }
                    None => break self.given_up(),
                },
                connection = accepted(&self.asked), if asking.len() + self.waiting.len() < CONNECTIONS => {
                    asking.push(asks_to_stop(connection));
                }
                Some(asked) = asking.next() => if let Some(connection) = asked {
                    self.waiting.push(connection);
                    self.cancel.cancel();
                },
                _ = self.terminated.recv() => self.cancel.cancel(),
                // The terminal that it was started from is gone, and it stays.
                _ = self.hung_up.recv() => {}
            }
        };
        self.output.finish();
        exit
    }

    /// The end of a command that did not end by itself.
    fn given_up(&self) -> CommandExit {
        let mut exit = CommandExit::default();
        exit.duration = self.begun.elapsed();
        exit
    }
}

/// The events of a command that runs, or why it does not.
async fn started(
    mut events: BoxStream<'static, vfs_core::Result<ExecuteEvent>>,
) -> vfs_core::Result<BoxStream<'static, vfs_core::Result<ExecuteEvent>>> {
    match timeout(STARTING, events.next()).await {
        Err(_silent) => Ok(events),
        Ok(Some(first)) => Ok(stream::iter([Ok(first?)]).chain(events).boxed()),
        Ok(None) => Err(Error::new(ErrorKind::Internal, "the command's output ended without its exit")),
    }
}

/// The next connection.
async fn accepted(listener: &UnixListener) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => return connection,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// A connection, if it asks for the end; all it may say is one byte, which it sends at once.
async fn asks_to_stop(mut connection: UnixStream) -> Option<UnixStream> {
    let said = timeout(PATIENCE, connection.read_u8()).await;
    matches!(said, Ok(Ok(STOP))).then_some(connection)
}
