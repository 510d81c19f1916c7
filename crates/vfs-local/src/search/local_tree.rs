//! The file system as a tree for searches, with directories as open descriptors.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, FileType, OFlags};
use rustix::io::Errno;
use vfs_core::tree::{ChildKind, Directory, Listing, LookupResult, SearchableContent, Sketch, SketchCallback, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, ResolveResult, Result, VfsPath};

use crate::fs::directory_entries::for_each_entry;
use crate::fs::entry_location::EntryLocation;
use crate::fs::errno::from_errno;
use crate::fs::metadata::{Metadata, special_file_error};
use crate::fs::protected_paths::{CaseFoldedPath, PathAccess, join_folded};
use crate::fs::root::RESERVED_PREFIX;
use crate::local_fs::LocalFs;
use crate::search::search_cache::{CachedDirectory, SearchCache};

/// Directories deeper than this are opened from the root each time, so that a deep tree does not use up descriptors.
const MAX_OPEN_DEPTH: usize = 100;

/// The tree of a [`LocalFs`] that a search walks.
#[derive(Debug)]
pub(crate) struct LocalTree {
    local_fs: Arc<LocalFs>,
    cache_mode: SearchCacheMode,
}

/// How a walk uses the cache of earlier searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchCacheMode {
    Off,
    /// The walk uses cached entries.
    Read,
    /// The walk uses cached entries and adds new ones.
    ReadWrite,
}

/// A directory of the tree.
#[derive(Debug)]
struct LocalTreeDir {
    tree: Arc<LocalTree>,
    path: VfsPath,
    fd: Option<OwnedFd>,
    /// The real location, if anything is hidden.
    folded_path: Option<CaseFoldedPath>,
    /// Whether the descriptor was read from, so that it has to be set back to the beginning.
    was_listed: AtomicBool,
    /// Whether a file in it belonged to another user: then the other files are likely to do so, too.
    has_foreign_files: AtomicBool,
    /// The cache entry of earlier searches; set when the directory is listed.
    cached: OnceLock<Arc<CachedDirectory>>,
}

impl LocalTree {
    /// Creates a tree for a walk that is too short to use the cache.
    pub(crate) fn new(local_fs: Arc<LocalFs>) -> Self {
        Self { local_fs, cache_mode: SearchCacheMode::Off }
    }

    /// Creates a tree for a search, or for a walk that is as long.
    pub(crate) fn for_search(local_fs: Arc<LocalFs>) -> Self {
        let cache_mode = match &local_fs.search_cache {
            None => SearchCacheMode::Off,
            Some((cache, root)) if cache.begin_search(*root) => SearchCacheMode::ReadWrite,
            Some(_) => SearchCacheMode::Read,
        };
        Self { local_fs, cache_mode }
    }

    /// Returns the cache if this walk uses it.
    fn cache(&self) -> Option<&SearchCache> {
        let (cache, _) = self.local_fs.search_cache.as_ref()?;
        let is_useful = match self.cache_mode {
            SearchCacheMode::Off => false,
            SearchCacheMode::Read => !cache.is_empty(),
            SearchCacheMode::ReadWrite => true,
        };
        is_useful.then_some(cache)
    }

    /// Opens the directory at `path`, following links, for a search that reached it by the path `requested`.
    fn open_by_path(self: Arc<Self>, path: &VfsPath, requested: VfsPath) -> Result<LocalTreeDir> {
        let fd = self.local_fs.root.open_directory(path)?;
        let folded_path = self.local_fs.root.folded_path(&fd, path)?;
        Ok(LocalTreeDir::new(self, requested, fd, folded_path))
    }
}

impl Tree for LocalTree {
    fn lookup(self: Arc<Self>, path: &VfsPath) -> Result<LookupResult> {
        if let Some(cache) = self.cache() {
            cache.evict_unused();
        }
        let fd = self.local_fs.root.open_at(path, OFlags::PATH)?;
        match Metadata::from_fd(fd.as_fd()).map_err(from_errno)?.file_type() {
            FileType::Directory => Ok(LookupResult::Directory(Arc::new(self.open_by_path(path, path.clone())?))),
            FileType::RegularFile => {
                let entry = self.local_fs.root.resolve_entry(path)?;
                self.local_fs.root.check(&entry, PathAccess::Read, path)?;
                let EntryLocation { parent, name } = entry;
                // This is the file's real directory, which the path of a link need not name, so it stays open however
                // deep it is. The path always has a parent, since the root is not a file.
                let folded_path = self.local_fs.root.folded_path(&parent, path)?;
                let dir = LocalTreeDir::of_fd(self, path.parent().unwrap_or_default(), Some(parent), folded_path);
                Ok(LookupResult::File { dir: Arc::new(dir), name })
            }
            _ => Err(special_file_error().with_path(path)),
        }
    }
}

impl LocalTreeDir {
    /// Creates a directory that is open as `fd`, unless it is so deep that it is opened when needed.
    fn new(tree: Arc<LocalTree>, path: VfsPath, fd: OwnedFd, folded_path: Option<CaseFoldedPath>) -> Self {
        let fd = (path.components().count() <= MAX_OPEN_DEPTH).then_some(fd);
        Self::of_fd(tree, path, fd, folded_path)
    }

    fn of_fd(tree: Arc<LocalTree>, path: VfsPath, fd: Option<OwnedFd>, folded_path: Option<CaseFoldedPath>) -> Self {
        let (was_listed, has_foreign_files) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { tree, path, fd, folded_path, was_listed, has_foreign_files, cached: OnceLock::new() }
    }

    /// Returns a function that stores the sketch of the file `name`, whose metadata is `metadata`, if the file
    /// should be cached.
    fn learner(&self, name: &str, metadata: &Metadata) -> Option<SketchCallback> {
        let directory = self.cached.get().filter(|_| self.tree.cache_mode == SearchCacheMode::ReadWrite)?;
        let is_cacheable = self.tree.cache().is_some_and(|cache| cache.has_room() && cache.is_settled(metadata));
        if is_cacheable { directory.learner(name, metadata) } else { None }
    }

    /// Returns the location of the entry `name`. Fails if the entry is hidden.
    fn check_child(&self, name: &str) -> Result<Option<CaseFoldedPath>> {
        let Some(folded_path) = self.folded_path.as_deref().map(|folded_path| join_folded(folded_path, name)) else {
            return Ok(None);
        };
        self.tree.local_fs.root.protected_paths().check_readable(&folded_path, &self.path.child(name)?)?;
        Ok(Some(folded_path))
    }

    fn with_fd<T>(&self, call: impl FnOnce(BorrowedFd<'_>) -> Result<T>) -> Result<T> {
        match &self.fd {
            Some(fd) => call(fd.as_fd()),
            None => call(self.tree.local_fs.root.open_directory(&self.path)?.as_fd()),
        }
    }

    /// Opens the file `name`. Its access time stays unchanged if the caller may request that, as for
    /// [`Root::open_for_reading`](crate::fs::root::Root::open_for_reading): otherwise the first search of a tree would
    /// write to it while reading.
    fn open_for_reading(&self, name: &str) -> Result<OwnedFd> {
        self.with_fd(|fd| {
            let open = |flags| self.tree.local_fs.root.open_child(fd, name.as_bytes(), flags);
            let has_foreign_files = &self.has_foreign_files;
            if !has_foreign_files.load(Ordering::Relaxed)
                && let Ok(file) = open(OFlags::RDONLY | OFlags::NOATIME)
            {
                return Ok(file);
            }
            let file = open(OFlags::RDONLY).map_err(from_errno)?;
            has_foreign_files.store(true, Ordering::Relaxed);
            Ok(file)
        })
    }

    /// Returns the metadata of the target of the link `name`, opened from the root: only path resolution from there can
    /// detect a target outside.
    fn stat_link_target(&self, name: &str) -> Result<Metadata> {
        let fd = self.tree.local_fs.root.open_at(&self.path.child(name)?, OFlags::PATH)?;
        Metadata::from_fd(fd.as_fd()).map_err(from_errno)
    }
}

impl Directory for LocalTreeDir {
    fn list(&self) -> Result<Listing> {
        self.with_fd(|fd| {
            let Some(cache) = self.tree.cache() else { return list_entries(self, fd) };
            let metadata = Metadata::from_fd(fd).map_err(from_errno)?;
            let before = cache.get(&metadata);
            let unchanged = before.as_ref().and_then(|directory| directory.listing(&metadata));
            let (listing, directory) = match unchanged {
                Some(listing) => (listing, before),
                None => {
                    let listing = list_entries(self, fd)?;
                    // The sketches of its files may still be valid, since they are found by name.
                    let learns = self.tree.cache_mode == SearchCacheMode::ReadWrite;
                    let now = learns.then(|| cache.insert(fd, &metadata, &listing, before.as_deref())).flatten();
                    (listing, now.or(before))
                }
            };
            if let Some(directory) = directory {
                // If another thread was first, its value stays.
                let _ = self.cached.set(directory);
            }
            Ok(listing)
        })
    }

    fn list_only(&self, names: &[String]) -> Result<Listing> {
        self.with_fd(|fd| {
            let mut listing = Listing::default();
            for name in names.iter().filter(|name| !name.starts_with(RESERVED_PREFIX)) {
                match Metadata::at(fd, name) {
                    Ok(metadata) => listing.push(name, child_kind(metadata.file_type())),
                    // No entry can have a name that is too long.
                    Err(Errno::NOENT | Errno::NAMETOOLONG) => {}
                    Err(errno) => listing.problems.push(Problem::new(name.as_str(), &from_errno(errno))),
                }
            }
            Ok(listing)
        })
    }

    fn open_dir(&self, name: &str, path: &VfsPath) -> Result<Arc<dyn Directory>> {
        let folded_path = self.check_child(name)?;
        let entered = self.with_fd(|fd| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            self.tree.local_fs.root.open_child(fd, name.as_bytes(), flags).map_err(from_errno)
        });
        let tree = Arc::clone(&self.tree);
        Ok(Arc::new(match entered {
            // The entry is a link, which only the root can follow.
            Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::InvalidPath) => {
                tree.open_by_path(&self.path.child(name)?, path.clone())?
            }
            entered => Self::new(tree, path.clone(), entered?, folded_path),
        }))
    }

    fn follow_link(&self, name: &str) -> Result<ChildKind> {
        Ok(child_kind(self.stat_link_target(name)?.file_type()))
    }

    fn stat(&self, name: &str, path: VfsPath) -> Result<FileInfo> {
        let mut metadata = self.with_fd(|fd| Metadata::at(fd, name).map_err(from_errno))?;
        if metadata.file_type() == FileType::Symlink {
            metadata = self.stat_link_target(name)?;
        }
        metadata.file_info(path)
    }

    fn prefilter(&self, name: &str, kind: ChildKind) -> Option<Sketch> {
        // Opening a deep directory again for each of its files would cost more than the cache saves.
        let directory = self.cached.get().filter(|_| kind == ChildKind::File && self.fd.is_some())?;
        // Opening a refused file fails as well, with an error that says why.
        self.check_child(name).ok()?;
        directory.sketch(name, || {
            let metadata = self.with_fd(|fd| Metadata::at(fd, name).map_err(from_errno)).ok()?;
            metadata.check_readable_file(self.tree.local_fs.hard_links).ok()?;
            Some(metadata)
        })
    }

    fn open_file(&self, name: &str, kind: ChildKind) -> Result<SearchableContent> {
        let fd = if kind == ChildKind::Link {
            self.tree.local_fs.open_file(&self.path.child(name)?)?.fd
        } else {
            self.check_child(name)?;
            self.open_for_reading(name)?
        };
        // The listing reported a file; another entry may have been put in its place since.
        let metadata = Metadata::from_fd(fd.as_fd()).map_err(from_errno)?;
        metadata.check_readable_file(self.tree.local_fs.hard_links)?;
        let learn = if kind == ChildKind::File { self.learner(name, &metadata) } else { None };
        Ok(SearchableContent::Reader { size: metadata.size(), reader: Box::new(FdReader(fd)), learn })
    }

    fn resolve(&self, name: &str) -> Result<ResolveResult> {
        self.tree.local_fs.resolve(&self.path.child(name)?)
    }
}

thread_local! {
    /// The buffer of the last listing on this thread, for reuse. A listing that grows on the heap has to wait if other
    /// threads do the same: the C library moves it under the lock of the thread that first had its memory.
    static LISTING_BUFFER: Cell<Listing> = Cell::default();
}

/// Maximum number of entries of a listing whose buffer is reused.
const MAX_BUFFERED_ENTRIES: usize = 4096;

/// Lists the directory `dir`, open as `fd`.
fn list_entries(dir: &LocalTreeDir, fd: BorrowedFd<'_>) -> Result<Listing> {
    let mut buffer = LISTING_BUFFER.take();
    buffer.clear();
    read_entries(&mut buffer, dir, fd)?;
    if buffer.len() > MAX_BUFFERED_ENTRIES {
        return Ok(buffer);
    }
    let problems = std::mem::take(&mut buffer.problems);
    let mut listing = buffer.clone();
    listing.problems = problems;
    LISTING_BUFFER.set(buffer);
    Ok(listing)
}

/// Adds the entries of the directory `dir`, open as `fd`, to `listing`.
fn read_entries(listing: &mut Listing, dir: &LocalTreeDir, fd: BorrowedFd<'_>) -> Result<()> {
    if dir.was_listed.swap(true, Ordering::Relaxed) {
        fs::seek(fd, fs::SeekFrom::Start(0)).map_err(from_errno)?;
    }
    for_each_entry(fd, |name, kind| {
        let Ok(name) = name.to_str() else {
            let lossy_path = format!("{}/{}", dir.path.as_str().trim_end_matches('/'), name.to_string_lossy());
            let reason = Error::new(ErrorKind::InvalidPath, "the name is not UTF-8; rename it to reach it")
                .with_path_text(&lossy_path);
            listing.problems.push(Problem::new(lossy_path, &reason));
            return Ok(());
        };
        if !name.starts_with(RESERVED_PREFIX) {
            listing.push(name, child_kind(kind));
        }
        Ok(())
    })
    .map_err(from_errno)
}

/// Reads without the C library, whose calls are cancellation points, which costs as much as a small read.
struct FdReader(OwnedFd);

impl Read for FdReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, buffer)?)
    }
}

fn child_kind(kind: FileType) -> ChildKind {
    match kind {
        FileType::RegularFile => ChildKind::File,
        FileType::Directory => ChildKind::Directory,
        FileType::Symlink => ChildKind::Link,
        _ => ChildKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::process::geteuid;
    use rustix::thread::set_thread_res_uid;
    use vfs_core::{OpContext, ReadRequest};

    use super::*;
    use crate::config::LocalConfig;

    fn tree(root: &Path) -> Arc<LocalTree> {
        Arc::new(LocalTree::new(Arc::new(LocalFs::open(&LocalConfig::new(root)).expect("it opens"))))
    }

    fn directory(tree: &Arc<LocalTree>, path: &str) -> LocalTreeDir {
        let path = VfsPath::parse(path).expect("a valid path");
        Arc::clone(tree).open_by_path(&path, path.clone()).expect("a directory")
    }

    /// Reads a file that usually belongs to the superuser, as an ordinary user.
    fn read_foreign_file() -> String {
        if geteuid().is_root() {
            let nobody = fs::Uid::from_raw(65534);
            // The system call changes only the calling thread.
            set_thread_res_uid(fs::Uid::ROOT, nobody, fs::Uid::ROOT).expect("root may become anyone");
        }
        let tree = tree(Path::new("/etc"));
        let dir = directory(&tree, "/");
        let read = || match dir.open_file("passwd", ChildKind::File).expect("anybody may read it") {
            SearchableContent::Reader { reader, .. } => io::read_to_string(reader).expect("it is text"),
            SearchableContent::Bytes { .. } => panic!("it is on disk"),
        };
        let text = read();
        let has_foreign_files = std::fs::metadata("/etc/passwd").expect("it is there").uid() != geteuid().as_raw();
        assert_eq!(dir.has_foreign_files.load(Ordering::Relaxed), has_foreign_files);
        assert_eq!(read(), text);
        let request = ReadRequest::new(VfsPath::parse("/passwd").expect("a valid path"));
        assert!(tree.local_fs.read(&request, &OpContext::new()).is_ok());
        text
    }

    #[test]
    fn files_of_other_users_are_readable() {
        let text = std::thread::spawn(read_foreign_file).join().expect("it reads");
        assert!(text.contains("root:"), "{text}");
    }

    #[test]
    fn a_reused_buffer_keeps_no_entries_of_the_last_listing() {
        let home = tempfile::tempdir().expect("a directory");
        let put = |name: &OsStr| std::fs::write(home.path().join(name), "").expect("it is written");
        for name in ["a", "b", "c"] {
            std::fs::create_dir(home.path().join(name)).expect("it is made");
        }
        (0..=MAX_BUFFERED_ENTRIES).for_each(|file| put(format!("a/{file}").as_ref()));
        put("b/one".as_ref());
        put(OsStr::from_bytes(b"b/\xFF"));
        put("c/one".as_ref());
        let tree = tree(home.path());
        let count = |path: &str| {
            let listing = directory(&tree, path).list().expect("it lists");
            (listing.len(), listing.problems.len())
        };
        assert_eq!(
            ["/b", "/c", "/a", "/c", "/b", "/"].map(count),
            [(1, 1), (1, 0), (MAX_BUFFERED_ENTRIES + 1, 0), (1, 0), (1, 1), (3, 0)]
        );
    }
}
