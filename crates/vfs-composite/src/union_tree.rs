//! Union of the trees of all mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, ResolveResult, Result, VfsPath};

use crate::mount_table::MountTable;

/// The trees that a search can reach, each in the namespace of the composite.
pub(crate) struct UnionTree {
    pub(crate) table: Arc<MountTable>,
    /// Trees by mount point; the error of a tree that could not be opened is a problem at its mount point.
    pub(crate) trees: BTreeMap<VfsPath, Result<Arc<dyn Tree>>>,
}

impl UnionTree {
    /// Returns the tree of the mount that `path` belongs to.
    fn tree_of(&self, path: &VfsPath) -> Result<&Arc<dyn Tree>> {
        match self.trees.get(self.table.route(path).at()) {
            Some(tree) => tree.as_ref().map_err(Error::clone),
            None => Err(Error::new(ErrorKind::Internal, "internal: the search entered a directory outside its root")
                .with_path(path)),
        }
    }

    /// Returns the directory at `path` in its mount, if there is one.
    fn backing(&self, path: &VfsPath) -> Result<Option<Arc<dyn Directory>>> {
        self.tree_of(path)?.find_dir(path)
    }
}

impl Tree for UnionTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        if self.table.is_mount_or_ancestor(path) {
            let backing = self.backing(path);
            if let (Err(error), false) = (&backing, self.table.has_mounts_below(path)) {
                // Without mounts below, the directory has nothing else to show.
                return Err(error.clone().with_path(path));
            }
            return Ok(LookupResult::Directory(UnionDirectory::shared(&self, path.clone(), backing)));
        }
        Arc::clone(self.tree_of(path)?).lookup(path)
    }
}

/// A directory with a mount at it or below it. Other directories belong to one backend.
struct UnionDirectory {
    union: Arc<UnionTree>,
    path: VfsPath,
    /// Names that lead to mounts, which shadow other entries of the same name.
    mounts: BTreeSet<String>,
    /// The directory of the backend.
    backing: Result<Option<Arc<dyn Directory>>>,
}

impl UnionDirectory {
    fn shared(
        union: &Arc<UnionTree>,
        path: VfsPath,
        backing: Result<Option<Arc<dyn Directory>>>,
    ) -> Arc<dyn Directory> {
        let mounts = union.table.mount_names_in(&path);
        Arc::new(Self { union: Arc::clone(union), path, mounts, backing })
    }

    /// Returns the directory of the backend.
    fn backing_dir(&self) -> Result<&Arc<dyn Directory>> {
        self.backing.as_ref().map_err(Error::clone)?.as_ref().ok_or_else(|| Error::of(ErrorKind::NotFound))
    }

    fn is_mount_name(&self, name: &str) -> bool {
        self.mounts.contains(name)
    }

    /// Returns the entries that `list` finds in the backend's directory, and the mounts that `shows` selects.
    fn merge_mounts(
        &self,
        list: impl FnOnce(&dyn Directory) -> Result<Listing>,
        shows: impl Fn(&str) -> bool,
    ) -> Result<Listing> {
        let listing = match &self.backing {
            Ok(Some(dir)) => list(&**dir),
            Ok(None) => Ok(Listing::default()),
            Err(error) => Err(error.clone()),
        };
        let mut listing = listing.unwrap_or_else(|error| {
            // Mounts are listed even if the backend below them fails.
            let mut listing = Listing::default();
            listing.problems.push(Problem::from(error.with_path(&self.path)));
            listing
        });
        listing.retain(|name, _| !self.is_mount_name(name));
        for name in self.mounts.iter().filter(|name| shows(name)) {
            listing.push(name, ChildKind::Directory);
        }
        Ok(listing)
    }
}

impl Directory for UnionDirectory {
    fn list(&self) -> Result<Listing> {
        self.merge_mounts(|dir| dir.list(), |_| true)
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.merge_mounts(|dir| dir.list_only(names), |name| names.iter().any(|requested| requested == name))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        if !self.is_mount_name(name) {
            return self.backing_dir()?.open_dir(name, path);
        }
        let has_mounts_below = self.union.table.has_mounts_below(path);
        match self.union.backing(path) {
            Ok(Some(dir)) if !has_mounts_below => Ok(dir),
            // A mount that cannot be searched is a problem at its mount point, not an empty directory.
            Err(error) if !has_mounts_below => Err(error.with_path(path)),
            backing => Ok(Self::shared(&self.union, path.clone(), backing)),
        }
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        if self.is_mount_name(name) { Ok(ChildKind::Directory) } else { self.backing_dir()?.follow_link(name) }
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        if !self.is_mount_name(name) {
            return self.backing_dir()?.stat(name, path);
        }
        // As in `stat`: a mount point is a directory of its own, and an ancestor of one may be the backend's.
        match self.backing_dir().and_then(|dir| dir.stat(name, path.clone())) {
            Ok(info) if info.is_dir && !self.union.table.is_mount(&path) => Ok(info),
            _ => Ok(FileInfo::directory(path)),
        }
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        if self.is_mount_name(name) { None } else { self.backing_dir().ok()?.prefilter(name, kind) }
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        if self.is_mount_name(name) {
            Err(Error::of(ErrorKind::IsADirectory))
        } else {
            self.backing_dir()?.open_file(name, kind)
        }
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        if self.is_mount_name(name) {
            self.path.child(name).map(ResolveResult::at)
        } else {
            self.backing_dir()?.resolve(name)
        }
    }
}
