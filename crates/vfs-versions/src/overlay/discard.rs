//! Discard of the changes of an overlay: all of them, or those of some paths.

use std::sync::Arc;

use vfs_core::{Backend as _, Error, ErrorKind, LsRequest, OpContext, Result, VfsPath};

use super::backend::OverlayBackend;
use super::base_access::is_behind_link;
use super::overlay_state::{OverlayState, at_and_above};
use crate::versioned_entry::fetch_if_exists;

impl OverlayBackend {
    /// Discards all changes.
    ///
    /// # Errors
    ///
    /// At the root, those of the store of a persistent overlay.
    pub async fn discard(&self, cx: &OpContext) -> Result<()> {
        self.discard_paths(cx, &[VfsPath::root()]).await.map(drop)
    }

    /// Discards the changes at and below each of `paths`, and returns the changed files and links that are discarded, sorted
    /// by path.
    ///
    /// # Behaviour
    ///
    /// * All of `paths` show the present entries of the base, or nothing is discarded. Paths behind a link that the base has by now
    ///   show no entry.
    /// * Paths are real paths, like those of [`diff`](Self::diff) and of the [conflicts](super::CommitResult::Conflicts) of a commit:
    ///   links in them are not followed. A path without changes is skipped.
    /// * If a directory was removed, only `paths` in it come back. A move changes its source and its target: to undo it, discard
    ///   both.
    /// * To keep the version of the overlay in spite of a conflict, read the file, discard its path, and write it again: the
    ///   new change expects the present version of the base.
    ///
    /// # Errors
    ///
    /// `not_a_directory` if one of `paths` is below a file that was written in the overlay: that file has to be discarded as well.
    /// The errors of the base, and of the store of a persistent overlay.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use vfs_core::{BackendExt, OpContext, VfsPath};
    /// use vfs_versions::{CommitResult, OverlayBackend};
    /// use vfs_memory::MemoryBackend;
    ///
    /// # futures::executor::block_on(async {
    /// let (project, cx) = (MemoryBackend::new(), OpContext::new());
    /// project.create_text("/a.txt", "one\n").await?;
    /// let overlay = OverlayBackend::new(Arc::new(project.clone()));
    /// overlay.write_text("/a.txt", "mine\n").await?;
    /// overlay.write_text("/b.txt", "mine\n").await?;
    ///
    /// project.write_text("/a.txt", "theirs\n").await?;
    /// assert!(matches!(overlay.commit(&cx).await?, CommitResult::Conflicts(_)));
    /// overlay.discard_paths(&cx, &[VfsPath::parse("/a.txt")?]).await?;
    /// assert!(matches!(overlay.commit(&cx).await?, CommitResult::Applied(_)));
    /// assert_eq!(project.read_text("/a.txt").await?, "theirs\n");
    /// assert_eq!(project.read_text("/b.txt").await?, "mine\n");
    /// # Ok::<(), vfs_core::Error>(())
    /// # }).expect("the example runs");
    /// ```
    pub async fn discard_paths(&self, cx: &OpContext, paths: &[VfsPath]) -> Result<Vec<VfsPath>> {
        let mut paths = paths.to_vec();
        // A directory comes before the entries below it, which are discarded with it.
        paths.sort();
        self.mutate(cx, &VfsPath::root(), async |draft| {
            let mut discarded = Vec::new();
            for path in &paths {
                discarded.extend(draft.discard_below(cx, path).await?);
            }
            discarded.sort();
            Ok(discarded)
        })
        .await
    }
}

impl OverlayState {
    /// Discards the changes at and below `path`, and returns their paths.
    async fn discard_below(&mut self, cx: &OpContext, path: &VfsPath) -> Result<Vec<VfsPath>> {
        if path.is_root() {
            let discarded = self.originals.keys().cloned().collect();
            *self = Self::new(Arc::clone(&self.base), self.budget);
            return Ok(discarded);
        }
        let discarded: Vec<_> = self.originals.keys().filter(|at| at.starts_with(path)).cloned().collect();
        let removed: Vec<_> = self.hidden.iter().filter(|at| at.starts_with(path)).cloned().collect();
        if discarded.is_empty() && removed.is_empty() && !self.is_hidden(path) {
            return Ok(discarded);
        }
        self.check_no_file_above(cx, path).await?;
        for at in &discarded {
            self.originals.remove_mut(at);
        }
        for at in &removed {
            self.hidden.remove_mut(at);
        }
        self.remove_written(cx, path).await?;
        // If a directory above is a link of the base by now, the entry of the base at this path is elsewhere.
        if !is_behind_link(&*self.base, cx, path).await? {
            self.reveal(cx, path).await?;
            self.hide_emptied(cx, path).await?;
        }
        Ok(discarded)
    }

    /// Checks that `path` is not below a file of the overlay, where no entry of the base can show.
    async fn check_no_file_above(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        for at in at_and_above(&path.parent().unwrap_or_default()) {
            let at = VfsPath::parse(at)?;
            if self.originals.contains_key(&at) && fetch_if_exists(&self.upper, cx, &at).await?.is_some() {
                let message = format!("'{at}' is a file in the overlay; discard that path as well");
                return Err(Error::new(ErrorKind::NotADirectory, message).with_path(path));
            }
        }
        Ok(())
    }

    /// Shows the base at and below `path`. If a directory above it was removed, all other entries of that directory stay hidden.
    async fn reveal(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let Some(removed) = at_and_above(path).find(|at| self.hidden.contains(*at)) else { return Ok(()) };
        let removed = VfsPath::parse(removed)?;
        let (mut at, mut others) = (path.clone(), Vec::new());
        while at != removed {
            let Some(parent) = at.parent() else { break };
            let listed = match self.base.ls(cx, LsRequest::new(parent.clone())).await {
                Ok(listed) => listed,
                Err(error) if error.is_absence() => return Ok(()),
                Err(error) => return Err(error),
            };
            if listed.truncated.is_some() {
                return Err(
                    Error::new(ErrorKind::TooLarge, "the directory is too large to be listed").with_path(&parent)
                );
            }
            // A link that leads nowhere is listed as a problem.
            let broken = listed.problems.into_iter().filter_map(|problem| VfsPath::parse(&problem.path).ok());
            let entries = listed.entries.into_iter().map(|entry| entry.path).chain(broken);
            others.extend(entries.filter(|entry| *entry != at && entry.parent().as_ref() == Some(&parent)));
            at = parent;
        }
        self.hidden.remove_mut(&removed);
        for other in others {
            self.hidden.insert_mut(other);
        }
        Ok(())
    }
}
