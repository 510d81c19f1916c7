//! The directories that a search enters through links.
//!
//! A link into the searched tree is not followed: what it leads to is found under its own path. A directory outside of
//! the searched tree is entered once, under the smallest path that leads there. So a search enters each directory at most
//! once, however many links lead to one another.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use vfs_core::tree::{Located, Tree};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::level::{Directories, Guide, WalkOptions, WalkState};
use crate::walk::Walk;

/// The path under which each directory outside of the searched tree is entered, by where the directory really is.
pub(crate) type EntryPaths = HashMap<VfsPath, VfsPath>;

/// Decides where the walk of a search that follows links goes outside of the searched tree.
#[derive(Debug)]
pub(crate) struct Follow {
    /// Where the searched tree really begins.
    start: VfsPath,
    paths: Paths,
}

#[derive(Debug)]
enum Paths {
    /// An ordered walk comes to each directory by its smallest path first.
    Recorded(Mutex<EntryPaths>),
    /// A walk by several workers asks an ordered one, which is made when the first link leads outside.
    Planned { path: VfsPath, paths: OnceLock<Result<EntryPaths>> },
}

impl Follow {
    /// For an ordered walk from `path` down.
    pub(crate) fn ordered<T: Tree>(tree: &T, path: &VfsPath) -> Self {
        Self { start: real_path(tree, path), paths: Paths::Recorded(Mutex::default()) }
    }

    /// For a walk from `path` down whose directories are entered in any order.
    pub(crate) fn parallel<T: Tree>(tree: &T, path: &VfsPath) -> Self {
        let paths = Paths::Planned { path: path.clone(), paths: OnceLock::new() };
        Self { start: real_path(tree, path), paths }
    }

    /// Whether the directory at `real` belongs to the searched tree.
    pub(crate) fn is_within(&self, real: &VfsPath) -> bool {
        real.starts_with(&self.start)
    }

    /// Whether the directory at `real`, which is outside of the searched tree, is entered under `path`.
    ///
    /// # Errors
    ///
    /// What ends the search meanwhile.
    pub(crate) fn enters<T: Tree>(
        &self,
        real: &VfsPath,
        path: &VfsPath,
        tree: &T,
        guide: &dyn Guide,
        options: WalkOptions,
    ) -> Result<bool> {
        match &self.paths {
            Paths::Recorded(paths) => {
                let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(paths.entry(real.clone()).or_insert_with(|| path.clone()) == path)
            }
            Paths::Planned { path: start, paths } => {
                let paths = paths.get_or_init(|| plan(tree, guide, start, options));
                Ok(paths.as_ref().map_err(Error::clone)?.get(real) == Some(path))
            }
        }
    }

    /// The paths that an ordered walk has recorded.
    pub(crate) fn into_entry_paths(self) -> EntryPaths {
        match self.paths {
            Paths::Recorded(paths) => paths.into_inner().unwrap_or_else(PoisonError::into_inner),
            Paths::Planned { .. } => EntryPaths::new(),
        }
    }
}

/// Walks all directories from `start` down in order.
fn plan<T: Tree>(tree: &T, guide: &dyn Guide, start: &VfsPath, options: WalkOptions) -> Result<EntryPaths> {
    let Located::Directory(dir) = tree.locate(start)? else {
        return Err(Error::at(ErrorKind::NotADirectory, start));
    };
    let options = WalkOptions { directories: Directories::OnlyEntered, ..options };
    let mut walk = Walk::start(tree, guide, dir, start, options, WalkState::MAX_ENTRIES)?;
    while walk.next(tree, guide)?.is_some() {}
    Ok(walk.into_entry_paths())
}

/// Returns `path` without links; `path` itself where that is not known, so that links to what is below it count as leading
/// outside, and are followed once.
fn real_path<T: Tree>(tree: &T, path: &VfsPath) -> VfsPath {
    let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return path.clone() };
    match tree.locate(&parent) {
        Ok(Located::Directory(dir)) => tree.resolve(&dir, name).map_or_else(|_| path.clone(), |resolved| resolved.path),
        _ => path.clone(),
    }
}
