//! The answer to one line.

use serde::Serialize;
use serde_json::value::RawValue;
use vfs_core::{Error, ErrorKind, Result};

use super::lines::Line;
use super::{MAX_LINE, perform, request};
use crate::session::Session;

#[derive(Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Box<RawValue>>,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Ok(Box<RawValue>),
    Error(Error),
}

/// Carries out what `line` asks for; the answer ends with a line break.
pub(super) async fn to(session: &Session, line: Line) -> Vec<u8> {
    let (id, result) = match line {
        Line::TooLong => (None, Err(too_long())),
        Line::Whole(text) => {
            let (mut request, parsed) = request::parse(&text);
            drop(text);
            let id = request.id.take();
            let result = match parsed {
                Ok(()) => perform::perform(session, request).await,
                Err(error) => Err(error),
            };
            (id, result)
        }
    };
    encode(id, result)
}

fn too_long() -> Error {
    Error::new(ErrorKind::TooLarge, format!("the line is over {MAX_LINE} bytes; send the content in smaller pieces"))
}

fn encode(id: Option<Box<RawValue>>, result: Result<Box<RawValue>>) -> Vec<u8> {
    let outcome = match result {
        Ok(result) => Outcome::Ok(result),
        Err(error) => Outcome::Error(error),
    };
    let mut line = serde_json::to_vec(&Answer { id, outcome }).unwrap_or_else(|_| {
        br#"{"error":{"code":"internal","message":"Error: the answer cannot be written as JSON"}}"#.to_vec()
    });
    line.push(b'\n');
    line
}
