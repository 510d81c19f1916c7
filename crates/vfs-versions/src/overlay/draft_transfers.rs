//! Renames and copies in a draft of an overlay state.

use std::cmp::Reverse;

use vfs_core::path::PathMapping;
use vfs_core::transfer::TransferTargetMode;
use vfs_core::{
    CopyRequest, CopyResult, Error, ErrorKind, LsRequest, OpContext, RenameRequest, RenameResult, Result, Version,
    VfsPath,
};

use super::overlay_state::{OverlayLeafKind, OverlayLookupResult, OverlayState};
use crate::versioned_entry::VersionedEntry;

impl OverlayState {
    pub(super) async fn rename(&mut self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let (from, to) = (self.real_entry(cx, &req.from).await?, self.real_entry(cx, &req.to).await?);
        let paths = TransferPaths { from: &from, to: &to, mode: req.mode, is_move: true };
        let before = self.content_size();
        let transferred = self.transfer(cx, &paths).await;
        let moved = transferred.map_err(|error| paths.to_requested(error, &req.from, &req.to))?;
        for (file, version) in moved.files {
            // Only the copied version is deleted: a file that the base has since, or another content, stays.
            if !self.originals.contains_key(&file) {
                self.originals.insert_mut(file, VersionedEntry::File(version));
            }
        }
        self.remove_recorded(cx, &from).await.map_err(|error| error.with_path(&req.from))?;
        self.check_budget(before, &req.to)?;
        Ok(RenameResult::new(req.from, req.to, moved.replaced))
    }

    pub(super) async fn copy(&mut self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let from = self.real(cx, &req.from).await?;
        // Like a write, a copy to a link changes the target of the link, which is never replaced by a directory. A source that
        // cannot be found is reported by the transfer.
        let to = match (req.mode, self.find(cx, &from).await) {
            (TransferTargetMode::Overwrite, Ok(OverlayLookupResult::Upper(_) | OverlayLookupResult::Base(_))) => {
                self.real(cx, &req.to).await?
            }
            _ => self.real_entry(cx, &req.to).await?,
        };
        let paths = TransferPaths { from: &from, to: &to, mode: req.mode, is_move: false };
        let before = self.content_size();
        let transferred = self.transfer(cx, &paths).await;
        let copied = transferred.map_err(|error| paths.to_requested(error, &req.from, &req.to))?;
        self.check_budget(before, &req.to)?;
        let files = copied.files.len() as u64;
        Ok(CopyResult::new(req.from, req.to, copied.replaced, files, copied.bytes))
    }

    /// Copies the source to the target. A link to a file in a directory becomes a file with the content of its target.
    async fn transfer(&mut self, cx: &OpContext, paths: &TransferPaths<'_>) -> Result<DraftTransferOutcome> {
        let TransferPaths { from, to, mode, is_move } = *paths;
        paths.check()?;
        let entry = self.find_entry(cx, from).await?;
        let files = match &entry {
            OverlayLookupResult::Nothing => return Err(Error::not_found(from)),
            OverlayLookupResult::Link => return Err(link_unsupported(from)),
            OverlayLookupResult::Directory(_) => self.leaves(cx, from).await?,
            _ => vec![(from.clone(), OverlayLeafKind::File)],
        };
        // The target of any other link is not part of this directory.
        let is_refused =
            |kind: OverlayLeafKind| kind == OverlayLeafKind::Link || (is_move && kind == OverlayLeafKind::FileLink);
        if let Some((at, _)) = files.iter().find(|(_, kind)| is_refused(*kind)) {
            return Err(link_unsupported(at));
        }
        let replaced = self.check_target(cx, to, matches!(entry, OverlayLookupResult::Directory(_)), mode).await?;
        if files.is_empty() {
            let message = "an overlay cannot move or copy an empty directory, since it only records files";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(from));
        }
        let mut transferred = DraftTransferOutcome { replaced, files: Vec::new(), bytes: 0 };
        for (file, kind) in files {
            cx.check()?;
            let source = if kind == OverlayLeafKind::FileLink { self.real(cx, &file).await? } else { file.clone() };
            let content = self.fetch(cx, &source).await?;
            let target = to.join(file.strip_prefix(from).unwrap_or_default())?;
            let replaced = self.find_entry(cx, &target).await?;
            transferred.bytes += content.content.len() as u64;
            self.put(cx, &target, &replaced, content.content).await?;
            transferred.files.push((file, content.version));
        }
        Ok(transferred)
    }

    /// Returns whether an entry at the target `to` is replaced, or an error if it may not be.
    async fn check_target(&self, cx: &OpContext, to: &VfsPath, is_dir: bool, mode: TransferTargetMode) -> Result<bool> {
        let target = self.find_entry(cx, to).await?;
        let kind = match (&target, is_dir) {
            (OverlayLookupResult::Nothing, _) => return Ok(false),
            _ if mode != TransferTargetMode::Overwrite => ErrorKind::AlreadyExists,
            (OverlayLookupResult::Directory(_), false) => ErrorKind::IsADirectory,
            (OverlayLookupResult::Directory(_), true) => {
                let listed = self.ls(cx, LsRequest::new(to.clone()).limit(1)).await?;
                // A link that leads nowhere is listed as a problem, and makes the directory not empty.
                if listed.entries.is_empty() && listed.problems.is_empty() {
                    return Ok(true);
                }
                ErrorKind::NotEmpty
            }
            (_, true) => ErrorKind::NotADirectory,
            (_, false) => return Ok(true),
        };
        Err(Error::at(kind, to))
    }
}

/// Returns the error of a move or copy of the link at `path`, since only the base can have links.
fn link_unsupported(path: &VfsPath) -> Error {
    let message = "an overlay cannot move or copy a link; move or copy its target, or delete the link";
    Error::new(ErrorKind::Unsupported, message).with_path(path)
}

/// Outcome of a rename or copy in a draft.
struct DraftTransferOutcome {
    /// Whether an entry at the target was replaced.
    replaced: bool,
    /// Sources of the copied files, with the copied versions.
    files: Vec<(VfsPath, Version)>,
    bytes: u64,
}

/// Real paths of a rename or copy.
struct TransferPaths<'a> {
    from: &'a VfsPath,
    to: &'a VfsPath,
    mode: TransferTargetMode,
    is_move: bool,
}

impl TransferPaths<'_> {
    fn check(&self) -> Result<()> {
        let refuse = |message: &'static str, path: &VfsPath| Err(Error::invalid_argument(message).with_path(path));
        if self.from.is_root() || self.to.is_root() {
            return refuse("the root cannot be moved, copied or replaced; name an entry below it", self.from);
        }
        if self.from == self.to {
            return refuse("source and target are the same", self.from);
        }
        if self.to.starts_with(self.from) {
            return refuse("the target lies inside the source", self.to);
        }
        Ok(())
    }

    /// Returns `error` with the requested path in place of the real one.
    fn to_requested(&self, error: Error, from: &VfsPath, to: &VfsPath) -> Error {
        let mut paths = [(from, self.from), (to, self.to)];
        // One path may be inside the other.
        paths.sort_by_key(|(_, real)| Reverse(real.as_str().len()));
        let path = error.path().and_then(|path| VfsPath::parse(path).ok());
        match paths.into_iter().find(|(_, real)| path.as_ref().is_some_and(|path| path.starts_with(real))) {
            Some((requested, real)) => PathMapping::new(requested.clone(), real.clone()).error(error),
            None => error.or_path(from),
        }
    }
}
