//! JSON answers to the requests of a batch.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;
use vfs_core::{Error, Result, VfsPath};

use super::dispatch::EncodedResult;

/// An answer, whose result is already encoded.
pub(super) struct BatchAnswer {
    id: Option<Box<RawValue>>,
    outcome: std::result::Result<EncodedResult, AnswerError>,
}

/// An error, with suggestions for a missing path.
#[derive(Serialize)]
pub(super) struct AnswerError {
    #[serde(flatten)]
    pub(super) error: Error,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) near: Vec<VfsPath>,
}

impl From<Error> for AnswerError {
    fn from(error: Error) -> Self {
        Self { error, near: Vec::new() }
    }
}

impl BatchAnswer {
    /// Creates the answer to the request `id`.
    pub(super) fn new(id: Option<Box<RawValue>>, outcome: Result<EncodedResult>) -> Self {
        Self { id, outcome: outcome.map_err(AnswerError::from) }
    }

    /// Creates the answer to an invalid request.
    pub(super) fn invalid(id: Option<Box<RawValue>>, error: Error) -> Self {
        Self::new(id, Err(error))
    }

    /// Creates the answer to a request that failed.
    pub(super) fn with_error(id: Option<Box<RawValue>>, error: AnswerError) -> Self {
        Self { id, outcome: Err(error) }
    }

    /// Writes the answer as one line, without copying the result.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{")?;
        if let Some(id) = &self.id {
            write!(out, "\"id\":{},", id.get())?;
        }
        match &self.outcome {
            Ok(EncodedResult { result, hint }) => {
                out.write_all(b"\"ok\":")?;
                out.write_all(result)?;
                if let Some(hint) = hint {
                    out.write_all(b",\"hint\":")?;
                    serde_json::to_writer(&mut *out, hint)?;
                }
            }
            Err(error) => {
                out.write_all(b"\"error\":")?;
                serde_json::to_writer(&mut *out, error)?;
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
        let written = |answer: BatchAnswer| {
            let mut line = Vec::new();
            answer.write(&mut line).expect("memory takes it");
            String::from_utf8(line).expect("it is text")
        };
        let path = |text| VfsPath::parse(text).expect("a valid path");
        let id = RawValue::from_string("7".to_owned()).expect("JSON");
        let performed = |hint| Ok(EncodedResult { result: b"{}".to_vec(), hint });
        assert_eq!(written(BatchAnswer::new(None, performed(None))), "{\"ok\":{}}\n");
        let hinted = BatchAnswer::new(Some(id), performed(Some("more".to_owned())));
        assert_eq!(written(hinted), "{\"id\":7,\"ok\":{},\"hint\":\"more\"}\n");
        let failed = |near| {
            let error = Error::not_found(&path("/a"));
            written(BatchAnswer { id: None, outcome: Err(AnswerError { error, near }) })
        };
        let error = r#"{"error":{"code":"not_found","path":"/a","message":"Error: File '/a' not found""#;
        assert_eq!(failed(Vec::new()), format!("{error}}}}}\n"));
        assert_eq!(failed(vec![path("/b")]), format!("{error},\"near\":[\"/b\"]}}}}\n"));
    }
}
