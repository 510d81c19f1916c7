//! What searches of the disk have learned, so that the next one need not list and read it all again.

mod directory;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustix::fs::fstatfs;
use vfs_core::tree::Listing;

use crate::metadata::Metadata;

pub(crate) use self::directory::Directory;

/// How long a file or directory has to be unchanged before it is remembered, at the least.
///
/// A program that writes through a memory map sets a file's times when it first writes to a page, and not again before the
/// kernel has written that to the disk, which it does within half a minute where it is not set otherwise. The clocks of file
/// systems count in steps of up to two seconds.
const SETTLED: Duration = Duration::from_secs(60);

/// How many searches a directory is kept that none of them came by, where there is no room.
const MOST_UNUSED: u32 = 16;

/// How many roots are known to have been searched.
const MOST_ROOTS: usize = 1024;

/// File systems of which every change of a directory or a content, whoever makes it, shows in its times: those on a disk of
/// this machine. On one in memory writes through a memory map do not; another machine's may be told late; and what lies
/// below the layers of an overlay nobody can tell. The numbers are those of statfs(2).
const TRUSTED: [u32; 7] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x3153_464A, // JFS
];

/// What searches remember of what they came by: the names in each directory, and for each file a sketch, from which the next
/// search may tell that it need not be read.
///
/// # Behaviour
///
/// * What is remembered counts for the very directory and content it was made of: same device and inode, and same times of
///   change of content and of inode, which no program can set back. It is looked at once, by name, in each search. What is
///   remembered was unchanged for a minute, or longer where the kernel is set to write later, on a file system of this
///   machine's disks (ext4, XFS, btrfs, F2FS, ZFS, bcachefs, JFS); all else is listed and read by every search.
/// * It takes a rare thing to be misled: a single write to a file in place that takes over a minute, a machine that stood
///   still while its clock did not, or, with a kernel older than 6.8, another image of the same file system mounted in the
///   place of the first with files of the same times.
/// * It knows nothing of who asks. A process that gives up rights to read gives backends that it opens from then on a memory
///   of their own.
/// * Searches learn from the second one of a root on: at once what is in files of up to 16 KiB, of longer ones a part by
///   each search, so that none takes much longer than one that does not learn. A sketch has about a fortieth of the size of
///   source code. What the last 16 searches did not come by makes room for others, where the bound is reached.
/// * A clone is a handle on the same memory.
///
/// ```
/// use vfs_local::{LocalConfig, SearchMemory};
///
/// let files = LocalConfig::new("/").search_memory(SearchMemory::new(8 << 20)).open()?;
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SearchMemory(Arc<Inner>);

struct Inner {
    /// By mount, device and inode.
    directories: RwLock<HashMap<(u64, Identity), Remembered>>,
    max_bytes: usize,
    /// What all directories take, those included that are only held by a search that goes on.
    bytes: Arc<AtomicUsize>,
    settled: Duration,
    /// Counts searches, so that it can be told what was of no use lately.
    searches: AtomicU32,
    /// The roots of backends that were searched.
    searched: Mutex<HashSet<Identity>>,
    trust: Trust,
}

/// A device and an inode.
pub(crate) type Identity = (u64, u64);

/// Which file systems are trusted to tell of every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Known,
    #[cfg(test)]
    All,
}

struct Remembered {
    directory: Arc<Directory>,
    /// The number of the search that came by it last.
    used: AtomicU32,
}

impl SearchMemory {
    /// The bound of [`SearchMemory::global`], in bytes.
    pub const DEFAULT_MAX_BYTES: usize = 48 << 20;

    /// One of its own, of about `max_bytes`. With 0 nothing is remembered.
    pub fn new(max_bytes: usize) -> Self {
        Self::of_unchanged(max_bytes, settled())
    }

    /// As [`SearchMemory::new`], for what was unchanged for as long as `settled`.
    ///
    /// The default of a minute is for programs that write through memory maps. Less is right where none does; under two
    /// seconds it takes a file system with a fine clock.
    pub fn of_unchanged(max_bytes: usize, settled: Duration) -> Self {
        Self::trusting(max_bytes, settled, Trust::Known)
    }

    fn trusting(max_bytes: usize, settled: Duration, trust: Trust) -> Self {
        Self(Arc::new(Inner {
            directories: RwLock::default(),
            max_bytes,
            bytes: Arc::default(),
            settled,
            searches: AtomicU32::new(0),
            searched: Mutex::default(),
            trust,
        }))
    }

    /// The one that all backends of the process share which were given none.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<SearchMemory> = LazyLock::new(|| SearchMemory::new(SearchMemory::DEFAULT_MAX_BYTES));
        &GLOBAL
    }

    /// Of how many files the content is remembered.
    pub fn files(&self) -> usize {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        directories.values().map(|remembered| remembered.directory.files()).sum()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether anything can be remembered.
    pub(crate) fn is_none(&self) -> bool {
        self.0.max_bytes == 0
    }

    /// Begins a search of a backend whose root is `root`. Whether it is to learn, which the first one of a root is not: it may
    /// be the only one.
    pub(crate) fn begin(&self, root: Identity) -> bool {
        let mut searched = self.0.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.len() == MOST_ROOTS {
            searched.clear();
        }
        !searched.insert(root)
    }

    /// Counts a search, and makes room where there is little.
    pub(crate) fn make_room(&self) {
        let search = self.0.searches.fetch_add(1, Ordering::Relaxed);
        if !search.is_multiple_of(MOST_UNUSED) || self.bytes() < self.0.max_bytes - self.0.max_bytes / 8 {
            return;
        }
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |remembered: &Remembered| {
            // A search that began since may have come by it.
            let age = search.wrapping_sub(remembered.used.load(Ordering::Relaxed));
            (MOST_UNUSED + 1..u32::MAX / 2).contains(&age)
        };
        let unused: Vec<_> = directories.extract_if(|_, remembered| is_unused(remembered)).collect();
        // Searches need not wait while these are freed.
        drop(directories);
        drop(unused);
    }

    /// Whether nothing is remembered at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.0.max_bytes
    }

    /// What is remembered of the directory of `metadata`, or was before it changed.
    pub(crate) fn recall(&self, metadata: &Metadata) -> Option<Arc<Directory>> {
        let directories = self.0.directories.read().unwrap_or_else(PoisonError::into_inner);
        let remembered = directories.get(&(metadata.mount(), metadata.identity()))?;
        remembered.used.store(self.0.searches.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&remembered.directory))
    }

    /// Remembers `listing` of the directory that `fd` holds, whose facts were `metadata` before it was listed; and what was
    /// known of its files, where that was remembered `before`. `None` where it is not to be remembered.
    pub(crate) fn keep(
        &self,
        fd: BorrowedFd<'_>,
        metadata: &Metadata,
        listing: &Listing,
        before: Option<&Directory>,
    ) -> Option<Arc<Directory>> {
        let bytes = Directory::least_memory(listing);
        // One directory is not to take the room of all others.
        let is_wanted = bytes <= self.0.max_bytes / 8
            && self.bytes().saturating_add(bytes) <= self.0.max_bytes
            && listing.problems.is_empty()
            && !metadata.is_encrypted()
            && self.is_settled(metadata);
        if !is_wanted || !self.trusts(fd) {
            return None;
        }
        let directory = Arc::new(Directory::new(metadata, listing, before, &self.0.bytes));
        let used = AtomicU32::new(self.0.searches.load(Ordering::Relaxed));
        let mut directories = self.0.directories.write().unwrap_or_else(PoisonError::into_inner);
        directories
            .insert((metadata.mount(), metadata.identity()), Remembered { directory: Arc::clone(&directory), used });
        Some(directory)
    }

    /// Whether what `metadata` tells of was not changed lately.
    pub(crate) fn is_settled(&self, metadata: &Metadata) -> bool {
        SystemTime::now().duration_since(metadata.changed()).is_ok_and(|age| age >= self.0.settled)
    }

    /// Asked each time: a device that was unmounted leaves its number to the next.
    fn trusts(&self, fd: BorrowedFd<'_>) -> bool {
        match self.0.trust {
            Trust::Known => {
                let kind = fstatfs(fd).ok().and_then(|found| u32::try_from(found.f_type).ok());
                kind.is_some_and(|kind| TRUSTED.contains(&kind))
            }
            #[cfg(test)]
            Trust::All => true,
        }
    }
}

/// How long this machine's kernel needs to write to the disk what was written through a memory map, and a good deal more.
/// For ever, where it is told not to do so by itself.
fn settled() -> Duration {
    let wait = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse().ok().map(|centiseconds: u64| Duration::from_millis(centiseconds.saturating_mul(10)))
    };
    match ["dirty_expire_centisecs", "dirty_writeback_centisecs"].map(wait) {
        [_, Some(Duration::ZERO)] => Duration::MAX,
        [Some(expire), Some(writeback)] => expire.saturating_add(writeback).saturating_mul(2).max(SETTLED),
        _ => SETTLED,
    }
}

impl fmt::Debug for SearchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchMemory").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use futures::executor::block_on;
    use tempfile::TempDir;
    use vfs_core::{
        Backend as _, ErrorKind, GlobRequest, GrepRequest, GrepResult, OpContext, VfsPath, WriteMode, WriteRequest,
    };
    use vfs_search::Pool;

    use super::*;
    use crate::backend::LocalBackend;
    use crate::config::{HardLinks, LocalConfig, Mounts, Protection};

    /// More than any clock of a file system counts in.
    const TICK: Duration = Duration::from_millis(20);

    /// Long enough for files to become older than that.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A directory and a memory for it, wherever temporary files are.
    fn memory_for(max_bytes: usize) -> (TempDir, SearchMemory) {
        let root = tempfile::tempdir().expect("a temporary directory");
        (root, SearchMemory::trusting(max_bytes, TICK, Trust::All))
    }

    fn config(root: &Path, memory: &SearchMemory) -> LocalConfig {
        LocalConfig::new(root).search_memory(memory.clone())
    }

    fn opened(config: LocalConfig) -> LocalBackend {
        config.open().expect("the root opens")
    }

    fn grep(files: &LocalBackend, text: &str) -> GrepResult {
        block_on(files.grep(&OpContext::new(), GrepRequest::literal(text))).expect("it searches")
    }

    fn paths(found: &GrepResult) -> Vec<&str> {
        found.matches.iter().map(|line| line.path.as_str()).collect()
    }

    /// Searches until as many as `files` are remembered.
    fn until_remembered(files: &LocalBackend, memory: &SearchMemory, count: usize) {
        let start = Instant::now();
        while memory.files() < count {
            assert!(start.elapsed() < PATIENCE, "{} of {count} files are remembered", memory.files());
            assert_eq!(paths(&grep(files, "nowhere to be found")), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_root_that_is_searched_once_teaches_nothing_and_then_all() {
        let (root, memory) = memory_for(1 << 20);
        for file in 0..10 {
            fs::write(root.path().join(file.to_string()), format!("the text of {file}\n")).expect("it writes");
        }
        // Until they are old enough.
        until_remembered(&opened(config(root.path(), &memory)), &memory, 10);
        memory.0.directories.write().expect("not poisoned").clear();
        memory.0.searched.lock().expect("not poisoned").clear();
        // Backends of one root are one to it.
        let search = || grep(&opened(config(root.path(), &memory)), "text of 7");
        assert_eq!(paths(&search()), ["/7"]);
        assert_eq!((memory.files(), memory.bytes()), (0, 0));
        assert_eq!(paths(&search()), ["/7"]);
        assert_eq!(memory.files(), 10);
        assert_eq!(paths(&search()), ["/7"]);
    }

    #[test]
    fn whatever_changes_a_file_is_seen_by_the_next_search() {
        type Way = (&'static str, fn(&LocalBackend, PathBuf));
        const OLD: &str = "the old content\n";
        const NEW: &str = "the new content\n";
        let ways: [Way; 7] = [
            ("in place, with the times set back", |_, file| {
                let before = fs::metadata(&file).and_then(|found| found.modified()).expect("it has a time");
                fs::write(&file, NEW).expect("it writes");
                let opened = fs::File::options().write(true).open(&file).expect("it opens");
                opened.set_modified(before).expect("its time is set");
            }),
            ("appended to", |_, file| {
                use std::io::Write as _;
                let mut opened = fs::File::options().append(true).open(&file).expect("it opens");
                opened.write_all(NEW.as_bytes()).expect("it writes");
            }),
            ("cut and written again", |_, file| {
                let opened = fs::File::options().write(true).open(&file).expect("it opens");
                opened.set_len(0).and_then(|()| opened.set_len(NEW.len() as u64)).expect("it is cut");
                std::os::unix::fs::FileExt::write_all_at(&opened, NEW.as_bytes(), 0).expect("it writes");
            }),
            ("replaced by another file", |_, file| {
                let other = file.with_extension("other");
                fs::write(&other, NEW).and_then(|()| fs::rename(&other, &file)).expect("it is replaced");
            }),
            ("through another name", |_, file| {
                let other = file.with_extension("other");
                fs::hard_link(&file, &other).and_then(|()| fs::write(&other, NEW)).expect("it writes");
                fs::remove_file(other).expect("it is removed");
            }),
            ("by a backend", |files, file| {
                let name = file.file_name().and_then(|name| name.to_str()).expect("it has a name");
                let path = VfsPath::parse(name).expect("a path");
                let write = WriteRequest::new(path, NEW).mode(WriteMode::Overwrite);
                block_on(files.write(&OpContext::new(), write)).expect("it writes");
            }),
            ("removed and made again", |_, file| {
                fs::remove_file(&file).and_then(|()| fs::write(&file, NEW)).expect("it is made again");
            }),
        ];
        for (what, change) in ways {
            let (root, memory) = memory_for(1 << 20);
            let file = root.path().join("file");
            fs::write(&file, OLD).expect("it writes");
            let files = opened(config(root.path(), &memory));
            until_remembered(&files, &memory, 1);
            assert_eq!(paths(&grep(&files, "new")), Vec::<&str>::new(), "{what}");
            change(&files, file);
            assert_eq!(paths(&grep(&files, "the new")), ["/file"], "{what}");
        }
    }

    #[test]
    fn whatever_changes_a_directory_is_seen_by_the_next_walk() {
        type Way = (&'static str, fn(&Path), &'static [&'static str]);
        let ways: [Way; 6] = [
            ("made", |d| fs::write(d.join("c"), "text\n").expect("it writes"), &["/d/a", "/d/b/x", "/d/c"]),
            ("removed", |d| fs::remove_file(d.join("a")).expect("it is removed"), &["/d/b/x"]),
            ("renamed", |d| fs::rename(d.join("a"), d.join("c")).expect("it is renamed"), &["/d/b/x", "/d/c"]),
            ("moved down", |d| fs::rename(d.join("a"), d.join("b/y")).expect("it is moved"), &["/d/b/x", "/d/b/y"]),
            (
                "made a directory",
                |d| {
                    fs::remove_file(d.join("a")).and_then(|()| fs::create_dir(d.join("a"))).expect("it is replaced");
                    fs::write(d.join("a/z"), "text\n").expect("it writes");
                },
                &["/d/a/z", "/d/b/x"],
            ),
            (
                "made a link",
                |d| {
                    fs::remove_file(d.join("a")).expect("it is removed");
                    std::os::unix::fs::symlink("b/x", d.join("a")).expect("it is made");
                },
                &["/d/b/x"],
            ),
        ];
        for (what, change, expected) in ways {
            let (root, memory) = memory_for(1 << 20);
            let directory = root.path().join("d");
            fs::create_dir_all(directory.join("b")).expect("it is made");
            for file in ["a", "b/x"] {
                fs::write(directory.join(file), "text\n").expect("it writes");
            }
            let files = opened(config(root.path(), &memory));
            until_remembered(&files, &memory, 2);
            assert_eq!(paths(&grep(&files, "text")), ["/d/a", "/d/b/x"]);
            change(&directory);
            assert_eq!(paths(&grep(&files, "text")), expected, "{what}");
            let found = block_on(files.glob(&OpContext::new(), GlobRequest::new("**"))).expect("it walks");
            let found: Vec<_> =
                found.entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.path.as_str()).collect();
            assert_eq!(
                found.iter().filter(|path| expected.contains(path)).count(),
                expected.len(),
                "{what}: {found:?}"
            );
        }
    }

    #[test]
    fn what_is_refused_stays_refused() {
        let (root, memory) = memory_for(1 << 20);
        let secret = root.path().join("secret");
        fs::write(&secret, "text\n")
            .and_then(|()| fs::hard_link(&secret, root.path().join("twin")))
            .expect("it writes");
        let files = opened(config(root.path(), &memory));
        until_remembered(&files, &memory, 1);
        assert_eq!(grep(&files, "missing").problems, []);
        let refusing = opened(config(root.path(), &memory).hard_links(HardLinks::Refuse));
        let path = VfsPath::parse("/secret").expect("a path");
        let hiding = opened(config(root.path(), &memory).protect(path, Protection::Hidden));
        for (files, kind, count) in [(refusing, ErrorKind::PermissionDenied, 2), (hiding, ErrorKind::PolicyDenied, 1)] {
            let problems: Vec<_> = grep(&files, "missing").problems.iter().map(|problem| problem.code).collect();
            assert_eq!(problems, vec![kind; count]);
        }
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).expect("its mode is set");
        let is_refused = fs::File::open(&secret).is_err();
        assert_eq!(grep(&files, "missing").problems.len(), if is_refused { 2 } else { 0 });
    }

    #[test]
    fn nothing_is_remembered_where_that_is_not_wanted_or_not_sure() {
        let (root, memory) = memory_for(0);
        fs::write(root.path().join("file"), "text\n").expect("it writes");
        let young = SearchMemory::trusting(1 << 20, SETTLED, Trust::All);
        let stays = SearchMemory::trusting(1 << 20, Duration::ZERO, Trust::All);
        let known = SearchMemory::of_unchanged(1 << 20, Duration::ZERO);
        for config in [
            config(root.path(), &memory),
            config(root.path(), &young),
            config(root.path(), &stays).mounts(Mounts::Stay),
            // Files of the kernel's have no content that stays.
            LocalConfig::new("/proc/sys/kernel/random").search_memory(known.clone()),
        ] {
            let files = opened(config);
            (0..4).for_each(|_| drop(grep(&files, "missing")));
        }
        assert_eq!([memory, young, stays, known].map(|memory| memory.files()), [0, 0, 0, 0]);
    }

    #[test]
    fn it_keeps_to_its_bound_and_makes_room_for_what_is_used() {
        const BOUND: usize = 128 << 10;
        let (root, memory) = memory_for(BOUND);
        for directory in ["old", "new"] {
            fs::create_dir(root.path().join(directory)).expect("it is made");
            for file in 0..100_u32 {
                let word = |word: u32| format!("{:08x} ", (file * 1_000 + word).wrapping_mul(0x9E37_79B1));
                let text: String = (0..1_500).map(word).collect();
                fs::write(root.path().join(directory).join(file.to_string()), text).expect("it writes");
            }
        }
        // Each worker may go over the bound by one sketch.
        let files = opened(config(root.path(), &memory).search_pool(Pool::new(2)));
        let search = |directory: &str| {
            let path = VfsPath::parse(directory).expect("a path");
            let found = block_on(files.grep(&OpContext::new(), GrepRequest::literal("missing").path(path)));
            assert_eq!(found.expect("it searches").matches.len(), 0);
        };
        let start = Instant::now();
        while memory.bytes() < BOUND {
            assert!(start.elapsed() < PATIENCE, "{} bytes are remembered", memory.bytes());
            search("/old");
        }
        let most = BOUND + (8 << 10);
        assert!(memory.bytes() < most, "{}", memory.bytes());
        let known = |directory: &str| {
            let held = fs::File::open(root.path().join(directory)).expect("it opens");
            let remembered = memory.recall(&Metadata::of(held.as_fd()).expect("it is there"));
            remembered.map_or(0, |directory| directory.files())
        };
        assert_eq!(known("new"), 0);
        (0..4 * MOST_UNUSED).for_each(|_| search("/new"));
        assert!(memory.bytes() < most, "{}", memory.bytes());
        assert_eq!(known("old"), 0);
        assert!(known("new") > 5);
    }
}
