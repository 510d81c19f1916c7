//! What differs between a workspace and the backend, as far as it can be looked at.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use vfs_core::{
    Backend, ChangeKind, Error, ErrorKind, FileChange, LsRequest, OpContext, Problem, ResolveRequest, Result, Version,
    VfsPath,
};

use super::Workspace;
use crate::config::{Protected, ProtectedName, Protection};

/// A file that may not be what was checked out.
#[derive(Debug)]
pub(super) struct Different {
    /// Its path in the backend.
    pub(super) path: VfsPath,
    /// The version that was checked out.
    pub(super) expected: Option<Version>,
    /// Whether it is in the directory, as far as a listing says.
    pub(super) is_here: bool,
}

/// A file in the backend and in the directory, where it is there, read once for telling and for writing.
#[derive(Debug)]
pub(super) struct Sides {
    /// What was checked out, unless the backend has another version by now.
    before: Option<(Bytes, Version)>,
    pub(super) after: Option<(Bytes, Version)>,
}

impl Sides {
    /// What became of the file; `None` where its content is what it was.
    pub(super) fn change(&self, one: &Different) -> Option<FileChange> {
        if one.expected.is_some() && self.before.is_none() {
            let kind = if self.after.is_some() { ChangeKind::Changed } else { ChangeKind::Removed };
            return Some(FileChange::new(one.path.clone(), kind).versions(one.expected.clone(), None));
        }
        let [before, after] = [&self.before, &self.after]
            .map(|side| side.as_ref().map(|(content, version)| (&content[..], version.clone())));
        FileChange::between(&one.path, before, after)
    }
}

impl Workspace {
    /// The files that may differ, by what a listing of the directory says.
    pub(super) async fn look(&self, cx: &OpContext, problems: &mut Vec<Problem>) -> Result<Vec<Different>> {
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
            let message = "some of what is here is too deep to be listed, and stays in the workspace; move it up";
            problems.push(Error::new(ErrorKind::TooLarge, message).with_path(&self.from).into());
        }
        let mut here = BTreeMap::new();
        for entry in listing.entries.into_iter().filter(|entry| !entry.is_dir) {
            here.insert(self.there(&entry.path)?, entry.version);
        }
        let mut different = Vec::new();
        for (path, known) in &self.known {
            let here = here.remove(path);
            let differs = match &here {
                Some(version) => version.as_ref() != Some(&known.here),
                // What was not seen is not known to be gone.
                None => !is_at_or_below(path, &unseen),
            };
            if differs {
                let expected = Some(known.there.clone());
                different.push(Different { path: path.clone(), expected, is_here: here.is_some() });
            }
        }
        different.extend(here.into_keys().map(|path| Different { path, expected: None, is_here: true }));
        different.sort_by(|one, other| one.path.cmp(&other.path));
        self.keep_out(&mut different, problems)?;
        Ok(different)
    }

    /// Leaves out what is protected, and tells so once for each path that is.
    fn keep_out(&self, different: &mut Vec<Different>, problems: &mut Vec<Problem>) -> Result<()> {
        let mut kept_out = BTreeSet::new();
        for protected in &self.protected {
            let path = self.there(&protected.path)?;
            let before = different.len();
            different.retain(|one| !one.path.starts_with(&path));
            if different.len() < before {
                kept_out.insert(path);
            }
        }
        different.retain(|one| match self.named(&one.path) {
            Some(path) => {
                kept_out.insert(path);
                false
            }
            None => true,
        });
        problems.extend(kept_out.into_iter().map(|path| {
            let message = "commands made or changed what the sandbox protects, and it stays in the workspace; look at it \
                           there, and write it yourself if it is meant";
            Problem::from(Error::new(ErrorKind::PolicyDenied, message).with_path(&path))
        }));
        Ok(())
    }

    /// The topmost path, at or above `path` and below what was checked out, that has a protected name.
    fn named(&self, path: &VfsPath) -> Option<VfsPath> {
        let is_protected = |path: &VfsPath| {
            let name = path.name().unwrap_or_default().to_lowercase();
            self.protected_names.iter().any(|protected| protected.name.to_lowercase() == name)
        };
        let above = std::iter::successors(Some(path.clone()), VfsPath::parent);
        above.take_while(|above| *above != self.from).filter(is_protected).last()
    }

    /// Reads a file on both sides. Only this decides whether it is gone from the directory: a listing can miss what is
    /// moved, or has become unreadable, meanwhile.
    pub(super) async fn read(&self, cx: &OpContext, one: &Different) -> Result<Sides> {
        let after = self.read_here(cx, &one.path).await?;
        if one.is_here && one.expected.is_some() && after.is_none() {
            let message = "it went away while it was looked at, and may be on its way elsewhere; end the commands that \
                           still run, and try again";
            return Err(Error::new(ErrorKind::Busy, message).with_path(&one.path));
        }
        let before = match &one.expected {
            Some(version) => downloaded(&self.backend, cx, &one.path).await?.filter(|(_, now)| now == version),
            None => None,
        };
        Ok(Sides { before, after })
    }

    async fn read_here(&self, cx: &OpContext, path: &VfsPath) -> Result<Option<(Bytes, Version)>> {
        let real = match Backend::resolve(&self.files, cx, ResolveRequest::new(self.here(path)?)).await {
            Ok(resolved) => resolved.path,
            Err(error) if error.is_absence() => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_hidden = |one: &Protected| one.protection == Protection::Hidden && real.starts_with(&one.path);
        let has_hidden_name = |one: &ProtectedName| {
            one.protection == Protection::Hidden
                && real.components().any(|component| component.to_lowercase() == one.name.to_lowercase())
        };
        if self.protected.iter().any(is_hidden) || self.protected_names.iter().any(has_hidden_name) {
            let message = "this link leads to what the sandbox hides, and stays in the workspace; remove the link";
            return Err(Error::new(ErrorKind::PolicyDenied, message));
        }
        downloaded(&self.files, cx, &real).await
    }
}

/// Whether `path` or one above it is one of `paths`.
fn is_at_or_below(path: &VfsPath, paths: &BTreeSet<String>) -> bool {
    std::iter::successors(Some(path.clone()), VfsPath::parent).any(|above| paths.contains(above.as_str()))
}

/// A file's content, and the version that it is; `None` where there is no such file.
async fn downloaded(files: &impl Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<(Bytes, Version)>> {
    let Some(file) = files.download_files(cx, vec![path.clone()]).await.pop() else { return Ok(None) };
    match (file.content, file.version, file.cause) {
        (Some(content), Some(version), _) => Ok(Some((content, version))),
        // A directory in its place is no file.
        (.., Some(cause)) if cause.is_absence() || cause.kind() == ErrorKind::IsADirectory => Ok(None),
        (.., cause) => Err(cause.unwrap_or_else(|| Error::at(ErrorKind::Unavailable, path))),
    }
}
