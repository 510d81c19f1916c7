//! A map of files as the tree that is searched.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use vfs_core::tree::{ChildKind, Listing, Located, Opened, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, Resolved, Result, VfsPath};

use crate::file::File;
use crate::map::{self, Entry, FileMap};

/// The files of one moment. It has no links.
#[derive(Debug)]
pub(crate) struct MemoryTree {
    files: FileMap,
}

/// A directory: no more than its path, and once it was listed what is in it, which is then opened without a search of the
/// whole map.
#[derive(Debug, Clone)]
pub(crate) struct MemoryDir(Arc<DirInner>);

#[derive(Debug)]
struct DirInner {
    path: VfsPath,
    listed: OnceLock<Arc<Listed>>,
}

/// What a listing found.
#[derive(Debug, Default)]
struct Listed {
    /// By the bytes of their paths.
    files: Vec<(VfsPath, Arc<File>)>,
    /// In the order of their names, with what is in them where that was come by.
    directories: Vec<(String, Option<Arc<Listed>>)>,
    /// Directories behind files of the same name.
    shadowed: Vec<String>,
    /// Which file was asked for last: mostly it is that one again or the one after it.
    last: AtomicUsize,
}

impl Listed {
    fn of<'a>(files: impl IntoIterator<Item = (&'a VfsPath, &'a Arc<File>)>) -> Self {
        let files = files.into_iter().map(|(path, file)| (path.clone(), Arc::clone(file))).collect();
        Self { files, ..Self::default() }
    }
}

impl MemoryDir {
    fn new(path: VfsPath) -> Self {
        Self(Arc::new(DirInner { path, listed: OnceLock::new() }))
    }

    fn with(path: VfsPath, listed: Arc<Listed>) -> Self {
        Self(Arc::new(DirInner { path, listed: listed.into() }))
    }

    /// Where in the path of an entry its name begins.
    fn name_start(&self) -> usize {
        if self.0.path.is_root() { 1 } else { self.0.path.as_str().len() + 1 }
    }

    /// The file `name` of this directory, if that was listed.
    fn file(&self, name: &str) -> Option<&Arc<File>> {
        let listed = self.0.listed.get()?;
        let start = self.name_start();
        let name_at = |(path, _): &(VfsPath, Arc<File>)| path.as_str()[start..].cmp(name);
        let last = listed.last.load(Ordering::Relaxed);
        let near =
            [last, last + 1].into_iter().find(|at| listed.files.get(*at).is_some_and(|file| name_at(file).is_eq()));
        let at = near.or_else(|| listed.files.binary_search_by(name_at).ok())?;
        listed.last.store(at, Ordering::Relaxed);
        Some(&listed.files[at].1)
    }

    /// The directory `name` at `path`, if a listing of this one found it.
    fn directory(&self, name: &str, path: &VfsPath) -> Option<Self> {
        let directories = &self.0.listed.get()?.directories;
        let at = directories.binary_search_by(|(found, _)| found.as_str().cmp(name)).ok()?;
        Some(match &directories[at].1 {
            Some(listed) => Self::with(path.clone(), Arc::clone(listed)),
            None => Self::new(path.clone()),
        })
    }
}

impl MemoryTree {
    pub(crate) fn new(files: FileMap) -> Self {
        Self { files }
    }

    fn listed(&self, dir: &VfsPath) -> Listed {
        let mut listed = Listed::default();
        self.files.for_each_child(dir, |child| match child {
            map::Child::File { path, file } => listed.files.push((path.clone(), Arc::clone(file))),
            map::Child::Directory(name, files) => {
                let below = files.map(|files| Arc::new(Listed::of(files.iter().copied())));
                listed.directories.push((name.to_owned(), below));
            }
            map::Child::Shadowed(name) => listed.shadowed.push(name.to_owned()),
        });
        // They come by the bytes of what is below them, which sorts `a.b/` before `a/`.
        listed.directories.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        listed
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
        let listed = dir.0.listed.get_or_init(|| Arc::new(self.listed(&dir.0.path)));
        let start = dir.name_start();
        let mut listing = Listing::with_capacity(listed.files.len() + listed.directories.len());
        for (path, _) in &listed.files {
            listing.push(&path.as_str()[start..], ChildKind::File);
        }
        for (name, _) in &listed.directories {
            listing.push(name, ChildKind::Directory);
        }
        listing.problems.extend(listed.shadowed.iter().map(|name| shadowed(&dir.0.path, name)));
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
                listing.problems.push(shadowed(&dir.0.path, name));
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
        Err(Error::new(ErrorKind::Unsupported, "there are no links here"))
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
            Some(file) => file.opened(),
            None => self.files.find_file(&dir.0.path.child(name)?)?.opened(),
        })
    }

    fn resolve(&self, dir: &MemoryDir, name: &str) -> Result<Resolved> {
        dir.0.path.child(name).map(Resolved::at)
    }
}

/// What a listing says of a directory behind a file of the same name.
fn shadowed(dir: &VfsPath, name: &str) -> Problem {
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
    fn a_content_is_learned_by_the_second_search_and_known_by_the_third() {
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
        // A changed file is another one, and knows nothing.
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
