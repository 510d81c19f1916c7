//! A bounded walk of the mounts for what has to be covered in a command, and for what commands left.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, statat};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::config::{GIT, Protection, SandboxConfig};
use super::held::Held;

/// What is looked for, and how far.
#[derive(Debug)]
pub(super) struct ScanRules {
    /// Names in lower case, with what becomes of them.
    names: BTreeMap<String, Protection>,
    /// Protected paths, which are looked after already.
    paths: BTreeMap<String, Protection>,
    max_entries: u64,
}

/// Why an entry was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// It has a protected name.
    Name(Protection),
    /// It is a link that has a protected name.
    Link,
    /// It is a directory that git takes for a repository, whatever it is called.
    Repository,
    /// It is a unix socket.
    Socket,
    /// It is a directory that this process may not list or search, and whose owner, as which commands run, could change
    /// that.
    Unlistable,
}

/// An entry that was found.
#[derive(Debug)]
pub(super) struct ScanEntry {
    /// Its path below the mount, with a `/` before each name. Names need not be UTF-8.
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) status: Stat,
}

impl ScanEntry {
    pub(super) fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.status.st_mode) == FileType::Directory
    }

    /// Whether it is covered in commands.
    pub(super) fn is_covered(&self) -> bool {
        self.kind != EntryKind::Link
    }
}

impl ScanRules {
    pub(super) fn new(config: &SandboxConfig) -> Self {
        let names = config.protected_names.iter();
        let paths = config.protected.iter();
        Self {
            names: names.map(|protected| (protected.name.to_lowercase(), protected.protection)).collect(),
            paths: paths.map(|protected| (protected.path.as_str().to_owned(), protected.protection)).collect(),
            max_entries: config.max_scanned_entries,
        }
    }

    /// Whether what git takes for a repository is looked for.
    fn finds_repositories(&self) -> bool {
        self.names.contains_key(GIT)
    }

    fn protection(&self, name: &[u8]) -> Option<Protection> {
        // A file system may fold case, so what differs by it alone is taken for the same.
        std::str::from_utf8(name).ok().and_then(|name| self.names.get(&name.to_lowercase())).copied()
    }
}

/// How many entries may still be looked at.
#[derive(Debug)]
pub(super) struct ScanBudget(u64);

impl ScanBudget {
    pub(super) fn new(rules: &ScanRules) -> Self {
        Self(rules.max_entries)
    }

    fn take(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            let message = "there are more entries than are searched for protected names and sockets before a command \
                           starts; mount a smaller directory, remove what is not needed, or raise max_scanned_entries";
            Error::new(ErrorKind::QuotaExceeded, message)
        })?;
        Ok(())
    }
}

impl Held {
    /// Looks for entries below this mount. Outer entries stand before what is in them.
    ///
    /// # Errors
    ///
    /// `quota_exceeded` where there are more entries than `budget` has left; `unavailable` where something cannot be looked
    /// at.
    pub(super) fn scan(&self, rules: &ScanRules, budget: &mut ScanBudget) -> Result<Vec<ScanEntry>> {
        let mut scan = Scan { root: &self.root, rules, budget, found: Vec::new(), pending: vec![Vec::new()] };
        while let Some(directory) = scan.pending.pop() {
            scan.directory(&directory).map_err(|failure| match failure {
                Failure::Bound(error) => error.with_path(&self.at),
                Failure::System(errno) => {
                    let message = "a directory cannot be searched for what is protected from commands";
                    Error::new(ErrorKind::Unavailable, message).with_source(errno).with_path(&self.spelled(&directory))
                }
            })?;
        }
        let mut found = scan.found;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found.dedup_by(|one, other| one.path == other.path);
        Ok(found)
    }

    /// The path at which a command sees an entry, as near as it can be spelled.
    pub(super) fn spelled(&self, below: &[u8]) -> VfsPath {
        self.at.join(String::from_utf8_lossy(below).trim_start_matches('/')).unwrap_or_else(|_| self.at.clone())
    }
}

enum Failure {
    Bound(Error),
    System(Errno),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

struct Scan<'a> {
    root: &'a OwnedFd,
    rules: &'a ScanRules,
    budget: &'a mut ScanBudget,
    found: Vec<ScanEntry>,
    /// Directories that are still to be listed.
    pending: Vec<Vec<u8>>,
}

impl Scan<'_> {
    fn directory(&mut self, path: &[u8]) -> Result<(), Failure> {
        let held = match self.open(path) {
            Ok(held) => held,
            Err(Failure::System(Errno::ACCESS)) => return self.unlistable(path),
            // It went meanwhile, or something else has its name.
            Err(Failure::System(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => return Ok(()),
            Err(failure) => return Err(failure),
        };
        let entries = match Dir::read_from(&held) {
            Err(Errno::ACCESS) => return self.unlistable(path),
            entries => entries?,
        };
        let mut shape = RepositoryShape::default();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.budget.take().map_err(Failure::Bound)?;
            shape.add(name);
            self.entry(&held, path, name, entry.file_type())?;
        }
        if !path.is_empty() && shape.is_repository() && self.rules.finds_repositories() {
            self.found.push(ScanEntry { path: path.to_vec(), kind: EntryKind::Repository, status: fstat(&held)? });
        }
        Ok(())
    }

    fn entry(&mut self, held: &OwnedFd, above: &[u8], name: &[u8], file_type: FileType) -> Result<(), Failure> {
        let path = [above, b"/", name].concat();
        let by_path = std::str::from_utf8(&path).ok().and_then(|path| self.rules.paths.get(path));
        if by_path == Some(&Protection::Hidden) {
            return Ok(());
        }
        let protection = self.rules.protection(name);
        if file_type == FileType::Directory && protection.is_none() {
            self.pending.push(path);
            return Ok(());
        }
        if protection.is_none() && !matches!(file_type, FileType::Socket | FileType::Unknown) {
            return Ok(());
        }
        let status = match statat(held, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => status,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => return self.unlistable(above),
            Err(errno) => return Err(errno.into()),
        };
        let kind = match (FileType::from_raw_mode(status.st_mode), protection) {
            (FileType::Symlink, Some(_)) => EntryKind::Link,
            (_, Some(protection)) => EntryKind::Name(protection),
            (FileType::Directory, None) => {
                self.pending.push(path);
                return Ok(());
            }
            (FileType::Socket, None) => EntryKind::Socket,
            (_, None) => return Ok(()),
        };
        if by_path.is_none() {
            self.found.push(ScanEntry { path, kind, status });
        }
        Ok(())
    }

    /// Notes a directory that cannot be listed or searched: whoever owns it can give himself the right to.
    fn unlistable(&mut self, path: &[u8]) -> Result<(), Failure> {
        let Some(last) = path.iter().rposition(|byte| *byte == b'/') else { return Err(Errno::ACCESS.into()) };
        let held = match self.open_as(path, OFlags::PATH) {
            Err(Failure::System(Errno::ACCESS)) => return self.unlistable(&path[..last]),
            Err(Failure::System(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => return Ok(()),
            opened => opened?,
        };
        let status = fstat(&held)?;
        if status.st_uid == rustix::process::geteuid().as_raw() {
            self.found.push(ScanEntry { path: path.to_vec(), kind: EntryKind::Unlistable, status });
        }
        Ok(())
    }

    fn open(&mut self, path: &[u8]) -> Result<OwnedFd, Failure> {
        self.open_as(path, OFlags::RDONLY)
    }

    /// Opens a directory, and follows no link on the way to it.
    fn open_as(&mut self, path: &[u8], access: OFlags) -> Result<OwnedFd, Failure> {
        let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let relative = path.strip_prefix(b"/").unwrap_or(b".");
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(self.root, relative, flags, Mode::empty(), resolve) {
            // An older kernel or a filter knows no such call; and a path may be longer than one call takes.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => {}
            opened => return Ok(opened?),
        }
        let mut held: Option<OwnedFd> = None;
        let mut names = relative.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            self.budget.take().map_err(Failure::Bound)?;
            let last = names.peek().is_none();
            let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = held.as_ref().unwrap_or(self.root).as_fd();
            held = Some(openat(below, name, if last { flags } else { through }, Mode::empty())?);
        }
        held.ok_or(Failure::System(Errno::NOENT))
    }
}

/// What git looks for in a directory: `HEAD`, and `objects` with `refs` or the place of another repository that has them.
#[derive(Debug, Default)]
struct RepositoryShape {
    head: bool,
    objects: bool,
    refs: bool,
    common_directory: bool,
}

impl RepositoryShape {
    fn add(&mut self, name: &[u8]) {
        match name {
            b"HEAD" => self.head = true,
            b"objects" => self.objects = true,
            b"refs" => self.refs = true,
            b"commondir" => self.common_directory = true,
            _ => {}
        }
    }

    fn is_repository(&self) -> bool {
        self.head && (self.common_directory || (self.objects && self.refs))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use rustix::fs::{CWD, mkdirat, symlinkat};

    /// A directory with these files; a name that ends with `/` is a directory.
    async fn mount(names: &[&str]) -> (tempfile::TempDir, SandboxConfig, Held) {
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
        let held = Held::open_all(&config).await.expect("it opens").remove(0);
        (directory, config, held)
    }

    fn scanned(config: &SandboxConfig, held: &Held) -> Result<Vec<(String, EntryKind)>> {
        let rules = ScanRules::new(config);
        let found = held.scan(&rules, &mut ScanBudget::new(&rules))?;
        Ok(found.into_iter().map(|entry| (String::from_utf8_lossy(&entry.path).into_owned(), entry.kind)).collect())
    }

    #[tokio::test]
    async fn names_repositories_links_and_sockets_are_found_at_any_depth() {
        let (directory, config, held) = mount(&[
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
        let found = scanned(&config, &held).expect("it is searched");
        let expected = [
            ("/a/.git", EntryKind::Name(Protection::ReadOnly)),
            ("/a/b/.ENV", EntryKind::Name(Protection::Hidden)),
            ("/a/socket", EntryKind::Socket),
            ("/bare", EntryKind::Repository),
            ("/bare/hooks/.env", EntryKind::Name(Protection::Hidden)),
            ("/half/.env", EntryKind::Link),
            ("/linked", EntryKind::Repository),
        ];
        assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
        let unprotected = scanned(&config.unprotected(), &held).expect("it is searched");
        assert_eq!(unprotected, [("/a/socket".to_owned(), EntryKind::Socket)]);
    }

    #[tokio::test]
    async fn a_path_that_is_hidden_is_not_entered_and_one_that_is_read_only_is() {
        let (_directory, config, held) = mount(&["secret/.env", "vendor/.env"]).await;
        let config = config.protect("secret", Protection::Hidden).expect("a path");
        let config = config.protect("vendor", Protection::ReadOnly).expect("a path");
        let found = scanned(&config, &held).expect("it is searched");
        assert_eq!(found, [("/vendor/.env".to_owned(), EntryKind::Name(Protection::Hidden))]);
    }

    #[tokio::test]
    async fn more_entries_than_the_bound_are_an_error() {
        let (_directory, config, held) = mount(&["a/1", "a/2", "a/3", "b/.env"]).await;
        scanned(&config.clone().max_scanned_entries(6), &held).expect("there are six");
        let error = scanned(&config.max_scanned_entries(5), &held).expect_err("there are six");
        assert_eq!((error.kind(), error.path()), (ErrorKind::QuotaExceeded, Some("/workspace")));
    }

    #[tokio::test]
    async fn a_deep_tree_is_searched() {
        let (_directory, config, held) = mount(&[]).await;
        let mut above = held.root.try_clone().expect("a descriptor");
        for _ in 0..600 {
            mkdirat(&above, "d".repeat(8), Mode::from_raw_mode(0o755)).expect("made");
            above = openat(&above, "d".repeat(8), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("there");
        }
        mkdirat(&above, ".git", Mode::from_raw_mode(0o755)).expect("made");
        let [(path, kind)] = scanned(&config, &held).expect("it is searched").try_into().expect("one");
        assert_eq!((path.len(), kind), (600 * 9 + 5, EntryKind::Name(Protection::ReadOnly)));
    }
}
