//! The answer to one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;
use vfs_core::{Error, ErrorKind, VfsPath};

use super::lines::Line;
use super::perform::Performed;
use super::{MAX_LINE, perform, request};
use crate::near;
use crate::session::Session;

/// An answer, whose result is JSON already.
pub(super) struct Answer {
    id: Option<Box<RawValue>>,
    outcome: Result<Performed, Refusal>,
}

/// An error, and the paths that may have been meant in place of a missing one.
#[derive(Serialize)]
struct Refusal {
    #[serde(flatten)]
    error: Error,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    near: Vec<VfsPath>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, near: Vec::new() }
    }
}

/// Carries out what `line` asks for.
pub(super) async fn to(session: &Session, line: Line) -> Answer {
    match line {
        Line::TooLong => Answer { id: None, outcome: Err(too_long().into()) },
        Line::Whole(text) => {
            let (mut request, parsed) = request::parse(&text);
            drop(text);
            let id = request.id.take();
            // Those that make files, and one that asks whether there is one, mean what they name.
            let means_its_path = matches!(request.op.as_deref(), Some("write" | "upload_files" | "upload" | "stat"));
            let outcome = match parsed {
                Ok(()) => perform::perform(session, request).await,
                Err(error) => Err(error),
            };
            let outcome = match outcome {
                Err(error) if !means_its_path => Err(Refusal { near: near::paths(session, &error).await, error }),
                outcome => outcome.map_err(Refusal::from),
            };
            Answer { id, outcome }
        }
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::TooLarge, format!("the line is over {MAX_LINE} bytes; send the content in smaller pieces"))
}

impl Answer {
    /// Writes the answer as one line. The result is not copied.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{")?;
        if let Some(id) = &self.id {
            write!(out, "\"id\":{},", id.get())?;
        }
        match &self.outcome {
            Ok(Performed { result, hint }) => {
                out.write_all(b"\"ok\":")?;
                out.write_all(result)?;
                if let Some(hint) = hint {
                    out.write_all(b",\"hint\":")?;
                    serde_json::to_writer(&mut *out, hint)?;
                }
            }
            Err(refusal) => {
                out.write_all(b"\"error\":")?;
                serde_json::to_writer(&mut *out, refusal)?;
            }
        }
        out.write_all(b"}\n")
    }
}
