//! The trees of all mounts as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vfs_core::tree::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, Resolved, Result, VfsPath};

use crate::table::MountTable;

/// The trees that a search can come by, each in the namespace of all.
pub(crate) struct Union {
    pub(crate) table: Arc<MountTable>,
    /// By where the mount is; one that could not be lent is a problem where it stands.
    pub(crate) trees: BTreeMap<VfsPath, Result<SharedTree>>,
}

impl Union {
    /// The tree of the mount that `path` belongs to.
    fn tree_of(&self, path: &VfsPath) -> Result<&SharedTree> {
        match self.trees.get(self.table.route(path).at()) {
            Some(tree) => tree.as_ref().map_err(Error::clone),
            None => Err(Error::new(ErrorKind::Internal, "the search did not mean to come here").with_path(path)),
        }
    }

    /// What the mount that `path` belongs to has there, if that is a directory.
    fn backing(&self, path: &VfsPath) -> Result<Option<Arc<dyn DynDirectory>>> {
        self.tree_of(path)?.directory(path)
    }
}

/// As the tree that is searched.
pub(crate) struct UnionTree(pub(crate) Arc<Union>);

impl DynTree for UnionTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        if self.0.table.holds(path) {
            let backing = self.0.backing(path);
            if let (Err(error), false) = (&backing, self.0.table.holds_below(path)) {
                // There is nothing else in it that could be shown.
                return Err(error.clone().with_path(path));
            }
            return Ok(Located::Directory(UnionDirectory::shared(&self.0, path.clone(), backing)));
        }
        self.0.tree_of(path)?.locate(path)
    }
}

/// A directory with a mount at it or below it. Below others, all is one backend's own.
struct UnionDirectory {
    union: Arc<Union>,
    path: VfsPath,
    /// The names that lead to mounts, which shadow all else of that name.
    mounts: BTreeSet<String>,
    /// What the backend has there.
    backing: Result<Option<Arc<dyn DynDirectory>>>,
}

impl UnionDirectory {
    fn shared(
        union: &Arc<Union>,
        path: VfsPath,
        backing: Result<Option<Arc<dyn DynDirectory>>>,
    ) -> Arc<dyn DynDirectory> {
        let mounts = union.table.names_in(&path);
        Arc::new(Self { union: Arc::clone(union), path, mounts, backing })
    }

    /// The backend's directory, for an entry that has to be in it.
    fn own(&self) -> Result<&Arc<dyn DynDirectory>> {
        self.backing.as_ref().map_err(Error::clone)?.as_ref().ok_or_else(|| Error::of(ErrorKind::NotFound))
    }

    fn is_mounts(&self, name: &str) -> bool {
        self.mounts.contains(name)
    }

    /// What `list` gives of the backend's directory, where it has one, and the mounts of which `shows` is true.
    fn merged(
        &self,
        list: impl FnOnce(&dyn DynDirectory) -> Result<Listing>,
        shows: impl Fn(&str) -> bool,
    ) -> Result<Listing> {
        let own = match &self.backing {
            Ok(Some(dir)) => list(&**dir),
            Ok(None) => Ok(Listing::default()),
            Err(error) => Err(error.clone()),
        };
        let mut listing = own.unwrap_or_else(|error| {
            // What is mounted here is there, whatever became of the backend below.
            let mut listing = Listing::default();
            listing.problems.push(Problem::from(error.with_path(&self.path)));
            listing
        });
        listing.retain(|name, _| !self.is_mounts(name));
        for name in self.mounts.iter().filter(|name| shows(name)) {
            listing.push(name, ChildKind::Directory);
        }
        Ok(listing)
    }
}

impl DynDirectory for UnionDirectory {
    fn list(&self) -> Result<Listing> {
        self.merged(|dir| dir.list(), |_| true)
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.merged(|dir| dir.list_only(names), |name| names.iter().any(|wanted| wanted == name))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        if !self.is_mounts(name) {
            return self.own()?.enter(name, path);
        }
        let holds_below = self.union.table.holds_below(path);
        match self.union.backing(path) {
            Ok(Some(dir)) if !holds_below => Ok(dir),
            // A mount that cannot be searched is the problem of its own place, not an empty directory.
            Err(error) if !holds_below => Err(error.with_path(path)),
            backing => Ok(Self::shared(&self.union, path.clone(), backing)),
        }
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        if self.is_mounts(name) { Ok(ChildKind::Directory) } else { self.own()?.follow(name) }
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        if !self.is_mounts(name) {
            return self.own()?.info(name, path);
        }
        // As `stat` says: a mount point is a directory of its own, one on the way to it may be the backend's.
        match self.own().and_then(|dir| dir.info(name, path.clone())) {
            Ok(info) if info.is_dir && !self.union.table.is_mount(&path) => Ok(info),
            _ => Ok(FileInfo::directory(path)),
        }
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        if self.is_mounts(name) { None } else { self.own().ok()?.known(name, kind) }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        if self.is_mounts(name) { Err(Error::of(ErrorKind::IsADirectory)) } else { self.own()?.open(name, kind) }
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        if self.is_mounts(name) { self.path.child(name).map(Resolved::at) } else { self.own()?.resolve(name) }
    }
}
