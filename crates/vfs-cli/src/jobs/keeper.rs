//! The process that keeps a job.

use std::pin::pin;
use std::time::Instant;

use chrono::Utc;
use futures::StreamExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use vfs_core::{Backend, CancelToken, CommandExit, ErrorKind, ExecuteEvent, ExecuteRequest, Job, JobId, OpContext};

use super::kept::{Directory, Jobs};
use super::tell_started;
use crate::commands::streaming;
use crate::exit::{Exit, Failure};

/// Keeps one job: records what it prints and how it ends, and ends it when it is asked to.
#[derive(Debug)]
pub(crate) struct Keeper {
    job: Job,
    directory: Directory,
    asked: UnixListener,
    terminated: Signal,
    hung_up: Signal,
}

impl Keeper {
    /// Makes the job's directory.
    pub(crate) fn begin(id: String, request: &ExecuteRequest) -> Result<Self, Failure> {
        let job = Job::new(JobId::new(id), request.command.clone(), Utc::now());
        let directory = Jobs::open()?.make(&job.id)?;
        let asked = UnixListener::bind(directory.socket()).map_err(Failure::Runtime)?;
        let terminated = signal(SignalKind::terminate()).map_err(Failure::Runtime)?;
        let hung_up = signal(SignalKind::hangup()).map_err(Failure::Runtime)?;
        Ok(Self { job, directory, asked, terminated, hung_up })
    }

    /// Runs the command to its end.
    pub(crate) async fn keep(mut self, backend: &dyn Backend, request: ExecuteRequest) -> Result<Exit, Failure> {
        let cancel = CancelToken::new();
        let cx = OpContext::new().with_cancel_token(cancel.clone());
        let mut events = pin!(streaming(backend)?.execute_stream(cx, request));
        self.directory.save(&self.job).await?;
        tell_started()?;
        let begun = Instant::now();
        // Those who wait for the end see it when their connection closes, with this process.
        let mut waiting = Vec::new();
        let exit = loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(ExecuteEvent::Stdout(text) | ExecuteEvent::Stderr(text))) => {
                        self.directory.append(text).await?;
                    }
                    Some(Ok(ExecuteEvent::Exit(ended))) => break ended.exit(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) if error.kind() == ErrorKind::Cancelled => break given_up(begun),
                    Some(Err(error)) => {
                        self.directory.append(format!("\nvfs: {error}\n")).await?;
                        break given_up(begun);
                    }
                    None => break given_up(begun),
                },
                connection = self.asked.accept() => if let Ok((connection, _)) = connection {
                    waiting.push(connection);
                    if is_stop(waiting.last_mut()).await {
                        cancel.cancel();
                    }
                },
                _ = self.terminated.recv() => cancel.cancel(),
                // The terminal that it was started from is gone, and it stays.
                _ = self.hung_up.recv() => {}
            }
        };
        self.job.exit = Some(exit);
        self.directory.save(&self.job).await?;
        Ok(Exit::Success)
    }
}

/// The end of a command that did not end by itself.
fn given_up(begun: Instant) -> CommandExit {
    let mut exit = CommandExit::default();
    exit.duration = begun.elapsed();
    exit
}

/// Whether the other side asks for the end; all it may say is one byte, which it sends at once or closes.
async fn is_stop(connection: Option<&mut UnixStream>) -> bool {
    match connection {
        Some(connection) => matches!(connection.read_u8().await, Ok(super::kept::STOP)),
        None => false,
    }
}
