//! Adapter that maps a tree into another namespace.

use std::sync::Arc;

use super::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::path_mapping::{MapPaths as _, PathMapping};
use crate::types::{FileInfo, ResolveResult};

impl SharedTree {
    /// Maps the tree, or the subtree at the inner path of `mapping`, into the caller's namespace.
    ///
    /// # Behaviour
    ///
    /// Paths, errors and problems are in the caller's namespace. A link that leads out of the subtree is an error. The check and
    /// the access are separate steps: if others can change links meanwhile, the backend itself has to confine them.
    #[must_use]
    pub fn map_paths(self, mapping: PathMapping) -> Self {
        Self::new(MappedTree { inner: self, mapping: Arc::new(mapping) })
    }
}

struct MappedTree {
    inner: SharedTree,
    mapping: Arc<PathMapping>,
}

impl DynTree for MappedTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        let inner = self.mapping.to_inner(path)?;
        let located = self.inner.locate(&inner).map_err(|error| self.mapping.error(error))?;
        let directory = |inner, at| -> Arc<dyn DynDirectory> {
            Arc::new(MappedDirectory { inner, at, mapping: Arc::clone(&self.mapping) })
        };
        Ok(match located {
            Located::Directory(inner) => Located::Directory(directory(inner, path.clone())),
            Located::File { dir, name } => {
                Located::File { dir: directory(dir, path.parent().unwrap_or_default()), name }
            }
        })
    }
}

struct MappedDirectory {
    inner: Arc<dyn DynDirectory>,
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

impl DynDirectory for MappedDirectory {
    fn list(&self) -> Result<Listing> {
        self.inner.list().map(|listing| self.listing(listing)).map_err(|error| self.mapping.error(error))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.inner.list_only(names).map(|listing| self.listing(listing)).map_err(|error| self.mapping.error(error))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let entered = self.check_within(name).and_then(|()| self.inner.enter(name, &self.mapping.to_inner(path)?));
        let inner = entered.map_err(|error| self.error(error, name))?;
        Ok(Arc::new(Self { inner, at: path.clone(), mapping: Arc::clone(&self.mapping) }))
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        self.check_within(name).and_then(|()| self.inner.follow(name)).map_err(|error| self.error(error, name))
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let described = self.check_within(name).and_then(|()| self.inner.info(name, self.mapping.to_inner(&path)?));
        let mut info = described.map_err(|error| self.error(error, name))?;
        info.path = path;
        Ok(info)
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // A link may lead out of the subtree.
        if kind == ChildKind::File { self.inner.known(name, kind) } else { None }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        // Only a link is followed when it is opened.
        let within = if kind == ChildKind::Link { self.check_within(name) } else { Ok(()) };
        within.and_then(|()| self.inner.open(name, kind)).map_err(|error| self.error(error, name))
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        let real = self.check_within(name).and_then(|()| self.inner.resolve(name));
        real.map_err(|error| self.error(error, name))?.map_paths(&self.mapping)
    }
}
