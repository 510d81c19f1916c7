//! State of an overlay: changed files and hidden paths, over a base that is never written to.

use std::sync::Arc;

use bytes::Bytes;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use serde::{Deserialize, Serialize};
use vfs_core::links::is_link;
use vfs_core::tree::SharedTree;
use vfs_core::{
    Backend, DownloadRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, OpenTreeRequest, ResolveRequest,
    Resolved, Result, StatRequest, TreeUse, UnaryRequest as _, Version, VfsPath,
};
use vfs_memory::MemoryBackend;
use vfs_search::Pool;

use super::tree::merged_tree;

/// Written files over those of the base. A clone shares the written files; a [draft](Merged::draft) does not.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) base: Arc<dyn Backend>,
    pub(super) upper: MemoryBackend,
    /// Every file and link that was written or removed, with what the base had there then.
    pub(super) touched: RedBlackTreeMapSync<VfsPath, Before>,
    /// Paths at and below which nothing of the base shows.
    pub(super) gone: RedBlackTreeSetSync<VfsPath>,
    /// Maximum size of all contents, in bytes.
    pub(super) budget: u64,
}

/// Entry of the base at a path at its first change in the overlay.
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

/// Entry of the overlay at a path.
#[derive(Debug, Clone)]
pub(super) enum OverlayEntry {
    Nothing,
    /// A link of the base, if links are not followed.
    Link,
    /// A file that was written in the overlay.
    Upper(FileInfo),
    /// A file of the base.
    Base(FileInfo),
    Directory(FileInfo),
}

impl OverlayEntry {
    /// Returns the version of a file.
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            OverlayEntry::Upper(info) | OverlayEntry::Base(info) => info.version.as_ref(),
            OverlayEntry::Nothing | OverlayEntry::Link | OverlayEntry::Directory(_) => None,
        }
    }
}

/// Content and version of a file.
#[derive(Debug, Clone)]
pub(super) struct WholeFile {
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

    /// Returns a copy that can be changed independently.
    pub(super) fn draft(&self) -> Self {
        Self { upper: self.upper.fork(), ..self.clone() }
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.touched.is_empty() && self.gone.is_empty()
    }

    /// Returns whether the base is hidden at `path`.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        is_hidden(&self.gone, path)
    }

    /// Whether the base has a link above `path` that was removed here, so that what it has there is elsewhere.
    pub(super) async fn is_behind_removed_link(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        for at in at_and_above(&path.parent().unwrap_or_default()) {
            if self.touched.get(at) == Some(&Before::Link) && is_link(&*self.base, cx, &VfsPath::parse(at)?).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Resolves the links of the base in `path`; `not_found` if the path leads nowhere.
    pub(super) async fn real(&self, cx: &OpContext, path: &VfsPath) -> Result<VfsPath> {
        let at = self.resolve(cx, path).await?;
        if at.leads_nowhere { Err(Error::not_found(path)) } else { Ok(at.path) }
    }

    /// Resolves the links of the base in `path`.
    pub(super) async fn resolve(&self, cx: &OpContext, path: &VfsPath) -> Result<Resolved> {
        if !self.is_of_links(path) || matches!(self.resolve_in_base(cx, path).await, Ok(real) if real.path == *path) {
            return Ok(Resolved::at(path.clone()));
        }
        let (mut at, mut leads_nowhere) = (VfsPath::root(), false);
        // One after the other, as what a link leads to may be changed here, and others below it no longer be there.
        for name in path.components() {
            at = at.child(name).map_err(|error| error.with_path(path))?;
            if self.is_of_links(&at) {
                let resolved = self.resolve_in_base(cx, &at).await.map_err(|error| error.with_path(path))?;
                leads_nowhere |= resolved.leads_nowhere;
                at = resolved.path;
            }
        }
        Ok(Resolved::at(at).leads_nowhere(leads_nowhere))
    }

    async fn resolve_in_base(&self, cx: &OpContext, path: &VfsPath) -> Result<Resolved> {
        self.base.resolve(cx, ResolveRequest::new(path.clone())).await
    }

    /// Whether `path` may lead elsewhere, by links of the base that are there still.
    pub(super) fn is_of_links(&self, path: &VfsPath) -> bool {
        let is_changed = || self.is_hidden(path) || self.touched.contains_key(path);
        !path.is_root() && self.base.capabilities(path).links && !is_changed()
    }

    /// Returns the real path like [`real`](Self::real), without following a link in the last component.
    pub(super) async fn real_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<VfsPath> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => {
                let parent = self.real(cx, &parent).await.map_err(|error| error.with_path(path))?;
                parent.child(name)
            }
            _ => Ok(path.clone()),
        }
    }

    /// Returns the entry at `path`, which must have no links in it.
    pub(super) async fn find(&self, cx: &OpContext, path: &VfsPath) -> Result<OverlayEntry> {
        let is_upper_directory = match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if !info.is_dir => return Ok(OverlayEntry::Upper(info)),
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let otherwise = || {
            if is_upper_directory {
                OverlayEntry::Directory(FileInfo::directory(path.clone()))
            } else {
                OverlayEntry::Nothing
            }
        };
        if self.is_hidden(path) {
            return Ok(otherwise());
        }
        match self.base.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if info.is_dir => Ok(OverlayEntry::Directory(info)),
            Ok(info) => Ok(if is_upper_directory { otherwise() } else { OverlayEntry::Base(info) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(otherwise()),
            Err(error) => Err(error),
        }
    }

    /// Returns the file at `path`.
    pub(super) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<WholeFile> {
        match self.find(cx, path).await? {
            OverlayEntry::Upper(_) => fetch(&self.upper, cx, path).await,
            OverlayEntry::Base(_) => fetch(&*self.base, cx, path).await,
            OverlayEntry::Directory(_) => Err(Error::at(ErrorKind::IsADirectory, path)),
            OverlayEntry::Nothing | OverlayEntry::Link => Err(Error::not_found(path)),
        }
    }

    /// Returns the entry like [`find`](Self::find), without following a link in the last component.
    pub(super) async fn find_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<OverlayEntry> {
        let is_base = !path.is_root() && !self.is_hidden(path) && !self.touched.contains_key(path);
        if is_base && is_link(&*self.base, cx, path).await? {
            Ok(OverlayEntry::Link)
        } else {
            self.find(cx, path).await
        }
    }

    /// What became of the file at `path` here.
    pub(super) async fn mark(&self, cx: &OpContext, path: &VfsPath) -> Result<Mark> {
        if !self.touched.contains_key(path) {
            return Ok(Mark::Untouched);
        }
        match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version.map_or(Mark::Absent, Mark::Present)),
            Err(error) if error.is_absence() => Ok(Mark::Absent),
            Err(error) => Err(error),
        }
    }

    /// Returns the tree of the overlay and its base.
    pub(super) async fn tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<SharedTree> {
        let real = self.real(cx, &req.path).await?;
        let req = req.at(real);
        let base = vfs_search::open_tree(&self.base, cx, req.clone()).await?;
        let upper = req.send(&self.upper, cx).await?;
        Ok(merged_tree(self.clone(), upper, base))
    }

    /// Lists as `req` asks.
    pub(super) async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<vfs_core::LsResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), Arc::new(tree), cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    /// Everything at and below `path` but directories, and which of it are links of the base.
    pub(super) async fn files(&self, cx: &OpContext, path: &VfsPath) -> Result<Vec<(VfsPath, Kind)>> {
        let listed = self.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
        if listed.truncated.is_some() {
            return Err(Error::new(ErrorKind::TooLarge, "it goes too deep to be listed whole").with_path(path));
        }
        let mut files = Vec::with_capacity(listed.entries.len());
        for entry in listed.entries {
            let kind = match self.find_entry(cx, &entry.path).await? {
                OverlayEntry::Link if entry.is_dir => Kind::Link,
                OverlayEntry::Link => Kind::FileLink,
                _ if entry.is_dir => continue,
                _ => Kind::File,
            };
            files.push((entry.path, kind));
        }
        for problem in listed.problems {
            // A link that leads nowhere, or outside, cannot be described, but it can be removed.
            match VfsPath::parse(&problem.path) {
                Ok(at) if matches!(self.find_entry(cx, &at).await, Ok(OverlayEntry::Link)) => {
                    files.push((at, Kind::Link))
                }
                _ => {
                    let message = "something in it cannot be read, so it cannot be taken whole";
                    return Err(Error::new(problem.code, message).with_path_text(&problem.path));
                }
            }
        }
        Ok(files)
    }
}

/// Kind of an entry that is no directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    /// A link to a file.
    FileLink,
    /// Any other link: to a directory, nowhere, or outside.
    Link,
}

/// Returns whether one of `gone` is at or above `path`.
pub(super) fn is_hidden(gone: &RedBlackTreeSetSync<VfsPath>, path: &VfsPath) -> bool {
    !gone.is_empty() && at_and_above(path).any(|at| gone.contains(at))
}

/// Returns `path` and the directories above it, without the root, from the highest down.
pub(super) fn at_and_above(path: &VfsPath) -> impl Iterator<Item = &str> {
    let text = path.as_str();
    let ends = text.match_indices('/').map(|(at, _)| at).skip(1).chain([text.len()]);
    ends.map(|end| &text[..end])
}

pub(super) async fn fetch(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<WholeFile> {
    let answer = DownloadRequest::new(path.clone()).send(backend, cx).await?;
    match (answer.content, answer.version) {
        (Some(content), Some(version)) => Ok(WholeFile { content, version }),
        _ => Err(Error::new(ErrorKind::Internal, "the backend gave neither file nor error").with_path(path)),
    }
}

/// Returns the file like [`fetch`], or `None` if there is no file.
pub(super) async fn fetch_if_there(backend: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<WholeFile>> {
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
