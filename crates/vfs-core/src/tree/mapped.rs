//! A tree in another namespace.

use std::sync::Arc;

use super::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;
use crate::path_mapping::{MapPaths as _, PathMapping};
use crate::types::{FileInfo, Resolved};

impl SharedTree {
    /// The same tree, or the part of it that `rebase` names, in the caller's namespace.
    ///
    /// # Behaviour
    ///
    /// Paths, errors and problems are in the caller's namespace. A link that leads out of the part is refused, where it
    /// stands when it is listed; whoever can change links meanwhile is to be confined by the backend itself.
    #[must_use]
    pub fn rebased(self, rebase: PathMapping) -> Self {
        Self::new(MappedTree { inner: self, rebase: Arc::new(rebase) })
    }
}

struct MappedTree {
    inner: SharedTree,
    rebase: Arc<PathMapping>,
}

impl DynTree for MappedTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        let inner = self.rebase.to_inner(path)?;
        let located = self.inner.locate(&inner).map_err(|error| self.rebase.error(error))?;
        let directory = |inner, at| -> Arc<dyn DynDirectory> {
            Arc::new(MappedDirectory { inner, at, rebase: Arc::clone(&self.rebase) })
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
    /// Where it is for the caller.
    at: VfsPath,
    rebase: Arc<PathMapping>,
}

impl MappedDirectory {
    /// `error` about the entry `name`, for the caller.
    fn error(&self, error: Error, name: &str) -> Error {
        match self.at.child(name) {
            Ok(path) => error.with_path(&path),
            Err(_) => self.rebase.error(error),
        }
    }

    fn listing(&self, mut listing: Listing) -> Listing {
        for problem in &mut listing.problems {
            *problem = self.rebase.problem(problem.clone());
        }
        listing
    }

    /// Refuses a link that leads out of the part.
    fn stays_within(&self, name: &str) -> Result<()> {
        if self.rebase.inner().is_root() {
            return Ok(());
        }
        let real = self.inner.resolve(name)?;
        if real.path.starts_with(self.rebase.inner()) { Ok(()) } else { Err(Error::of(ErrorKind::PathEscape)) }
    }
}

impl DynDirectory for MappedDirectory {
    fn list(&self) -> Result<Listing> {
        self.inner.list().map(|listing| self.listing(listing)).map_err(|error| self.rebase.error(error))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.inner.list_only(names).map(|listing| self.listing(listing)).map_err(|error| self.rebase.error(error))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let entered = self.stays_within(name).and_then(|()| self.inner.enter(name, &self.rebase.to_inner(path)?));
        let inner = entered.map_err(|error| self.error(error, name))?;
        Ok(Arc::new(Self { inner, at: path.clone(), rebase: Arc::clone(&self.rebase) }))
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        self.stays_within(name).and_then(|()| self.inner.follow(name)).map_err(|error| self.error(error, name))
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let described = self.stays_within(name).and_then(|()| self.inner.info(name, self.rebase.to_inner(&path)?));
        let mut info = described.map_err(|error| self.error(error, name))?;
        info.path = path;
        Ok(info)
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // A link may lead out of the part.
        if kind == ChildKind::File { self.inner.known(name, kind) } else { None }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        // Only a link is followed when it is opened.
        let stays = if kind == ChildKind::Link { self.stays_within(name) } else { Ok(()) };
        stays.and_then(|()| self.inner.open(name, kind)).map_err(|error| self.error(error, name))
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        let real = self.stays_within(name).and_then(|()| self.inner.resolve(name));
        real.map_err(|error| self.error(error, name))?.map_paths(&self.rebase)
    }
}
