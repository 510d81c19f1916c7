//! Union tree of changed files and the base, for searches.

use std::collections::HashSet;
use std::sync::Arc;

use vfs_core::path::PathMapping;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, VfsPath};

use super::overlay_state::OverlayState;

/// The changed files over the base.
pub(super) struct OverlayTree {
    pub(super) state: OverlayState,
    pub(super) upper: Arc<dyn Tree>,
    pub(super) base: Arc<dyn Tree>,
}

impl OverlayTree {
    /// Returns the real path of `path`, like [`OverlayState::real`].
    fn real(&self, path: &VfsPath) -> Result<VfsPath> {
        if !self.state.may_have_links(path) || matches!(self.resolve(path), Ok(Some(real)) if real == *path) {
            return Ok(path.clone());
        }
        let mut at = VfsPath::root();
        for name in path.components() {
            at = at.child(name)?;
            if self.state.may_have_links(&at)
                && let Some(real) = self.resolve(&at)?
            {
                at = real;
            }
        }
        Ok(at)
    }

    /// Returns the real path of `path` in the base, or `None` if the base has no directory above it.
    fn resolve(&self, path: &VfsPath) -> Result<Option<VfsPath>> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(None) };
        let Some(dir) = self.base.find_dir(&parent)? else { return Ok(None) };
        match dir.resolve(name) {
            Ok(resolved) if resolved.leads_nowhere => Err(Error::not_found(path)),
            Ok(resolved) => Ok(Some(resolved.path)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks up `real`, a path without links, for a caller that requested `path`.
    fn lookup_real(self: &Arc<Self>, real: VfsPath, path: &VfsPath) -> Result<LookupResult> {
        let file = |upper, base, name| {
            let at = real.parent().unwrap_or_default();
            let dir = OverlayDirectory { tree: Arc::clone(self), path: at, requested: None, upper, base };
            Ok(LookupResult::File { dir: Arc::new(dir), name })
        };
        let upper = match Arc::clone(&self.upper).lookup(&real) {
            Ok(LookupResult::Directory(dir)) => Some(dir),
            Ok(LookupResult::File { dir, name }) => return file(Some(dir), None, name),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let base = if self.state.is_hidden(&real) { None } else { Some(Arc::clone(&self.base).lookup(&real)) };
        let base = match (base, &upper) {
            (Some(Ok(LookupResult::Directory(dir))), _) => Some(dir),
            (Some(Ok(LookupResult::File { dir, name })), None) => return file(None, Some(dir), name),
            // A written entry replaces a file of the base, but not a directory that cannot be read.
            (Some(Err(error)), upper) if upper.is_none() || !error.is_absence() => return Err(error),
            (None, None) => return Err(Error::not_found(&real)),
            _ => None,
        };
        Ok(LookupResult::Directory(OverlayDirectory::new(self, real, path, upper, base)))
    }
}

impl Tree for OverlayTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        self.real(path).and_then(|real| self.lookup_real(real, path)).map_err(|error| error.with_path(path))
    }
}

/// Directory that the upper side, the base, or both have.
struct OverlayDirectory {
    tree: Arc<OverlayTree>,
    /// Real path.
    path: VfsPath,
    /// Requested path, if a link leads to the real one; for the problems of a listing.
    requested: Option<PathMapping>,
    upper: Option<Arc<dyn Directory>>,
    base: Option<Arc<dyn Directory>>,
}

/// Side of an overlay that has an entry.
enum OverlaySide<'a> {
    Upper(&'a Arc<dyn Directory>),
    Base(&'a Arc<dyn Directory>),
}

/// Target of a link, if the overlay changed it.
enum ChangedLinkTarget {
    /// A file that was written.
    File(Arc<dyn Directory>, String),
    /// A directory with written files only.
    Directory,
}

impl OverlayDirectory {
    /// Returns the directory at the real path `path`, which the search reached by the path `requested`.
    fn new(
        tree: &Arc<OverlayTree>,
        path: VfsPath,
        requested: &VfsPath,
        upper: Option<Arc<dyn Directory>>,
        base: Option<Arc<dyn Directory>>,
    ) -> Arc<Self> {
        let requested = (*requested != path).then(|| PathMapping::new(requested.clone(), path.clone()));
        Arc::new(Self { tree: Arc::clone(tree), path, requested, upper, base })
    }

    fn merged(&self, list: impl Fn(&dyn Directory) -> Result<Listing>) -> Result<Listing> {
        let mut listing = match &self.upper {
            Some(upper) => list(&**upper)?,
            None => Listing::default(),
        };
        let Some(base) = &self.base else { return Ok(listing) };
        let written: HashSet<String> = listing.iter().map(|(name, _)| name.to_owned()).collect();
        let mut below = list(&**base)?;
        below.retain(|name, _| {
            let is_hidden = || self.path.child(name).is_ok_and(|path| self.tree.state.hidden.contains(&path));
            !written.contains(name) && !is_hidden()
        });
        for (name, kind) in below.iter() {
            listing.push(name, kind);
        }
        let problems = below.problems.into_iter();
        listing.problems.extend(problems.map(|problem| match &self.requested {
            Some(rebase) => rebase.problem(problem),
            None => problem,
        }));
        Ok(listing)
    }

    /// Returns the side that has the entry `name`.
    fn side(&self, name: &str) -> Result<OverlaySide<'_>> {
        if let Some(upper) = &self.upper {
            let there = upper.list_only(&[name.to_owned()])?;
            if !there.is_empty() {
                return Ok(OverlaySide::Upper(upper));
            }
        }
        match &self.base {
            Some(base) if !self.tree.state.hidden.contains(&self.path.child(name)?) => Ok(OverlaySide::Base(base)),
            _ => Err(Error::of(ErrorKind::NotFound)),
        }
    }

    /// If the entry `name` of `base` is a link whose target was changed in the overlay, returns the target and its path.
    fn changed_target(&self, base: &Arc<dyn Directory>, name: &str) -> Result<Option<(ChangedLinkTarget, VfsPath)>> {
        let state = &self.tree.state;
        if state.is_unchanged() || !state.base.capabilities(&self.path).links {
            return Ok(None);
        }
        // If a link leads outside or in a circle, the base reports it.
        let Ok(ResolveResult { path: target, leads_nowhere: false, .. }) = base.resolve(name) else { return Ok(None) };
        if target == self.path.child(name)? {
            return Ok(None);
        }
        let changed = match Arc::clone(&self.tree.upper).lookup(&target) {
            Ok(LookupResult::File { dir, name }) => ChangedLinkTarget::File(dir, name),
            // A directory that both sides have is described as the one of the base.
            Ok(LookupResult::Directory(_)) if state.is_hidden(&target) || base.follow_link(name).is_err() => {
                ChangedLinkTarget::Directory
            }
            Ok(LookupResult::Directory(_)) => return Ok(None),
            Err(error) if error.is_absence() && !state.is_hidden(&target) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some((changed, target)))
    }

    /// Returns the real path of the directory `name`.
    fn real(&self, name: &str) -> Result<VfsPath> {
        let at = self.path.child(name)?;
        let state = &self.tree.state;
        match &self.base {
            Some(base) if !state.hidden.contains(&at) && state.base.capabilities(&at).links => {
                let resolved = base.resolve(name)?;
                if resolved.leads_nowhere { Err(Error::not_found(&at)) } else { Ok(resolved.path) }
            }
            _ => Ok(at),
        }
    }
}

impl Directory for OverlayDirectory {
    fn list(&self) -> Result<Listing> {
        self.merged(|dir| dir.list())
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.merged(|dir| dir.list_only(names))
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        let at = self.real(name)?;
        let upper = self.tree.upper.find_dir(&at)?;
        let base = match &self.base {
            Some(base) if !self.tree.state.is_hidden(&at) => match base.open_dir(name, &at) {
                Ok(dir) => Some(dir),
                Err(error) if upper.is_some() && error.is_absence() => None,
                Err(error) => return Err(error),
            },
            _ => None,
        };
        if upper.is_none() && base.is_none() {
            return Err(Error::not_found(path));
        }
        Ok(Self::new(&self.tree, at, path, upper, base))
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        match self.side(name)? {
            OverlaySide::Upper(dir) => dir.follow_link(name),
            OverlaySide::Base(dir) => match self.changed_target(dir, name)? {
                Some((ChangedLinkTarget::File(..), _)) => Ok(ChildKind::File),
                Some((ChangedLinkTarget::Directory, _)) => Ok(ChildKind::Directory),
                None => dir.follow_link(name),
            },
        }
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let at = self.path.child(name)?;
        let mut info = match self.side(name)? {
            OverlaySide::Upper(dir) => {
                let info = dir.stat(name, at.clone())?;
                // Like `stat`, describe a directory that both sides have as the one of the base.
                match &self.base {
                    Some(base) if info.is_dir && !self.tree.state.hidden.contains(&at) => match base.stat(name, at) {
                        Ok(of_base) if of_base.is_dir => of_base,
                        Err(error) if !error.is_absence() => return Err(error),
                        _ => info,
                    },
                    _ => info,
                }
            }
            OverlaySide::Base(dir) => match self.changed_target(dir, name)? {
                Some((ChangedLinkTarget::File(dir, name), target)) => dir.stat(&name, target)?,
                Some((ChangedLinkTarget::Directory, target)) => FileInfo::directory(target),
                None => dir.stat(name, at)?,
            },
        };
        info.path = path;
        Ok(info)
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // The target of a link may be changed.
        match self.side(name).ok()? {
            _ if kind != ChildKind::File => None,
            OverlaySide::Upper(dir) | OverlaySide::Base(dir) => dir.prefilter(name, kind),
        }
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        match self.side(name)? {
            OverlaySide::Upper(dir) => dir.open_file(name, kind),
            OverlaySide::Base(dir) if kind == ChildKind::Link => match self.changed_target(dir, name)? {
                Some((ChangedLinkTarget::File(dir, name), _)) => dir.open_file(&name, ChildKind::File),
                Some((ChangedLinkTarget::Directory, _)) => Err(Error::of(ErrorKind::IsADirectory)),
                None => dir.open_file(name, kind),
            },
            OverlaySide::Base(dir) => dir.open_file(name, kind),
        }
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        match self.side(name)? {
            OverlaySide::Upper(_) => self.path.child(name).map(ResolveResult::at),
            OverlaySide::Base(dir) => dir.resolve(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::tree::{OpenTreeRequest, TreeUse};
    use vfs_core::{Backend, BackendExt as _, LsRequest, OpContext};
    use vfs_memory::MemoryBackend;
    use vfs_search::Pool;

    use super::*;

    /// A tree, or its root, whose directory `d` cannot be opened.
    struct WithUnreadableDir<T: ?Sized>(Arc<T>);

    impl Tree for WithUnreadableDir<dyn Tree> {
        fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
            match Arc::clone(&self.0).lookup(path)? {
                _ if path.as_str() == "/d" => Err(Error::of(ErrorKind::PermissionDenied)),
                LookupResult::Directory(dir) => Ok(LookupResult::Directory(Arc::new(WithUnreadableDir(dir)))),
                file => Ok(file),
            }
        }
    }

    impl Directory for WithUnreadableDir<dyn Directory> {
        fn list(&self) -> Result<Listing> {
            self.0.list()
        }

        fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
            if name == "d" { Err(Error::of(ErrorKind::PermissionDenied)) } else { self.0.open_dir(name, path) }
        }

        fn follow_link(&self, name: &str) -> Result<ChildKind> {
            self.0.follow_link(name)
        }

        fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
            self.0.stat(name, path)
        }

        fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
            self.0.open_file(name, kind)
        }

        fn resolve(&self, name: &str) -> Result<ResolveResult> {
            self.0.resolve(name)
        }
    }

    #[tokio::test]
    async fn an_unreadable_directory_of_the_base_is_reported_though_a_file_was_written_into_it() -> Result<()> {
        let (base, cx) = (MemoryBackend::new(), OpContext::new());
        base.create_text("/d/x", "old").await?;
        let state = OverlayState::new(Arc::new(base.clone()), 100);
        state.upper.create_text("/d/new", "new").await?;
        state.upper.create_text("/made/new", "new").await?;
        let root = || OpenTreeRequest::new(VfsPath::root(), TreeUse::List);
        let closed = WithUnreadableDir(vfs_search::open_tree(&state.base, &cx, root()).await?);
        let upper: Arc<dyn Backend> = Arc::new(state.upper.clone());
        let upper = vfs_search::open_tree(&upper, &cx, root()).await?;
        let tree = Arc::new(OverlayTree { state, upper, base: Arc::new(closed) });
        let list = |at| vfs_search::ls_on(Pool::global(), Arc::clone(&tree) as _, cx.clone(), at);

        let error = list(LsRequest::new(VfsPath::parse("/d")?)).await.expect_err("unreadable");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let listed = list(LsRequest::new(VfsPath::root()).recursive()).await?;
        let problems: Vec<_> = listed.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        assert_eq!(problems, [("/d", ErrorKind::PermissionDenied)]);
        let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(names, ["/d", "/made", "/made/new"]);
        Ok(())
    }
}
