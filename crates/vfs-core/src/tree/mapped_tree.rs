//! Adapter that maps a tree into another namespace.

use std::sync::Arc;

use super::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::path_mapping::{MapResultPaths as _, PathMapping};
use crate::requests::{FileInfo, ResolveResult};

/// A tree, or a subtree, in the namespace of a caller.
///
/// # Behaviour
///
/// * The inner path of the mapping is the subtree. Paths, errors and problems are in the caller's namespace.
/// * A link that leads out of the subtree is an error. The check and the access are separate steps: if others can change links
///   meanwhile, the backend itself has to confine them.
#[derive(Debug)]
pub struct MappedTree {
    inner: Arc<dyn Tree>,
    mapping: Arc<PathMapping>,
}

impl MappedTree {
    /// Maps `inner` by `mapping`.
    pub fn new(inner: Arc<dyn Tree>, mapping: PathMapping) -> Self {
        Self { inner, mapping: Arc::new(mapping) }
    }
}

impl Tree for MappedTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        let inner = self.mapping.to_inner(path)?;
        let entry = Arc::clone(&self.inner).lookup(&inner).map_err(|error| self.mapping.error(error))?;
        let directory = |inner, at| -> Arc<dyn Directory> {
            Arc::new(MappedDirectory { inner, at, mapping: Arc::clone(&self.mapping) })
        };
        Ok(match entry {
            LookupResult::Directory(inner) => LookupResult::Directory(directory(inner, path.clone())),
            LookupResult::File { dir, name } => {
                LookupResult::File { dir: directory(dir, path.parent().unwrap_or_default()), name }
            }
        })
    }
}

/// A directory of a mapped tree.
struct MappedDirectory {
    inner: Arc<dyn Directory>,
    /// The path in the caller's namespace.
    at: VfsPath,
    mapping: Arc<PathMapping>,
}

impl MappedDirectory {
    /// Maps an error about the entry `name` into the caller's namespace.
    fn error(&self, error: Error, name: &str) -> Error {
        match self.at.child(name) {
            Ok(path) => error.with_path(&path),
            Err(_) => self.mapping.error(error),
        }
    }

    fn listing(&self, mut listing: Listing) -> Listing {
        for problem in &mut listing.problems {
            *problem = self.mapping.problem(problem.clone());
        }
        listing
    }

    /// Fails if the entry `name` is a link that leads out of the subtree.
    fn check_within(&self, name: &str) -> Result<()> {
        if self.mapping.inner().is_root() {
            return Ok(());
        }
        let real = self.inner.resolve(name)?;
        if real.path.starts_with(self.mapping.inner()) { Ok(()) } else { Err(Error::of(ErrorKind::PathEscape)) }
    }
}

impl Directory for MappedDirectory {
    fn list(&self) -> Result<Listing> {
        self.inner.list().map(|listing| self.listing(listing)).map_err(|error| self.mapping.error(error))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.inner.list_only(names).map(|listing| self.listing(listing)).map_err(|error| self.mapping.error(error))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        let entered = self.check_within(name).and_then(|()| self.inner.open_dir(name, &self.mapping.to_inner(path)?));
        let inner = entered.map_err(|error| self.error(error, name))?;
        Ok(Arc::new(Self { inner, at: path.clone(), mapping: Arc::clone(&self.mapping) }))
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        self.check_within(name).and_then(|()| self.inner.follow_link(name)).map_err(|error| self.error(error, name))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let described = self.check_within(name).and_then(|()| self.inner.stat(name, self.mapping.to_inner(&path)?));
        let mut info = described.map_err(|error| self.error(error, name))?;
        info.path = path;
        Ok(info)
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // A link may lead out of the subtree.
        if kind == ChildKind::File { self.inner.prefilter(name, kind) } else { None }
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        // Only a link is followed when it is opened.
        let within = if kind == ChildKind::Link { self.check_within(name) } else { Ok(()) };
        within.and_then(|()| self.inner.open_file(name, kind)).map_err(|error| self.error(error, name))
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        let real = self.check_within(name).and_then(|()| self.inner.resolve(name));
        real.map_err(|error| self.error(error, name))?.map_paths(&self.mapping)
    }
}
