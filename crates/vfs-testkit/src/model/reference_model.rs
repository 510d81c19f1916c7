//! Reference implementation of each step, over two ordered collections.

use std::collections::{BTreeMap, BTreeSet};

use vfs_core::ErrorKind;

/// The permitted kinds of error. If a step is wrong in several ways at once, a backend may report any of them.
pub(super) type PermittedErrors = Vec<ErrorKind>;

/// Whether a directory still exists when its last file is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyDirectories {
    Stay,
    Go,
}

/// Files and directories by path, without the root.
#[derive(Debug, Clone)]
pub(super) struct ReferenceModel {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) directories: BTreeSet<String>,
    empty: EmptyDirectories,
    /// Directories that always exist, and can be neither removed nor replaced.
    fixed: BTreeSet<String>,
}

fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|parent| !parent.is_empty())
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

impl ReferenceModel {
    pub(super) fn new(empty: EmptyDirectories, mounts: &[String]) -> Self {
        let fixed: BTreeSet<_> =
            mounts.iter().flat_map(|mount| parents(mount).chain([mount.as_str()])).map(str::to_owned).collect();
        Self { files: BTreeMap::new(), directories: fixed.clone(), empty, fixed }
    }

    /// Returns the error if `path` cannot exist because a file is above it.
    fn above(&self, path: &str) -> PermittedErrors {
        let blocked = parents(path).any(|parent| self.files.contains_key(parent));
        if blocked { vec![ErrorKind::NotADirectory] } else { Vec::new() }
    }

    fn missing(&self, path: &str) -> PermittedErrors {
        let above = self.above(path);
        if above.is_empty() { vec![ErrorKind::NotFound] } else { above }
    }

    /// Returns the bytes of the file at `path`.
    pub(super) fn file(&self, path: &str) -> Result<&Vec<u8>, PermittedErrors> {
        match self.files.get(path) {
            Some(content) => Ok(content),
            None if self.directories.contains(path) => Err(vec![ErrorKind::IsADirectory]),
            None => Err(self.missing(path)),
        }
    }

    /// Puts a file at `path`, which is not a directory and has no file above it.
    pub(super) fn put(&mut self, path: &str, content: Vec<u8>) {
        self.directories.extend(parents(path).map(str::to_owned));
        self.files.insert(path.to_owned(), content);
    }

    /// Returns the error of a write at `path`, apart from that of an existing file.
    pub(super) fn not_writable(&self, path: &str) -> PermittedErrors {
        if self.directories.contains(path) { vec![ErrorKind::IsADirectory] } else { self.above(path) }
    }

    /// Returns everything at and below `path`: files with their contents, and directories.
    fn subtree(&self, path: &str) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
        let within = |other: &str| other == path || is_below(other, path);
        let files = self.files.iter().filter(|(other, _)| within(other));
        let directories = self.directories.iter().filter(|other| within(other));
        (files.map(|(path, content)| (path.clone(), content.clone())).collect(), directories.cloned().collect())
    }

    fn remove_subtree(&mut self, path: &str) {
        self.files.retain(|other, _| other != path && !is_below(other, path));
        self.directories.retain(|other| other != path && !is_below(other, path));
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        if self.empty == EmptyDirectories::Go {
            let (files, fixed) = (&self.files, &self.fixed);
            let has_file = |directory: &String| files.keys().any(|file| is_below(file, directory));
            self.directories.retain(|directory| fixed.contains(directory) || has_file(directory));
        }
    }

    pub(super) fn delete(&mut self, path: &str, recursive: bool) -> Result<u64, PermittedErrors> {
        if self.fixed.contains(path) {
            return Err(vec![ErrorKind::InvalidArgument]);
        }
        if self.directories.contains(path) {
            if !recursive {
                return Err(vec![ErrorKind::IsADirectory]);
            }
        } else {
            self.file(path)?;
        }
        let files = self.subtree(path).0.len() as u64;
        self.remove_subtree(path);
        Ok(files)
    }

    /// Removes the directory at `path` if it is empty, and returns the number of removed files, which is 0.
    pub(super) fn delete_empty(&mut self, path: &str) -> Result<u64, PermittedErrors> {
        if self.fixed.contains(path) {
            return Err(vec![ErrorKind::InvalidArgument]);
        }
        if self.files.contains_key(path) {
            return Err(vec![ErrorKind::NotADirectory]);
        }
        if !self.ls(path, false)?.is_empty() {
            return Err(vec![ErrorKind::NotEmpty]);
        }
        self.remove_subtree(path);
        Ok(0)
    }

    /// Returns the error of a move or copy of `from` to `to`.
    fn not_transferable(&self, from: &str, to: &str, overwrite: bool) -> PermittedErrors {
        let mut faults = Vec::new();
        if from == to || is_below(to, from) {
            faults.push(ErrorKind::InvalidArgument);
        }
        let from_is_directory = self.directories.contains(from);
        if !from_is_directory && !self.files.contains_key(from) {
            faults.extend(self.missing(from));
        }
        faults.extend(self.above(to));
        let to_is_directory = self.directories.contains(to);
        if to_is_directory || self.files.contains_key(to) {
            if !overwrite {
                faults.push(ErrorKind::AlreadyExists);
            } else if from_is_directory && !to_is_directory {
                faults.push(ErrorKind::NotADirectory);
            } else if to_is_directory && !from_is_directory {
                faults.push(ErrorKind::IsADirectory);
            } else if to_is_directory && self.subtree(to).0.len() + self.subtree(to).1.len() > 1 {
                faults.push(ErrorKind::NotEmpty);
            } else if self.fixed.contains(to) {
                faults.push(ErrorKind::InvalidArgument);
            }
        }
        faults
    }

    /// Copies `from` to `to` and returns the number of files.
    pub(super) fn copy(&mut self, from: &str, to: &str, overwrite: bool) -> Result<u64, PermittedErrors> {
        let faults = self.not_transferable(from, to, overwrite);
        if !faults.is_empty() {
            return Err(faults);
        }
        let (files, directories) = self.subtree(from);
        let moved = |path: &str| format!("{to}{}", &path[from.len()..]);
        self.directories.extend(parents(to).map(str::to_owned));
        self.directories.extend(directories.iter().map(|path| moved(path)));
        self.files.extend(files.iter().map(|(path, content)| (moved(path), content.clone())));
        self.drop_empty();
        Ok(files.len() as u64)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, overwrite: bool) -> Result<(), PermittedErrors> {
        if self.fixed.contains(from) {
            let mut faults = self.not_transferable(from, to, overwrite);
            faults.push(ErrorKind::InvalidArgument);
            return Err(faults);
        }
        self.copy(from, to, overwrite)?;
        self.remove_subtree(from);
        Ok(())
    }

    /// Returns the entries that a listing of `path` shows.
    pub(super) fn ls(&self, path: &str, recursive: bool) -> Result<Vec<String>, PermittedErrors> {
        if !self.directories.contains(path) {
            let fault = if self.files.contains_key(path) { vec![ErrorKind::NotADirectory] } else { self.missing(path) };
            return Err(fault);
        }
        let entries = self.files.keys().chain(&self.directories).filter(|other| is_below(other, path));
        let shown = entries.filter(|other| recursive || !other[path.len() + 1..].contains('/'));
        Ok(shown.cloned().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Returns all files and directories.
    pub(super) fn tree(&self) -> Vec<String> {
        self.files.keys().chain(&self.directories).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Returns `content` with `old` replaced by `new`, and the number of occurrences.
pub(super) fn edit(content: &str, old: &str, new: &str, all: bool) -> Result<(String, u64), PermittedErrors> {
    if old == new {
        return Err(vec![ErrorKind::InvalidArgument]);
    }
    let places = content.char_indices().filter(|(at, _)| content[*at..].starts_with(old)).count();
    match places {
        0 => Err(vec![ErrorKind::NoMatch]),
        1 => Ok((content.replacen(old, new, 1), 1)),
        _ if all => Ok((content.replace(old, new), content.matches(old).count() as u64)),
        _ => Err(vec![ErrorKind::NotUnique]),
    }
}
