//! Uploads and downloads: each file answers for itself, one whose path does not parse included.

use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vfs_core::{
    Backend, Error, ErrorKind, FileDownloadResponse, FileOperationError, FileUpload, FileUploadResponse, OpContext,
    Result, StatRequest, VfsPath,
};

use super::request::{Fields, decode, name_path};
use crate::session::Session;

/// 256 MiB, the most bytes that several files of one download have together.
const MAX_DOWNLOAD: u64 = 256 << 20;

/// How many files are looked at together for their sizes.
const STATS_AT_ONCE: usize = 16;

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
pub(super) async fn upload(session: &Session, cx: &OpContext, request: Upload) -> Result<Answers<FileUploadResponse>> {
    let mut files = Vec::new();
    let mut refused = Vec::new();
    for mut fields in request.files {
        name_path(&mut fields);
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
    let answers = session.backend.upload_files(cx, files).await;
    Ok(merge(refused, answers))
}

/// Downloads the files whose paths parse, and of these the first that fit into [`MAX_DOWNLOAD`] together.
pub(super) async fn download(session: &Session, cx: &OpContext, request: Download) -> Answers<FileDownloadResponse> {
    let parsed: Vec<_> = request.paths.iter().map(|text| session.path(text)).collect();
    let mut sizes = sizes(session, cx, &parsed).await.into_iter();
    let mut room = MAX_DOWNLOAD;
    let mut paths: Vec<VfsPath> = Vec::new();
    let mut refused = Vec::new();
    for (text, path) in request.paths.iter().zip(parsed) {
        let fitting = path.and_then(|path| {
            room = room.checked_sub(sizes.next().unwrap_or(0)).ok_or_else(|| too_much(&path))?;
            Ok(path)
        });
        refused.push(match fitting {
            Ok(path) => {
                paths.push(path);
                None
            }
            Err(error) => Some(Refused::new(text, error)),
        });
    }
    let answers = session.backend.download_files(cx, paths).await;
    merge(refused, answers)
}

/// Returns the size of each file that has a path. One file alone is bounded by its backend, so its size is not asked for;
/// and what cannot be described is left to the download, which says why.
async fn sizes(session: &Session, cx: &OpContext, paths: &[Result<VfsPath>]) -> Vec<u64> {
    let paths = paths.iter().flatten();
    if paths.clone().nth(1).is_none() {
        return Vec::new();
    }
    let size = async |path: &VfsPath| {
        let info = session.backend.stat(cx, StatRequest::new(path.clone())).await;
        info.map_or(0, |info| info.size)
    };
    stream::iter(paths).map(size).buffered(STATS_AT_ONCE).collect().await
}

fn too_much(path: &VfsPath) -> Error {
    let message =
        format!("the files of this request have over {MAX_DOWNLOAD} bytes together; download this one by itself");
    Error::new(ErrorKind::TooLarge, message).with_path(path)
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
