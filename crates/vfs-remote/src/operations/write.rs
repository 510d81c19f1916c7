//! File writes: create, overwrite, append.

use std::sync::Arc;

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, OpContext, Result, Version, VfsPath, WriteMode, WriteRequest, WriteResult};

use crate::exec::RemoteExec;
use crate::operations::remote_staged_content::{PartUploadMethod, RemoteStagedContent};
use crate::operations::stat::{facts, refuse_reserved, unreadable};
use crate::remote_place_client::{RemotePlaceClient, SCRIPT_ROOM, ScriptResponse};
use crate::script::entry_metadata::{EntryMetadata, stat_format};
use crate::script::functions;
use crate::script::reply::Reply;
use crate::script::{PathResolutionMode, Script, printable, quoted};

/// Maximum size in bytes of a content that is part of the script itself, which saves a process.
const MAX_INLINE_BYTES: usize = 32 << 10;

pub(crate) async fn write<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    request: WriteRequest,
) -> Result<WriteResult> {
    request.refuse_modified_at()?;
    let WriteRequest { path, content, mode, .. } = request;
    refuse_reserved(&path)?;
    let max = place.config.max_file_size;
    if content.len() as u64 > max {
        return Err(too_large(max).with_path(&path));
    }
    if path.is_root() {
        return Err(Error::at(ErrorKind::IsADirectory, &path));
    }
    let _lock = place.locks.lock(cx, &path).await?;
    let (created, facts) = put(place, cx, &path, NewContent::Memory(&content), &mode).await?;
    Ok(WriteResult::new(path, created, facts.version(), facts.size))
}

/// Writes `content` to `path`. Returns whether the file is new, and its metadata.
pub(crate) async fn put<E: RemoteExec>(
    place: &Arc<RemotePlaceClient<E>>,
    cx: &OpContext,
    path: &VfsPath,
    content: NewContent<'_, E>,
    mode: &WriteMode,
) -> Result<(bool, EntryMetadata)> {
    let features = place.features().await?;
    let (walk, how) = match mode {
        WriteMode::CreateNew => (PathResolutionMode::MakingEntry, "new".to_owned()),
        WriteMode::Overwrite => {
            let likely = place.recent.get(path).and_then(|file| features.find_tests(&file.version));
            (
                PathResolutionMode::MakingFollowed,
                likely.map_or_else(|| "over".to_owned(), |tests| format!("over '' {tests}")),
            )
        }
        WriteMode::Append => (
            PathResolutionMode::MakingFollowed,
            format!("add {}", place.config.max_file_size.saturating_sub(content.size())),
        ),
        WriteMode::IfVersion(version) => {
            let tests = features.find_tests(version).unwrap_or_default();
            (PathResolutionMode::Followed, format!("if {} {tests}", quoted(&stat_format(version, features.flavour))))
        }
        _ => {
            return Err(
                Error::new(ErrorKind::Unsupported, "this backend does not support the write mode").with_path(path)
            );
        }
    };
    let upload = ContentDelivery::of(place, cx, path, &content).await?;
    let answer = place
        .settle(cx, path, || async {
            let mut script = place.changing(cx, path, functions::PUT).await?;
            let receive = upload.add_to(&mut script);
            script.walk(walk, path).push(&receive).push(&format!("put {how}"));
            Ok(script)
        })
        .await?;
    let reply = put_done(answer, path, mode)?;
    upload.set_used();
    let created = reply.get(b'k').is_some_and(|field| field[..] == *b"1");
    let facts = facts(&reply, path)?;
    // If other writers may have changed the file since, this version may belong to another content.
    let is_ours = reply.get(b'w').is_some() && facts.size == content.size();
    place.recent.insert(path, facts.version(), content.bytes().filter(|_| is_ours));
    Ok((created, facts))
}

fn put_done(answer: ScriptResponse, path: &VfsPath, mode: &WriteMode) -> Result<Reply> {
    match (answer.reply.failure(), mode) {
        (Some(b"conflict"), _) => Err(Error::conflict(path, Some(actual(&answer.reply, path)?))),
        (Some(b"gone" | b"missing"), WriteMode::IfVersion(_)) => Err(Error::conflict(path, None)),
        _ => answer.done(path),
    }
}

/// Returns the version that a script found instead of the expected one.
pub(crate) fn actual(reply: &Reply, path: &VfsPath) -> Result<Version> {
    let found = reply.get(b'v').and_then(|field| EntryMetadata::parse(field, false));
    found.map(|(facts, _)| facts.version()).ok_or_else(|| unreadable(path))
}

pub(crate) fn too_large(max: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the file would be over the limit of {max} bytes"))
}

/// New content of a file.
pub(crate) enum NewContent<'a, E: RemoteExec> {
    /// In memory of this process.
    Memory(&'a Bytes),
    /// In a file that is staged in the place.
    Staged(&'a RemoteStagedContent<E>),
}

impl<'a, E: RemoteExec> NewContent<'a, E> {
    fn size(&self) -> u64 {
        match self {
            Self::Memory(content) => content.len() as u64,
            Self::Staged(staged) => staged.size(),
        }
    }

    fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Memory(content) => Some(content),
            Self::Staged(_) => None,
        }
    }
}

/// The way in which the write script receives the content.
enum ContentDelivery<'a, E: RemoteExec> {
    /// In the script, as a word for `printf`.
    Inline(String),
    /// On standard input.
    Stdin(&'a Bytes),
    /// From a staged file, which a failed script does not remove, so that another script can use it.
    Staged(RemoteStagedContent<E>),
}

impl<'a, E: RemoteExec> ContentDelivery<'a, E> {
    async fn of(
        place: &Arc<RemotePlaceClient<E>>,
        cx: &OpContext,
        path: &VfsPath,
        content: &NewContent<'a, E>,
    ) -> Result<Self> {
        let content = match *content {
            NewContent::Memory(content) => content,
            NewContent::Staged(staged) => return Ok(Self::Staged(staged.share())),
        };
        let transport = place.execute.transport();
        if content.len() <= MAX_INLINE_BYTES {
            let word = printable(content);
            if word.len() + SCRIPT_ROOM <= transport.max_script_bytes {
                return Ok(Self::Inline(word));
            }
        }
        if transport.max_stdin_bytes > 0 && content.len() as u64 <= transport.max_stdin_bytes {
            return Ok(Self::Stdin(content));
        }
        let transfer = PartUploadMethod::of(place).await?;
        Ok(Self::Staged(RemoteStagedContent::stage(place, cx, path, content, transfer).await?))
    }

    /// Adds the content to `script`. Returns the commands that receive it in the directory of the file.
    fn add_to(&self, script: &mut Script) -> String {
        match self {
            Self::Inline(word) => {
                script.push(&format!("body() {{ printf {word}; }}"));
                String::new()
            }
            Self::Stdin(content) => {
                script.stdin(Bytes::clone(content));
                format!("upload {}", content.len())
            }
            Self::Staged(staged) => {
                staged.provide(script);
                format!("staged_size={}", staged.size())
            }
        }
    }

    fn set_used(&self) {
        if let Self::Staged(staged) = self {
            staged.set_used();
        }
    }
}

impl<E: RemoteExec> RemotePlaceClient<E> {
    /// Creates a script that can change an entry, with the functions `functions`.
    pub(crate) async fn changing(&self, cx: &OpContext, path: &VfsPath, functions: &str) -> Result<Script> {
        // A locked entry is polled fifty times a second.
        let attempts = self.config.lock_timeout.as_secs().max(1) * 50;
        self.script_with(cx, path, |features| features.change_functions(attempts, functions)).await
    }
}
