//! State of an overlay: changed files and hidden paths, over a base that is never written to.

use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use vfs_core::is_link::is_link;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
use vfs_core::{
    Backend, Error, ErrorKind, FileInfo, LsRequest, LsResult, OpContext, ResolveRequest, ResolveResult, Result,
    StatRequest, Version, VfsPath,
};
use vfs_memory::MemoryBackend;
use vfs_search::Pool;

use super::overlay_tree::OverlayTree;
use crate::versioned_entry::{VersionedContent, VersionedEntry, fetch};

/// Written files over those of the base. A clone shares the written files; a [draft](OverlayState::draft) does not.
#[derive(Debug, Clone)]
pub(crate) struct OverlayState {
    pub(crate) base: Arc<dyn Backend>,
    pub(crate) upper: MemoryBackend,
    /// Every file and link that was written or removed, with the entry of the base at the first change.
    pub(crate) originals: RedBlackTreeMapSync<VfsPath, VersionedEntry<Version>>,
    /// Paths at and below which the base is hidden.
    pub(super) hidden: RedBlackTreeSetSync<VfsPath>,
    /// Maximum size of all contents, in bytes.
    pub(super) budget: u64,
}

/// Entry of the overlay at a path.
#[derive(Debug, Clone)]
pub(super) enum OverlayLookupResult {
    Nothing,
    /// A link of the base, if links are not followed.
    Link,
    /// A file that was written in the overlay.
    Upper(FileInfo),
    /// A file of the base.
    Base(FileInfo),
    Directory(FileInfo),
}

impl OverlayLookupResult {
    /// Returns the version of a file.
    pub(super) fn version(&self) -> Option<&Version> {
        match self {
            OverlayLookupResult::Upper(info) | OverlayLookupResult::Base(info) => info.version.as_ref(),
            OverlayLookupResult::Nothing | OverlayLookupResult::Link | OverlayLookupResult::Directory(_) => None,
        }
    }
}

/// State of a file in an overlay, compared with the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OverlayFileState {
    Unchanged,
    Written(Version),
    Removed,
}

impl OverlayState {
    pub(crate) fn new(base: Arc<dyn Backend>, budget: u64) -> Self {
        Self {
            base,
            budget,
            upper: MemoryBackend::new(),
            originals: RedBlackTreeMapSync::default(),
            hidden: RedBlackTreeSetSync::default(),
        }
    }

    /// Returns a copy that can be changed independently.
    pub(crate) fn draft(&self) -> Self {
        Self { upper: self.upper.fork(), ..self.clone() }
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.originals.is_empty() && self.hidden.is_empty()
    }

    /// Returns whether the base is hidden at `path`.
    pub(super) fn is_hidden(&self, path: &VfsPath) -> bool {
        is_hidden(&self.hidden, path)
    }

    /// Returns whether the base has a link above `path` that was removed in the overlay, so that the entry of the base is elsewhere.
    pub(super) async fn is_behind_removed_link(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        for at in at_and_above(&path.parent().unwrap_or_default()) {
            if self.originals.get(at) == Some(&VersionedEntry::Link)
                && is_link(&*self.base, cx, &VfsPath::parse(at)?).await?
            {
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
    pub(super) async fn resolve(&self, cx: &OpContext, path: &VfsPath) -> Result<ResolveResult> {
        if !self.may_have_links(path) || matches!(self.resolve_in_base(cx, path).await, Ok(real) if real.path == *path)
        {
            return Ok(ResolveResult::at(path.clone()));
        }
        let (mut at, mut leads_nowhere) = (VfsPath::root(), false);
        // Resolve one component after the other: the target of a link may be changed in the overlay, and links below it be removed.
        for name in path.components() {
            at = at.child(name).map_err(|error| error.with_path(path))?;
            if self.may_have_links(&at) {
                let resolved = self.resolve_in_base(cx, &at).await.map_err(|error| error.with_path(path))?;
                leads_nowhere |= resolved.leads_nowhere;
                at = resolved.path;
            }
        }
        Ok(ResolveResult::at(at).leads_nowhere(leads_nowhere))
    }

    async fn resolve_in_base(&self, cx: &OpContext, path: &VfsPath) -> Result<ResolveResult> {
        self.base.resolve(cx, ResolveRequest::new(path.clone())).await
    }

    /// Returns whether a link of the base may be at or above `path` that was not changed in the overlay.
    pub(super) fn may_have_links(&self, path: &VfsPath) -> bool {
        let is_changed = || self.is_hidden(path) || self.originals.contains_key(path);
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
    pub(super) async fn find(&self, cx: &OpContext, path: &VfsPath) -> Result<OverlayLookupResult> {
        let is_upper_directory = match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if !info.is_dir => return Ok(OverlayLookupResult::Upper(info)),
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let otherwise = || {
            if is_upper_directory {
                OverlayLookupResult::Directory(FileInfo::directory(path.clone()))
            } else {
                OverlayLookupResult::Nothing
            }
        };
        if self.is_hidden(path) {
            return Ok(otherwise());
        }
        match self.base.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) if info.is_dir => Ok(OverlayLookupResult::Directory(info)),
            Ok(info) => Ok(if is_upper_directory { otherwise() } else { OverlayLookupResult::Base(info) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(otherwise()),
            Err(error) => Err(error),
        }
    }

    /// Returns the file at `path`.
    pub(super) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<VersionedContent> {
        match self.find(cx, path).await? {
            OverlayLookupResult::Upper(_) => fetch(&self.upper, cx, path).await,
            OverlayLookupResult::Base(_) => fetch(&*self.base, cx, path).await,
            OverlayLookupResult::Directory(_) => Err(Error::at(ErrorKind::IsADirectory, path)),
            OverlayLookupResult::Nothing | OverlayLookupResult::Link => Err(Error::not_found(path)),
        }
    }

    /// Returns the entry like [`find`](Self::find), without following a link in the last component.
    pub(super) async fn find_entry(&self, cx: &OpContext, path: &VfsPath) -> Result<OverlayLookupResult> {
        let is_base = !path.is_root() && !self.is_hidden(path) && !self.originals.contains_key(path);
        if is_base && is_link(&*self.base, cx, path).await? {
            Ok(OverlayLookupResult::Link)
        } else {
            self.find(cx, path).await
        }
    }

    /// Returns the state of the file at `path`.
    pub(crate) async fn file_state(&self, cx: &OpContext, path: &VfsPath) -> Result<OverlayFileState> {
        if !self.originals.contains_key(path) {
            return Ok(OverlayFileState::Unchanged);
        }
        match self.upper.stat(cx, StatRequest::new(path.clone())).await {
            Ok(info) => Ok(info.version.map_or(OverlayFileState::Removed, OverlayFileState::Written)),
            Err(error) if error.is_absence() => Ok(OverlayFileState::Removed),
            Err(error) => Err(error),
        }
    }

    /// Returns the tree of the overlay and its base.
    pub(super) async fn tree(&self, cx: &OpContext, req: OpenTreeRequest) -> Result<Arc<dyn Tree>> {
        let real = self.real(cx, &req.path).await?;
        let req = req.at(real);
        let base = vfs_search::open_tree(&self.base, cx, req.clone()).await?;
        let upper = req.send(&self.upper, cx).await?;
        Ok(Arc::new(OverlayTree { state: self.clone(), upper, base }))
    }

    /// Lists a directory.
    pub(super) async fn ls(&self, cx: &OpContext, req: LsRequest) -> Result<LsResult> {
        let path = req.path.clone();
        let tree = self.tree(cx, OpenTreeRequest::new(path.clone(), TreeUse::List)).await?;
        let listed = vfs_search::ls_on(Pool::global(), tree, cx.clone(), req).await;
        listed.map_err(|error| error.or_path(&path))
    }

    /// Returns all entries at and below `path` except directories, with their kinds.
    pub(super) async fn leaves(&self, cx: &OpContext, path: &VfsPath) -> Result<Vec<(VfsPath, OverlayLeafKind)>> {
        let listed = self.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
        if listed.truncated.is_some() {
            return Err(
                Error::new(ErrorKind::TooLarge, "the directory is too deep to be listed as a whole").with_path(path)
            );
        }
        let mut leaves = Vec::with_capacity(listed.entries.len());
        for entry in listed.entries {
            let kind = match self.find_entry(cx, &entry.path).await? {
                OverlayLookupResult::Link if entry.is_dir => OverlayLeafKind::Link,
                OverlayLookupResult::Link => OverlayLeafKind::FileLink,
                _ if entry.is_dir => continue,
                _ => OverlayLeafKind::File,
            };
            leaves.push((entry.path, kind));
        }
        for problem in listed.problems {
            // A link that leads nowhere, or outside, has no listed entry, but it can be removed.
            match VfsPath::parse(&problem.path) {
                Ok(at) if matches!(self.find_entry(cx, &at).await, Ok(OverlayLookupResult::Link)) => {
                    leaves.push((at, OverlayLeafKind::Link))
                }
                _ => {
                    let message = "the entry cannot be read, so its directory cannot be processed as a whole";
                    return Err(Error::new(problem.code, message).with_path_text(&problem.path));
                }
            }
        }
        Ok(leaves)
    }
}

/// Kind of an entry of an overlay that is not a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverlayLeafKind {
    File,
    /// A link to a file.
    FileLink,
    /// Any other link: to a directory, nowhere, or outside.
    Link,
}

/// Returns whether one of the paths `hidden` is at or above `path`.
pub(super) fn is_hidden(hidden: &RedBlackTreeSetSync<VfsPath>, path: &VfsPath) -> bool {
    !hidden.is_empty() && at_and_above(path).any(|at| hidden.contains(at))
}

/// Returns `path` and the directories above it, without the root, from the highest down.
pub(super) fn at_and_above(path: &VfsPath) -> impl Iterator<Item = &str> {
    let text = path.as_str();
    let ends = text.match_indices('/').map(|(at, _)| at).skip(1).chain([text.len()]);
    ends.map(|end| &text[..end])
}
