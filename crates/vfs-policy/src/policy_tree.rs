//! Filtering adapter of a search tree, without the entries that a policy denies.

use std::iter;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{Backend, Error, ErrorKind, FileInfo, OpContext, ResolveResult, Result, VfsPath};

use crate::policy::{Decision, Permission, PolicyHook};
use crate::rule::HardLinks;

/// Filter of entries by their read permission, on the threads of a search.
pub(crate) struct ReadFilter {
    pub(crate) hook: Arc<dyn PolicyHook>,
    pub(crate) cx: OpContext,
    /// The filtered backend, whose capabilities say where links can exist.
    pub(crate) inner: Arc<dyn Backend>,
    /// Runtime to wait on, if the hook does not answer at once.
    pub(crate) runtime: Option<Handle>,
}

impl ReadFilter {
    fn wait<T>(&self, answer: BoxFuture<'_, T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(answer),
            None => futures::executor::block_on(answer),
        }
    }

    /// Returns whether the directory `path` can have links, so that an entry may have another real path than its name says.
    fn has_links(&self, path: &VfsPath) -> bool {
        self.inner.capabilities(path).links
    }

    /// Returns whether `path` may be read.
    fn reads(&self, path: &VfsPath) -> bool {
        let mut check = self.hook.check_path(&self.cx, Permission::Read, path);
        // A `RuleSet` answers at once.
        let decision = match check.as_mut().now_or_never() {
            Some(decision) => decision,
            None => self.wait(check),
        };
        decision == Decision::Allow
    }

    fn shows(&self, path: &VfsPath, is_directory: bool) -> bool {
        self.reads(path) || (is_directory && self.hook.leads_on(&self.cx, path))
    }
}

/// Returns `inner` without the entries that `filter` does not allow to read.
pub(crate) fn filter_tree(inner: Arc<dyn Tree>, filter: ReadFilter) -> Arc<dyn Tree> {
    Arc::new(PolicyTree { inner, filter: Arc::new(filter) })
}

/// A search tree that shows only what the policy allows to read.
struct PolicyTree {
    inner: Arc<dyn Tree>,
    filter: Arc<ReadFilter>,
}

impl PolicyTree {
    fn real(&self, path: &VfsPath) -> Result<VfsPath> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(path.clone()) };
        if !self.filter.has_links(path) {
            return Ok(path.clone());
        }
        let dir = Arc::clone(&self.inner).lookup(&parent)?.into_dir(path)?;
        Ok(dir.resolve(name)?.path)
    }

    /// Replaces `not_a_directory` by `not_found`, as the backend does, unless the file in the way may be read.
    fn without_hidden_files(&self, error: Error, path: &VfsPath) -> Error {
        let is_file = |at: &VfsPath| matches!(Arc::clone(&self.inner).lookup(at), Ok(LookupResult::File { .. }));
        let is_readable = || {
            let file = iter::successors(Some(path.clone()), VfsPath::parent).find(is_file);
            let file = file.filter(|file| self.filter.reads(file));
            file.and_then(|file| self.real(&file).ok()).is_some_and(|real| self.filter.reads(&real))
        };
        if error.kind() != ErrorKind::NotADirectory || is_readable() { error } else { Error::not_found(path) }
    }
}

/// Replaces `not_a_directory` by `not_found` in the result of an operation on one entry. An entry fails that way only
/// if it is a link whose target passes through a file, which the policy may hide.
fn without_files_of_links<T>(answer: Result<T>) -> Result<T> {
    match answer {
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(Error::of(ErrorKind::NotFound)),
        answer => answer,
    }
}

impl Tree for PolicyTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        let entry = Arc::clone(&self.inner).lookup(path).map_err(|error| self.without_hidden_files(error, path))?;
        let real = self.real(path)?;
        let is_directory = matches!(entry, LookupResult::Directory(_));
        if !self.filter.shows(path, is_directory) || (real != *path && !self.filter.shows(&real, is_directory)) {
            // Unreadable entries do not exist for a search.
            return Err(Error::not_found(path));
        }
        let directory = |inner, at, real| -> Arc<dyn Directory> {
            Arc::new(PolicyDirectory { inner, at, real, filter: Arc::clone(&self.filter) })
        };
        Ok(match entry {
            LookupResult::Directory(dir) => LookupResult::Directory(directory(dir, path.clone(), real)),
            LookupResult::File { dir, name } => {
                let parent = |path: &VfsPath| path.parent().unwrap_or_default();
                LookupResult::File { dir: directory(dir, parent(&real), parent(&real)), name }
            }
        })
    }
}

/// An open directory of a [`PolicyTree`].
struct PolicyDirectory {
    inner: Arc<dyn Directory>,
    /// The path by which the search reached this directory, and its real path.
    at: VfsPath,
    real: VfsPath,
    filter: Arc<ReadFilter>,
}

impl PolicyDirectory {
    /// Returns the real path of the entry `name`.
    fn resolved(&self, name: &str) -> Result<ResolveResult> {
        if self.filter.has_links(&self.at) {
            self.inner.resolve(name)
        } else {
            self.real.child(name).map(ResolveResult::at)
        }
    }

    /// Fails if the file `name` must not be opened.
    fn may_open(&self, name: &str) -> Result<()> {
        let resolved = self.resolved(name)?;
        let path = self.at.child(name)?;
        // In a directory that is shown only for the readable entries below it, a file may have replaced a directory meanwhile.
        if !self.filter.reads(&path) || (resolved.path != path && !self.filter.reads(&resolved.path)) {
            return Err(Error::of(ErrorKind::NotFound));
        }
        if resolved.names > 1 && self.filter.hook.hard_links() == HardLinks::Deny {
            let message = "the file has other names too (hard links), under which it may be forbidden";
            return Err(Error::new(ErrorKind::PolicyDenied, message));
        }
        Ok(())
    }

    fn shows(&self, name: &str, kind: ChildKind) -> bool {
        let Ok(path) = self.at.child(name) else { return false };
        let is_directory = match kind {
            ChildKind::Link => self.inner.follow_link(name).is_ok_and(|kind| kind == ChildKind::Directory),
            kind => kind == ChildKind::Directory,
        };
        if !self.filter.shows(&path, is_directory) {
            return false;
        }
        let real = match kind {
            ChildKind::Link => match self.inner.resolve(name) {
                Ok(resolved) => resolved.path,
                // A link that leads nowhere may be shown, since it reveals no entry. One that can be followed, but whose target has
                // no path here, is not.
                Err(_) => return self.inner.follow_link(name).is_err(),
            },
            _ if self.real == self.at => return true,
            _ => match self.real.child(name) {
                Ok(real) => real,
                Err(_) => return false,
            },
        };
        self.filter.shows(&real, is_directory)
    }

    fn filtered(&self, mut listing: Listing) -> Listing {
        listing.retain(|name, kind| self.shows(name, kind));
        listing
    }
}

impl Directory for PolicyDirectory {
    fn list(&self) -> Result<Listing> {
        Ok(self.filtered(self.inner.list()?))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        Ok(self.filtered(self.inner.list_only(names)?))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        let inner = without_files_of_links(self.inner.open_dir(name, path))?;
        let real = self.resolved(name)?.path;
        if !self.filter.shows(path, true) || (real != *path && !self.filter.shows(&real, true)) {
            return Err(Error::of(ErrorKind::NotFound));
        }
        Ok(Arc::new(Self { inner, at: path.clone(), real, filter: Arc::clone(&self.filter) }))
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        without_files_of_links(self.inner.follow_link(name))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        without_files_of_links(self.inner.stat(name, path))
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        let sketch = self.inner.prefilter(name, kind)?;
        self.may_open(name).ok()?;
        Some(sketch)
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        self.may_open(name)?;
        without_files_of_links(self.inner.open_file(name, kind))
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.inner.resolve(name)
    }
}
