//! Map of files as a tree to search.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, Listing, Located, Opened, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, ResolveResult, Result, VfsPath};

use crate::file::File;
use crate::map::{self, Entry, FileMap};

/// The files of one moment. It has no links.
#[derive(Debug)]
pub(crate) struct MemoryTree {
    files: FileMap,
}

/// A directory: its path and, once it was listed, its entries, which are then opened without a lookup in the map.
#[derive(Debug, Clone)]
pub(crate) struct MemoryDir(Arc<DirInner>);

#[derive(Debug)]
struct DirInner {
    path: VfsPath,
    entries: OnceLock<Arc<DirEntries>>,
}

/// The entries that a listing found.
#[derive(Debug, Default)]
struct DirEntries {
    /// Ordered by the bytes of their paths.
    files: Vec<(VfsPath, Arc<File>)>,
    /// Ordered by name, with their own entries if these were prefetched.
    directories: Vec<(String, Option<Arc<DirEntries>>)>,
    /// Directories with the same path as a file.
    shadowed: Vec<String>,
    /// Index of the file that was opened last: the next one is mostly the same or its successor.
    last_index: AtomicUsize,
}

impl DirEntries {
    fn of<'a>(files: impl IntoIterator<Item = (&'a VfsPath, &'a Arc<File>)>) -> Self {
        let files = files.into_iter().map(|(path, file)| (path.clone(), Arc::clone(file))).collect();
        Self { files, ..Self::default() }
    }
}

impl MemoryDir {
    fn new(path: VfsPath) -> Self {
        Self(Arc::new(DirInner { path, entries: OnceLock::new() }))
    }

    fn with(path: VfsPath, entries: Arc<DirEntries>) -> Self {
        Self(Arc::new(DirInner { path, entries: entries.into() }))
    }

    /// Returns the offset of the name in the path of an entry.
    fn name_start(&self) -> usize {
        if self.0.path.is_root() { 1 } else { self.0.path.as_str().len() + 1 }
    }

    /// Returns the file `name` of this directory, if it was listed.
    fn file(&self, name: &str) -> Option<&Arc<File>> {
        let entries = self.0.entries.get()?;
        let start = self.name_start();
        let name_at = |(path, _): &(VfsPath, Arc<File>)| path.as_str()[start..].cmp(name);
        let last = entries.last_index.load(Ordering::Relaxed);
        let near =
            [last, last + 1].into_iter().find(|at| entries.files.get(*at).is_some_and(|file| name_at(file).is_eq()));
        let at = near.or_else(|| entries.files.binary_search_by(name_at).ok())?;
        entries.last_index.store(at, Ordering::Relaxed);
        Some(&entries.files[at].1)
    }

    /// Returns the directory `name` at `path`, if a listing found it.
    fn directory(&self, name: &str, path: &VfsPath) -> Option<Self> {
        let directories = &self.0.entries.get()?.directories;
        let at = directories.binary_search_by(|(found, _)| found.as_str().cmp(name)).ok()?;
        Some(match &directories[at].1 {
            Some(entries) => Self::with(path.clone(), Arc::clone(entries)),
            None => Self::new(path.clone()),
        })
    }
}

impl MemoryTree {
    pub(crate) fn new(files: FileMap) -> Self {
        Self { files }
    }

    fn read_dir(&self, dir: &VfsPath) -> DirEntries {
        let mut entries = DirEntries::default();
        self.files.for_each_child(dir, |child| match child {
            map::Child::File { path, file } => entries.files.push((path.clone(), Arc::clone(file))),
            map::Child::Directory(name, files) => {
                let below = files.map(|files| Arc::new(DirEntries::of(files.iter().copied())));
                entries.directories.push((name.to_owned(), below));
            }
            map::Child::Shadowed(name) => entries.shadowed.push(name.to_owned()),
        });
        // The map orders directories by the paths of their files, which puts `a.b/` before `a/`.
        entries.directories.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

impl Tree for MemoryTree {
    type Dir = MemoryDir;

    fn locate(&self, path: &VfsPath) -> Result<Located<MemoryDir>> {
        match (self.files.find(path)?, path.parent(), path.name()) {
            (Entry::File(_), Some(dir), Some(name)) => {
                Ok(Located::File { dir: MemoryDir::new(dir), name: name.to_owned() })
            }
            _ => Ok(Located::Directory(MemoryDir::new(path.clone()))),
        }
    }

    fn list(&self, dir: &MemoryDir) -> Result<Listing> {
        let entries = dir.0.entries.get_or_init(|| Arc::new(self.read_dir(&dir.0.path)));
        let start = dir.name_start();
        let mut listing = Listing::with_capacity(entries.files.len() + entries.directories.len());
        for (path, _) in &entries.files {
            listing.push(&path.as_str()[start..], ChildKind::File);
        }
        for (name, _) in &entries.directories {
            listing.push(name, ChildKind::Directory);
        }
        listing.problems.extend(entries.shadowed.iter().map(|name| shadowed_problem(&dir.0.path, name)));
        Ok(listing)
    }

    fn list_only(&self, dir: &MemoryDir, names: &[String]) -> Result<Listing> {
        let mut listing = Listing::default();
        for name in names {
            let Ok(path) = dir.0.path.child(name) else { continue };
            let is_directory = self.files.is_directory(&path);
            let kind = match self.files.get(&path) {
                Some(_) => ChildKind::File,
                None if is_directory => ChildKind::Directory,
                None => continue,
            };
            if kind == ChildKind::File && is_directory {
                listing.problems.push(shadowed_problem(&dir.0.path, name));
            }
            listing.push(name, kind);
        }
        Ok(listing)
    }

    fn enter(&self, dir: &MemoryDir, name: &str, path: &VfsPath) -> Result<MemoryDir> {
        if let Some(found) = dir.directory(name, path) {
            return Ok(found);
        }
        match self.files.find(path)? {
            Entry::Directory => Ok(MemoryDir::new(path.clone())),
            Entry::File(_) => Err(Error::at(ErrorKind::NotADirectory, path)),
        }
    }

    fn follow(&self, _dir: &MemoryDir, _name: &str) -> Result<ChildKind> {
        Err(Error::new(ErrorKind::Unsupported, "this backend has no links"))
    }

    fn info(&self, dir: &MemoryDir, name: &str, path: VfsPath) -> Result<FileInfo> {
        if let Some(file) = dir.file(name) {
            return Ok(file.info(path));
        }
        Ok(match self.files.find(&path)? {
            Entry::File(file) => file.info(path),
            Entry::Directory => FileInfo::directory(path),
        })
    }

    fn known(&self, dir: &MemoryDir, name: &str, _kind: ChildKind) -> Option<Sketch> {
        dir.file(name)?.sketch().cloned()
    }

    fn open(&self, dir: &MemoryDir, name: &str, _kind: ChildKind) -> Result<Opened> {
        Ok(match dir.file(name) {
            Some(file) => file.open(),
            None => self.files.find_file(&dir.0.path.child(name)?)?.open(),
        })
    }

    fn resolve(&self, dir: &MemoryDir, name: &str) -> Result<ResolveResult> {
        dir.0.path.child(name).map(ResolveResult::at)
    }
}

/// Returns the problem of a directory with the same path as a file.
fn shadowed_problem(dir: &VfsPath, name: &str) -> Problem {
    let path = format!("{}/{name}", dir.as_str().trim_end_matches('/'));
    let message = "a file and a directory share this path; rename or delete the file to see what lies below it";
    Problem::from(Error::new(ErrorKind::NotADirectory, message).with_path_text(&path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::DateTime;

    use super::*;
    use crate::file::{File, StateFormat};

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    fn tree(paths: &[&str]) -> MemoryTree {
        let file = |text: &str| Arc::new(File::new(text.to_owned().into(), DateTime::UNIX_EPOCH, StateFormat::Text));
        let mut files = FileMap::default();
        files.apply(paths.iter().map(|text| (path(text), Some(file(text)))).collect());
        MemoryTree::new(files)
    }

    #[test]
    fn a_search_starts_at_a_directory_or_a_file_and_nowhere_else() {
        let tree = tree(&["/d/f"]);
        assert!(matches!(tree.locate(&VfsPath::root()), Ok(Located::Directory(dir)) if dir.0.path.is_root()));
        assert!(matches!(tree.locate(&path("/d")), Ok(Located::Directory(dir)) if dir.0.path == path("/d")));
        assert!(
            matches!(tree.locate(&path("/d/f")), Ok(Located::File { dir, name }) if dir.0.path == path("/d") && name == "f")
        );
        assert_eq!(tree.locate(&path("/x")).expect_err("missing").kind(), ErrorKind::NotFound);
        assert_eq!(tree.locate(&path("/d/f/x")).expect_err("below a file").kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn directories_are_entered_and_files_are_opened_without_a_copy() {
        let tree = tree(&["/d/f"]);
        let root = MemoryDir::new(VfsPath::root());
        let dir = tree.enter(&root, "d", &path("/d")).expect("a directory");
        let Ok(Opened::Bytes { bytes, .. }) = tree.open(&dir, "f", ChildKind::File) else { panic!("a file in memory") };
        let stored = tree.files.find_file(&path("/d/f")).expect("a file");
        assert_eq!(bytes.as_ptr(), stored.content().as_ptr());
        assert_eq!(tree.open(&root, "d", ChildKind::File).expect_err("a directory").kind(), ErrorKind::IsADirectory);
        assert_eq!(tree.enter(&dir, "f", &path("/d/f")).expect_err("a file").kind(), ErrorKind::NotADirectory);
        assert_eq!(tree.enter(&root, "x", &path("/x")).expect_err("missing").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_sketch_is_made_by_the_second_search_and_used_by_the_third() {
        use vfs_core::tree::{Sketcher, Sought};

        let files = tree(&["/f"]);
        let root = MemoryDir::new(VfsPath::root());
        files.list(&root).expect("a listing");
        let learn = |tree: &MemoryTree| match tree.open(&root, "f", ChildKind::File) {
            Ok(Opened::Bytes { learn, .. }) => learn,
            other => panic!("a file in memory, not {other:?}"),
        };
        assert!(learn(&files).is_none());
        assert!(files.known(&root, "f", ChildKind::File).is_none());
        let mut sketcher = Sketcher::default();
        sketcher.push(b"/f is its content");
        learn(&files).expect("it is learned")(sketcher.finish());
        let known = files.known(&root, "f", ChildKind::File).expect("it is known");
        assert!(!known.may_hold(&Sought::exactly(["another"]).expect("it is long enough")));
        assert!(learn(&files).is_none());
        // A changed file is another object without a sketch.
        let changed = tree(&["/f"]);
        let root = MemoryDir::new(VfsPath::root());
        changed.list(&root).expect("a listing");
        assert!(changed.known(&root, "f", ChildKind::File).is_none());
    }

    #[test]
    fn names_that_are_looked_up_are_what_a_listing_says_they_are() {
        let tree = tree(&["/p/a", "/p/a/b", "/p/c/d", "/p/e"]);
        let dir = MemoryDir::new(path("/p"));
        let names: Vec<_> = ["a", "c", "missing", "e", ".."].map(str::to_owned).into();
        let (all, some) = (tree.list(&dir).expect("a listing"), tree.list_only(&dir, &names).expect("a listing"));
        let by_name = |listing: &Listing| {
            let mut entries: Vec<_> = listing.iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries
        };
        assert_eq!(by_name(&some), by_name(&all));
        assert_eq!(some.problems, all.problems);
    }

    #[test]
    fn a_directory_behind_a_file_is_a_problem_of_the_listing() {
        let listing = tree(&["/p/a", "/p/a/b", "/p/c"]).list(&MemoryDir::new(path("/p"))).expect("a listing");
        let names: Vec<_> = listing.iter().collect();
        assert_eq!(names, [("a", ChildKind::File), ("c", ChildKind::File)]);
        let [problem] = &listing.problems[..] else { panic!("one problem") };
        assert_eq!((problem.path.as_str(), problem.code), ("/p/a", ErrorKind::NotADirectory));
    }
}
