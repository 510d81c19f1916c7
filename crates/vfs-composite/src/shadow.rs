//! Links that lead to what a mount shadows.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use vfs_core::{Error, ErrorKind, FileInfo, OpContext, ResolveRequest, Resolved, Result, VfsPath};

use crate::mount::Mount;
use crate::table::MountTable;

/// Which entry a request is about, where a link stands at the end of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkAtEnd {
    /// What the link leads to.
    Followed,
    /// The link itself.
    Kept,
}

impl MountTable {
    /// Where `path` really is, with its links followed by the backend that it belongs to.
    ///
    /// # Errors
    ///
    /// `path_escape` where that is a place of another mount, which shadows what the backend has there; those of resolving the
    /// path, as nobody knows then where it leads.
    pub(crate) async fn real_path(&self, cx: &OpContext, path: &VfsPath, end: LinkAtEnd) -> Result<VfsPath> {
        let mount = self.route(path);
        if !self.has_shadows(mount, path) || self.holds(path) {
            return Ok(path.clone());
        }
        let (followed, kept) = match (end, path.parent(), path.name()) {
            (LinkAtEnd::Kept, Some(parent), Some(name)) => (parent, Some(name)),
            _ => (path.clone(), None),
        };
        let resolved = mount.send(cx, ResolveRequest::new(followed)).await.map_err(|error| error.with_path(path))?.path;
        let real = kept.map_or(Ok(resolved.clone()), |name| resolved.child(name))?;
        self.refuse_shadowed(mount, &real).map_err(|error| error.with_path(path))?;
        Ok(real)
    }

    /// Whether a link at `path`, or on the way to it, can lead to what another mount shadows of `mount`.
    pub(crate) fn has_shadows(&self, mount: &Mount, path: &VfsPath) -> bool {
        self.holds_below(mount.at()) && mount.capabilities(path).links
    }

    /// Refuses `real`, where something in `mount` really is, if it is a place of another mount.
    pub(crate) fn refuse_shadowed(&self, mount: &Mount, real: &VfsPath) -> Result<()> {
        if self.route(real).at() == mount.at() {
            return Ok(());
        }
        let message = "a link on this path leads to a place of another mount; use the path of that mount";
        Err(Error::new(ErrorKind::PathEscape, message))
    }
}

/// `tree` of `mount` without what other mounts shadow, whatever links lead there.
pub(crate) fn without_shadowed(tree: SharedTree, mount: &Arc<Mount>, table: &Arc<MountTable>) -> SharedTree {
    if !table.holds_below(mount.at()) {
        return tree;
    }
    let shadows = Shadows { mount: Arc::clone(mount), table: Arc::clone(table) };
    SharedTree::new(UnshadowedTree { inner: tree, shadows: Arc::new(shadows) })
}

/// What shadows parts of a mount.
struct Shadows {
    mount: Arc<Mount>,
    table: Arc<MountTable>,
}

impl Shadows {
    fn refuse_shadowed(&self, real: &VfsPath) -> Result<()> {
        self.table.refuse_shadowed(&self.mount, real)
    }
}

struct UnshadowedTree {
    inner: SharedTree,
    shadows: Arc<Shadows>,
}

impl UnshadowedTree {
    /// Where `path` really is.
    fn real(&self, path: &VfsPath) -> Result<VfsPath> {
        let Shadows { mount, table } = &*self.shadows;
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(path.clone()) };
        if path == mount.at() || !table.has_shadows(mount, path) {
            return Ok(path.clone());
        }
        match self.inner.locate(&parent)? {
            Located::Directory(dir) => Ok(dir.resolve(name)?.path),
            Located::File { .. } => Err(Error::at(ErrorKind::NotADirectory, path)),
        }
    }
}

impl DynTree for UnshadowedTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        // First, as its error names what is missing.
        let located = self.inner.locate(path)?;
        let real = self.real(path)?;
        self.shadows.refuse_shadowed(&real).map_err(|error| error.with_path(path))?;
        let directory = |inner, at, real| UnshadowedDirectory::shared(inner, at, real, &self.shadows);
        Ok(match located {
            Located::Directory(dir) => Located::Directory(directory(dir, path.clone(), real)),
            Located::File { dir, name } => {
                let parent = |path: &VfsPath| path.parent().unwrap_or_default();
                Located::File { dir: directory(dir, parent(path), parent(&real)), name }
            }
        })
    }
}

/// A directory without what other mounts shadow.
struct UnshadowedDirectory {
    inner: Arc<dyn DynDirectory>,
    /// The path by which it was reached, and the one where it really is.
    at: VfsPath,
    real: VfsPath,
    /// The links in it, once it was listed.
    links: OnceLock<HashSet<String>>,
    shadows: Arc<Shadows>,
}

impl UnshadowedDirectory {
    fn shared(
        inner: Arc<dyn DynDirectory>,
        at: VfsPath,
        real: VfsPath,
        shadows: &Arc<Shadows>,
    ) -> Arc<dyn DynDirectory> {
        Arc::new(Self { inner, at, real, links: OnceLock::new(), shadows: Arc::clone(shadows) })
    }

    fn is_reached_by_a_link(&self) -> bool {
        self.real != self.at
    }

    fn may_be_link(&self, name: &str) -> bool {
        let Shadows { mount, table } = &*self.shadows;
        self.links.get().map_or_else(|| table.has_shadows(mount, &self.at), |links| links.contains(name))
    }

    /// Where `name` really is, unless another mount shadows that.
    fn real_child(&self, name: &str) -> Result<VfsPath> {
        let real = if self.may_be_link(name) { self.inner.resolve(name)?.path } else { self.real.child(name)? };
        self.shadows.refuse_shadowed(&real)?;
        Ok(real)
    }

    /// Refuses `name` where it leads to what another mount shadows. A directory that was reached without links has the mounts
    /// in their places, so that only a link can lead there.
    fn refuse_shadowed(&self, name: &str) -> Result<()> {
        if self.is_reached_by_a_link() || self.may_be_link(name) {
            self.real_child(name)?;
        }
        Ok(())
    }

    fn without_mounts(&self, mut listing: Listing) -> Listing {
        let table = &self.shadows.table;
        if self.is_reached_by_a_link() && table.holds_below(&self.real) {
            listing.retain(|name, _| !self.real.child(name).is_ok_and(|real| table.is_mount(&real)));
        }
        listing
    }
}

impl DynDirectory for UnshadowedDirectory {
    fn list(&self) -> Result<Listing> {
        let listing = self.inner.list()?;
        let links = listing.iter().filter(|(_, kind)| *kind == ChildKind::Link).map(|(name, _)| name.to_owned());
        // Whoever was first has the same.
        let _ = self.links.set(links.collect());
        Ok(self.without_mounts(listing))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        Ok(self.without_mounts(self.inner.list_only(names)?))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let real = self.real_child(name)?;
        Ok(Self::shared(self.inner.enter(name, path)?, path.clone(), real, &self.shadows))
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        self.refuse_shadowed(name)?;
        self.inner.follow(name)
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        self.refuse_shadowed(name)?;
        self.inner.info(name, path)
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        if kind == ChildKind::Link { None } else { self.inner.known(name, kind) }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        self.refuse_shadowed(name)?;
        self.inner.open(name, kind)
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        let resolved = self.inner.resolve(name)?;
        self.shadows.refuse_shadowed(&resolved.path)?;
        Ok(resolved)
    }
}
