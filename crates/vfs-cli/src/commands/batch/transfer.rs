//! Uploads and downloads of several files, each with a result of its own.

use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vfs_core::transfer::FileOperationError;
use vfs_core::{
    Backend, Error, ErrorKind, FileDownloadResponse, FileUploadRequest, FileUploadResponse, OpContext, Result,
    StatRequest, VfsPath,
};

use super::batch_request::{OperationFields, accept_file_path, decode};
use crate::backend_session::BackendSession;

/// Maximum total size of several files in one download in bytes, 256 MiB.
const MAX_DOWNLOAD_SIZE: u64 = 256 << 20;

/// Maximum number of concurrent `stat` calls.
const MAX_CONCURRENT_STATS: usize = 16;

/// The fields of the operation `upload_files`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchUpload {
    files: Vec<OperationFields>,
}

/// The fields of the operation `download_files`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchDownload {
    paths: Vec<String>,
}

/// The results, in the order of the request.
#[derive(Serialize)]
pub(super) struct TransferResults<T> {
    files: Vec<TransferResult<T>>,
}

/// The result of one file.
#[derive(Serialize)]
#[serde(untagged)]
enum TransferResult<T> {
    Transferred(T),
    Invalid(InvalidPath),
}

/// A file whose path is invalid, in the form of a failed transfer.
#[derive(Serialize)]
struct InvalidPath {
    path: String,
    error: FileOperationError,
    cause: Error,
}

impl InvalidPath {
    fn new(path: &str, cause: Error) -> Self {
        let path = cause.path().unwrap_or(path).to_owned();
        Self { path, error: FileOperationError::from_kind(cause.kind()), cause }
    }
}

/// Uploads the files whose paths parse.
pub(super) async fn upload(
    session: &BackendSession,
    cx: &OpContext,
    request: BatchUpload,
) -> Result<TransferResults<FileUploadResponse>> {
    let mut files = Vec::new();
    let mut invalid = Vec::new();
    for mut fields in request.files {
        accept_file_path(&mut fields);
        let parsed = match fields.get("path") {
            Some(Value::String(text)) => match session.path(text) {
                Ok(path) => Some(path),
                Err(error) => {
                    invalid.push(Some(InvalidPath::new(text, error)));
                    continue;
                }
            },
            // `decode` reports the missing path.
            _ => None,
        };
        if let Some(path) = parsed {
            fields.insert("path".into(), path.as_str().into());
        }
        files.push(decode::<FileUploadRequest>(fields)?);
        invalid.push(None);
    }
    let results = session.backend.upload_files(cx, files).await;
    Ok(merge(invalid, results))
}

/// Downloads the files whose paths parse, and of these the first that fit into [`MAX_DOWNLOAD_SIZE`] together.
pub(super) async fn download(
    session: &BackendSession,
    cx: &OpContext,
    request: BatchDownload,
) -> TransferResults<FileDownloadResponse> {
    let parsed: Vec<_> = request.paths.iter().map(|text| session.path(text)).collect();
    let mut sizes = sizes(session, cx, &parsed).await.into_iter();
    let mut remaining = MAX_DOWNLOAD_SIZE;
    let mut paths: Vec<VfsPath> = Vec::new();
    let mut invalid = Vec::new();
    for (text, path) in request.paths.iter().zip(parsed) {
        let accepted = path.and_then(|path| {
            remaining = remaining.checked_sub(sizes.next().unwrap_or(0)).ok_or_else(|| download_too_large(&path))?;
            Ok(path)
        });
        invalid.push(match accepted {
            Ok(path) => {
                paths.push(path);
                None
            }
            Err(error) => Some(InvalidPath::new(text, error)),
        });
    }
    let results = session.backend.download_files(cx, paths).await;
    merge(invalid, results)
}

/// Returns the size of each file with a valid path. A single file is bounded by the limit of its backend, so its size is not
/// determined. If `stat` fails, the download reports the error.
async fn sizes(session: &BackendSession, cx: &OpContext, paths: &[Result<VfsPath>]) -> Vec<u64> {
    let paths = paths.iter().flatten();
    if paths.clone().nth(1).is_none() {
        return Vec::new();
    }
    let size = async |path: &VfsPath| {
        let info = session.backend.stat(cx, StatRequest::new(path.clone())).await;
        info.map_or(0, |info| info.size)
    };
    stream::iter(paths).map(size).buffered(MAX_CONCURRENT_STATS).collect().await
}

fn download_too_large(path: &VfsPath) -> Error {
    let message = format!(
        "the files of this request exceed {MAX_DOWNLOAD_SIZE} bytes together; download this file in a request of its own"
    );
    Error::new(ErrorKind::TooLarge, message).with_path(path)
}

/// Combines invalid paths and results, in the order of the request.
fn merge<T>(invalid: Vec<Option<InvalidPath>>, results: Vec<T>) -> TransferResults<T> {
    let mut results = results.into_iter();
    let files = invalid
        .into_iter()
        .filter_map(|invalid| match invalid {
            Some(invalid) => Some(TransferResult::Invalid(invalid)),
            None => results.next().map(TransferResult::Transferred),
        })
        .collect();
    TransferResults { files }
}
