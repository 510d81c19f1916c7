//! The answer to one line.

use std::io::{self, Write};

use serde_json::value::RawValue;
use vfs_core::{Error, ErrorKind, Result};

use super::lines::Line;
use super::{MAX_LINE, perform, request};
use crate::session::Session;

/// An answer, whose result is JSON already.
pub(super) struct Answer {
    id: Option<Box<RawValue>>,
    outcome: Result<Vec<u8>>,
}

/// Carries out what `line` asks for.
pub(super) async fn to(session: &Session, line: Line) -> Answer {
    match line {
        Line::TooLong => Answer { id: None, outcome: Err(too_long()) },
        Line::Whole(text) => {
            let (mut request, parsed) = request::parse(&text);
            drop(text);
            let id = request.id.take();
            let outcome = match parsed {
                Ok(()) => perform::perform(session, request).await,
                Err(error) => Err(error),
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
            Ok(result) => {
                out.write_all(b"\"ok\":")?;
                out.write_all(result)?;
            }
            Err(error) => {
                out.write_all(b"\"error\":")?;
                serde_json::to_writer(&mut *out, error)?;
            }
        }
        out.write_all(b"}\n")
    }
}
