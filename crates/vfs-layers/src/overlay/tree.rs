//! The files that were written and those of the base, as one tree.

use std::collections::HashSet;
use std::sync::Arc;

use vfs_core::tree::{ChildKind, DynDirectory, DynTree, Listing, Located, Opened, SharedTree, Sketch, Tree as _};
use vfs_core::{Error, ErrorKind, FileInfo, Resolved, Result, VfsPath};

use super::merged::Merged;

pub(super) fn merged_tree(state: Merged, upper: SharedTree, base: SharedTree) -> SharedTree {
    SharedTree::new(MergedTree(Arc::new(Layers { state, upper, base })))
}

struct Layers {
    state: Merged,
    upper: SharedTree,
    base: SharedTree,
}

impl Layers {
    /// The directory of `tree` at `path`, if there is one.
    fn directory(tree: &SharedTree, path: &VfsPath) -> Result<Option<Arc<dyn DynDirectory>>> {
        match tree.locate(path) {
            Ok(Located::Directory(dir)) => Ok(Some(dir)),
            Ok(Located::File { .. }) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct MergedTree(Arc<Layers>);

impl DynTree for MergedTree {
    fn locate(&self, path: &VfsPath) -> Result<Located<Arc<dyn DynDirectory>>> {
        let layers = &self.0;
        let upper = match layers.upper.locate(path) {
            Ok(Located::Directory(dir)) => Some(dir),
            Ok(file @ Located::File { .. }) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let base = if layers.state.is_hidden(path) { None } else { Some(layers.base.locate(path)) };
        let base = match (base, &upper) {
            (Some(Ok(Located::Directory(dir))), _) => Some(dir),
            (Some(Ok(file @ Located::File { .. })), None) => return Ok(file),
            (Some(Err(error)), None) => return Err(error),
            (None, None) => return Err(Error::not_found(path)),
            (_, Some(_)) => None,
        };
        Ok(Located::Directory(MergedDirectory::shared(layers, path.clone(), upper, base)))
    }
}

/// A directory that at least one of both has.
struct MergedDirectory {
    layers: Arc<Layers>,
    /// Where it really is, links followed.
    path: VfsPath,
    upper: Option<Arc<dyn DynDirectory>>,
    base: Option<Arc<dyn DynDirectory>>,
}

/// Which of both an entry is of.
enum Side<'a> {
    Upper(&'a Arc<dyn DynDirectory>),
    Base(&'a Arc<dyn DynDirectory>),
}

impl MergedDirectory {
    fn shared(
        layers: &Arc<Layers>,
        path: VfsPath,
        upper: Option<Arc<dyn DynDirectory>>,
        base: Option<Arc<dyn DynDirectory>>,
    ) -> Arc<dyn DynDirectory> {
        Arc::new(Self { layers: Arc::clone(layers), path, upper, base })
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
            let is_gone = || self.path.child(name).is_ok_and(|path| self.layers.state.gone.contains(&path));
            !written.contains(name) && !is_gone()
        });
        for (name, kind) in below.iter() {
            listing.push(name, kind);
        }
        listing.problems.append(&mut below.problems);
        Ok(listing)
    }

    /// Which of both has the entry `name`.
    fn side(&self, name: &str) -> Result<Side<'_>> {
        if let Some(upper) = &self.upper {
            let there = upper.list_only(&[name.to_owned()])?;
            if !there.is_empty() {
                return Ok(Side::Upper(upper));
            }
        }
        match &self.base {
            Some(base) if !self.layers.state.gone.contains(&self.path.child(name)?) => Ok(Side::Base(base)),
            _ => Err(Error::of(ErrorKind::NotFound)),
        }
    }

    /// What the link `name` of the base leads to here, where that is not what the base has there.
    fn changed_target(&self, base: &Arc<dyn DynDirectory>, name: &str) -> Result<Option<VfsPath>> {
        let state = &self.layers.state;
        if state.touched.is_empty() || !state.base.capabilities(&self.path).links {
            return Ok(None);
        }
        let target = base.resolve(name)?.path;
        let is_changed = state.touched.contains_key(&target) || state.is_hidden(&target);
        Ok(is_changed.then_some(target))
    }

    /// Where the directory `name` really is, by which it is known here too.
    fn real(&self, name: &str) -> Result<VfsPath> {
        let at = self.path.child(name)?;
        let state = &self.layers.state;
        match &self.base {
            Some(base) if !state.gone.contains(&at) && state.base.capabilities(&at).links => {
                Ok(base.resolve(name)?.path)
            }
            _ => Ok(at),
        }
    }

    /// The file at `path`, which was written or removed here.
    fn written(&self, path: &VfsPath) -> Result<(Arc<dyn DynDirectory>, String)> {
        match self.layers.upper.locate(path)? {
            Located::File { dir, name } => Ok((dir, name)),
            Located::Directory(_) => Err(Error::of(ErrorKind::IsADirectory)),
        }
    }
}

impl DynDirectory for MergedDirectory {
    fn list(&self) -> Result<Listing> {
        self.merged(|dir| dir.list())
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.merged(|dir| dir.list_only(names))
    }

    fn enter(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn DynDirectory>> {
        let at = self.real(name)?;
        let upper = Layers::directory(&self.layers.upper, &at)?;
        let base = match &self.base {
            Some(base) if !self.layers.state.gone.contains(&at) => match base.enter(name, path) {
                Ok(dir) => Some(dir),
                // What was written here stands in its place.
                Err(_) if upper.is_some() => None,
                Err(error) => return Err(error),
            },
            _ => None,
        };
        if upper.is_none() && base.is_none() {
            return Err(Error::not_found(path));
        }
        Ok(Self::shared(&self.layers, at, upper, base))
    }

    fn identity(&self) -> Option<(u64, u64)> {
        self.base.as_ref()?.identity()
    }

    fn follow(&self, name: &str) -> Result<ChildKind> {
        match self.side(name)? {
            Side::Upper(dir) => dir.follow(name),
            Side::Base(dir) => match self.changed_target(dir, name)? {
                Some(target) => self.written(&target).map(|_| ChildKind::File),
                None => dir.follow(name),
            },
        }
    }

    fn info(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        match self.side(name)? {
            Side::Upper(dir) => {
                let info = dir.info(name, path.clone())?;
                // As `stat` does: a directory that both have is described as the base's.
                match &self.base {
                    Some(base) if info.is_dir && !self.layers.state.gone.contains(&path) => {
                        Ok(base.info(name, path).ok().filter(|of_base| of_base.is_dir).unwrap_or(info))
                    }
                    _ => Ok(info),
                }
            }
            Side::Base(dir) => match self.changed_target(dir, name) {
                Ok(Some(target)) if target != path => {
                    let (upper, name) = self.written(&target)?;
                    let mut info = upper.info(&name, target)?;
                    info.path = path;
                    Ok(info)
                }
                _ => dir.info(name, path),
            },
        }
    }

    fn known(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // What a link leads to may be changed.
        match self.side(name).ok()? {
            _ if kind != ChildKind::File => None,
            Side::Upper(dir) | Side::Base(dir) => dir.known(name, kind),
        }
    }

    fn open(&self, name: &str, kind: ChildKind) -> Result<Opened> {
        match self.side(name)? {
            Side::Upper(dir) => dir.open(name, kind),
            Side::Base(dir) if kind == ChildKind::Link => match self.changed_target(dir, name)? {
                Some(target) => {
                    let (upper, name) = self.written(&target)?;
                    upper.open(&name, ChildKind::File)
                }
                None => dir.open(name, kind),
            },
            Side::Base(dir) => dir.open(name, kind),
        }
    }

    fn resolve(&self, name: &str) -> Result<Resolved> {
        match self.side(name)? {
            Side::Upper(_) => self.path.child(name).map(Resolved::at),
            Side::Base(dir) => dir.resolve(name),
        }
    }
}
