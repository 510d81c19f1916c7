//! Requests on their way from standard input, read ahead so that one that is under way can be cancelled.

use std::io::{self, BufReader};
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use vfs_core::{CancelToken, Error, ErrorKind, Result};

use super::answer::Answer;
use super::json::encode;
use super::lines::{self, Line};
use super::perform::Performed;
use super::request::{self, Request};
use super::under_way::{Entry, UnderWay};
use crate::exit::Failure;

/// 64 MiB, the longest line that is taken for a request.
const MAX_LINE: usize = 64 << 20;

/// The most requests that are read ahead.
const MAX_QUEUED: usize = 256;

/// 128 MiB, the memory that requests which are read ahead may take, in units of [`UNIT`]. One request may take more.
const MAX_QUEUED_UNITS: usize = 2 * MAX_LINE / UNIT;

/// The unit in which queued bytes are counted.
const UNIT: usize = 1 << 10;

/// How many times as much memory the fields of a line may take as its text, about.
const MAX_GROWTH: usize = 16;

/// A line of input, as far as it could be read.
pub(super) struct Queued {
    pub(super) incoming: Incoming,
    /// Room in the queue, to be dropped when the request is begun.
    pub(super) room: OwnedSemaphorePermit,
}

/// What a line asks for.
pub(super) enum Incoming {
    /// Something to be done, and where it is entered.
    Request(Request, Entry),
    /// Nothing that is left to be done.
    Answered(Answer),
}

/// Starts to read standard input. `wanted` is cancelled where no request is wanted any more.
pub(super) fn start(wanted: &CancelToken) -> Result<mpsc::Receiver<io::Result<Queued>>, Failure> {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    let under_way = UnderWay::new(wanted.child());
    let read = move || read(&sender, &under_way);
    std::thread::Builder::new().name("stdin".into()).spawn(read).map_err(Failure::Runtime)?;
    Ok(receiver)
}

/// Sends every line that is not empty until the input ends, fails, or nobody listens any more.
fn read(sender: &mpsc::Sender<io::Result<Queued>>, under_way: &UnderWay) {
    let room = Arc::new(Semaphore::new(MAX_QUEUED_UNITS));
    let mut input = BufReader::with_capacity(256 << 10, io::stdin());
    while let Some(line) = lines::next(&mut input, MAX_LINE).transpose() {
        let queued = match line {
            Ok(Line::Whole(text)) if text.trim_ascii().is_empty() => continue,
            Ok(line) => {
                let units = (line.len() / (UNIT / MAX_GROWTH) + 1).min(MAX_QUEUED_UNITS);
                let units = u32::try_from(units).unwrap_or(u32::MAX);
                // It is never closed.
                let Ok(room) = block_on(Arc::clone(&room).acquire_many_owned(units)) else { return };
                Ok(Queued { incoming: incoming(line, under_way), room })
            }
            Err(error) => Err(error),
        };
        let is_last = queued.is_err();
        if sender.blocking_send(queued).is_err() || is_last {
            return;
        }
    }
}

fn incoming(line: Line, under_way: &UnderWay) -> Incoming {
    let text = match line {
        Line::Whole(text) => text,
        Line::TooLong => return Incoming::Answered(Answer::refused(None, too_long())),
    };
    let (mut request, parsed) = request::parse(&text);
    if let Err(error) = parsed {
        return Incoming::Answered(Answer::refused(request.id, error));
    }
    if request.op.as_deref() == Some("cancel") {
        let outcome = cancel(&mut request, under_way);
        return Incoming::Answered(Answer::new(request.id, outcome));
    }
    let entry = under_way.enter(request.id.as_deref());
    Incoming::Request(request, entry)
}

/// Cancels the requests that `request` names.
fn cancel(request: &mut Request, under_way: &UnderWay) -> Result<Performed> {
    let target = request.fields.remove("request");
    if let Some(name) = request.fields.keys().next() {
        return Err(Error::invalid_argument(format!(
            "unknown field `{name}`; cancel has `request`, the id of another"
        )));
    }
    let target =
        target.ok_or_else(|| Error::invalid_argument("missing field `request`: the id of what is cancelled"))?;
    let result = encode(&json!({ "cancelled": under_way.cancel(&target) }))?;
    Ok(Performed { result, hint: None })
}

fn too_long() -> Error {
    Error::new(ErrorKind::TooLarge, format!("the line is over {MAX_LINE} bytes; send the content in smaller pieces"))
}
