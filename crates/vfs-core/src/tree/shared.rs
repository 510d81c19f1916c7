//! Type-erased trees, which one backend opens in another.

use std::fmt;
use std::sync::Arc;

use super::{ChildKind, Listing, Located, Opened, Sketch, Tree};
use crate::error::Result;
use crate::path::VfsPath;
use crate::types::{FileInfo, ResolveResult};

/// A dyn-compatible [`Tree`], for wrappers of trees.
pub trait DynTree: Send + Sync + 'static {
    /// See [`Tree::locate`].
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>>;
}

/// An open directory of a [`DynTree`].
///
/// Methods may block, and their errors need not name a path.
pub trait DynDirectory: Send + Sync + 'static {
    /// See [`Tree::list`].
    fn list(&self) -> Result<Listing>;

    /// See [`Tree::list_only`].
    fn list_only(&self, names: &[String]) -> Result<Listing>;

    /// See [`Tree::enter`].
    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>>;

    /// See [`Tree::follow`].
    fn follow(&self, name: &str) -> Result<ChildKind>;

    /// See [`Tree::info`].
    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo>;

    /// See [`Tree::known`].
    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch>;

    /// See [`Tree::open`].
    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened>;

    /// See [`Tree::resolve`].
    fn resolve(&self, name: &str) -> Result<ResolveResult>;
}

/// A type-erased tree, which a backend opens for one search.
///
/// A clone is a handle on the same tree.
#[derive(Clone)]
pub struct SharedTree(Arc<dyn DynTree>);

impl SharedTree {
    /// Creates a tree from a dyn-compatible one.
    pub fn new(tree: impl DynTree) -> Self {
        Self(Arc::new(tree))
    }

    /// Creates a tree from a statically typed one.
    pub fn of<T: Tree>(tree: Arc<T>) -> Self {
        Self::new(ErasedTree(tree))
    }

    /// Opens the directory at `path`, or returns `None` if no directory exists there.
    ///
    /// # Errors
    ///
    /// Those of [`Tree::locate`], except for [absence](crate::Error::is_absence).
    pub fn directory(&self, path: &VfsPath) -> Result<Option<Arc<dyn DynDirectory>>> {
        match self.locate(path) {
            Ok(Located::Directory(dir)) => Ok(Some(dir)),
            Ok(Located::File { .. }) => Ok(None),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for SharedTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTree").finish_non_exhaustive()
    }
}

impl Tree for SharedTree {
    type Dir = Arc<dyn DynDirectory>;

    fn locate(&self, path: &VfsPath) -> Result<Located<Self::Dir>> {
        self.0.locate(path)
    }

    fn list(&self, dir: &Self::Dir) -> Result<Listing> {
        dir.list()
    }

    fn list_only(&self, dir: &Self::Dir, names: &[String]) -> Result<Listing> {
        dir.list_only(names)
    }

    fn enter(&self, dir: &Self::Dir, name: &str, path: &VfsPath) -> Result<Self::Dir> {
        dir.enter(name, path)
    }

    fn follow(&self, dir: &Self::Dir, name: &str) -> Result<ChildKind> {
        dir.follow(name)
    }

    fn info(&self, dir: &Self::Dir, name: &str, path: VfsPath) -> Result<FileInfo> {
        dir.info(name, path)
    }

    fn known(&self, dir: &Self::Dir, name: &str, kind: ChildKind) -> Option<Sketch> {
        dir.known(name, kind)
    }

    fn open(&self, dir: &Self::Dir, name: &str, kind: ChildKind) -> Result<Opened> {
        dir.open(name, kind)
    }

    fn resolve(&self, dir: &Self::Dir, name: &str) -> Result<ResolveResult> {
        dir.resolve(name)
    }
}

struct ErasedTree<T>(Arc<T>);

struct ErasedDirectory<T: Tree> {
    tree: Arc<T>,
    dir: T::Dir,
}

impl<T: Tree> ErasedTree<T> {
    fn directory(&self, dir: T::Dir) -> Arc<dyn DynDirectory> {
        Arc::new(ErasedDirectory { tree: Arc::clone(&self.0), dir })
    }
}

impl<T: Tree> DynTree for ErasedTree<T> {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        Ok(match self.0.locate(path)? {
            Located::Directory(dir) => Located::Directory(self.directory(dir)),
            Located::File { dir, name } => Located::File { dir: self.directory(dir), name },
        })
    }
}

impl<T: Tree> DynDirectory for ErasedDirectory<T> {
    fn list(&self) -> Result<Listing> {
        self.tree.list(&self.dir)
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.tree.list_only(&self.dir, names)
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let dir = self.tree.enter(&self.dir, name, path)?;
        Ok(Arc::new(Self { tree: Arc::clone(&self.tree), dir }))
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        self.tree.follow(&self.dir, name)
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        self.tree.info(&self.dir, name, path)
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        self.tree.known(&self.dir, name, kind)
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        self.tree.open(&self.dir, name, kind)
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.tree.resolve(&self.dir, name)
    }
}
