//! `vfs batch`: JSON requests in, JSON answers out, one a line.

mod answer;
mod commands;
mod in_flight;
mod json;
mod lines;
mod perform;
mod queue;
mod request;
mod transfer;

use std::io::{self, Write};

use futures::stream::{self, Stream, StreamExt as _};

use self::answer::Answer;
use self::commands::CommandRunner;
use crate::args::BatchArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, wait_until_closed};
use crate::session::Session;
use crate::streams;

pub(super) async fn run(session: &Session, out: &mut Output, args: BatchArgs) -> Result<Exit, Failure> {
    streams::check_stdin()?;
    let commands = CommandRunner::open(session, &args).await?;
    let queue = queue::start(session.cx.cancel_token())?;
    let queue = stream::unfold(queue, |mut queue| async { Some((queue.recv().await?, queue)) });
    let answers = queue.map(|queued| async { Ok(answer::to(session, &commands, queued?).await) });
    let answers = answers.buffer_unordered(usize::from(args.jobs));
    let written = write(out, answers).await;
    let closed = commands.close(session).await;
    let exit = written?;
    closed?;
    Ok(exit)
}

/// Writes each answer as soon as it is ready.
async fn write(out: &mut Output, answers: impl Stream<Item = Result<Answer, io::Error>>) -> Result<Exit, Failure> {
    let mut answers = std::pin::pin!(answers);
    let mut closed = std::pin::pin!(wait_until_closed());
    loop {
        let answer = tokio::select! {
            // Dropping the requests in flight cancels them.
            error = &mut closed => return Err(Failure::Output(error)),
            answer = answers.next() => answer,
        };
        let Some(answer) = answer else { return Ok(Exit::Success) };
        answer.map_err(Failure::Input)?.write(out)?;
        out.flush()?;
    }
}
