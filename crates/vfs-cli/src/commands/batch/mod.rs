//! `vfs batch`: JSON requests in, JSON answers out, one a line.

mod answer;
mod json;
mod lines;
mod perform;
mod request;
mod transfer;

use std::io::{self, BufReader, Write};

use futures::StreamExt;
use futures::stream;
use tokio::sync::mpsc;

use self::lines::Line;
use crate::args::BatchArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, wait_until_closed};
use crate::session::Session;

/// 64 MiB, the longest line that is taken for a request.
const MAX_LINE: usize = 64 << 20;

pub(super) async fn run(session: &Session, out: &mut Output, args: BatchArgs) -> Result<Exit, Failure> {
    // One line waits while the jobs are busy; the thread that reads blocks on the next.
    let (sender, receiver) = mpsc::channel(1);
    std::thread::Builder::new().name("stdin".into()).spawn(move || read_lines(&sender)).map_err(Failure::Runtime)?;
    let lines = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let answers = lines.map(|line| async { Ok(answer::to(session, line?).await) });
    let mut answers = std::pin::pin!(answers.buffer_unordered(usize::from(args.jobs)));
    let mut closed = std::pin::pin!(wait_until_closed());
    loop {
        let answer = tokio::select! {
            // Requests that are under way are dropped, which cancels them.
            error = &mut closed => return Err(Failure::Output(error)),
            answer = answers.next() => answer,
        };
        let Some(answer) = answer else { return Ok(Exit::Success) };
        answer.map_err(Failure::Input)?.write(out)?;
        out.flush()?;
    }
}

/// Sends every line that is not empty until the input ends, fails, or nobody listens any more.
fn read_lines(sender: &mpsc::Sender<io::Result<Line>>) {
    let mut input = BufReader::with_capacity(256 << 10, io::stdin());
    while let Some(line) = lines::next(&mut input, MAX_LINE).transpose() {
        let last = line.is_err();
        if matches!(&line, Ok(Line::Whole(text)) if text.trim_ascii().is_empty()) {
            continue;
        }
        if sender.blocking_send(line).is_err() || last {
            return;
        }
    }
}
