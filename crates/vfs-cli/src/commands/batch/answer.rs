//! The answer to one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;
use vfs_core::{Error, Result, VfsPath};

use super::commands::CommandRunner;
use super::perform::{self, Performed};
use super::queue::{Incoming, Queued};
use crate::near;
use crate::session::Session;

/// An answer, whose result is JSON already.
pub(super) struct Answer {
    id: Option<Box<RawValue>>,
    outcome: std::result::Result<Performed, Refusal>,
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

/// Performs a queued request and returns its answer.
pub(super) async fn to(session: &Session, commands: &CommandRunner, queued: Queued) -> Answer {
    let Queued { incoming, permit } = queued;
    drop(permit);
    let (mut request, entry) = match incoming {
        Incoming::Request(request, entry) => (request, entry),
        Incoming::Answered(answer) => return answer,
    };
    let id = request.id.take();
    // Operations that create a file, or ask whether a path exists, mean exactly this path: similar ones are no help.
    let names_exact_path =
        matches!(request.op.as_deref(), Some("write" | "upload_files" | "upload" | "stat" | "resolve"));
    let cx = session.cx.clone().with_cancel_token(entry.token.clone());
    let outcome = match perform::perform(session, commands, cx, request).await {
        Err(error) if !names_exact_path => Err(Refusal { near: near::paths(session, &error).await, error }),
        outcome => outcome.map_err(Refusal::from),
    };
    Answer { id, outcome }
}

impl Answer {
    /// Creates the answer to the request `id`.
    pub(super) fn new(id: Option<Box<RawValue>>, outcome: Result<Performed>) -> Self {
        Self { id, outcome: outcome.map_err(Refusal::from) }
    }

    /// Creates the answer to a request that was not started.
    pub(super) fn refused(id: Option<Box<RawValue>>, error: Error) -> Self {
        Self::new(id, Err(error))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_result_with_its_hint_or_an_error_with_near_paths() {
        let written = |answer: Answer| {
            let mut line = Vec::new();
            answer.write(&mut line).expect("memory takes it");
            String::from_utf8(line).expect("it is text")
        };
        let path = |text| VfsPath::parse(text).expect("a valid path");
        let id = RawValue::from_string("7".to_owned()).expect("JSON");
        let performed = |hint| Ok(Performed { result: b"{}".to_vec(), hint });
        assert_eq!(written(Answer::new(None, performed(None))), "{\"ok\":{}}\n");
        let hinted = Answer::new(Some(id), performed(Some("more".to_owned())));
        assert_eq!(written(hinted), "{\"id\":7,\"ok\":{},\"hint\":\"more\"}\n");
        let refused = |near| {
            let error = Error::not_found(&path("/a"));
            written(Answer { id: None, outcome: Err(Refusal { error, near }) })
        };
        let error = r#"{"error":{"code":"not_found","path":"/a","message":"Error: File '/a' not found""#;
        assert_eq!(refused(Vec::new()), format!("{error}}}}}\n"));
        assert_eq!(refused(vec![path("/b")]), format!("{error},\"near\":[\"/b\"]}}}}\n"));
    }
}
