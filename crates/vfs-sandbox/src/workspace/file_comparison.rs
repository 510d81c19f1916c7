//! Comparison of a workspace with its backend.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use vfs_core::snapshots::{SnapshotDiffEntry, SnapshotDiffKind};
use vfs_core::{Backend, Error, ErrorKind, LsRequest, OpContext, Problem, ResolveRequest, Result, Version, VfsPath};

use super::Workspace;
use crate::config::{ProtectedName, ProtectedPath, ProtectionLevel};

/// A file that may differ from the one that was checked out.
#[derive(Debug)]
pub(super) struct ChangeCandidate {
    /// Path of the file in the backend.
    pub(super) path: VfsPath,
    /// The version that was checked out.
    pub(super) expected: Option<Version>,
    /// Whether the file is in the directory, according to a listing.
    pub(super) is_here: bool,
}

/// The contents of a file in the backend and in the directory, read once for the report and the write.
#[derive(Debug)]
pub(super) struct BeforeAfterContent {
    /// The content that was checked out, unless the backend has another version now.
    before: Option<(Bytes, Version)>,
    pub(super) after: Option<(Bytes, Version)>,
}

impl BeforeAfterContent {
    /// Returns the change of the file; `None` if its content is unchanged.
    pub(super) fn change(&self, one: &ChangeCandidate) -> Option<SnapshotDiffEntry> {
        if one.expected.is_some() && self.before.is_none() {
            let kind = if self.after.is_some() { SnapshotDiffKind::Changed } else { SnapshotDiffKind::Removed };
            return Some(SnapshotDiffEntry::new(one.path.clone(), kind).versions(one.expected.clone(), None));
        }
        let [before, after] = [&self.before, &self.after]
            .map(|side| side.as_ref().map(|(content, version)| (&content[..], version.clone())));
        SnapshotDiffEntry::between(&one.path, before, after)
    }
}

impl Workspace {
    /// Returns the files that may differ, according to a listing of the directory.
    pub(super) async fn find_changed(
        &self,
        cx: &OpContext,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<ChangeCandidate>> {
        let listing = self.files.ls(cx, LsRequest::new(VfsPath::root()).recursive()).await;
        let listing = listing.map_err(|error| error.with_path(&self.from))?;
        let mut unseen = BTreeSet::new();
        for mut problem in listing.problems {
            let below = problem.path.trim_matches('/').to_owned();
            problem.path = format!("{}/{below}", self.from.as_str().trim_end_matches('/'));
            if !below.is_empty() {
                unseen.insert(problem.path.clone());
            }
            problems.push(problem);
        }
        if listing.truncated.is_some() {
            let message = "some files are too deep to be listed, and stay in the workspace; move them up";
            problems.push(Error::new(ErrorKind::TooLarge, message).with_path(&self.from).into());
        }
        let mut here = BTreeMap::new();
        for entry in listing.entries.into_iter().filter(|entry| !entry.is_dir) {
            here.insert(self.backend_path(&entry.path)?, entry.version);
        }
        let mut different = Vec::new();
        for (path, baseline) in &self.baselines {
            let here = here.remove(path);
            let differs = match &here {
                Some(version) => version.as_ref() != Some(&baseline.local),
                // A file in a directory that could not be listed may still exist.
                None => !is_at_or_below(path, &unseen),
            };
            if differs {
                let expected = Some(baseline.backend.clone());
                different.push(ChangeCandidate { path: path.clone(), expected, is_here: here.is_some() });
            }
        }
        different.extend(here.into_keys().map(|path| ChangeCandidate { path, expected: None, is_here: true }));
        different.sort_by(|one, other| one.path.cmp(&other.path));
        self.exclude_protected(&mut different, problems)?;
        Ok(different)
    }

    /// Removes protected files, and adds a problem for each protected path.
    fn exclude_protected(&self, different: &mut Vec<ChangeCandidate>, problems: &mut Vec<Problem>) -> Result<()> {
        let mut excluded = BTreeSet::new();
        for protected in &self.protected {
            let path = self.backend_path(&protected.path)?;
            let before = different.len();
            different.retain(|one| !one.path.starts_with(&path));
            if different.len() < before {
                excluded.insert(path);
            }
        }
        different.retain(|one| match self.topmost_protected(&one.path) {
            Some(path) => {
                excluded.insert(path);
                false
            }
            None => true,
        });
        problems.extend(excluded.into_iter().map(|path| {
            let message = "commands created or changed a protected path, which stays in the workspace; review it there, and \
                           write it yourself if that was intended";
            Problem::from(Error::new(ErrorKind::PolicyDenied, message).with_path(&path))
        }));
        Ok(())
    }

    /// Returns the topmost path, at or above `path` and below the directory that was checked out, that has a protected
    /// name.
    fn topmost_protected(&self, path: &VfsPath) -> Option<VfsPath> {
        let is_protected = |path: &VfsPath| {
            let name = path.name().unwrap_or_default().to_lowercase();
            self.protected_names.iter().any(|protected| protected.name.to_lowercase() == name)
        };
        let above = std::iter::successors(Some(path.clone()), VfsPath::parent);
        above.take_while(|above| *above != self.from).filter(is_protected).last()
    }

    /// Reads a file on both sides. Only this read decides whether the file was removed from the directory: a listing
    /// can miss a file that is moved or becomes unreadable meanwhile.
    pub(super) async fn read(&self, cx: &OpContext, one: &ChangeCandidate) -> Result<BeforeAfterContent> {
        let after = self.read_local(cx, &one.path).await?;
        if one.is_here && one.expected.is_some() && after.is_none() {
            let message = "the file vanished while it was read, and may have been moved; end the commands that still run, \
                           and try again";
            return Err(Error::new(ErrorKind::Busy, message).with_path(&one.path));
        }
        let before = match &one.expected {
            Some(version) => download(&self.backend, cx, &one.path).await?.filter(|(_, now)| now == version),
            None => None,
        };
        Ok(BeforeAfterContent { before, after })
    }

    async fn read_local(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<(Bytes, Version)>> {
        let real = match Backend::resolve(&self.files, cx, ResolveRequest::new(self.local_path(path)?)).await {
            Ok(resolved) => resolved.path,
            Err(error) if error.is_absence() => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_hidden = |one: &ProtectedPath| one.protection == ProtectionLevel::Hidden && real.starts_with(&one.path);
        let has_hidden_name = |one: &ProtectedName| {
            one.protection == ProtectionLevel::Hidden
                && real.components().any(|component| component.to_lowercase() == one.name.to_lowercase())
        };
        if self.protected.iter().any(is_hidden) || self.protected_names.iter().any(has_hidden_name) {
            let message =
                "this link leads to a file that the sandbox hides, and stays in the workspace; remove the link";
            return Err(Error::new(ErrorKind::PolicyDenied, message));
        }
        download(&self.files, cx, &real).await
    }
}

/// Returns whether `path` or one above it is one of `paths`.
fn is_at_or_below(path: &VfsPath, paths: &BTreeSet<String>) -> bool {
    std::iter::successors(Some(path.clone()), VfsPath::parent).any(|above| paths.contains(above.as_str()))
}

/// Returns the content and version of a file; `None` if there is no such file.
async fn download(files: &impl Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<(Bytes, Version)>> {
    let Some(file) = files.download_files(cx, vec![path.clone()]).await.pop() else { return Ok(None) };
    match (file.content, file.version, file.cause) {
        (Some(content), Some(version), _) => Ok(Some((content, version))),
        // A directory at the path is not a file.
        (.., Some(cause)) if cause.is_absence() || cause.kind() == ErrorKind::IsADirectory => Ok(None),
        (.., cause) => Err(cause.unwrap_or_else(|| Error::at(ErrorKind::Unavailable, path))),
    }
}
