//! Bounded read-ahead queue of requests, so that a cancellation is seen while earlier requests run.

use std::io::{self, BufReader};
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use vfs_core::{CancelToken, Error, ErrorKind, Result};

use super::batch_answer::BatchAnswer;
use super::batch_request::{self, BatchRequest};
use super::bounded_json::encode;
use super::dispatch::EncodedResult;
use super::in_flight_requests::{InFlightRequests, RequestRegistration};
use super::line_reader::{self, InputLine};
use crate::exit::Failure;

/// Maximum length of a request in bytes, 64 MiB.
const MAX_LINE_LENGTH: usize = 64 << 20;

/// Capacity of the queue in requests.
const QUEUE_CAPACITY: usize = 256;

/// Maximum memory of queued requests, 128 MiB in units of [`UNIT`]. A single request may exceed it.
const MAX_QUEUED_UNITS: usize = 2 * MAX_LINE_LENGTH / UNIT;

/// Number of bytes of a semaphore permit, because a semaphore counts in 32 bits.
const UNIT: usize = 1 << 10;

/// Estimated ratio of the memory of parsed fields to the length of their line, in the worst case.
const MAX_GROWTH: usize = 16;

/// A line of input and its share of the memory of the queue.
pub(super) struct QueuedLine {
    pub(super) line: ParsedLine,
    /// Permit for the memory of the request; dropped when the request starts.
    pub(super) permit: OwnedSemaphorePermit,
}

/// A parsed line.
pub(super) enum ParsedLine {
    /// An operation to perform.
    Request(BatchRequest, RequestRegistration),
    /// The answer to a line that is invalid or cancels another request.
    Answered(BatchAnswer),
}

/// Starts the thread that reads standard input. Cancelling `cancel` cancels every request.
pub(super) fn start(cancel: &CancelToken) -> Result<mpsc::Receiver<io::Result<QueuedLine>>, Failure> {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let in_flight = InFlightRequests::new(cancel.child());
    let read = move || read_lines(&sender, &in_flight);
    std::thread::Builder::new().name("stdin".into()).spawn(read).map_err(Failure::Runtime)?;
    Ok(receiver)
}

/// Sends every line that is not empty, until the input ends or fails, or the receiver is dropped.
fn read_lines(sender: &mpsc::Sender<io::Result<QueuedLine>>, in_flight: &InFlightRequests) {
    let permits = Arc::new(Semaphore::new(MAX_QUEUED_UNITS));
    let mut input = BufReader::with_capacity(256 << 10, io::stdin());
    while let Some(line) = line_reader::read_line(&mut input, MAX_LINE_LENGTH).transpose() {
        let queued = match line {
            Ok(InputLine::Whole(text)) if text.trim_ascii().is_empty() => continue,
            Ok(line) => {
                let units = (line.len() / (UNIT / MAX_GROWTH) + 1).min(MAX_QUEUED_UNITS);
                let units = u32::try_from(units).unwrap_or(u32::MAX);
                // The semaphore is never closed.
                let Ok(permit) = block_on(Arc::clone(&permits).acquire_many_owned(units)) else { return };
                Ok(QueuedLine { line: parse_line(line, in_flight), permit })
            }
            Err(error) => Err(error),
        };
        let is_last = queued.is_err();
        if sender.blocking_send(queued).is_err() || is_last {
            return;
        }
    }
}

fn parse_line(line: InputLine, in_flight: &InFlightRequests) -> ParsedLine {
    let text = match line {
        InputLine::Whole(text) => text,
        InputLine::TooLong => return ParsedLine::Answered(BatchAnswer::invalid(None, line_too_long())),
    };
    let (mut request, parsed) = batch_request::parse(&text);
    if let Err(error) = parsed {
        return ParsedLine::Answered(BatchAnswer::invalid(request.id, error));
    }
    if request.op.as_deref() == Some("cancel") {
        let outcome = cancel(&mut request, in_flight);
        return ParsedLine::Answered(BatchAnswer::new(request.id, outcome));
    }
    let registration = in_flight.register(request.id.as_deref());
    ParsedLine::Request(request, registration)
}

/// Cancels the requests whose id is in the field `request`.
fn cancel(request: &mut BatchRequest, in_flight: &InFlightRequests) -> Result<EncodedResult> {
    let target = request.fields.remove("request");
    if let Some(name) = request.fields.keys().next() {
        return Err(Error::invalid_argument(format!(
            "unknown field `{name}`; `cancel` has only `request`, the id of the request to cancel"
        )));
    }
    let target = target
        .ok_or_else(|| Error::invalid_argument("missing field `request`; give the id of the request to cancel"))?;
    let result = encode(&json!({ "cancelled": in_flight.cancel(&target) }))?;
    Ok(EncodedResult { result, hint: None })
}

fn line_too_long() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("the line is over {MAX_LINE_LENGTH} bytes; send the content in smaller pieces"),
    )
}
