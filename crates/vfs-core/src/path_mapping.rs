//! Path mapping between the namespaces of a caller and a backend.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::facets::MultiModalReadResult;
use crate::path::VfsPath;

use crate::requests::{
    Change, CopyResult, DeleteResult, EditResult, FileDownloadResponse, FileInfo, FileUploadResponse, FileWriter,
    FilesUpdate, GlobResult, GrepEvent, GrepResult, LsResult, Problem, ReadResult, RenameResult, ResolveResult,
    SnapshotDiffEntry, SnapshotDiffResult, WatchEvent, WriteResult,
};
use crate::shell::{ExecuteEvent, ExecuteResponse};

/// A mapping of the path `outer` in the caller's namespace to the path `inner` in that of a backend.
///
/// # Behaviour
///
/// Paths of requests are mapped by [`to_inner`](Self::to_inner); paths of results, errors and problems by
/// [`to_outer`](Self::to_outer). Other paths of the backend do not exist in the caller's namespace.
///
/// ```
/// use vfs_core::path::PathMapping;
/// use vfs_core::VfsPath;
///
/// let mount = PathMapping::new(VfsPath::parse("/memories")?, VfsPath::root());
/// let inner = mount.to_inner(&VfsPath::parse("/memories/plan.md")?)?;
/// assert_eq!(inner.as_str(), "/plan.md");
/// assert_eq!(mount.to_outer(&inner)?.as_str(), "/memories/plan.md");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMapping {
    outer: VfsPath,
    inner: VfsPath,
}

impl PathMapping {
    /// Creates a mapping of `outer` to `inner`.
    pub fn new(outer: VfsPath, inner: VfsPath) -> Self {
        Self { outer, inner }
    }

    /// Returns the root of the mapping in the caller's namespace.
    pub fn outer(&self) -> &VfsPath {
        &self.outer
    }

    /// Returns the root of the mapping in the backend's namespace.
    pub fn inner(&self) -> &VfsPath {
        &self.inner
    }

    /// Maps a path of the caller into the backend's namespace.
    ///
    /// # Errors
    ///
    /// `invalid_path` at `path` if it is not at or below [`outer`](Self::outer), or the mapped path is too long.
    pub fn to_inner(&self, path: &VfsPath) -> Result<VfsPath> {
        shift(path, &self.outer, &self.inner)
    }

    /// Maps a path of the backend into the caller's namespace.
    ///
    /// # Errors
    ///
    /// `invalid_path` if `path` is not at or below [`inner`](Self::inner), or the mapped path is too long.
    pub fn to_outer(&self, path: &VfsPath) -> Result<VfsPath> {
        shift(path, &self.inner, &self.outer)
    }

    /// Maps the path of an error into the caller's namespace. A path outside of the mapping becomes [`outer`](Self::outer).
    pub fn error(&self, error: Error) -> Error {
        if self.outer == self.inner {
            return error;
        }
        match error.path().map(str::to_owned) {
            Some(path) => error.replace_path(&path, &self.to_outer_text(&path)),
            None => error,
        }
    }

    /// Maps the path of a problem into the caller's namespace, as [`error`](Self::error) does.
    pub fn problem(&self, mut problem: Problem) -> Problem {
        if self.outer != self.inner && problem.path.starts_with('/') {
            let outer_path = self.to_outer_text(&problem.path);
            problem.message = problem.message.replace(&quoted(&problem.path), &quoted(&outer_path));
            problem.path = outer_path;
        }
        problem
    }

    /// Maps text, which need not be a valid path, as [`error`](Self::error) does.
    fn to_outer_text(&self, path: &str) -> String {
        let below = if self.inner.is_root() {
            path.strip_prefix('/')
        } else {
            path.strip_prefix(self.inner.as_str())
                .and_then(|rest| if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') })
        };
        match below {
            None | Some("") => self.outer.as_str().to_owned(),
            Some(below) => format!("{}/{below}", self.outer.as_str().trim_end_matches('/')),
        }
    }

    fn files_update(&self, update: Option<FilesUpdate>) -> Result<Option<FilesUpdate>> {
        let Some(update) = update else { return Ok(None) };
        let moved = update.into_iter().map(|(path, file)| Ok((self.to_outer(&path)?, file)));
        moved.collect::<Result<BTreeMap<_, _>>>().map(Some)
    }
}

fn shift(path: &VfsPath, from: &VfsPath, to: &VfsPath) -> Result<VfsPath> {
    if from == to {
        return Ok(path.clone());
    }
    match path.strip_prefix(from) {
        Some("") => Ok(to.clone()),
        Some(below) => to.join(below).map_err(|error| error.with_path(path)),
        None => {
            Err(Error::new(crate::ErrorKind::InvalidPath, "the path lies outside the mapped part of the namespace")
                .with_path(path))
        }
    }
}

fn quoted(path: &str) -> String {
    format!("'{path}'")
}

/// A result whose paths can be mapped into another namespace.
pub trait MapResultPaths: Sized {
    /// Maps all paths into the caller's namespace.
    ///
    /// # Errors
    ///
    /// The errors of [`PathMapping::to_outer`].
    fn map_paths(self, mapping: &PathMapping) -> Result<Self>;
}

macro_rules! map_paths {
    ($($type:ident [$($path:ident),+] $([$update:ident])?;)+) => {$(
        impl MapResultPaths for $type {
            fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
                $(self.$path = mapping.to_outer(&self.$path)?;)+
                $(self.$update = mapping.files_update(self.$update)?;)?
                Ok(self)
            }
        }
    )+};
}

map_paths! {
    FileInfo [path];
    ResolveResult [path];
    ReadResult [path];
    WriteResult [path] [files_update];
    DeleteResult [path] [files_update];
    RenameResult [from, to] [files_update];
    CopyResult [from, to] [files_update];
}

impl MapResultPaths for EditResult {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        let path = mapping.to_outer(&self.path)?;
        if let Some(diff) = &mut self.diff {
            *diff = crate::edit::rename_in_diff(diff, &self.path, &path);
        }
        self.path = path;
        self.files_update = mapping.files_update(self.files_update)?;
        Ok(self)
    }
}

impl MapResultPaths for SnapshotDiffEntry {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        let path = mapping.to_outer(&self.path)?;
        self.diff = crate::edit::rename_in_diff(&self.diff, &self.path, &path);
        self.path = path;
        Ok(self)
    }
}

impl MapResultPaths for SnapshotDiffResult {
    fn map_paths(self, mapping: &PathMapping) -> Result<Self> {
        let changes = self.changes.into_iter().map(|change| change.map_paths(mapping));
        changes.collect::<Result<_>>().map(Self::new)
    }
}

/// Maps the paths of `items`. Items whose path cannot be mapped become problems.
fn map_each<T>(
    items: Vec<T>,
    mapping: &PathMapping,
    problems: &mut Vec<Problem>,
    path: impl Fn(&mut T) -> &mut VfsPath,
) -> Vec<T> {
    let moved = items.into_iter().filter_map(|mut item| {
        let place = path(&mut item);
        match mapping.to_outer(place) {
            Ok(outer) => {
                *place = outer;
                Some(item)
            }
            Err(error) => {
                problems.push(Problem::new(mapping.to_outer_text(place.as_str()), &error));
                None
            }
        }
    });
    moved.collect()
}

fn map_problems(problems: Vec<Problem>, mapping: &PathMapping) -> Vec<Problem> {
    problems.into_iter().map(|problem| mapping.problem(problem)).collect()
}

impl MapResultPaths for LsResult {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.problems = map_problems(self.problems, mapping);
        self.entries = map_each(self.entries, mapping, &mut self.problems, |entry| &mut entry.path);
        Ok(self)
    }
}

impl MapResultPaths for GlobResult {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.problems = map_problems(self.problems, mapping);
        self.entries = map_each(self.entries, mapping, &mut self.problems, |entry| &mut entry.path);
        Ok(self)
    }
}

impl MapResultPaths for GrepResult {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.problems = map_problems(self.problems, mapping);
        self.matches = map_each(self.matches, mapping, &mut self.problems, |found| &mut found.path);
        self.files = map_each(self.files, mapping, &mut self.problems, |file| &mut file.path);
        Ok(self)
    }
}

impl MapResultPaths for GrepEvent {
    fn map_paths(self, mapping: &PathMapping) -> Result<Self> {
        Ok(match self {
            Self::Match(mut found) => {
                found.path = mapping.to_outer(&found.path)?;
                Self::Match(found)
            }
            Self::File(mut file) => {
                file.path = mapping.to_outer(&file.path)?;
                Self::File(file)
            }
            Self::Problem(problem) => Self::Problem(mapping.problem(problem)),
            Self::End(summary) => Self::End(summary),
        })
    }
}

impl MapResultPaths for WatchEvent {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        match &mut self.change {
            Change::Created { path, .. } | Change::Changed { path, .. } | Change::Removed { path } => {
                *path = mapping.to_outer(path)?;
            }
            Change::Renamed { from, to, .. } => (*from, *to) = (mapping.to_outer(from)?, mapping.to_outer(to)?),
            Change::Overflow => {}
        }
        Ok(self)
    }
}

impl MapResultPaths for ExecuteResponse {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.full_output = self.full_output.map(|file| mapping.to_outer(&file)).transpose()?;
        self.problems = map_problems(self.problems, mapping);
        Ok(self)
    }
}

impl MapResultPaths for ExecuteEvent {
    fn map_paths(self, mapping: &PathMapping) -> Result<Self> {
        Ok(match self {
            Self::Exit(response) => Self::Exit(response.map_paths(mapping)?),
            printed => printed,
        })
    }
}

impl MapResultPaths for FileUploadResponse {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.path = mapping.to_outer(&self.path)?;
        self.cause = self.cause.map(|cause| mapping.error(cause));
        self.files_update = mapping.files_update(self.files_update)?;
        Ok(self)
    }
}

impl MapResultPaths for FileDownloadResponse {
    fn map_paths(mut self, mapping: &PathMapping) -> Result<Self> {
        self.path = mapping.to_outer(&self.path)?;
        self.cause = self.cause.map(|cause| mapping.error(cause));
        Ok(self)
    }
}

impl MapResultPaths for Box<dyn FileWriter> {
    fn map_paths(self, mapping: &PathMapping) -> Result<Self> {
        Ok(Box::new(MappedWriter { inner: self, mapping: mapping.clone() }))
    }
}

/// A writer that maps the paths of its errors and results.
#[derive(Debug)]
struct MappedWriter {
    inner: Box<dyn FileWriter>,
    mapping: PathMapping,
}

#[async_trait]
impl FileWriter for MappedWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.inner.write(chunk).await.map_err(|error| self.mapping.error(error))
    }

    async fn commit(&mut self) -> Result<WriteResult> {
        self.inner.commit().await.map_err(|error| self.mapping.error(error))?.map_paths(&self.mapping)
    }
}

impl MapResultPaths for MultiModalReadResult {
    fn map_paths(self, mapping: &PathMapping) -> Result<Self> {
        Ok(match self {
            Self::Content(read) => Self::Content(read.map_paths(mapping)?),
            parts => parts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::requests::Version;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    #[test]
    fn paths_are_mapped_by_whole_components() {
        for (outer, inner, caller, backend) in [
            ("/m", "/", "/m/a", Some("/a")),
            ("/m", "/", "/m", Some("/")),
            ("/m", "/", "/mx", None),
            ("/m", "/", "/", None),
            ("/", "/s/t", "/a/b", Some("/s/t/a/b")),
            ("/", "/s/t", "/", Some("/s/t")),
            ("/", "/", "/a", Some("/a")),
            ("/m", "/s", "/m/x", Some("/s/x")),
        ] {
            let mapping = PathMapping::new(path(outer), path(inner));
            let moved = mapping.to_inner(&path(caller));
            assert_eq!(moved.as_ref().ok().map(VfsPath::as_str), backend, "{outer} is {inner}: {caller}");
            if let Ok(moved) = moved {
                assert_eq!(mapping.to_outer(&moved), Ok(path(caller)));
            }
        }
    }

    #[test]
    fn changes_and_their_diffs_are_mapped() {
        let (one, two) = ((&b"one\n"[..], Version::new("1")), (&b"two\n"[..], Version::new("2")));
        let between = |at: &[&str]| {
            let sides = [(None, Some(one.clone())), (Some(one.clone()), Some(two.clone())), (Some(two.clone()), None)];
            let changes =
                at.iter().zip(sides).filter_map(|(at, (old, new))| SnapshotDiffEntry::between(&path(at), old, new));
            SnapshotDiffResult::new(changes.collect())
        };
        let (backend, caller) = (["/a", "/d/b", "/e"], ["/m/a", "/m/d/b", "/m/e"]);
        let mapping = PathMapping::new(path("/m"), path("/"));
        assert_eq!(between(&backend).map_paths(&mapping), Ok(between(&caller)));
        let scope = PathMapping::new(path("/"), path("/m"));
        assert_eq!(between(&caller).map_paths(&scope), Ok(between(&backend)));
        assert_eq!(between(&backend).map_paths(&scope).expect_err("elsewhere").kind(), ErrorKind::InvalidPath);
    }

    #[test]
    fn errors_and_problems_are_mapped_in_path_and_message() {
        let mapping = PathMapping::new(path("/m"), path("/"));
        let error = mapping.error(Error::not_found(&path("/a")));
        assert_eq!(error.for_model(), "Error: File '/m/a' not found");
        let problem = mapping.problem(Problem::from(Error::at(ErrorKind::PermissionDenied, &path("/a"))));
        assert_eq!(
            (problem.path.as_str(), problem.message.as_str()),
            ("/m/a", "Error: '/m/a': permission denied; choose another path")
        );
        let scope = PathMapping::new(path("/"), path("/s"));
        assert_eq!(scope.error(Error::not_found(&path("/elsewhere"))).path(), Some("/"));
        let partial = Error::at(ErrorKind::PermissionDenied, &path("/d/rest")).after_partial_delete(3);
        let mapped = mapping.error(partial.clone());
        assert_eq!((mapped.path(), mapped.detail()), (Some("/m/d/rest"), partial.detail()));
    }
}
