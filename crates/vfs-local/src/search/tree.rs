//! The disk as a tree for search: directories by descriptor, files by a single name below one.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, FileType, OFlags};
use rustix::io::Errno;
use vfs_core::tree::{ChildKind, Learn, Listing, Located, Opened, Sketch, Tree};
use vfs_core::{Error, ErrorKind, FileInfo, Problem, Resolved, Result, VfsPath};

use crate::fs::directory_entries::for_each_entry;
use crate::fs::entry::Entry;
use crate::fs::errno::error;
use crate::fs::metadata::{Metadata, special_file};
use crate::fs::protected_paths::{Deed, Place, below};
use crate::fs::root::RESERVED;
use crate::local_fs::Disk;
use crate::search::cache::{Directory, SearchMemory};

/// Directories deeper than this are opened from the root each time, so that a deep tree does not use up descriptors.
const MAX_HELD_DEPTH: usize = 100;

/// A [`Disk`] as a search walks it.
#[derive(Debug)]
pub(crate) struct DiskTree {
    disk: Arc<Disk>,
    remembering: Remembering,
}

/// What a walk has to do with what earlier ones remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remembering {
    Nothing,
    /// It uses it.
    Uses,
    /// It uses it, and adds to it.
    Learns,
}

/// A directory of the tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeDir(Arc<DirInner>);

#[derive(Debug)]
struct DirInner {
    path: VfsPath,
    fd: Option<OwnedFd>,
    /// Where it really is, where something is hidden.
    place: Option<Place>,
    /// Whether the descriptor was read from, so that it has to be set back to the beginning.
    was_listed: AtomicBool,
    /// Whether a file in it was somebody else's: then its others are likely to be, too.
    is_anothers: AtomicBool,
    /// What earlier searches remember of it; set when it is listed.
    remembered: OnceLock<Arc<Directory>>,
}

impl DirInner {
    fn new(path: VfsPath, fd: Option<OwnedFd>, place: Option<Place>) -> Self {
        let (was_listed, is_anothers) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { path, fd, place, was_listed, is_anothers, remembered: OnceLock::new() }
    }
}

impl DiskTree {
    /// For a walk that is too short to remember anything.
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, remembering: Remembering::Nothing }
    }

    /// For a search, or a walk that is as long.
    pub(crate) fn searched(disk: Arc<Disk>) -> Self {
        let remembering = match &disk.search_memory {
            None => Remembering::Nothing,
            Some((memory, root)) if memory.begin(*root) => Remembering::Learns,
            Some(_) => Remembering::Uses,
        };
        Self { disk, remembering }
    }

    /// What is remembered, where it is of use.
    fn memory(&self) -> Option<&SearchMemory> {
        let (memory, _) = self.disk.search_memory.as_ref()?;
        let is_of_use = match self.remembering {
            Remembering::Nothing => false,
            Remembering::Uses => !memory.is_empty(),
            Remembering::Learns => true,
        };
        is_of_use.then_some(memory)
    }

    /// Where what is learned of the file `name` of `dir` goes, if anywhere; its facts are `metadata`.
    fn learn(&self, dir: &TreeDir, name: &str, metadata: &Metadata) -> Option<Learn> {
        let directory = dir.0.remembered.get().filter(|_| self.remembering == Remembering::Learns)?;
        let is_wanted = self.memory().is_some_and(|memory| memory.has_room() && memory.is_settled(metadata));
        if is_wanted { directory.learn(name, metadata) } else { None }
    }

    fn directory(&self, path: VfsPath, fd: OwnedFd, place: Option<Place>) -> TreeDir {
        let fd = (path.components().count() <= MAX_HELD_DEPTH).then_some(fd);
        TreeDir(Arc::new(DirInner::new(path, fd, place)))
    }

    /// A directory that is opened by its path, whatever links are in that.
    fn opened(&self, path: &VfsPath) -> Result<(OwnedFd, Option<Place>)> {
        let fd = self.disk.root.open_directory(path)?;
        let place = self.disk.root.place(&fd, path)?;
        Ok((fd, place))
    }

    /// The place of an entry of `dir`, which is refused where it is hidden.
    fn place_below(&self, dir: &TreeDir, name: &str) -> Result<Option<Place>> {
        let Some(place) = dir.0.place.as_deref().map(|place| below(place, name)) else { return Ok(None) };
        self.disk.root.guard().check_place(&place, &dir.0.path.child(name)?)?;
        Ok(Some(place))
    }

    fn with_fd<T>(&self, dir: &TreeDir, call: impl FnOnce(BorrowedFd<'_>) -> Result<T>) -> Result<T> {
        match &dir.0.fd {
            Some(fd) => call(fd.as_fd()),
            None => call(self.disk.root.open_directory(&dir.0.path)?.as_fd()),
        }
    }

    /// Opens the file `name` of `dir`. Its time of access is left alone where one may ask for that, as for
    /// [`Root::open_to_read`](crate::fs::root::Root::open_to_read): else the first search of a tree would write to it as it reads.
    fn open_to_read(&self, dir: &TreeDir, name: &str) -> Result<OwnedFd> {
        self.with_fd(dir, |fd| {
            let open = |flags| self.disk.root.open_child(fd, name.as_bytes(), flags);
            let is_anothers = &dir.0.is_anothers;
            if !is_anothers.load(Ordering::Relaxed)
                && let Ok(file) = open(OFlags::RDONLY | OFlags::NOATIME)
            {
                return Ok(file);
            }
            let file = open(OFlags::RDONLY).map_err(error)?;
            is_anothers.store(true, Ordering::Relaxed);
            Ok(file)
        })
    }

    /// Opens what the link `name` leads to, from the root, as only that knows what is outside.
    fn followed(&self, dir: &TreeDir, name: &str) -> Result<Metadata> {
        let fd = self.disk.root.open_at(&dir.0.path.child(name)?, OFlags::PATH)?;
        Metadata::of(fd.as_fd()).map_err(error)
    }
}

impl Tree for DiskTree {
    type Dir = TreeDir;

    fn locate(&self, path: &VfsPath) -> Result<Located<TreeDir>> {
        if let Some(memory) = self.memory() {
            memory.make_room();
        }
        let found = self.disk.root.open_at(path, OFlags::PATH)?;
        match Metadata::of(found.as_fd()).map_err(error)?.file_type() {
            FileType::Directory => {
                let (fd, place) = self.opened(path)?;
                Ok(Located::Directory(self.directory(path.clone(), fd, place)))
            }
            FileType::RegularFile => {
                let entry = self.disk.root.followed_entry(path)?;
                self.disk.root.check(&entry, Deed::Read, path)?;
                let Entry { parent, name } = entry;
                // The directory is the file's real one, which a link's path need not name: it is held, however deep. By path there
                // is always one above, since the root is no file.
                let place = self.disk.root.place(&parent, path)?;
                let dir = DirInner::new(path.parent().unwrap_or_default(), Some(parent), place);
                Ok(Located::File { dir: TreeDir(Arc::new(dir)), name })
            }
            _ => Err(special_file().with_path(path)),
        }
    }

    fn list(&self, dir: &TreeDir) -> Result<Listing> {
        self.with_fd(dir, |fd| {
            let Some(memory) = self.memory() else { return listed(dir, fd) };
            let metadata = Metadata::of(fd).map_err(error)?;
            let before = memory.recall(&metadata);
            let unchanged = before.as_ref().and_then(|directory| directory.listing(&metadata));
            let (listing, directory) = match unchanged {
                Some(listing) => (listing, before),
                None => {
                    let listing = listed(dir, fd)?;
                    // Its files may be known by their names all the same.
                    let learns = self.remembering == Remembering::Learns;
                    let now = learns.then(|| memory.keep(fd, &metadata, &listing, before.as_deref())).flatten();
                    (listing, now.or(before))
                }
            };
            if let Some(directory) = directory {
                // Whoever lists it again finds the same.
                let _ = dir.0.remembered.set(directory);
            }
            Ok(listing)
        })
    }

    fn list_only(&self, dir: &TreeDir, names: &[String]) -> Result<Listing> {
        self.with_fd(dir, |fd| {
            let mut listing = Listing::default();
            for name in names.iter().filter(|name| !name.starts_with(RESERVED)) {
                match Metadata::at(fd, name) {
                    Ok(found) => listing.push(name, child_kind(found.file_type())),
                    // Nothing can have a name that is too long.
                    Err(Errno::NOENT | Errno::NAMETOOLONG) => {}
                    Err(errno) => listing.problems.push(Problem::new(name.as_str(), &error(errno))),
                }
            }
            Ok(listing)
        })
    }

    fn enter(&self, dir: &TreeDir, name: &str, path: &VfsPath) -> Result<TreeDir> {
        let place = self.place_below(dir, name)?;
        let entered = self.with_fd(dir, |fd| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            self.disk.root.open_child(fd, name.as_bytes(), flags).map_err(error)
        });
        let (fd, place) = match entered {
            // A link, which only the root can follow.
            Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::InvalidPath) => {
                self.opened(&dir.0.path.child(name)?)?
            }
            entered => (entered?, place),
        };
        Ok(self.directory(path.clone(), fd, place))
    }

    fn follow(&self, dir: &TreeDir, name: &str) -> Result<ChildKind> {
        Ok(child_kind(self.followed(dir, name)?.file_type()))
    }

    fn info(&self, dir: &TreeDir, name: &str, path: VfsPath) -> Result<FileInfo> {
        let mut metadata = self.with_fd(dir, |fd| Metadata::at(fd, name).map_err(error))?;
        if metadata.file_type() == FileType::Symlink {
            metadata = self.followed(dir, name)?;
        }
        metadata.info(path)
    }

    fn known(&self, dir: &TreeDir, name: &str, kind: ChildKind) -> Option<Sketch> {
        // To open a deep directory again for each of its files would cost more than it saves.
        let directory = dir.0.remembered.get().filter(|_| kind == ChildKind::File && dir.0.fd.is_some())?;
        // What is refused here is refused by opening it, too, which says why.
        self.place_below(dir, name).ok()?;
        directory.recall(name, || {
            let metadata = self.with_fd(dir, |fd| Metadata::at(fd, name).map_err(error)).ok()?;
            metadata.require_readable_file(self.disk.hard_links).ok()?;
            Some(metadata)
        })
    }

    fn open(&self, dir: &TreeDir, name: &str, kind: ChildKind) -> Result<Opened> {
        let fd = if kind == ChildKind::Link {
            self.disk.open_file(&dir.0.path.child(name)?)?.fd
        } else {
            self.place_below(dir, name)?;
            self.open_to_read(dir, name)?
        };
        // The listing said that it is a file; this is for what was put in its place since.
        let metadata = Metadata::of(fd.as_fd()).map_err(error)?;
        metadata.require_readable_file(self.disk.hard_links)?;
        let learn = if kind == ChildKind::File { self.learn(dir, name, &metadata) } else { None };
        Ok(Opened::Reader { size: metadata.size(), reader: Box::new(Direct(fd)), learn })
    }

    fn resolve(&self, dir: &TreeDir, name: &str) -> Result<Resolved> {
        self.disk.resolve(&dir.0.path.child(name)?)
    }
}

thread_local! {
    /// What the directory listed last has left, to be filled again. A listing that grows on the heap is waited for where
    /// other threads do the same: the C library moves it under the lock of whichever thread first had its memory.
    static ROOM: Cell<Listing> = Cell::default();
}

/// Directories of more entries leave no room behind.
const MOST_ROOM: usize = 4096;

/// Lists the directory `dir`, which `fd` holds.
fn listed(dir: &TreeDir, fd: BorrowedFd<'_>) -> Result<Listing> {
    let mut room = ROOM.take();
    room.clear();
    fill(&mut room, dir, fd)?;
    if room.len() > MOST_ROOM {
        return Ok(room);
    }
    let problems = std::mem::take(&mut room.problems);
    let mut listing = room.clone();
    listing.problems = problems;
    ROOM.set(room);
    Ok(listing)
}

/// Adds the entries of the directory `dir`, which `fd` holds.
fn fill(listing: &mut Listing, dir: &TreeDir, fd: BorrowedFd<'_>) -> Result<()> {
    if dir.0.was_listed.swap(true, Ordering::Relaxed) {
        fs::seek(fd, fs::SeekFrom::Start(0)).map_err(error)?;
    }
    for_each_entry(fd, |name, kind| {
        let Ok(name) = name.to_str() else {
            let spelled = format!("{}/{}", dir.0.path.as_str().trim_end_matches('/'), name.to_string_lossy());
            let reason = Error::new(ErrorKind::InvalidPath, "the name is not UTF-8; rename it to reach it")
                .with_path_text(&spelled);
            listing.problems.push(Problem::new(spelled, &reason));
            return Ok(());
        };
        if !name.starts_with(RESERVED) {
            listing.push(name, child_kind(kind));
        }
        Ok(())
    })
    .map_err(error)
}

/// Reads without the C library, whose calls can be cancelled, which costs as much as a small read.
struct Direct(OwnedFd);

impl Read for Direct {
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

    fn tree(root: &Path) -> DiskTree {
        DiskTree::new(Arc::new(Disk::open(&LocalConfig::new(root)).expect("it opens")))
    }

    fn directory(tree: &DiskTree, path: &str) -> TreeDir {
        match tree.locate(&VfsPath::parse(path).expect("a valid path")) {
            Ok(Located::Directory(dir)) => dir,
            located => panic!("it is a directory: {located:?}"),
        }
    }

    /// Reads a file that is the superuser's, as a rule, as an ordinary user.
    fn read_anothers() -> String {
        if geteuid().is_root() {
            let nobody = fs::Uid::from_raw(65534);
            // The system call changes the calling thread alone.
            set_thread_res_uid(fs::Uid::ROOT, nobody, fs::Uid::ROOT).expect("root may become anyone");
        }
        let tree = tree(Path::new("/etc"));
        let dir = directory(&tree, "/");
        let read = || match tree.open(&dir, "passwd", ChildKind::File).expect("anybody may read it") {
            Opened::Reader { reader, .. } => io::read_to_string(reader).expect("it is text"),
            Opened::Bytes { .. } => panic!("it is on disk"),
        };
        let text = read();
        let is_anothers = std::fs::metadata("/etc/passwd").expect("it is there").uid() != geteuid().as_raw();
        assert_eq!(dir.0.is_anothers.load(Ordering::Relaxed), is_anothers);
        assert_eq!(read(), text);
        let request = ReadRequest::new(VfsPath::parse("/passwd").expect("a valid path"));
        assert!(tree.disk.read(&request, &OpContext::new()).is_ok());
        text
    }

    #[test]
    fn the_files_of_others_are_read_as_well() {
        let text = std::thread::spawn(read_anothers).join().expect("it reads");
        assert!(text.contains("root:"), "{text}");
    }

    #[test]
    fn what_was_listed_before_leaves_nothing_in_a_listing() {
        let home = tempfile::tempdir().expect("a directory");
        let put = |name: &OsStr| std::fs::write(home.path().join(name), "").expect("it is written");
        for name in ["a", "b", "c"] {
            std::fs::create_dir(home.path().join(name)).expect("it is made");
        }
        (0..=MOST_ROOM).for_each(|file| put(format!("a/{file}").as_ref()));
        put("b/one".as_ref());
        put(OsStr::from_bytes(b"b/\xFF"));
        put("c/one".as_ref());
        let tree = tree(home.path());
        let count = |path: &str| {
            let listing = tree.list(&directory(&tree, path)).expect("it lists");
            (listing.len(), listing.problems.len())
        };
        assert_eq!(
            ["/b", "/c", "/a", "/c", "/b", "/"].map(count),
            [(1, 1), (1, 0), (MOST_ROOM + 1, 0), (1, 0), (1, 1), (3, 0)]
        );
    }
}
