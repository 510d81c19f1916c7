//! Persistent ordered map of files, and the lookup of paths in it.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::memory_file::MemoryFile;

/// The new file at each changed path, or `None` for a removal. Each path occurs once.
pub(crate) type MapChanges = Vec<(VfsPath, Option<Arc<MemoryFile>>)>;

/// A path whose file differs, with the old and the new file.
pub(crate) type FileDifference<'a> = (&'a VfsPath, Option<&'a Arc<MemoryFile>>, Option<&'a Arc<MemoryFile>>);

/// All files by path. A clone takes constant time and is independent of the original.
///
/// Directories are implied by the files below them, so there are no empty ones, except for the root.
///
/// A file and a directory cannot share a path, and no operation here creates such a pair; but merging the updates of
/// several agents can. Then the path means the file, and the files below it can still be read, changed, moved and
/// deleted by their own paths.
#[derive(Clone, Default)]
pub(crate) struct FileMap {
    files: RedBlackTreeMapSync<VfsPath, Arc<MemoryFile>>,
    bytes: u64,
}

/// The entry at a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileOrDirectory<'a> {
    File(&'a Arc<MemoryFile>),
    Directory,
}

/// Maximum number of files of a subdirectory that are read with the listing of its parent: reading on is cheaper than
/// a search for the next entry.
const MAX_PREFETCHED_FILES: usize = 32;

/// Maximum number of prefetched files in all subdirectories of one listing.
const MAX_PREFETCHED_PER_LISTING: usize = 4096;

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DirectoryChild<'a> {
    File {
        path: &'a VfsPath,
        file: &'a Arc<MemoryFile>,
    },
    /// A directory, with its files if they are few and it has no subdirectory.
    Directory(&'a str, Option<&'a [(&'a VfsPath, &'a Arc<MemoryFile>)]>),
    /// A directory with the same path as a file.
    Shadowed(&'a str),
}

impl FileMap {
    /// Returns the number of files.
    pub(crate) fn len(&self) -> usize {
        self.files.size()
    }

    /// Returns the size of all files together.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the file at `path`.
    pub(crate) fn get(&self, path: &VfsPath) -> Option<&Arc<MemoryFile>> {
        self.files.get(path)
    }

    /// Returns all files, ordered by the bytes of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&VfsPath, &Arc<MemoryFile>)> {
        self.files.iter()
    }

    /// Returns the entry at `path`; `not_a_directory` if an ancestor is a file.
    pub(crate) fn lookup(&self, path: &VfsPath) -> Result<Option<FileOrDirectory<'_>>> {
        if let Some(file) = self.get(path) {
            Ok(Some(FileOrDirectory::File(file)))
        } else if self.is_directory(path) {
            Ok(Some(FileOrDirectory::Directory))
        } else if self.is_below_file(path) {
            Err(Error::at(ErrorKind::NotADirectory, path))
        } else {
            Ok(None)
        }
    }

    /// Returns the entry at `path`, or `not_found`.
    pub(crate) fn find(&self, path: &VfsPath) -> Result<FileOrDirectory<'_>> {
        self.lookup(path)?.ok_or_else(|| Error::not_found(path))
    }

    /// Returns the file at `path`, or an error if there is none.
    pub(crate) fn find_file(&self, path: &VfsPath) -> Result<&Arc<MemoryFile>> {
        match self.find(path)? {
            FileOrDirectory::File(file) => Ok(file),
            FileOrDirectory::Directory => Err(Error::at(ErrorKind::IsADirectory, path)),
        }
    }

    /// Returns whether `path` is the root or has files below it.
    pub(crate) fn is_directory(&self, path: &VfsPath) -> bool {
        path.is_root() || self.subtree(path).next().is_some()
    }

    fn is_below_file(&self, path: &VfsPath) -> bool {
        let text = path.as_str();
        text.match_indices('/').skip(1).any(|(at, _)| self.files.contains_key(&text[..at]))
    }

    /// Returns the files below `dir` at any depth, ordered by the bytes of their paths.
    pub(crate) fn subtree(&self, dir: &VfsPath) -> impl Iterator<Item = (&VfsPath, &Arc<MemoryFile>)> {
        self.files.range::<str, _>(SubtreeRange::directory(dir))
    }

    /// Calls `visit` with each entry of `dir`, in the order in which the map finds them. The cost is proportional to
    /// the number of entries: only the first files of each subdirectory are read.
    pub(crate) fn for_each_child(&self, dir: &VfsPath, mut visit: impl FnMut(DirectoryChild<'_>)) {
        let all = SubtreeRange::directory(dir);
        let mut files = self.files.range::<str, _>(all.clone());
        // A file that shadows a directory precedes it, so this list replaces a search of the map.
        let mut names: Vec<&str> = Vec::new();
        let mut prefetched = Vec::new();
        let mut prefetched_total = 0;
        let mut next = files.next();
        while let Some((path, file)) = next {
            let Some((name, _)) = path.as_str()[all.start.len()..].split_once('/') else {
                visit(DirectoryChild::File { path, file });
                names.push(&path.as_str()[all.start.len()..]);
                next = files.next();
                continue;
            };
            let child = &path.as_str()[..all.start.len() + name.len()];
            prefetched.clear();
            while let Some((path, file)) = next
                && prefetched.len() < MAX_PREFETCHED_FILES.min(MAX_PREFETCHED_PER_LISTING - prefetched_total)
                && is_in(child, path)
            {
                prefetched.push((path, file));
                next = files.next();
            }
            let is_whole = !prefetched.is_empty() && next.is_none_or(|(path, _)| !is_below(child, path));
            prefetched_total += prefetched.len();
            visit(match names.binary_search(&name) {
                Ok(_) => DirectoryChild::Shadowed(name),
                Err(_) => DirectoryChild::Directory(name, is_whole.then_some(prefetched.as_slice())),
            });
            if !is_whole {
                files = self.files.range::<str, _>(all.after_directory(child));
                next = files.next();
            }
        }
    }

    /// Returns the paths whose file is another object in `later`, with the old and the new file. Contents are not
    /// compared.
    pub(crate) fn differences<'a>(&'a self, later: &'a FileMap) -> impl Iterator<Item = FileDifference<'a>> {
        let (mut before, mut after) = (self.iter().peekable(), later.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let order = match (before.peek(), after.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some((old, _)), Some((new, _))) => old.cmp(new),
                };
                let old = if order.is_le() { before.next() } else { None };
                let new = if order.is_ge() { after.next() } else { None };
                let (path, _) = old.or(new)?;
                match (old.map(|(_, file)| file), new.map(|(_, file)| file)) {
                    (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                    (old, new) => return Some((path, old, new)),
                }
            }
        })
    }

    /// Applies `change`.
    pub(crate) fn apply(&mut self, change: MapChanges) {
        for (path, file) in change {
            self.bytes -= self.get(&path).map_or(0, |old| old.size());
            match file {
                Some(file) => {
                    self.bytes += file.size();
                    self.files.insert_mut(path, file);
                }
                None => {
                    self.files.remove_mut(&path);
                }
            }
        }
    }

    /// Returns this map with `change` applied.
    pub(crate) fn with(&self, change: MapChanges) -> Self {
        let mut changed = self.clone();
        changed.apply(change);
        changed
    }
}

impl PartialEq for FileMap {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Eq for FileMap {}

impl fmt::Debug for FileMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileMap").field("files", &self.len()).field("bytes", &self.bytes).finish()
    }
}

/// Returns whether `path` is below the directory `dir`, at any depth.
fn is_below(dir: &str, path: &VfsPath) -> bool {
    path.as_str().strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether `path` is an entry of the directory `dir`.
fn is_in(dir: &str, path: &VfsPath) -> bool {
    is_below(dir, path) && !path.as_str()[dir.len() + 1..].contains('/')
}

/// A range of the keys below one directory.
///
/// Keys are ordered by bytes, so all keys below `/a` are adjacent, from `/a/` up to `/a0`: `0` is the byte after `/`.
/// Neighbours such as `/a-b`, `/a.b` and `/a0` are outside.
#[derive(Debug, Clone)]
struct SubtreeRange {
    start: String,
    end: String,
}

impl SubtreeRange {
    fn directory(dir: &VfsPath) -> Self {
        let text = dir.as_str().trim_end_matches('/');
        Self { start: format!("{text}/"), end: format!("{text}0") }
    }

    /// Returns the part of this range after everything below its subdirectory `child`.
    fn after_directory(&self, child: &str) -> Self {
        Self { start: format!("{child}0"), end: self.end.clone() }
    }
}

impl RangeBounds<str> for SubtreeRange {
    fn start_bound(&self) -> Bound<&str> {
        Bound::Included(&self.start)
    }

    fn end_bound(&self) -> Bound<&str> {
        Bound::Excluded(&self.end)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use chrono::DateTime;

    use super::*;
    use crate::memory_file::StateContentFormat;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    fn map(paths: &[&str]) -> FileMap {
        let file = |content: &str| {
            Some(Arc::new(MemoryFile::new(
                Bytes::from(content.to_owned()),
                DateTime::UNIX_EPOCH,
                StateContentFormat::Text,
            )))
        };
        let mut map = FileMap::default();
        map.apply(paths.iter().map(|text| (path(text), file(text))).collect());
        map
    }

    fn children(map: &FileMap, dir: &str) -> Vec<String> {
        let mut found = Vec::new();
        map.for_each_child(&path(dir), |child| {
            found.push(match child {
                DirectoryChild::File { path, .. } => path.name().unwrap_or_default().to_owned(),
                DirectoryChild::Directory(name, _) => format!("{name}/"),
                DirectoryChild::Shadowed(name) => format!("{name}/ shadowed"),
            });
        });
        found
    }

    #[test]
    fn children_exclude_those_of_neighbouring_directories() {
        let files = map(&["/a-b", "/a.b", "/a/b", "/a/c/d", "/a/c/e/f", "/a/c.x", "/a/c0", "/a0", "/a/zz/y", "/é/ü"]);
        for (dir, expected) in [
            ("/", &["a-b", "a.b", "a/", "a0", "é/"][..]),
            ("/a", &["b", "c.x", "c/", "c0", "zz/"]),
            ("/a/c", &["d", "e/"]),
            ("/a/c/e", &["f"]),
            ("/é", &["ü"]),
            ("/a/b", &[]),
            ("/nothing", &[]),
        ] {
            assert_eq!(children(&files, dir), expected, "{dir}");
        }
        assert!(children(&FileMap::default(), "/").is_empty());
    }

    #[test]
    fn names_with_every_byte_beside_the_separator_are_listed_once() {
        let names: Vec<String> =
            (1_u8..=127).filter(|byte| *byte != b'/').map(|byte| format!("d{}", byte as char)).collect();
        let mut paths: Vec<String> = names.iter().map(|name| format!("/d/{name}")).collect();
        paths.extend(names.iter().map(|name| format!("/d/d/{name}/deep")));
        let files = map(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let mut found = children(&files, "/d");
        let mut expected = names.clone();
        expected.push("d/".into());
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(children(&files, "/d/d").len(), names.len());
    }

    #[test]
    fn a_directory_is_prefetched_if_it_has_only_few_files() {
        let many: Vec<_> = (0..=MAX_PREFETCHED_FILES).map(|n| format!("/d/many/{n:02}")).collect();
        let mut paths = vec!["/d/few/a", "/d/few/b", "/d/few-er/x", "/d/nested/a", "/d/nested/b/c", "/d/z"];
        paths.extend(many.iter().map(String::as_str));
        let (files, mut found) = (map(&paths), Vec::new());
        files.for_each_child(&path("/d"), |child| {
            if let DirectoryChild::Directory(name, files) = child {
                let paths =
                    files.map(|files| files.iter().map(|(path, _)| path.as_str().to_owned()).collect::<Vec<_>>());
                found.push((name.to_owned(), paths));
            }
        });
        let with =
            |name: &str, paths: &[&str]| (name.to_owned(), Some(paths.iter().map(|path| (*path).to_owned()).collect()));
        let expected = [
            with("few-er", &["/d/few-er/x"]),
            with("few", &["/d/few/a", "/d/few/b"]),
            ("many".to_owned(), None),
            ("nested".to_owned(), None),
        ];
        assert_eq!(found, expected);
        assert_eq!(children(&files, "/d"), ["few-er/", "few/", "many/", "nested/", "z"]);
    }

    #[test]
    fn prefetched_files_of_a_listing_are_bounded() {
        let paths: Vec<_> = (0..MAX_PREFETCHED_PER_LISTING + 10).map(|n| format!("/{n:05}/f")).collect();
        let files = map(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut with, mut all) = (0, 0);
        files.for_each_child(&VfsPath::root(), |child| {
            all += 1;
            with += usize::from(matches!(child, DirectoryChild::Directory(_, Some(_))));
        });
        assert_eq!((with, all), (MAX_PREFETCHED_PER_LISTING, paths.len()));
    }

    #[test]
    fn lookup_finds_a_file_a_directory_nothing_or_a_path_below_a_file() {
        let files = map(&["/a/b", "/a0"]);
        let meaning = |text: &str| match files.lookup(&path(text)) {
            Ok(Some(FileOrDirectory::File(_))) => "file",
            Ok(Some(FileOrDirectory::Directory)) => "directory",
            Ok(None) => "nothing",
            Err(error) => error.kind().code(),
        };
        for (text, expected) in [
            ("/", "directory"),
            ("/a", "directory"),
            ("/a/b", "file"),
            ("/a/b/c", "not_a_directory"),
            ("/a/b/c/d", "not_a_directory"),
            ("/a/bb", "nothing"),
            ("/a0", "file"),
            ("/a00", "nothing"),
            ("/a0/x", "not_a_directory"),
        ] {
            assert_eq!(meaning(text), expected, "{text}");
        }
    }

    #[test]
    fn a_directory_behind_a_file_is_named_and_its_files_keep_their_paths() {
        let files = map(&["/a", "/a-b", "/a/b"]);
        assert_eq!(children(&files, "/"), ["a", "a-b", "a/ shadowed"]);
        assert!(matches!(files.find(&path("/a")), Ok(FileOrDirectory::File(_))));
        assert!(files.find_file(&path("/a/b")).is_ok());
        let error = files.lookup(&path("/a/c")).expect_err("below a file");
        assert_eq!((error.kind(), error.path()), (ErrorKind::NotADirectory, Some("/a/c")));
    }

    #[test]
    fn the_sizes_follow_every_change_and_clones_do_not() {
        let mut files = map(&["/one", "/three"]);
        let before = files.clone();
        assert_eq!((files.len(), files.bytes()), (2, 10));
        let three = files.get(&path("/three")).map(Arc::clone);
        files.apply(vec![(path("/one"), three), (path("/three"), None), (path("/absent"), None)]);
        assert_eq!((files.len(), files.bytes()), (1, 6));
        assert_eq!((before.len(), before.bytes()), (2, 10));
        assert_ne!(files, before);
    }
}
