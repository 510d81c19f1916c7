//! One state of an overlay: what was changed, over a base that never is.

use std::sync::Arc;

use bytes::Bytes;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde::{Deserialize, Serialize};
use vfs_core::tree::SharedTree;
use vfs_core::{
    Backend, DownloadRequest, Error, ErrorKind, FileInfo, LendRequest, LsRequest, OpContext, Purpose, Request as _,
    ResolveRequest, Result, StatRequest, Version, VfsPath,
};
use vfs_memory::MemoryBackend;
use vfs_search::Pool;

use super::tree::merged_tree;

/// The files that were written, over those of the base. A clone shares them; a [draft](Merged::draft) does not.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) base: Arc<dyn Backend>,
    pub(super) upper: MemoryBackend,
    /// Every file and link that was written or removed, with what the base had there then.
    pub(super) touched: RedBlackTreeMapSync<VfsPath, Before>,
    /// Paths at and below which nothing of the base shows.
    pub(super) gone: RedBlackTreeSetSync<VfsPath>,
    /// Most bytes of content.
    pub(super) budget: u64,
}

/// What the base had at a path when it was first changed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Before {
    Nothing,
    File(Version),
    /// A link, which has no version.
    Link,
}

impl Before {
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            Before::File(version) => Some(version),
            Before::Nothing | Before::Link => None,
        }
    }
}

/// What is at a path.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Nothing,
    /// A link of the base, where the link itself is meant.
    Link,
    /// A file that was written here.
    Upper(FileInfo),
    /// A file of the base.
    Base(FileInfo),
    Directory(FileInfo),
}

impl Found {
    /// The version of a file.
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            Found::Upper(info) | Found::Base(info) => info.version.as_ref(),
            Found::Nothing | Found::Link | Found::Directory(_) => None,
        }
    }
}

/// A whole file.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub(super) content: Bytes,
    pub(super) version: Version,
}

/// Whether a file is there after all changes, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing was done to it.
    Untouched,
    Present(Version),
    Absent,
}

impl Merged {
    pub(super) fn new(base: Arc<dyn Backend>, budget: u64) -> Self {
        Self {
            base,
            budget,
            upper: MemoryBackend::new(),
            touched: RedBlackTreeMapSync::default(),
            gone: RedBlackTreeSetSync::default(),
        }
    }

    /// The same, to be changed without this one being.
    pub(super) fn draft(&self) -> Self {
        Self { upper: self.upper.fork(), ..self.clone() }
    }

    /// Whether nothing of the base shows at `path`.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        if self.gone.is_empty() {
            return false;
        }
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at).skip(1).chain([text.len()]);
        ends.into_iter().any(|end| self.gone.contains(&text[..end]))
    }

    /// Where `path` really is. Links are those of the base.
    pub(super) async fn real(&self, cx: &OpContext, path: &VfsPath) -> Result<VfsPath> {
        if !self.base.capabilities(path).links || self.is_hidden(path) || self.mark(cx, path).await? != Mark::Untouched
        {
            return Ok(path.clone());
        }
        match self.base.resolve(cx, ResolveRequest::new(path.clone())).await {
            Ok(resolved) => Ok(resolved.path),
            // Here the base's file may be a directory by now.
            Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(path.clone()),
            Err(error) => Err(error),
        }
    }

    /// As [`real`](Self::real), where a link at the end is itself meant.
    pub(super) async fn real_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<VfsPath> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => {
                let parent = self.real(cx, &parent).await.map_err(|error| error.with_path(path))?;
                parent.child(name)
            }
            _ => Ok(path.clone()),
        }
    }

    /// What is at `path`, which has no links in it.
    pub(super) async fn find(&self, cx: &OpContext, path: &VfsPath) -> Result<Found> {
        let is_upper_directory = match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if !info.is_dir => return Ok(Found::Upper(info)),
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let otherwise = || {
            if is_upper_directory { Found::Directory(FileInfo::directory(path.clone())) } else { Found::Nothing }
        };
        if self.is_hidden(path) {
            return Ok(otherwise());
        }
        match self.base.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if info.is_dir => Ok(Found::Directory(info)),
            Ok(info) => Ok(if is_upper_directory { otherwise() } else { Found::Base(info) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(otherwise()),
            Err(error) => Err(error),
        }
    }

    /// The whole file at `path`.
    pub(super) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<Whole> {
        match self.find(cx, path).await? {
            Found::Upper(_) => fetch(&self.upper, cx, path).await,
            Found::Base(_) => fetch(&*self.base, cx, path).await,
            Found::Directory(_) => Err(Error::at(ErrorKind::IsADirectory, path)),
            Found::Nothing | Found::Link => Err(Error::not_found(path)),
        }
    }

    /// As [`find`](Self::find), where a link of the base at the end is itself meant.
    pub(super) async fn find_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<Found> {
        let is_base = !path.is_root() && !self.is_hidden(path) && !self.touched.contains_key(path);
        if is_base && is_link(&*self.base, cx, path).await? { Ok(Found::Link) } else { self.find(cx, path).await }
    }

    /// What became of the file at `path` here.
    pub(super) async fn mark(&self, cx: &OpContext, path: &VfsPath) -> Result<Mark> {
        if !self.touched.contains_key(path) {
            return Ok(Mark::Untouched);
        }
        match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version.map_or(Mark::Absent, Mark::Present)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Mark::Absent),
            Err(error) => Err(error),
        }
    }

    /// The tree of both.
    pub(super) async fn tree(&self, cx: &OpContext, req: LendRequest) -> Result<SharedTree> {
        let base = vfs_search::lend(&self.base, cx, req.clone()).await?;
        let upper = req.send(&self.upper, cx).await?;
        Ok(merged_tree(self.clone(), upper, base))
    }

    /// Lists as `req` asks.
    pub(super) async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<vfs_core::LsResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, LendRequest::new(path.clone(), Purpose::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), Arc::new(tree), cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    /// Everything at and below `path` but directories, and which of it are links of the base.
    pub(super) async fn files(&self, cx: &OpContext, path: &VfsPath) -> Result<Vec<(FileInfo, Kind)>> {
        let listed = self.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
        if let Some(problem) = listed.problems.into_iter().next() {
            let message = "something in it cannot be read, so it cannot be taken whole";
            return Err(Error::new(problem.code, message).with_path_text(&problem.path));
        }
        if listed.truncated.is_some() {
            return Err(Error::new(ErrorKind::TooLarge, "it goes too deep to be listed whole").with_path(path));
        }
        let mut files = Vec::with_capacity(listed.entries.len());
        for entry in listed.entries {
            let kind = match self.find_entry(cx, &entry.path).await? {
                Found::Link => Kind::Link,
                _ if entry.is_dir => continue,
                _ => Kind::File,
            };
            files.push((entry, kind));
        }
        Ok(files)
    }
}

/// What an entry is, apart from a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
}

/// Whether there is a link at `path` of `base`; what is above it is followed.
pub(super) async fn is_link(base: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(false) };
    if !base.capabilities(path).links {
        return Ok(false);
    }
    let real = match base.resolve(cx, ResolveRequest::new(path.clone())).await {
        Ok(resolved) => resolved.path,
        Err(error) if error.kind() == ErrorKind::PathEscape => return Ok(true),
        // What a link leads to may be a file where it would have to be a directory; then nothing is at the path.
        Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => return Ok(false),
        Err(error) => return Err(error),
    };
    if real == *path {
        return Ok(false);
    }
    let parent = base.resolve(cx, ResolveRequest::new(parent)).await?.path;
    Ok(parent.child(name)? != real)
}

pub(super) async fn fetch(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Whole> {
    let answer = DownloadRequest::new(path.clone()).send(backend, cx).await?;
    match (answer.content, answer.version) {
        (Some(content), Some(version)) => Ok(Whole { content, version }),
        _ => Err(Error::new(ErrorKind::Internal, "the backend gave neither file nor error").with_path(path)),
    }
}

/// As [`fetch`], `None` where no file is there.
pub(super) async fn fetch_if_there(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<Whole>> {
    match fetch(backend, cx, path).await {
        Ok(whole) => Ok(Some(whole)),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
