//! Map of files as a tree to search.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, ResolveResult, Result, VfsPath};

use crate::file_map::{DirectoryChild, FileMap, FileOrDirectory};
use crate::memory_file::MemoryFile;

/// The files of one moment. It has no links.
#[derive(Debug)]
pub(crate) struct MemoryTree {
    files: FileMap,
}

/// A directory: its path and, once it was listed, its entries, which are then opened without a lookup in the map.
#[derive(Debug)]
struct MemoryDir {
    tree: Arc<MemoryTree>,
    path: VfsPath,
    entries: OnceLock<Arc<DirListing>>,
}

/// The entries that a listing found.
#[derive(Debug, Default)]
struct DirListing {
    /// Ordered by the bytes of their paths.
    files: Vec<(VfsPath, Arc<MemoryFile>)>,
    /// Ordered by name, with their own entries if these were prefetched.
    directories: Vec<(String, Option<Arc<DirListing>>)>,
    /// Directories with the same path as a file.
    shadowed: Vec<String>,
    /// Index of the file that was opened last: the next one is mostly the same or its successor.
    last_index: AtomicUsize,
}

impl DirListing {
    fn of<'a>(files: impl IntoIterator<Item = (&'a VfsPath, &'a Arc<MemoryFile>)>) -> Self {
        let files = files.into_iter().map(|(path, file)| (path.clone(), Arc::clone(file))).collect();
        Self { files, ..Self::default() }
    }
}

impl MemoryDir {
    fn new(tree: &Arc<MemoryTree>, path: VfsPath) -> Arc<Self> {
        Arc::new(Self { tree: Arc::clone(tree), path, entries: OnceLock::new() })
    }

    /// Returns the offset of the name in the path of an entry.
    fn name_start(&self) -> usize {
        if self.path.is_root() { 1 } else { self.path.as_str().len() + 1 }
    }

    /// Returns the file `name` of this directory, if it was listed.
    fn file(&self, name: &str) -> Option<&Arc<MemoryFile>> {
        let entries = self.entries.get()?;
        let start = self.name_start();
        let name_at = |(path, _): &(VfsPath, Arc<MemoryFile>)| path.as_str()[start..].cmp(name);
        let last = entries.last_index.load(Ordering::Relaxed);
        let near =
            [last, last + 1].into_iter().find(|at| entries.files.get(*at).is_some_and(|file| name_at(file).is_eq()));
        let at = near.or_else(|| entries.files.binary_search_by(name_at).ok())?;
        entries.last_index.store(at, Ordering::Relaxed);
        Some(&entries.files[at].1)
    }

    /// Returns the directory `name` at `path`, if a listing found it.
    fn directory(&self, name: &str, path: &VfsPath) -> Option<Arc<Self>> {
        let directories = &self.entries.get()?.directories;
        let at = directories.binary_search_by(|(found, _)| found.as_str().cmp(name)).ok()?;
        let entries = directories[at].1.clone().map_or_else(OnceLock::new, OnceLock::from);
        Some(Arc::new(Self { tree: Arc::clone(&self.tree), path: path.clone(), entries }))
    }
}

impl MemoryTree {
    pub(crate) fn new(files: FileMap) -> Self {
        Self { files }
    }

    fn read_dir(&self, dir: &VfsPath) -> DirListing {
        let mut entries = DirListing::default();
        self.files.for_each_child(dir, |child| match child {
            DirectoryChild::File { path, file } => entries.files.push((path.clone(), Arc::clone(file))),
            DirectoryChild::Directory(name, files) => {
                let below = files.map(|files| Arc::new(DirListing::of(files.iter().copied())));
                entries.directories.push((name.to_owned(), below));
            }
            DirectoryChild::Shadowed(name) => entries.shadowed.push(name.to_owned()),
        });
        // The map orders directories by the paths of their files, which puts `a.b/` before `a/`.
        entries.directories.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries
    }
}

impl Tree for MemoryTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        match (self.files.find(path)?, path.parent(), path.name()) {
            (FileOrDirectory::File(_), Some(dir), Some(name)) => {
                Ok(LookupResult::File { dir: MemoryDir::new(&self, dir), name: name.to_owned() })
            }
            _ => Ok(LookupResult::Directory(MemoryDir::new(&self, path.clone()))),
        }
    }
}

impl Directory for MemoryDir {
    fn list(&self) -> Result<Listing> {
        let entries = self.entries.get_or_init(|| Arc::new(self.tree.read_dir(&self.path)));
        let start = self.name_start();
        let mut listing = Listing::with_capacity(entries.files.len() + entries.directories.len());
        for (path, _) in &entries.files {
            listing.push(&path.as_str()[start..], ChildKind::File);
        }
        for (name, _) in &entries.directories {
            listing.push(name, ChildKind::Directory);
        }
        listing.problems.extend(entries.shadowed.iter().map(|name| shadowed_problem(&self.path, name)));
        Ok(listing)
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        let mut listing = Listing::default();
        for name in names {
            let Ok(path) = self.path.child(name) else { continue };
            let is_directory = self.tree.files.is_directory(&path);
            let kind = match self.tree.files.get(&path) {
                Some(_) => ChildKind::File,
                None if is_directory => ChildKind::Directory,
                None => continue,
            };
            if kind == ChildKind::File && is_directory {
                listing.problems.push(shadowed_problem(&self.path, name));
            }
            listing.push(name, kind);
        }
        Ok(listing)
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        if let Some(found) = self.directory(name, path) {
            return Ok(found);
        }
        match self.tree.files.find(path)? {
            FileOrDirectory::Directory => Ok(Self::new(&self.tree, path.clone())),
            FileOrDirectory::File(_) => Err(Error::at(ErrorKind::NotADirectory, path)),
        }
    }

    fn follow_link(&self, _name: &str) -> Result<ChildKind> {
        Err(Error::new(ErrorKind::Unsupported, "this backend has no links"))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        if let Some(file) = self.file(name) {
            return Ok(file.info(path));
        }
        Ok(match self.tree.files.find(&path)? {
            FileOrDirectory::File(file) => file.info(path),
            FileOrDirectory::Directory => FileInfo::directory(path),
        })
    }

    fn prefilter(&self, name: &str, _kind: ChildKind) -> Option<Sketch> {
        self.file(name)?.sketch().cloned()
    }

    fn open_file(&self, name: &str, _kind: ChildKind) -> Result<SearchableContent> {
        Ok(match self.file(name) {
            Some(file) => file.open(),
            None => self.tree.files.find_file(&self.path.child(name)?)?.open(),
        })
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.path.child(name).map(ResolveResult::at)
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
    use crate::memory_file::{MemoryFile, StateContentFormat};

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    fn tree(paths: &[&str]) -> Arc<MemoryTree> {
        let file = |text: &str| {
            Arc::new(MemoryFile::new(text.to_owned().into(), DateTime::UNIX_EPOCH, StateContentFormat::Text))
        };
        let mut files = FileMap::default();
        files.apply(paths.iter().map(|text| (path(text), Some(file(text)))).collect());
        Arc::new(MemoryTree::new(files))
    }

    #[test]
    fn a_search_starts_at_a_directory_or_a_file_and_nowhere_else() {
        let tree = tree(&["/d/f"]);
        let lookup = |at: &str| Arc::clone(&tree).lookup(&path(at));
        let names = |dir: &Arc<dyn Directory>| -> Vec<String> {
            dir.list().expect("a listing").iter().map(|(name, _)| name.to_owned()).collect()
        };
        assert!(matches!(lookup("/"), Ok(LookupResult::Directory(dir)) if names(&dir) == ["d"]));
        assert!(matches!(lookup("/d"), Ok(LookupResult::Directory(dir)) if names(&dir) == ["f"]));
        assert!(matches!(lookup("/d/f"), Ok(LookupResult::File { dir, name }) if names(&dir) == ["f"] && name == "f"));
        assert_eq!(lookup("/x").expect_err("missing").kind(), ErrorKind::NotFound);
        assert_eq!(lookup("/d/f/x").expect_err("below a file").kind(), ErrorKind::NotADirectory);
    }

    #[test]
    fn directories_are_entered_and_files_are_opened_without_a_copy() {
        let tree = tree(&["/d/f"]);
        let root = MemoryDir::new(&tree, VfsPath::root());
        let dir = root.open_dir("d", &path("/d")).expect("a directory");
        let Ok(SearchableContent::Bytes { bytes, .. }) = dir.open_file("f", ChildKind::File) else {
            panic!("a file in memory")
        };
        let stored = tree.files.find_file(&path("/d/f")).expect("a file");
        assert_eq!(bytes.as_ptr(), stored.content().as_ptr());
        assert_eq!(root.open_file("d", ChildKind::File).expect_err("a directory").kind(), ErrorKind::IsADirectory);
        assert_eq!(dir.open_dir("f", &path("/d/f")).expect_err("a file").kind(), ErrorKind::NotADirectory);
        assert_eq!(root.open_dir("x", &path("/x")).expect_err("missing").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_sketch_is_made_by_the_second_search_and_used_by_the_third() {
        use vfs_core::tree::{SketchQuery, Sketcher};

        let root = MemoryDir::new(&tree(&["/f"]), VfsPath::root());
        root.list().expect("a listing");
        let learn = || match root.open_file("f", ChildKind::File) {
            Ok(SearchableContent::Bytes { learn, .. }) => learn,
            other => panic!("a file in memory, not {other:?}"),
        };
        assert!(learn().is_none());
        assert!(root.prefilter("f", ChildKind::File).is_none());
        let mut sketcher = Sketcher::default();
        sketcher.push(b"/f is its content");
        learn().expect("it is learned")(sketcher.finish());
        let prefilter = root.prefilter("f", ChildKind::File).expect("there is a sketch");
        assert!(!prefilter.may_hold(&SketchQuery::exactly(["another"]).expect("it is long enough")));
        assert!(learn().is_none());
        // A changed file is another object without a sketch.
        let changed = MemoryDir::new(&tree(&["/f"]), VfsPath::root());
        changed.list().expect("a listing");
        assert!(changed.prefilter("f", ChildKind::File).is_none());
    }

    #[test]
    fn names_that_are_looked_up_are_what_a_listing_says_they_are() {
        let dir = MemoryDir::new(&tree(&["/p/a", "/p/a/b", "/p/c/d", "/p/e"]), path("/p"));
        let names: Vec<_> = ["a", "c", "missing", "e", ".."].map(str::to_owned).into();
        let (all, some) = (dir.list().expect("a listing"), dir.list_only(&names).expect("a listing"));
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
        let dir = MemoryDir::new(&tree(&["/p/a", "/p/a/b", "/p/c"]), path("/p"));
        let listing = dir.list().expect("a listing");
        let names: Vec<_> = listing.iter().collect();
        assert_eq!(names, [("a", ChildKind::File), ("c", ChildKind::File)]);
        let [problem] = &listing.problems[..] else { panic!("one problem") };
        assert_eq!((problem.path.as_str(), problem.code), ("/p/a", ErrorKind::NotADirectory));
    }
}
