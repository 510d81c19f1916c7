//! Refusal of links that lead to files which another mount shadows.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, OpContext, ResolveRequest, ResolveResult, Result, VfsPath};

use crate::mount_table::MountTable;
use crate::mounted_backend::MountedBackend;

/// Whether a request follows a link at the end of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    /// The request is about the target of the link.
    Follow,
    /// The request is about the link itself.
    NoFollow,
}

impl MountTable {
    /// Returns the real path of `path`, with links resolved by its backend.
    ///
    /// # Errors
    ///
    /// `path_escape` if another mount shadows the real path; those of resolving the path.
    pub(crate) async fn real_path(&self, cx: &OpContext, path: &VfsPath, end: FinalLink) -> Result<VfsPath> {
        let mount = self.route(path);
        if !self.can_reach_shadowed(mount, path) || self.is_mount_or_ancestor(path) {
            return Ok(path.clone());
        }
        let (target, final_name) = match (end, path.parent(), path.name()) {
            (FinalLink::NoFollow, Some(parent), Some(name)) => (parent, Some(name)),
            _ => (path.clone(), None),
        };
        let resolved = mount.send(cx, ResolveRequest::new(target)).await.map_err(|error| error.with_path(path))?.path;
        let real = final_name.map_or(Ok(resolved.clone()), |name| resolved.child(name))?;
        self.refuse_shadowed(mount, &real).map_err(|error| error.with_path(path))?;
        Ok(real)
    }

    /// Returns whether a link at `path`, or above it, can lead to files of `mount` that another mount shadows.
    pub(crate) fn can_reach_shadowed(&self, mount: &MountedBackend, path: &VfsPath) -> bool {
        self.has_mounts_below(mount.at()) && mount.capabilities(path).links
    }

    /// Returns an error if the real path `real` of a file in `mount` belongs to another mount.
    pub(crate) fn refuse_shadowed(&self, mount: &MountedBackend, real: &VfsPath) -> Result<()> {
        if self.route(real).at() == mount.at() {
            return Ok(());
        }
        let message = "a link on this path leads to files of another mount; use the path of that mount";
        Err(Error::new(ErrorKind::PathEscape, message))
    }
}

/// Returns `tree` of `mount` without files that other mounts shadow, also through links.
pub(crate) fn without_shadowed(
    tree: Arc<dyn Tree>,
    mount: &Arc<MountedBackend>,
    table: &Arc<MountTable>,
) -> Arc<dyn Tree> {
    if !table.has_mounts_below(mount.at()) {
        return tree;
    }
    let shadows = ShadowCheck { mount: Arc::clone(mount), table: Arc::clone(table) };
    Arc::new(UnshadowedTree { inner: tree, shadows: Arc::new(shadows) })
}

/// A mount, and the table with the mounts that shadow parts of it.
struct ShadowCheck {
    mount: Arc<MountedBackend>,
    table: Arc<MountTable>,
}

impl ShadowCheck {
    fn refuse_shadowed(&self, real: &VfsPath) -> Result<()> {
        self.table.refuse_shadowed(&self.mount, real)
    }
}

/// The tree of one mount, without the paths that other mounts shadow.
struct UnshadowedTree {
    inner: Arc<dyn Tree>,
    shadows: Arc<ShadowCheck>,
}

impl UnshadowedTree {
    /// Returns the real path of `path`.
    fn real(&self, path: &VfsPath) -> Result<VfsPath> {
        let ShadowCheck { mount, table } = &*self.shadows;
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(path.clone()) };
        if path == mount.at() || !table.can_reach_shadowed(mount, path) {
            return Ok(path.clone());
        }
        let dir = Arc::clone(&self.inner).lookup(&parent)?.into_dir(path)?;
        Ok(dir.resolve(name)?.path)
    }
}

impl Tree for UnshadowedTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        // Before the check, because its error names the missing entry.
        let entry = Arc::clone(&self.inner).lookup(path)?;
        let real = self.real(path)?;
        self.shadows.refuse_shadowed(&real).map_err(|error| error.with_path(path))?;
        let directory = |inner, at, real| UnshadowedDirectory::shared(inner, at, real, &self.shadows);
        Ok(match entry {
            LookupResult::Directory(dir) => LookupResult::Directory(directory(dir, path.clone(), real)),
            LookupResult::File { dir, name } => {
                let parent = |path: &VfsPath| path.parent().unwrap_or_default();
                LookupResult::File { dir: directory(dir, parent(path), parent(&real)), name }
            }
        })
    }
}

/// A directory without entries that other mounts shadow.
struct UnshadowedDirectory {
    inner: Arc<dyn Directory>,
    /// Path by which the directory was reached.
    at: VfsPath,
    /// Real path of the directory.
    real: VfsPath,
    /// Names of links, once the directory was listed.
    links: OnceLock<HashSet<String>>,
    shadows: Arc<ShadowCheck>,
}

impl UnshadowedDirectory {
    fn shared(inner: Arc<dyn Directory>, at: VfsPath, real: VfsPath, shadows: &Arc<ShadowCheck>) -> Arc<dyn Directory> {
        Arc::new(Self { inner, at, real, links: OnceLock::new(), shadows: Arc::clone(shadows) })
    }

    fn is_reached_by_a_link(&self) -> bool {
        self.real != self.at
    }

    fn may_be_link(&self, name: &str) -> bool {
        let ShadowCheck { mount, table } = &*self.shadows;
        self.links.get().map_or_else(|| table.can_reach_shadowed(mount, &self.at), |links| links.contains(name))
    }

    /// Returns the real path of `name`, unless another mount shadows it.
    fn real_child(&self, name: &str) -> Result<VfsPath> {
        let real = if self.may_be_link(name) { self.inner.resolve(name)?.path } else { self.real.child(name)? };
        self.shadows.refuse_shadowed(&real)?;
        Ok(real)
    }

    /// Returns an error if `name` leads to files that another mount shadows. In a directory that was reached without
    /// links only a link can lead there.
    fn refuse_shadowed(&self, name: &str) -> Result<()> {
        if self.is_reached_by_a_link() || self.may_be_link(name) {
            self.real_child(name)?;
        }
        Ok(())
    }

    fn without_mounts(&self, mut listing: Listing) -> Listing {
        let table = &self.shadows.table;
        if self.is_reached_by_a_link() && table.has_mounts_below(&self.real) {
            listing.retain(|name, _| !self.real.child(name).is_ok_and(|real| table.is_mount(&real)));
        }
        listing
    }
}

impl Directory for UnshadowedDirectory {
    fn list(&self) -> Result<Listing> {
        let listing = self.inner.list()?;
        let links = listing.iter().filter(|(_, kind)| *kind == ChildKind::Link).map(|(name, _)| name.to_owned());
        // A concurrent listing has set the same names.
        let _ = self.links.set(links.collect());
        Ok(self.without_mounts(listing))
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        Ok(self.without_mounts(self.inner.list_only(names)?))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        let real = self.real_child(name)?;
        Ok(Self::shared(self.inner.open_dir(name, path)?, path.clone(), real, &self.shadows))
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        self.refuse_shadowed(name)?;
        self.inner.follow_link(name)
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        self.refuse_shadowed(name)?;
        self.inner.stat(name, path)
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        if kind == ChildKind::Link { None } else { self.inner.prefilter(name, kind) }
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        self.refuse_shadowed(name)?;
        self.inner.open_file(name, kind)
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        let resolved = self.inner.resolve(name)?;
        self.shadows.refuse_shadowed(&resolved.path)?;
        Ok(resolved)
    }
}
