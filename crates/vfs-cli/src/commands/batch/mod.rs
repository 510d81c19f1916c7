//! Command `vfs batch`: answers JSON requests from standard input, one per line.

mod batch_answer;
mod batch_request;
mod batch_shell;
mod bounded_json;
mod dispatch;
mod in_flight_requests;
mod line_reader;
mod request_queue;
mod transfer;

use std::io::{self, Write};

use futures::stream::{self, Stream, StreamExt as _};

use self::batch_answer::{AnswerError, BatchAnswer};
use self::batch_shell::BatchShell;
use self::request_queue::{ParsedLine, QueuedLine};
use crate::args::BatchArgs;
use crate::backend_session::BackendSession;
use crate::exit::{Exit, Failure};
use crate::path_suggestions;
use crate::standard_output::{StandardOutput, wait_until_closed};
use crate::standard_streams;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: BatchArgs) -> Result<Exit, Failure> {
    standard_streams::check_stdin()?;
    let commands = BatchShell::open(session, &args).await?;
    let queue = request_queue::start(session.cx.cancel_token())?;
    let queue = stream::unfold(queue, |mut queue| async { Some((queue.recv().await?, queue)) });
    let answers = queue.map(|queued| async { Ok(answer_request(session, &commands, queued?).await) });
    let answers = answers.buffer_unordered(usize::from(args.jobs));
    let result = write_answers(out, answers).await;
    let closed = commands.close(session).await;
    let exit = result?;
    closed?;
    Ok(exit)
}

/// Performs a queued request and returns its answer.
async fn answer_request(session: &BackendSession, commands: &BatchShell, queued: QueuedLine) -> BatchAnswer {
    let QueuedLine { line, permit } = queued;
    drop(permit);
    let (mut request, registration) = match line {
        ParsedLine::Request(request, registration) => (request, registration),
        ParsedLine::Answered(answer) => return answer,
    };
    let id = request.id.take();
    // Operations that create a file or test for one refer to exactly this path, so suggestions are no help.
    let needs_exact_path =
        matches!(request.op.as_deref(), Some("write" | "upload_files" | "upload" | "stat" | "resolve"));
    let cx = session.cx.clone().with_cancel_token(registration.token.clone());
    match dispatch::perform(session, commands, cx, request).await {
        Err(error) if !needs_exact_path => {
            let near = path_suggestions::similar_paths(session, &error).await;
            BatchAnswer::with_error(id, AnswerError { error, near })
        }
        outcome => BatchAnswer::new(id, outcome),
    }
}

/// Writes each answer as soon as it is ready.
async fn write_answers(
    out: &mut StandardOutput,
    answers: impl Stream<Item = Result<BatchAnswer, io::Error>>,
) -> Result<Exit, Failure> {
    let mut answers = std::pin::pin!(answers);
    let mut closed = std::pin::pin!(wait_until_closed());
    loop {
        let answer = tokio::select! {
            // Returning drops the requests in flight, which cancels them.
            error = &mut closed => return Err(Failure::Output(error)),
            answer = answers.next() => answer,
        };
        let Some(answer) = answer else { return Ok(Exit::Success) };
        answer.map_err(Failure::Input)?.write(out)?;
        out.flush()?;
    }
}
