//! Bounded walk of the mounts for entries to cover in a command, and for those that commands left.

mod scan_budget;
mod scan_rules;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

pub(crate) use self::scan_budget::ScanBudget;
use self::scan_budget::refused;
use self::scan_rules::RepositoryMarkers;
pub(crate) use self::scan_rules::ScanRules;
use crate::config::ProtectionLevel;
use crate::protect::open_mount::OpenMount;

/// Reason for which a scan returns an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanMatchReason {
    /// The entry has a protected name.
    Name(ProtectionLevel),
    /// The entry is a link that has a protected name.
    Link,
    /// The entry is a directory that git takes for a repository, whatever its name.
    Repository,
    /// The mount itself is such a directory. Commands have to be able to change it, so it is not covered.
    RootRepository,
    /// The entry is a unix socket.
    Socket,
    /// The entry is a directory that this process may not list or search. Its owner could permit that, and a command
    /// can open an entry of a directory that it may search by the name of the entry.
    Unlistable,
}

/// An entry that a scan found.
#[derive(Debug)]
pub(crate) struct ScanMatch {
    /// The path below the mount, with a `/` before each name. Names need not be UTF-8.
    pub(crate) path: Vec<u8>,
    pub(crate) kind: ScanMatchReason,
    pub(crate) status: Stat,
}

impl ScanMatch {
    pub(crate) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.status.st_mode) == FileType::Directory
    }

    /// Returns whether the entry is covered in commands.
    pub(crate) fn is_covered(&self) -> bool {
        !matches!(self.kind, ScanMatchReason::Link | ScanMatchReason::RootRepository)
    }
}

/// Maximum number of directories that one scan keeps open, beside the mount, to open those below them.
const OPEN_CAPACITY: usize = 32;

impl OpenMount {
    /// Returns the entries below this mount that `rules` search for. A directory is followed directly by the entries in
    /// it.
    ///
    /// # Errors
    ///
    /// `quota_exceeded` if `budget` is exhausted or directories are nested too deep; `unavailable` if an entry cannot be examined;
    /// and those of [`OpContext::check`](vfs_core::OpContext::check).
    pub(crate) fn scan(&self, rules: &ScanRules, budget: &mut ScanBudget<'_>) -> Result<Vec<ScanMatch>> {
        let unsearched = |errno: Errno, path: &[u8]| {
            let message = "a directory cannot be searched for protected names and sockets";
            Error::new(ErrorKind::Unavailable, message).with_source(errno).with_path(&self.visible_path(path))
        };
        let root = self
            .root
            .try_clone()
            .map_err(|error| unsearched(Errno::from_io_error(&error).unwrap_or(Errno::MFILE), b""))?;
        let root = Rc::new(ScanDirectory { open: RefCell::new(Some(Rc::new(root))), ..ScanDirectory::default() });
        let mut scan = TreeScan { rules, budget, found: Vec::new(), pending: vec![root], open: VecDeque::new() };
        while let Some(directory) = scan.pending.pop() {
            scan.visit_directory(&directory).map_err(|failure| match failure {
                ScanFailure::Bound(error) => error.with_path(&self.at),
                ScanFailure::System(errno) => unsearched(errno, &directory.path()),
            })?;
        }
        let mut found = scan.found;
        found.sort_by(|one, other| components(&one.path).cmp(components(&other.path)));
        found.dedup_by(|later, earlier| {
            let is_same = later.path == earlier.path;
            if is_same && later.kind == ScanMatchReason::Unlistable {
                earlier.kind = ScanMatchReason::Unlistable;
            }
            is_same
        });
        Ok(found)
    }

    /// Returns the path at which a command sees an entry, with invalid UTF-8 replaced.
    pub(crate) fn visible_path(&self, below: &[u8]) -> VfsPath {
        self.at.join(String::from_utf8_lossy(below).trim_start_matches('/')).unwrap_or_else(|_| self.at.clone())
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
}

/// Error that ends a scan.
enum ScanFailure {
    Bound(Error),
    System(Errno),
}

impl From<Errno> for ScanFailure {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// A directory of the walk that is still to be listed, or that has such directories below it.
#[derive(Debug, Default)]
struct ScanDirectory {
    /// `None` for the mount itself.
    parent: Option<Rc<ScanDirectory>>,
    name: Box<[u8]>,
    depth: usize,
    /// Whether commands cannot change its contents.
    read_only: bool,
    /// Whether the directory was returned as [`ScanMatchReason::Unlistable`].
    unlistable: Cell<bool>,
    open: RefCell<Option<Rc<OwnedFd>>>,
}

impl ScanDirectory {
    fn path(&self) -> Vec<u8> {
        let above = std::iter::successors(Some(self), |node| node.parent.as_deref());
        let mut names: Vec<&[u8]> = above.filter(|node| node.parent.is_some()).map(|node| &*node.name).collect();
        names.push(b"");
        names.reverse();
        names.join(&b'/')
    }

    /// Returns the path of the entry of this name.
    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [&*self.path(), b"/", name].concat()
    }
}

impl ScanRules {
    /// Returns the protection of an entry by its path.
    fn path_protection(&self, above: &ScanDirectory, name: &[u8]) -> Option<ProtectionLevel> {
        if above.depth >= self.path_depth {
            return None;
        }
        let path = above.path_of(name);
        std::str::from_utf8(&path).ok().and_then(|path| self.paths.get(path)).copied()
    }
}

/// Progress of the scan of one mount.
struct TreeScan<'a, 'b> {
    rules: &'a ScanRules,
    budget: &'a mut ScanBudget<'b>,
    found: Vec<ScanMatch>,
    /// Directories that are still to be listed: the deepest last, so that most are below one that is open.
    pending: Vec<Rc<ScanDirectory>>,
    /// Directories that stay open beside the mount, the one that was opened first at the front.
    open: VecDeque<Rc<ScanDirectory>>,
}

impl TreeScan<'_, '_> {
    fn visit_directory(&mut self, node: &Rc<ScanDirectory>) -> Result<(), ScanFailure> {
        let directory = match self.open(node, OFlags::RDONLY) {
            Ok(directory) => directory,
            Err(Errno::ACCESS) => return self.add_unlistable(node),
            // The directory was removed or replaced meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let pending = self.pending.len();
        let mut shape = RepositoryMarkers::default();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(&directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                // The directory was removed meanwhile.
                Err(Errno::NOENT) => break,
                entry => entry?,
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.budget.take_entry().map_err(ScanFailure::Bound)?;
            shape.add(name);
            self.visit_entry(&directory, node, name, entry.file_type())?;
        }
        if shape.is_repository() && !node.read_only && self.rules.finds_repositories() {
            let kind =
                if node.parent.is_some() { ScanMatchReason::Repository } else { ScanMatchReason::RootRepository };
            self.add(node.path(), kind, fstat(&directory)?)?;
        }
        if self.pending.len() > pending && node.open.borrow().is_none() {
            self.keep_open(node, Rc::new(directory));
        }
        Ok(())
    }

    fn visit_entry(
        &mut self,
        directory: &OwnedFd,
        above: &Rc<ScanDirectory>,
        name: &[u8],
        file_type: FileType,
    ) -> Result<(), ScanFailure> {
        let by_path = self.rules.path_protection(above, name);
        if by_path == Some(ProtectionLevel::Hidden) {
            return Ok(());
        }
        let protection = self.rules.protection(name);
        let read_only = above.read_only || [by_path, protection].contains(&Some(ProtectionLevel::ReadOnly));
        if file_type == FileType::Directory && protection.is_none() {
            return self.add_pending(above, name, read_only);
        }
        if protection.is_none() && !matches!(file_type, FileType::Socket | FileType::Unknown) {
            return Ok(());
        }
        let status = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => status,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => return self.add_unlistable(above),
            Err(errno) => return Err(errno.into()),
        };
        let kind = match (FileType::from_raw_mode(status.st_mode), protection) {
            (FileType::Symlink, Some(_)) => ScanMatchReason::Link,
            (FileType::Directory, None) => return self.add_pending(above, name, read_only),
            (FileType::Directory, Some(ProtectionLevel::ReadOnly)) => {
                // Commands can read its contents, which may have secrets and sockets.
                self.add_pending(above, name, read_only)?;
                ScanMatchReason::Name(ProtectionLevel::ReadOnly)
            }
            (_, Some(protection)) => ScanMatchReason::Name(protection),
            (FileType::Socket, None) => ScanMatchReason::Socket,
            (_, None) => return Ok(()),
        };
        if by_path.is_none() { self.add(above.path_of(name), kind, status) } else { Ok(()) }
    }

    fn add(&mut self, path: Vec<u8>, kind: ScanMatchReason, status: Stat) -> Result<(), ScanFailure> {
        self.budget.take_path(path.len()).map_err(ScanFailure::Bound)?;
        self.found.push(ScanMatch { path, kind, status });
        Ok(())
    }

    fn add_pending(&mut self, above: &Rc<ScanDirectory>, name: &[u8], read_only: bool) -> Result<(), ScanFailure> {
        let depth = above.depth + 1;
        if depth > self.budget.depth {
            return Err(ScanFailure::Bound(refused(
                "directories are nested too deep to be searched for protected names and sockets; remove them from outside of \
                 the sandbox",
            )));
        }
        let parent = Some(Rc::clone(above));
        self.pending.push(Rc::new(ScanDirectory {
            parent,
            name: name.into(),
            depth,
            read_only,
            ..ScanDirectory::default()
        }));
        Ok(())
    }

    /// Adds a directory that cannot be listed or searched.
    fn add_unlistable(&mut self, node: &Rc<ScanDirectory>) -> Result<(), ScanFailure> {
        let mut node = node;
        while !node.unlistable.get() {
            let Some(parent) = &node.parent else { return Err(Errno::ACCESS.into()) };
            match self.open(node, OFlags::PATH) {
                // The parent cannot be searched.
                Err(Errno::ACCESS) => node = parent,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                opened => {
                    node.unlistable.set(true);
                    return self.add(node.path(), ScanMatchReason::Unlistable, fstat(opened?)?);
                }
            }
        }
        Ok(())
    }

    /// Opens a directory without following links on the way to it.
    fn open(&mut self, node: &Rc<ScanDirectory>, access: OFlags) -> Result<OwnedFd, Errno> {
        let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Some(parent) = &node.parent else {
            let root = node.open.borrow().clone().ok_or(Errno::BADF)?;
            return openat(root.as_fd(), c".", flags, Mode::empty());
        };
        let above = self.open_with_parents(parent)?;
        openat(above.as_fd(), &*node.name, flags, Mode::empty())
    }

    /// Opens a directory through its nearest open ancestor, and keeps the directories between them open.
    fn open_with_parents(&mut self, node: &Rc<ScanDirectory>) -> Result<Rc<OwnedFd>, Errno> {
        let mut closed = Vec::new();
        let mut node = node;
        let mut directory = loop {
            if let Some(directory) = node.open.borrow().as_ref() {
                break Rc::clone(directory);
            }
            closed.push(node);
            node = node.parent.as_ref().ok_or(Errno::BADF)?;
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for node in closed.into_iter().rev() {
            directory = Rc::new(openat(directory.as_fd(), &*node.name, flags, Mode::empty())?);
            self.keep_open(node, Rc::clone(&directory));
        }
        Ok(directory)
    }

    fn keep_open(&mut self, node: &Rc<ScanDirectory>, directory: Rc<OwnedFd>) {
        node.open.replace(Some(directory));
        self.open.push_back(Rc::clone(node));
        if self.open.len() > OPEN_CAPACITY
            && let Some(first) = self.open.pop_front()
        {
            first.open.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, mkdirat, symlinkat};
    use vfs_core::OpContext;

    use super::scan_budget::CHECK_INTERVAL;
    use super::*;
    use crate::config::SandboxConfig;

    /// Returns a mount with these files; a name that ends with `/` is a directory.
    async fn mount(names: &[&str]) -> (tempfile::TempDir, SandboxConfig, OpenMount) {
        let directory = tempfile::tempdir().expect("a directory");
        for name in names {
            let (above, file) = name.rsplit_once('/').unwrap_or(("", name));
            let mut path = directory.path().to_owned();
            for component in above.split('/').filter(|component| !component.is_empty()) {
                path.push(component);
                match mkdirat(CWD, &path, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => panic!("{path:?}: {errno}"),
                }
            }
            if !file.is_empty() {
                let flags = OFlags::CREATE | OFlags::WRONLY;
                openat(CWD, path.join(file), flags, Mode::from_raw_mode(0o644)).expect("a file");
            }
        }
        let config = SandboxConfig::new(directory.path());
        let opened = OpenMount::open_all(&config).await.expect("it opens").remove(0);
        (directory, config, opened)
    }

    fn scanned(config: &SandboxConfig, opened: &OpenMount) -> Result<Vec<(String, ScanMatchReason)>> {
        let rules = ScanRules::new(config);
        let found = opened.scan(&rules, &mut ScanBudget::new(&rules, &OpContext::new()))?;
        Ok(found.into_iter().map(|entry| (String::from_utf8_lossy(&entry.path).into_owned(), entry.kind)).collect())
    }

    #[tokio::test]
    async fn names_repositories_links_and_sockets_are_found_at_any_depth() {
        let (directory, config, opened) = mount(&[
            ".git/HEAD",
            ".env",
            "a/.git/hooks/",
            "a/b/.ENV",
            "a/b/c.env",
            "bare/HEAD",
            "bare/objects/",
            "bare/refs/",
            "bare/hooks/.env",
            "linked/HEAD",
            "linked/commondir",
            "half/HEAD",
            "half/objects/",
        ])
        .await;
        let _listener = UnixListener::bind(directory.path().join("a/socket")).expect("it binds");
        symlinkat("../.env", CWD, directory.path().join("half/.env")).expect("a link");
        symlinkat("a", CWD, directory.path().join("again")).expect("a link");
        let found = scanned(&config, &opened).expect("it is searched");
        let expected = [
            ("/a/.git", ScanMatchReason::Name(ProtectionLevel::ReadOnly)),
            ("/a/b/.ENV", ScanMatchReason::Name(ProtectionLevel::Hidden)),
            ("/a/socket", ScanMatchReason::Socket),
            ("/bare", ScanMatchReason::Repository),
            ("/bare/hooks/.env", ScanMatchReason::Name(ProtectionLevel::Hidden)),
            ("/half/.env", ScanMatchReason::Link),
            ("/linked", ScanMatchReason::Repository),
        ];
        assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
        let unprotected = scanned(&config.unprotected(), &opened).expect("it is searched");
        assert_eq!(unprotected, [("/a/socket".to_owned(), ScanMatchReason::Socket)]);
    }

    #[tokio::test]
    async fn a_hidden_path_is_not_entered_and_a_read_only_path_is() {
        let (_directory, config, opened) = mount(&["secret/.env", "vendor/.env"]).await;
        let config = config.protect("secret", ProtectionLevel::Hidden).expect("a path");
        let config = config.protect("vendor", ProtectionLevel::ReadOnly).expect("a path");
        let found = scanned(&config, &opened).expect("it is searched");
        assert_eq!(found, [("/vendor/.env".to_owned(), ScanMatchReason::Name(ProtectionLevel::Hidden))]);
    }

    #[tokio::test]
    async fn a_directory_that_is_read_only_by_its_name_is_entered() {
        let names =
            ["vendor/x/.env", "a/.git/modules/m/HEAD", "a/.git/modules/m/commondir", "a/.git/x/.env", ".git/x/.env"];
        let (directory, config, opened) = mount(&names).await;
        let _listener = UnixListener::bind(directory.path().join(".git/x/socket")).expect("it binds");
        let found = scanned(&config.protect_name("vendor", ProtectionLevel::ReadOnly).expect("a name"), &opened);
        let expected = [
            ("/.git/x/.env", ScanMatchReason::Name(ProtectionLevel::Hidden)),
            ("/.git/x/socket", ScanMatchReason::Socket),
            ("/a/.git", ScanMatchReason::Name(ProtectionLevel::ReadOnly)),
            ("/a/.git/x/.env", ScanMatchReason::Name(ProtectionLevel::Hidden)),
            ("/vendor", ScanMatchReason::Name(ProtectionLevel::ReadOnly)),
            ("/vendor/x/.env", ScanMatchReason::Name(ProtectionLevel::Hidden)),
        ];
        assert_eq!(found.expect("it is searched"), expected.map(|(path, kind)| (path.to_owned(), kind)));
    }

    #[tokio::test]
    async fn the_mount_itself_can_have_the_shape_of_a_repository() {
        let (_directory, config, opened) = mount(&["head", "Objects/", "refs/", "config"]).await;
        assert_eq!(
            scanned(&config, &opened).expect("it is searched"),
            [(String::new(), ScanMatchReason::RootRepository)]
        );
    }

    #[tokio::test]
    async fn entries_follow_their_directory() {
        let (_directory, config, opened) = mount(&["a/.git/.env", "a/.git-x/.env", "a/.git.y/.env"]).await;
        let found = scanned(&config, &opened).expect("it is searched");
        let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/a/.git", "/a/.git/.env", "/a/.git-x/.env", "/a/.git.y/.env"]);
    }

    #[tokio::test]
    async fn a_scan_ends_when_its_caller_no_longer_waits() {
        let (_directory, config, opened) = mount(&["a/1"]).await;
        let rules = ScanRules::new(&config.max_scanned_entries(CHECK_INTERVAL));
        let cx = OpContext::new();
        cx.cancel_token().cancel();
        let error = opened.scan(&rules, &mut ScanBudget::new(&rules, &cx)).expect_err("nobody waits");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[tokio::test]
    async fn paths_are_bounded_together() {
        let (_directory, config, opened) = mount(&["a/.env", "b/.env"]).await;
        let rules = ScanRules::new(&config);
        let cx = OpContext::new();
        let mut budget = ScanBudget { path_bytes: "/a/.env".len() * 2, ..ScanBudget::new(&rules, &cx) };
        opened.scan(&rules, &mut budget).expect("they are as long as that");
        let mut budget = ScanBudget { path_bytes: "/a/.env".len() * 2 - 1, ..ScanBudget::new(&rules, &cx) };
        let error = opened.scan(&rules, &mut budget).expect_err("they are longer");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    }

    #[tokio::test]
    async fn more_entries_than_the_bound_are_an_error() {
        let (_directory, config, opened) = mount(&["a/1", "a/2", "a/3", "b/.env"]).await;
        scanned(&config.clone().max_scanned_entries(6), &opened).expect("there are six");
        let error = scanned(&config.max_scanned_entries(5), &opened).expect_err("there are six");
        assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/workspace")));
    }

    /// Creates nested directories, each with a second directory that is not empty, and returns the deepest.
    fn nest(root: &OwnedFd, depth: usize) -> OwnedFd {
        let mut above = root.try_clone().expect("a descriptor");
        let make = |above: &OwnedFd, name: &str| {
            mkdirat(above, name, Mode::from_raw_mode(0o755)).expect("made");
            openat(above, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there")
        };
        for _ in 0..depth {
            make(&make(&above, "beside"), "below");
            above = make(&above, "deeper");
        }
        above
    }

    #[tokio::test]
    async fn a_deep_tree_is_searched_at_the_cost_of_its_entries() {
        let (_directory, config, opened) = mount(&[]).await;
        mkdirat(nest(&opened.root, 600), ".git", Mode::from_raw_mode(0o755)).expect("made");
        let config = config.max_scanned_entries(1_801);
        let [(path, kind)] = scanned(&config, &opened).expect("it is searched").try_into().expect("one");
        assert_eq!((path.len(), kind), (600 * 7 + 5, ScanMatchReason::Name(ProtectionLevel::ReadOnly)));
    }

    #[tokio::test]
    async fn a_tree_that_is_too_deep_is_refused() {
        let (_directory, config, opened) = mount(&[]).await;
        nest(&opened.root, 5);
        let (rules, cx) = (ScanRules::new(&config), OpContext::new());
        let scan = |depth| opened.scan(&rules, &mut ScanBudget { depth, ..ScanBudget::new(&rules, &cx) });
        scan(6).expect("it is as deep as that");
        let error = scan(5).expect_err("it is deeper");
        assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/workspace")));
    }
}
