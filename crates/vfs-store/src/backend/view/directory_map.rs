//! Persistent map of files by the directories that their paths imply.

use std::sync::Arc;

use rpds::{HashTrieMapSync, RedBlackTreeMapSync};
use vfs_core::{Error, ErrorKind, Problem, VfsPath};

use super::path_entry::PathEntry;
use crate::store::{ChangeRecord, Entry, Page, StoredMeta};

/// Entries of one directory. A clone takes constant time and does not change with the original.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryEntries {
    files: RedBlackTreeMapSync<Arc<str>, StoredMeta>,
    directories: RedBlackTreeMapSync<Arc<str>, ()>,
    /// Problems of entries that cannot be read.
    problems: Arc<Vec<Problem>>,
}

impl Default for DirectoryEntries {
    fn default() -> Self {
        Self {
            files: RedBlackTreeMapSync::new_sync(),
            directories: RedBlackTreeMapSync::new_sync(),
            problems: Arc::default(),
        }
    }
}

impl DirectoryEntries {
    /// Adds a page of a listing of one level of `path`.
    pub(crate) fn add_page(&mut self, path: &VfsPath, page: &Page) {
        for entry in &page.entries {
            if let (Some(name), true) = (entry.path.name(), entry.path.parent().as_ref() == Some(path)) {
                self.files.insert_mut(name.into(), entry.stored.clone());
            }
        }
        for directory in &page.directories {
            if let Some(name) = directory.name() {
                self.directories.insert_mut(name.into(), ());
            }
        }
        if !page.problems.is_empty() {
            Arc::make_mut(&mut self.problems).extend(page.problems.iter().cloned());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.is_empty() && self.problems.is_empty()
    }

    /// Returns the number of files and directories.
    pub(crate) fn len(&self) -> usize {
        self.files.size() + self.directories.size()
    }

    pub(crate) fn file(&self, name: &str) -> Option<&StoredMeta> {
        self.files.get(name)
    }

    /// Returns the files, sorted by name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &StoredMeta)> {
        self.files.iter().map(|(name, stored)| (&**name, stored))
    }

    /// Returns the names of the directories in order, without those that a file of the same name shadows.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.keys().map(|name| &**name).filter(|name| !self.files.contains_key(*name))
    }

    /// Returns `true` if there are more than `count` entries, and none of the first `count` is missing, after all keys
    /// up to `last` were listed.
    ///
    /// A directory `a`, whose key is `a/`, is listed after a file `a-b` although its name sorts before. A missing
    /// directory that sorts before a listed entry is therefore a prefix of the last key.
    pub(crate) fn has_first(&self, count: usize, last: &str) -> bool {
        if self.files.size() + self.directories.size() <= count {
            return false;
        }
        let mut names: Vec<&str> = self.files().map(|(name, _)| name).chain(self.directories()).collect();
        if names.len() <= count {
            return false;
        }
        let (_, beyond, _) = names.select_nth_unstable(count);
        let mut missing =
            last.char_indices().filter(|(end, letter)| *end > 0 && *letter < '/').map(|(end, _)| &last[..end]);
        missing.all(|name| name >= *beyond || self.has_directory(name) || self.files.contains_key(name))
    }

    /// Returns `true` if there is a directory `name`, which a file may shadow.
    pub(crate) fn has_directory(&self, name: &str) -> bool {
        self.directories.contains_key(name)
    }

    /// Returns the problems of entries; `path` is that of this directory.
    pub(crate) fn problems(&self, path: &VfsPath) -> Vec<Problem> {
        let shadowed_names = self.directories.keys().filter(|name| self.files.contains_key(&***name));
        shadowed_names.map(|name| shadowed(path, name)).chain(self.problems.iter().cloned()).collect()
    }
}

/// Returns the problem of a directory that a file of the same name shadows.
pub(crate) fn shadowed(directory: &VfsPath, name: &str) -> Problem {
    let path = format!("{}/{name}", directory.as_str().trim_end_matches('/'));
    let message = "a file and a directory share this path; rename or delete the file to see what lies below it";
    Problem::from(Error::new(ErrorKind::NotADirectory, message).with_path_text(&path))
}

/// Files of a namespace, or below a path of it, by directory. A clone takes constant time and does not change with the
/// original.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryMap {
    directories: HashTrieMapSync<VfsPath, DirectoryEntries>,
    files: usize,
}

impl Default for DirectoryMap {
    fn default() -> Self {
        Self { directories: HashTrieMapSync::new_sync(), files: 0 }
    }
}

impl DirectoryMap {
    /// Returns the number of files.
    pub(crate) fn files(&self) -> usize {
        self.files
    }

    /// Returns the entries of the directory `path`, if there are any.
    pub(crate) fn get(&self, path: &VfsPath) -> Option<&DirectoryEntries> {
        self.directories.get(path)
    }

    /// Returns the entry at `path`.
    pub(crate) fn find(&self, path: &VfsPath) -> Option<PathEntry> {
        let parent = path.parent().and_then(|parent| self.get(&parent));
        let file = parent.zip(path.name()).and_then(|(parent, name)| parent.file(name));
        match file {
            Some(stored) => Some(PathEntry::File(stored.clone())),
            None => (path.is_root() || self.get(path).is_some()).then_some(PathEntry::Directory),
        }
    }

    /// Adds a page of a listing of all levels.
    pub(crate) fn add_page(&mut self, page: Page) {
        let mut entries = page.entries.into_iter().peekable();
        while let Some(Entry { path, stored }) = entries.next() {
            let Some(parent) = path.parent() else { continue };
            let mut added = 0;
            // Consecutive files of the same directory, the common case, share one lookup of it.
            self.change(&parent, |directory| {
                added += usize::from(directory.insert(&path, stored));
                while let Some(Entry { path, stored }) = entries.next_if(|next| is_in(&parent, &next.path)) {
                    added += usize::from(directory.insert(&path, stored));
                }
            });
            self.files += added;
        }
        page.problems.into_iter().for_each(|problem| self.add_problem(problem));
    }

    fn add_problem(&mut self, problem: Problem) {
        let parent = problem.path.rsplit_once('/').and_then(|(parent, _)| VfsPath::parse(parent).ok());
        let parent = parent.unwrap_or_else(VfsPath::root);
        self.change(&parent, |directory| Arc::make_mut(&mut directory.problems).push(problem));
    }

    /// Applies a change of the change log.
    pub(crate) fn apply(&mut self, record: ChangeRecord) {
        match record {
            ChangeRecord::Created(path, stored) | ChangeRecord::Changed(path, stored) => self.insert(&path, stored),
            ChangeRecord::Removed(path) => self.remove(&path),
            ChangeRecord::Moved { from, to, stored } => {
                self.remove(&from);
                self.insert(&to, stored);
            }
            ChangeRecord::Unreadable(record, problem) => {
                record.paths().into_iter().for_each(|path| self.remove(path));
                self.add_problem(problem);
            }
        }
    }

    /// Inserts a file, replacing the entry at its path.
    fn insert(&mut self, path: &VfsPath, stored: StoredMeta) {
        let Some(parent) = path.parent() else { return };
        let mut is_new = false;
        self.change(&parent, |directory| is_new = directory.insert(path, stored));
        self.files += usize::from(is_new);
    }

    fn remove(&mut self, path: &VfsPath) {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return };
        let Some(directory) = self.directories.get_mut(&parent) else { return };
        self.files -= usize::from(directory.files.remove_mut(name));
        directory.remove_problem(path);
        self.remove_empty(parent);
    }

    /// Changes the directory `path`, and creates it with its parents if it is missing.
    fn change(&mut self, path: &VfsPath, change: impl FnOnce(&mut DirectoryEntries)) {
        if let Some(directory) = self.directories.get_mut(path) {
            return change(directory);
        }
        let mut directory = DirectoryEntries::default();
        change(&mut directory);
        self.directories.insert_mut(path.clone(), directory);
        let mut below = path.clone();
        while let (Some(parent), Some(name)) = (below.parent(), below.name()) {
            if let Some(directory) = self.directories.get_mut(&parent) {
                directory.directories.insert_mut(name.into(), ());
                return;
            }
            let mut directory = DirectoryEntries::default();
            directory.directories.insert_mut(name.into(), ());
            self.directories.insert_mut(parent.clone(), directory);
            below = parent;
        }
    }

    /// Removes the directory `path` and its parents, up to the first that is not empty.
    fn remove_empty(&mut self, mut path: VfsPath) {
        while self.directories.get(&path).is_some_and(DirectoryEntries::is_empty) {
            self.directories.remove_mut(&path);
            let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return };
            if let Some(directory) = self.directories.get_mut(&parent) {
                directory.directories.remove_mut(name);
            }
            path = parent;
        }
    }
}

/// Returns `true` if `path` is an entry of `directory`.
fn is_in(directory: &VfsPath, path: &VfsPath) -> bool {
    let prefix = directory.as_str().trim_end_matches('/');
    let name = path.as_str().strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

impl DirectoryEntries {
    /// Inserts the file at `path`, replacing its entry or problem, and returns `true` if there was no file.
    fn insert(&mut self, path: &VfsPath, stored: StoredMeta) -> bool {
        let Some(name) = path.name() else { return false };
        self.remove_problem(path);
        let before = self.files.size();
        self.files.insert_mut(name.into(), stored);
        self.files.size() > before
    }

    /// Removes the problem of `path`, which a change of the path resolves or replaces.
    fn remove_problem(&mut self, path: &VfsPath) {
        if self.problems.iter().any(|problem| problem.path == path.as_str()) {
            Arc::make_mut(&mut self.problems).retain(|problem| problem.path != path.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use chrono::DateTime;
    use proptest::prelude::*;
    use vfs_core::Version;

    use super::*;

    fn stored(size: u64) -> StoredMeta {
        StoredMeta::new(size, Version::new(size.to_string()), DateTime::UNIX_EPOCH)
    }

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    /// Returns the paths of all directories, and all files with their sizes.
    fn contents(index: &DirectoryMap) -> (BTreeSet<String>, BTreeMap<String, u64>) {
        let (mut directories, mut files) = (BTreeSet::new(), BTreeMap::new());
        let mut pending = vec![VfsPath::root()];
        while let Some(at) = pending.pop() {
            let Some(directory) = index.get(&at) else { continue };
            for (name, stored) in directory.files() {
                files.insert(at.child(name).expect("a name").to_string(), stored.size);
            }
            for name in directory.directories.keys() {
                let below = at.child(name).expect("a name");
                directories.insert(below.to_string());
                pending.push(below);
            }
        }
        (directories, files)
    }

    proptest! {
        #[test]
        fn the_directories_are_those_that_the_files_imply(
            steps in prop::collection::vec((0..4_u8, "(/[ab]){1,4}", "(/[ab]){1,4}", 0..9_u64), 0..60)
        ) {
            let (mut index, mut files) = (DirectoryMap::default(), BTreeMap::new());
            for (kind, from, to, size) in steps {
                let (from, to) = (path(&from), path(&to));
                match kind {
                    0 | 1 => {
                        files.insert(from.to_string(), size);
                        index.apply(ChangeRecord::Created(from, stored(size)));
                    }
                    2 => {
                        files.remove(from.as_str());
                        index.apply(ChangeRecord::Removed(from));
                    }
                    _ => {
                        files.remove(from.as_str());
                        files.insert(to.to_string(), size);
                        index.apply(ChangeRecord::Moved { from, to, stored: stored(size) });
                    }
                }
            }
            let implied: BTreeSet<String> = files
                .keys()
                .flat_map(|path| path.match_indices('/').skip(1).map(|(at, _)| path[..at].to_owned()))
                .collect();
            prop_assert_eq!(index.files(), files.len());
            prop_assert_eq!(contents(&index), (implied, files));
        }
    }

    proptest! {
        #[test]
        fn pages_and_changes_arrange_the_same(paths in prop::collection::btree_set("(/[ab]){1,4}", 0..20)) {
            let (mut listed, mut applied) = (DirectoryMap::default(), DirectoryMap::default());
            let mut page = Page::default();
            for (size, text) in (0..).zip(&paths) {
                page.entries.push(Entry { path: path(text), stored: stored(size) });
                applied.apply(ChangeRecord::Created(path(text), stored(size)));
            }
            listed.add_page(page);
            prop_assert_eq!(listed.files(), paths.len());
            prop_assert_eq!(contents(&listed), contents(&applied));
        }
    }

    #[test]
    fn a_clone_does_not_change_with_the_original() {
        let mut index = DirectoryMap::default();
        index.apply(ChangeRecord::Created(path("/d/a"), stored(1)));
        let before = index.clone();
        index.apply(ChangeRecord::Moved { from: path("/d/a"), to: path("/e/b"), stored: stored(2) });
        assert_eq!(before.find(&path("/d/a")), Some(PathEntry::File(stored(1))));
        assert_eq!(index.find(&path("/d")), None);
        assert_eq!(index.find(&path("/e")), Some(PathEntry::Directory));
        assert_eq!(index.find(&VfsPath::root()), Some(PathEntry::Directory));
    }
}
