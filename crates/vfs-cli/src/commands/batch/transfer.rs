//! Uploads and downloads: each file answers for itself, one whose path does not parse included.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vfs_core::{
    Backend, Error, FileDownloadResponse, FileOperationError, FileUpload, FileUploadResponse, Result, VfsPath,
};

use super::request::{Fields, decode};
use crate::session::Session;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upload {
    files: Vec<Fields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Download {
    paths: Vec<String>,
}

/// The answers, in the order of the request.
#[derive(Serialize)]
pub(super) struct Answers<T> {
    files: Vec<Item<T>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<T> {
    Answered(T),
    Refused(Refused),
}

/// A file whose path does not parse, in the form of the operation's own failures.
#[derive(Serialize)]
struct Refused {
    path: String,
    error: FileOperationError,
    cause: Error,
}

impl Refused {
    fn new(path: &str, cause: Error) -> Self {
        let path = cause.path().unwrap_or(path).to_owned();
        Self { path, error: FileOperationError::from_kind(cause.kind()), cause }
    }
}

/// Uploads the files whose paths parse.
pub(super) async fn upload(session: &Session, request: Upload) -> Result<Answers<FileUploadResponse>> {
    let mut files = Vec::new();
    let mut refused = Vec::new();
    for mut fields in request.files {
        let parsed = match fields.get("path") {
            Some(Value::String(text)) => match session.path(text) {
                Ok(path) => Some(path),
                Err(error) => {
                    refused.push(Some(Refused::new(text, error)));
                    continue;
                }
            },
            // Left to `decode`, which says what is missing.
            _ => None,
        };
        if let Some(path) = parsed {
            fields.insert("path".into(), path.as_str().into());
        }
        files.push(decode::<FileUpload>(fields)?);
        refused.push(None);
    }
    let answers = session.backend.upload_files(&session.cx, files).await;
    Ok(merge(refused, answers))
}

/// Downloads the files whose paths parse.
pub(super) async fn download(session: &Session, request: Download) -> Answers<FileDownloadResponse> {
    let mut paths: Vec<VfsPath> = Vec::new();
    let mut refused = Vec::new();
    for text in &request.paths {
        refused.push(match session.path(text) {
            Ok(path) => {
                paths.push(path);
                None
            }
            Err(error) => Some(Refused::new(text, error)),
        });
    }
    let answers = session.backend.download_files(&session.cx, paths).await;
    merge(refused, answers)
}

/// Puts each answer where no refusal stands.
fn merge<T>(refused: Vec<Option<Refused>>, answers: Vec<T>) -> Answers<T> {
    let mut answers = answers.into_iter();
    let files = refused
        .into_iter()
        .filter_map(|refused| match refused {
            Some(refused) => Some(Item::Refused(refused)),
            None => answers.next().map(Item::Answered),
        })
        .collect();
    Answers { files }
}
