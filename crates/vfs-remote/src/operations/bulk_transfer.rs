//! Batched upload and download: many whole files in one script.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use vfs_core::{Error, FileDownloadResponse, FileUploadRequest, FileUploadResponse, OpContext, Result, VfsPath};

use crate::exec::RemoteExec;
use crate::operations::read::download;
use crate::operations::stat::{facts, refuse_reserved};
use crate::operations::write::write;
use crate::remote_place_client::{RemotePlaceClient, SCRIPT_ROOM, ScriptResponse};
use crate::script::error::labelled;
use crate::script::functions;
use crate::script::reply::Reply;
use crate::script::{PathResolutionMode, printable};
use crate::tree::content_prefetcher::{FILE_OVERHEAD, LARGE};

/// Maximum number of files in one script.
const MAX_FILES: usize = 128;

pub(crate) async fn upload<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    files: Vec<FileUploadRequest>,
) -> Vec<FileUploadResponse> {
    let mut answers = Vec::with_capacity(files.len());
    let mut group = UploadBatch::default();
    let room = place.execute.transport().max_script_bytes.saturating_sub(SCRIPT_ROOM);
    for file in files {
        let part = FileWriteScript::of(&file, room, place.config.max_file_size);
        if group.is_full_with(&file, part.as_ref(), room) {
            answers.extend(std::mem::take(&mut group).send(place, cx).await);
        }
        match part {
            Some(part) => group.add(file, part),
            None => answers.push(alone(place, cx, file).await),
        }
    }
    answers.extend(group.send(place, cx).await);
    answers
}

async fn alone<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    file: FileUploadRequest,
) -> FileUploadResponse {
    let path = file.path.clone();
    let written = write(place, cx, file.into()).await;
    FileUploadResponse::of_write(path, written.map_err(|error| error.or_path(&VfsPath::root())))
}

/// The part of a script that writes one file.
struct FileWriteScript(String);

impl FileWriteScript {
    /// Returns the part for `file`, if that is small enough for a script with others.
    fn of(file: &FileUploadRequest, room: usize, max: u64) -> Option<Self> {
        let is_plain = !file.path.is_root() && file.modified_at.is_none() && refuse_reserved(&file.path).is_ok();
        if !is_plain || file.content.len() > room / 2 || file.content.len() as u64 > max {
            return None;
        }
        let mut script = crate::script::Script::new("/", "");
        script.text.clear();
        script.push("say '#'\n( T=\nguard").walk(PathResolutionMode::MakingFollowed, &file.path);
        script.push(&format!("body() {{ printf {}; }}\nput over )\ntop", printable(&file.content)));
        (script.text.len() <= room).then_some(Self(script.text))
    }
}

/// Files that are written by one script.
#[derive(Default)]
struct UploadBatch {
    files: Vec<FileUploadRequest>,
    paths: HashSet<VfsPath>,
    text: String,
}

impl UploadBatch {
    /// Returns whether `file` has to start another group: if there is no room, if it is written by itself (`part` is
    /// `None`), or if this group contains its path already, since an earlier content that is sent again must not
    /// replace a later one.
    fn is_full_with(&self, file: &FileUploadRequest, part: Option<&FileWriteScript>, room: usize) -> bool {
        self.paths.contains(&file.path)
            || part.is_none_or(|part| self.text.len() + part.0.len() > room || self.files.len() == MAX_FILES)
    }

    fn add(&mut self, file: FileUploadRequest, part: FileWriteScript) {
        self.text.push_str(&part.0);
        self.paths.insert(file.path.clone());
        self.files.push(file);
    }

    async fn send<E: RemoteExec>(self, place: &Arc<RemotePlaceClient<E>>, cx: &OpContext) -> Vec<FileUploadResponse> {
        let Self { files, text, .. } = self;
        let Some(first) = files.first() else { return Vec::new() };
        let answered = async {
            let mut script = place.changing(cx, &first.path, functions::PUT).await?;
            script.push(&text);
            place.change(cx, &first.path, script).await
        };
        let answer = match answered.await {
            Ok(answer) => answer,
            Err(error) => return files.into_iter().map(|file| failed(file.path, &error)).collect(),
        };
        let parts: Vec<Reply> = answer.reply.parts(b'#').collect();
        let mut answers = Vec::with_capacity(files.len());
        for (index, file) in files.into_iter().enumerate() {
            let reply = parts.get(index).cloned().unwrap_or_default();
            let written = match reply.failure() {
                None => facts(&reply, &file.path),
                Some(label) if reply.get(b'k').is_some() => Err(labelled(label, &answer.stderr, &file.path)),
                // Write a file that failed, or was overtaken, again by itself, for its own error.
                Some(_) => {
                    answers.push(alone(place, cx, file).await);
                    continue;
                }
            };
            answers.push(match written {
                Ok(facts) => FileUploadResponse::ok(file.path, facts.version()),
                Err(error) => FileUploadResponse::failed(file.path, error),
            });
        }
        answers
    }
}

fn failed(path: VfsPath, error: &Error) -> FileUploadResponse {
    let error = error.clone().with_path(&path);
    FileUploadResponse::failed(path, error)
}

pub(crate) async fn downloads<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    paths: Vec<VfsPath>,
) -> Vec<FileDownloadResponse> {
    let mut fetched_files = HashMap::new();
    if paths.len() > 1 {
        for group in paths.chunks(MAX_FILES) {
            // If a group fails, its files are fetched one by one, for the error of each file.
            if let Ok(found) = together(place, cx, group).await {
                fetched_files.extend(found);
            }
        }
    }
    let answers: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let fetched_files = fetched_files.get(&path).cloned();
            async move {
                match fetched_files {
                    Some(answer) => answer,
                    None => download(place, cx, path).await,
                }
            }
        })
        .collect();
    stream::iter(answers).buffered(place.config.concurrency.get()).collect().await
}

/// Returns the small plain files of `group`, by a script for their sizes and one for each batch of contents.
async fn together<E: RemoteExec>(
    place: &RemotePlaceClient<E>,
    cx: &OpContext,
    group: &[VfsPath],
) -> Result<HashMap<VfsPath, FileDownloadResponse>> {
    let mut plain: Vec<VfsPath> = group.iter().filter(|path| refuse_reserved(path).is_ok()).cloned().collect();
    plain.sort_unstable();
    plain.dedup();
    let sizes = place.sizes(cx, &plain).await?;
    let mut fetched_files = HashMap::new();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for path in plain {
        let Some(size) = sizes.get(&path).filter(|size| **size <= LARGE) else { continue };
        if bytes + size + FILE_OVERHEAD > place.max_batch_bytes() {
            fetched_files.extend(fetched(place, cx, &batch).await?);
            (batch, bytes) = (Vec::new(), 0);
        }
        bytes += size + FILE_OVERHEAD;
        batch.push(path);
    }
    fetched_files.extend(fetched(place, cx, &batch).await?);
    Ok(fetched_files)
}

async fn fetched<E: RemoteExec>(
    place: &RemotePlaceClient<E>,
    cx: &OpContext,
    batch: &[VfsPath],
) -> Result<Vec<(VfsPath, FileDownloadResponse)>> {
    let found = place.many(cx, batch).await?;
    let answers = found.into_iter().map(|(path, (facts, content))| {
        let answer = FileDownloadResponse::ok(path.clone(), content, facts.version());
        (path, answer)
    });
    Ok(answers.collect())
}

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Returns the sizes of those of `paths` that are plain files.
    async fn sizes(&self, cx: &OpContext, paths: &[VfsPath]) -> Result<HashMap<VfsPath, u64>> {
        let Some(first) = paths.first() else { return Ok(HashMap::new()) };
        let mut script = self.script(cx, first).await?;
        self.gather(&mut script, paths);
        script.push("[ $# -gt 0 ] || finish\nsay q\nabout \"$@\" || die again");
        let ScriptResponse { reply, .. } = self.query(cx, first, script).await?;
        if reply.failure().is_some() {
            return Ok(HashMap::new());
        }
        Ok(crate::tree::content_prefetcher::gathered_files(&reply, paths)
            .map(|(path, facts)| (path.clone(), facts.size))
            .collect())
    }
}
