//! Union tree of changed files and the base, for searches.

use std::collections::HashSet;
use std::sync::Arc;

use vfs_core::path::PathMapping;
use vfs_core::tree::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use vfs_core::{Error, ErrorKind, FileInfo, ResolveResult, Result, VfsPath};

use super::state::OverlayState;

pub(super) fn overlay_tree(state: OverlayState, upper: SharedTree, base: SharedTree) -> SharedTree {
    SharedTree::new(OverlayTree(Arc::new(Layers { state, upper, base })))
}

struct Layers {
    state: OverlayState,
    upper: SharedTree,
    base: SharedTree,
}

impl Layers {
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
        let Some(dir) = self.base.directory(&parent)? else { return Ok(None) };
        match dir.resolve(name) {
            Ok(resolved) if resolved.leads_nowhere => Err(Error::not_found(path)),
            Ok(resolved) => Ok(Some(resolved.path)),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Locates `path`, which must have no links in it.
    fn locate(layers: &Arc<Self>, path: &VfsPath) -> Result<Located<OverlayDirectory>> {
        let merged =
            |path, upper, base| OverlayDirectory { layers: Arc::clone(layers), path, requested: None, upper, base };
        let above = || path.parent().unwrap_or_default();
        let upper = match layers.upper.locate(path) {
            Ok(Located::Directory(dir)) => Some(dir),
            Ok(Located::File { dir, name }) => {
                return Ok(Located::File { dir: merged(above(), Some(dir), None), name });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let base = if layers.state.is_hidden(path) { None } else { Some(layers.base.locate(path)) };
        let base = match (base, &upper) {
            (Some(Ok(Located::Directory(dir))), _) => Some(dir),
            (Some(Ok(Located::File { dir, name })), None) => {
                return Ok(Located::File { dir: merged(above(), None, Some(dir)), name });
            }
            // A written entry replaces a file of the base, but not a directory that cannot be read.
            (Some(Err(error)), upper) if upper.is_none() || !error.is_absence() => return Err(error),
            (None, None) => return Err(Error::not_found(path)),
            _ => None,
        };
        Ok(Located::Directory(merged(path.clone(), upper, base)))
    }
}

struct OverlayTree(Arc<Layers>);

impl DynTree for OverlayTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        let located = self.0.real(path).and_then(|real| Layers::locate(&self.0, &real));
        Ok(match located.map_err(|error| error.with_path(path))? {
            Located::Directory(dir) => Located::Directory(Arc::new(dir.requested_as(path))),
            Located::File { dir, name } => Located::File { dir: Arc::new(dir), name },
        })
    }
}

/// Directory that the upper side, the base, or both have.
struct OverlayDirectory {
    layers: Arc<Layers>,
    /// Real path.
    path: VfsPath,
    /// Requested path, if a link leads to the real one; for the problems of a listing.
    requested: Option<PathMapping>,
    upper: Option<Arc<dyn DynDirectory>>,
    base: Option<Arc<dyn DynDirectory>>,
}

/// Side that has an entry.
enum Side<'a> {
    Upper(&'a Arc<dyn DynDirectory>),
    Base(&'a Arc<dyn DynDirectory>),
}

/// Changed target of a link.
enum ChangedTarget {
    /// A file that was written.
    File(Arc<dyn DynDirectory>, String),
    /// A directory with written files only.
    Directory,
}

impl OverlayDirectory {
    fn requested_as(mut self, path: &VfsPath) -> Self {
        self.requested = (*path != self.path).then(|| PathMapping::new(path.clone(), self.path.clone()));
        self
    }

    fn merged(&self, list: impl Fn(&dyn DynDirectory) -> Result<Listing>) -> Result<Listing> {
        let mut listing = match &self.upper {
            Some(upper) => list(&**upper)?,
            None => Listing::default(),
        };
        let Some(base) = &self.base else { return Ok(listing) };
        let written: HashSet<String> = listing.iter().map(|(name, _)| name.to_owned()).collect();
        let mut below = list(&**base)?;
        below.retain(|name, _| {
            let is_gone = || self.path.child(name).is_ok_and(|path| self.layers.state.hidden.contains(&path));
            !written.contains(name) && !is_gone()
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
    fn side(&self, name: &str) -> Result<Side<'_>> {
        if let Some(upper) = &self.upper {
            let there = upper.list_only(&[name.to_owned()])?;
            if !there.is_empty() {
                return Ok(Side::Upper(upper));
            }
        }
        match &self.base {
            Some(base) if !self.layers.state.hidden.contains(&self.path.child(name)?) => Ok(Side::Base(base)),
            _ => Err(Error::of(ErrorKind::NotFound)),
        }
    }

    /// If the entry `name` of `base` is a link whose target was changed in the overlay, returns the target and its path.
    fn changed_target(&self, base: &Arc<dyn DynDirectory>, name: &str) -> Result<Option<(ChangedTarget, VfsPath)>> {
        let state = &self.layers.state;
        if state.is_unchanged() || !state.base.capabilities(&self.path).links {
            return Ok(None);
        }
        // If a link leads outside or in a circle, the base reports it.
        let Ok(ResolveResult { path: target, leads_nowhere: false, .. }) = base.resolve(name) else { return Ok(None) };
        if target == self.path.child(name)? {
            return Ok(None);
        }
        let changed = match self.layers.upper.locate(&target) {
            Ok(Located::File { dir, name }) => ChangedTarget::File(dir, name),
            // A directory that both sides have is described as the one of the base.
            Ok(Located::Directory(_)) if state.is_hidden(&target) || base.follow(name).is_err() => {
                ChangedTarget::Directory
            }
            Ok(Located::Directory(_)) => return Ok(None),
            Err(error) if error.is_absence() && !state.is_hidden(&target) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some((changed, target)))
    }

    /// Returns the real path of the directory `name`.
    fn real(&self, name: &str) -> Result<VfsPath> {
        let at = self.path.child(name)?;
        let state = &self.layers.state;
        match &self.base {
            Some(base) if !state.hidden.contains(&at) && state.base.capabilities(&at).links => {
                let resolved = base.resolve(name)?;
                if resolved.leads_nowhere { Err(Error::not_found(&at)) } else { Ok(resolved.path) }
            }
            _ => Ok(at),
        }
    }
}

impl DynDirectory for OverlayDirectory {
    fn list(&self) -> Result<Listing> {
        self.merged(|dir| dir.list())
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.merged(|dir| dir.list_only(names))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let at = self.real(name)?;
        let upper = self.layers.upper.directory(&at)?;
        let base = match &self.base {
            Some(base) if !self.layers.state.is_hidden(&at) => match base.enter(name, &at) {
                Ok(dir) => Some(dir),
                Err(error) if upper.is_some() && error.is_absence() => None,
                Err(error) => return Err(error),
            },
            _ => None,
        };
        if upper.is_none() && base.is_none() {
            return Err(Error::not_found(path));
        }
        let dir = Self { layers: Arc::clone(&self.layers), path: at, requested: None, upper, base };
        Ok(Arc::new(dir.requested_as(path)))
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        match self.side(name)? {
            Side::Upper(dir) => dir.follow(name),
            Side::Base(dir) => match self.changed_target(dir, name)? {
                Some((ChangedTarget::File(..), _)) => Ok(ChildKind::File),
                Some((ChangedTarget::Directory, _)) => Ok(ChildKind::Directory),
                None => dir.follow(name),
            },
        }
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let at = self.path.child(name)?;
        let mut info = match self.side(name)? {
            Side::Upper(dir) => {
                let info = dir.info(name, at.clone())?;
                // Like `stat`, describe a directory that both sides have as the one of the base.
                match &self.base {
                    Some(base) if info.is_dir && !self.layers.state.hidden.contains(&at) => match base.info(name, at) {
                        Ok(of_base) if of_base.is_dir => of_base,
                        Err(error) if !error.is_absence() => return Err(error),
                        _ => info,
                    },
                    _ => info,
                }
            }
            Side::Base(dir) => match self.changed_target(dir, name)? {
                Some((ChangedTarget::File(dir, name), target)) => dir.info(&name, target)?,
                Some((ChangedTarget::Directory, target)) => FileInfo::directory(target),
                None => dir.info(name, at)?,
            },
        };
        info.path = path;
        Ok(info)
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // The target of a link may be changed.
        match self.side(name).ok()? {
            _ if kind != ChildKind::File => None,
            Side::Upper(dir) | Side::Base(dir) => dir.known(name, kind),
        }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        match self.side(name)? {
            Side::Upper(dir) => dir.open(name, kind),
            Side::Base(dir) if kind == ChildKind::Link => match self.changed_target(dir, name)? {
                Some((ChangedTarget::File(dir, name), _)) => dir.open(&name, ChildKind::File),
                Some((ChangedTarget::Directory, _)) => Err(Error::of(ErrorKind::IsADirectory)),
                None => dir.open(name, kind),
            },
            Side::Base(dir) => dir.open(name, kind),
        }
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        match self.side(name)? {
            Side::Upper(_) => self.path.child(name).map(ResolveResult::at),
            Side::Base(dir) => dir.resolve(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::tree::{OpenTreeRequest, Tree, TreeUse};
    use vfs_core::{Backend, BackendExt as _, LsRequest, OpContext};
    use vfs_memory::MemoryBackend;
    use vfs_search::Pool;

    use super::*;

    /// A tree whose directory `d` cannot be opened.
    struct Closed(SharedTree);

    impl Tree for Closed {
        type Dir = Arc<dyn DynDirectory>;

        fn locate(&self, path: &VfsPath) -> Result<Located<Self::Dir>> {
            if path.as_str() == "/d" { Err(Error::of(ErrorKind::PermissionDenied)) } else { self.0.locate(path) }
        }

        fn list(&self, dir: &Self::Dir) -> Result<Listing> {
            dir.list()
        }

        fn enter(&self, dir: &Self::Dir, name: &str, path: &VfsPath) -> Result<Self::Dir> {
            if name == "d" { Err(Error::of(ErrorKind::PermissionDenied)) } else { dir.enter(name, path) }
        }

        fn follow(&self, dir: &Self::Dir, name: &str) -> Result<ChildKind> {
            dir.follow(name)
        }

        fn info(&self, dir: &Self::Dir, name: &str, path: VfsPath) -> Result<FileInfo> {
            dir.info(name, path)
        }

        fn open(&self, dir: &Self::Dir, name: &str, kind: ChildKind) -> Result<Opened> {
            dir.open(name, kind)
        }

        fn resolve(&self, dir: &Self::Dir, name: &str) -> Result<ResolveResult> {
            dir.resolve(name)
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
        let closed = Closed(vfs_search::open_tree(&state.base, &cx, root()).await?);
        let upper: Arc<dyn Backend> = Arc::new(state.upper.clone());
        let upper = vfs_search::open_tree(&upper, &cx, root()).await?;
        let tree = Arc::new(overlay_tree(state, upper, SharedTree::of(Arc::new(closed))));
        let list = |at| vfs_search::ls_on(Pool::global(), Arc::clone(&tree), cx.clone(), at);

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
