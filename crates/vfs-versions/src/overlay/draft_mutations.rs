//! Writes, edits and deletions in a draft of an overlay state.

use std::ops::Bound;

use bytes::{Bytes, BytesMut};
use vfs_core::edit::ApplyMode;
use vfs_core::path::{MapResultPaths as _, PathMapping};
use vfs_core::transfer::DeleteScope;
use vfs_core::{
    Backend as _, DeleteRequest, DeleteResult, EditRequest, EditResult, Error, ErrorKind, LsRequest, OpContext, Result,
    VfsPath, WriteMode, WriteRequest, WriteResult,
};

use super::overlay_state::{OverlayLeafKind, OverlayLookupResult, OverlayState};
use crate::versioned_entry::VersionedEntry;

impl OverlayState {
    /// Records the entry of the base at `path`, where the overlay has `entry`, if this is the first change of it.
    fn record_original(&mut self, path: &VfsPath, entry: &OverlayLookupResult) {
        if self.originals.contains_key(path) {
            return;
        }
        let original = match entry {
            OverlayLookupResult::Base(info) => info.version.clone().into(),
            OverlayLookupResult::Link => VersionedEntry::Link,
            OverlayLookupResult::Nothing | OverlayLookupResult::Upper(_) | OverlayLookupResult::Directory(_) => {
                VersionedEntry::Nothing
            }
        };
        self.originals.insert_mut(path.clone(), original);
    }

    /// Writes `content` to `path`, where `entry` is.
    ///
    /// During a change, contents may take twice the budget, since a moved file is in two places.
    pub(super) async fn put(
        &mut self,
        cx: &OpContext,
        path: &VfsPath,
        entry: &OverlayLookupResult,
        content: Bytes,
    ) -> Result<WriteResult> {
        let before = self.content_size();
        let written = self.put_over_budget(cx, path, entry, content).await?;
        self.check_content_size(self.budget.saturating_mul(2), before, path)?;
        Ok(written)
    }

    /// Writes like [`put`](Self::put), without checking the budget.
    async fn put_over_budget(
        &mut self,
        cx: &OpContext,
        path: &VfsPath,
        entry: &OverlayLookupResult,
        content: Bytes,
    ) -> Result<WriteResult> {
        self.record_original(path, entry);
        if matches!(entry, OverlayLookupResult::Link) {
            self.hide(path);
        }
        let request = WriteRequest::new(path.clone(), content).mode(WriteMode::Overwrite);
        self.upper.write(cx, request).await
    }

    /// Returns the size of all written contents, in bytes.
    pub(super) fn content_size(&self) -> u64 {
        self.upper.snapshot().total_bytes()
    }

    /// Checks that after a change of `path` the contents are within the budget, or not larger than the `before` bytes before it.
    pub(super) fn check_budget(&self, before: u64, path: &VfsPath) -> Result<()> {
        self.check_content_size(self.budget, before, path)
    }

    fn check_content_size(&self, limit: u64, before: u64, path: &VfsPath) -> Result<()> {
        let size = self.content_size();
        if size <= limit || size <= before {
            return Ok(());
        }
        let budget = self.budget;
        let message = format!(
            "the contents of the overlay exceed its budget of {budget} bytes; commit or discard changes first, or make a smaller change"
        );
        Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path))
    }

    pub(super) async fn write(&mut self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = self.real(cx, &req.path).await?;
        let entry = self.find(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        if matches!(entry, OverlayLookupResult::Directory(_)) {
            return Err(Error::at(ErrorKind::IsADirectory, &req.path));
        }
        let is_new = matches!(entry, OverlayLookupResult::Nothing);
        let mut content = req.content;
        match &req.mode {
            WriteMode::CreateNew if !is_new => return Err(Error::already_exists(&req.path)),
            WriteMode::IfVersion(version) if entry.version() != Some(version) => {
                return Err(Error::conflict(&req.path, entry.version().cloned()));
            }
            WriteMode::Append if !is_new => {
                let before = self.fetch(cx, &path).await?.content;
                let mut joined = BytesMut::with_capacity(before.len() + content.len());
                joined.extend_from_slice(&before);
                joined.extend_from_slice(&content);
                content = joined.freeze();
            }
            _ => {}
        }
        let written = self.put(cx, &path, &entry, content).await.map_err(|error| error.with_path(&req.path))?;
        Ok(WriteResult::new(req.path, is_new, written.version, written.size))
    }

    pub(super) async fn edit(&mut self, cx: &OpContext, mut req: EditRequest) -> Result<EditResult> {
        let path = self.real(cx, &req.path).await?;
        let entry = self.find(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        let version = match &entry {
            OverlayLookupResult::Directory(_) => return Err(Error::at(ErrorKind::IsADirectory, &req.path)),
            OverlayLookupResult::Nothing | OverlayLookupResult::Link => return Err(Error::not_found(&req.path)),
            OverlayLookupResult::Upper(_) | OverlayLookupResult::Base(_) => entry.version().cloned(),
        };
        if let Some(expected) = req.expected_version.take()
            && version.as_ref() != Some(&expected)
        {
            return Err(Error::conflict(&req.path, version));
        }
        if matches!(entry, OverlayLookupResult::Base(_)) {
            let content = self.fetch(cx, &path).await.map_err(|error| error.with_path(&req.path))?.content;
            self.put_over_budget(cx, &path, &entry, content).await.map_err(|error| error.with_path(&req.path))?;
        }
        let (requested, mode) = (req.path.clone(), req.mode);
        req.path = path.clone();
        let mut result = self.upper.edit(cx, req).await.map_err(|error| error.with_path(&requested))?;
        if mode == ApplyMode::DryRun
            && let Some(version) = version
        {
            result.version = version;
        }
        // The diff names the requested path, too. It is another one than the real path only behind a link.
        result.map_paths(&PathMapping::new(requested, path))
    }

    pub(super) async fn delete(&mut self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        if req.path.is_root() {
            let message = "the root itself cannot be deleted; name an entry below it";
            return Err(Error::invalid_argument(message).with_path(&req.path));
        }
        let path = self.real_entry(cx, &req.path).await?;
        let entry = self.find_entry(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        match &entry {
            OverlayLookupResult::Nothing => return Err(Error::not_found(&req.path)),
            entry if req.scope == DeleteScope::EmptyDirectory => {
                self.check_empty(cx, &path, entry).await.map_err(|error| error.with_path(&req.path))?;
            }
            OverlayLookupResult::Link if req.expected_version.is_some() => {
                return Err(Error::invalid_argument("a link has no version to expect").with_path(&req.path));
            }
            entry => {
                if matches!(entry, OverlayLookupResult::Directory(_)) {
                    req.check_directory()?;
                }
                if let Some(expected) = &req.expected_version
                    && entry.version() != Some(expected)
                {
                    return Err(Error::conflict(&req.path, entry.version().cloned()));
                }
            }
        }
        let files = self.remove(cx, &path, &entry).await.map_err(|error| error.with_path(&req.path))?;
        Ok(DeleteResult::new(req.path, files))
    }

    /// Checks that `entry` at `path` is an empty directory.
    async fn check_empty(&self, cx: &OpContext, path: &VfsPath, entry: &OverlayLookupResult) -> Result<()> {
        if !matches!(entry, OverlayLookupResult::Directory(_)) {
            return Err(Error::at(ErrorKind::NotADirectory, path));
        }
        let listed = self.ls(cx, LsRequest::new(path.clone()).limit(1)).await?;
        let is_empty = listed.entries.is_empty() && listed.problems.is_empty();
        if is_empty { Ok(()) } else { Err(Error::at(ErrorKind::NotEmpty, path)) }
    }

    /// Removes the entry `entry` at `path`, and returns the number of removed files.
    async fn remove(&mut self, cx: &OpContext, path: &VfsPath, entry: &OverlayLookupResult) -> Result<u64> {
        let files = match entry {
            OverlayLookupResult::Directory(_) => {
                let files = self.leaves(cx, path).await?;
                for (file, kind) in &files {
                    let entry = match kind {
                        OverlayLeafKind::Link | OverlayLeafKind::FileLink => OverlayLookupResult::Link,
                        OverlayLeafKind::File => self.find(cx, file).await?,
                    };
                    self.record_original(file, &entry);
                }
                files.len() as u64
            }
            entry => {
                self.record_original(path, entry);
                1
            }
        };
        self.remove_recorded(cx, path).await?;
        Ok(files)
    }

    /// Removes all entries at and below `path`. A commit deletes only those files of the base whose originals are recorded.
    pub(super) async fn remove_recorded(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        self.remove_written(cx, path).await?;
        self.hide(path);
        self.hide_emptied(cx, path).await
    }

    /// Removes the written entries at and below `path`.
    pub(super) async fn remove_written(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match self.upper.delete(cx, DeleteRequest::new(path.clone()).recursive()).await {
            Err(error) if !error.is_absence() => Err(error),
            _ => Ok(()),
        }
    }

    /// Hides the base at and below `path`.
    fn hide(&mut self, path: &VfsPath) {
        // Paths below `path` follow it in the order, except for others with the same prefix, such as `/a-b` after `/a`.
        let from = self.hidden.range::<str, _>((Bound::Included(path.as_str()), Bound::Unbounded));
        let same_prefix = from.take_while(|other| other.as_str().starts_with(path.as_str()));
        let below: Vec<_> = same_prefix.filter(|other| other.starts_with(path)).cloned().collect();
        for other in below {
            self.hidden.remove_mut(&other);
        }
        if !self.is_hidden(path) {
            self.hidden.insert_mut(path.clone());
        }
    }

    /// Hides the directories above `path` that have no entry left, since a directory exists as long as it has one.
    pub(super) async fn hide_emptied(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            match self.ls(cx, LsRequest::new(directory.clone()).limit(1)).await {
                Ok(listed) if listed.entries.is_empty() && listed.problems.is_empty() => {
                    if self.is_empty_in_base(cx, &directory).await? {
                        break;
                    }
                    self.hide(&directory);
                }
                Ok(_) => break,
                Err(error) if error.is_absence() => {}
                Err(error) => return Err(error),
            }
            above = directory.parent();
        }
        Ok(())
    }

    /// Returns whether the base has an empty directory at `path`, which exists without entries.
    async fn is_empty_in_base(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        match self.base.ls(cx, LsRequest::new(path.clone()).limit(1)).await {
            Ok(listed) => Ok(listed.entries.is_empty() && listed.problems.is_empty()),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file at `path`, if any, by a file with `content` or by nothing.
    pub(crate) async fn set(&mut self, cx: &OpContext, path: &VfsPath, content: Option<Bytes>) -> Result<()> {
        let entry = self.find_entry(cx, path).await?;
        match (content, &entry) {
            (_, OverlayLookupResult::Directory(_)) => Err(Error::at(ErrorKind::IsADirectory, path)),
            (Some(content), entry) => self.put(cx, path, entry, content).await.map(drop),
            (None, OverlayLookupResult::Nothing) => Ok(()),
            (None, entry) => self.remove(cx, path, entry).await.map(drop),
        }
    }

    /// Forgets the change of `path`. Returns `false` without effect if a directory above it was removed, if a directory replaced
    /// it, or if it was a link and there are changes below it, which the link would hide.
    pub(crate) async fn forget(&mut self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let is_below = |other: &VfsPath| other != path && other.starts_with(path);
        if self.originals.get(path) == Some(&VersionedEntry::Link) && self.originals.keys().any(is_below) {
            return Ok(false);
        }
        let mut without = self.hidden.clone();
        without.remove_mut(path);
        let before = std::mem::replace(&mut self.hidden, without);
        if self.is_hidden(path) {
            self.hidden = before;
            return Ok(false);
        }
        match self.upper.delete(cx, DeleteRequest::new(path.clone())).await {
            Ok(_) => {}
            Err(error) if error.is_absence() => {}
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                self.hidden = before;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.originals.remove_mut(path);
        Ok(true)
    }
}
