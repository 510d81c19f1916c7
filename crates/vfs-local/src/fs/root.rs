//! The root directory, and path resolution: the only place where a virtual path becomes a descriptor.

mod follow_links;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use cap_std::fs::Dir as CapDir;
use rustix::fs::{self, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, ResolveResult, Result, VfsPath};

use super::entry_location::{COMMON_FLAGS, EntryLocation};
use super::errno::{from_errno_at, retry};
use super::file_systems::{self, AtimeMountOption};
use super::metadata::Metadata;
use super::protected_paths::{CaseFoldedPath, PathAccess, ProtectedPaths};
use crate::config::policies::{Confinement, MountPolicy, PathResolutionMode, ProtectionLevel};

use self::follow_links::{LinkResolutionEnd, ResolvedPath, follow_links};

/// Prefix of the names of pending writes. Listings do not show such names, and no path may contain one.
pub(crate) const RESERVED_PREFIX: &str = ".vfs-tmp-";

/// An open directory below which every path is resolved.
#[derive(Debug)]
pub(crate) struct Root {
    pub(super) fd: OwnedFd,
    resolver: PathResolver,
    /// Resolution flags for lookups in the kernel's cache, if the file system supports them: see [`Root::open_cached`].
    cached_resolve: Option<ResolveFlags>,
    protected_paths: ProtectedPaths,
}

/// How paths below the root are resolved.
#[derive(Debug)]
enum PathResolver {
    /// The kernel resolves the path, and refuses to leave the root.
    Kernel(ResolveFlags),
    /// `cap-std` resolves the path one component at a time.
    Portable(CapDir),
    /// Nothing is refused: the root is the one of the host.
    Host,
}

/// Settings of a [`Root`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct RootOptions<'a> {
    pub(crate) path: &'a Path,
    pub(crate) confinement: Confinement,
    pub(crate) mounts: MountPolicy,
    pub(crate) resolution: PathResolutionMode,
    pub(crate) protected: &'a [(VfsPath, ProtectionLevel)],
    pub(crate) protected_names: &'a [(String, ProtectionLevel)],
}

/// Returns the error of a root that cannot be opened.
fn open_failure(errno: Errno) -> Error {
    let (kind, message) = match errno {
        Errno::NOENT => (ErrorKind::NotFound, "the root does not exist; create the directory, or open another one"),
        Errno::NOTDIR => (ErrorKind::NotADirectory, "the root is not a directory; open a directory"),
        errno => return from_errno_at(errno, &VfsPath::root()),
    };
    Error::new(kind, message).with_path(&VfsPath::root()).with_source(std::io::Error::from(errno))
}

impl Root {
    pub(crate) fn open(config: RootOptions<'_>) -> Result<Self> {
        let path = match config.confinement {
            Confinement::Root => config.path,
            Confinement::None => Path::new("/"),
        };
        let fd =
            fs::open(path, OFlags::PATH | OFlags::DIRECTORY | COMMON_FLAGS, Mode::empty()).map_err(open_failure)?;
        let resolver = match (config.confinement, config.resolution) {
            (Confinement::None, _) => PathResolver::Host,
            (Confinement::Root, PathResolutionMode::Automatic) if supports_openat2(fd.as_fd()) => {
                let stay =
                    if config.mounts == MountPolicy::Stay { ResolveFlags::NO_XDEV } else { ResolveFlags::empty() };
                PathResolver::Kernel(ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | stay)
            }
            (Confinement::Root, _) if config.mounts == MountPolicy::Stay => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "staying on one file system needs openat2, which this kernel or sandbox does not support",
                ));
            }
            (Confinement::Root, _) => {
                let readable = fs::openat(&fd, ".", OFlags::RDONLY | OFlags::DIRECTORY | COMMON_FLAGS, Mode::empty())
                    .map_err(|errno| from_errno_at(errno, &VfsPath::root()))?;
                PathResolver::Portable(CapDir::from_std_file(readable.into()))
            }
        };
        let cached_resolve = match &resolver {
            PathResolver::Kernel(resolve) => Some(*resolve),
            PathResolver::Host => Some(ResolveFlags::empty()),
            PathResolver::Portable(_) => None,
        };
        // The check covers the root's file system only, so cached lookups do not cross mounts.
        let cached_resolve = cached_resolve
            .filter(|_| file_systems::resolves_names_locally(&fd))
            .map(|resolve| resolve | ResolveFlags::NO_XDEV | ResolveFlags::CACHED)
            .filter(|resolve| supports_cached_lookup(fd.as_fd(), *resolve));
        let protected_paths = ProtectedPaths::new(config.protected, config.protected_names, fd.as_fd())?;
        Ok(Self { fd, resolver, cached_resolve, protected_paths })
    }

    /// Opens the file at `path`, following links inside the root. Never blocks and never creates anything.
    pub(crate) fn open_at(&self, path: &VfsPath, flags: OFlags) -> Result<OwnedFd> {
        let opened = self.open_unchecked(path, flags)?;
        self.protected_paths.check(self.fd.as_fd(), &opened, &[], PathAccess::Read, path)?;
        Ok(opened)
    }

    /// As [`Root::open_at`], but only if the kernel can resolve the path from memory, on the file system of the root;
    /// `resolve` restricts the lookup further. Returns `None` if the kernel would have to wait for a disk, and on any
    /// failure.
    pub(crate) fn open_cached(&self, path: &VfsPath, flags: OFlags, resolve: ResolveFlags) -> Option<OwnedFd> {
        let resolve = self.cached_resolve? | resolve;
        check_not_reserved(path).ok()?;
        let opened =
            fs::openat2(&self.fd, relative_path(path), with_common_flags(flags), Mode::empty(), resolve).ok()?;
        self.protected_paths.check(self.fd.as_fd(), &opened, &[], PathAccess::Read, path).ok()?;
        Some(opened)
    }

    /// Opens the file at `path` for reading as [`Root::open_at`] does, and leaves its access time alone if the caller
    /// may request that: as its owner, or with the capability to act for all owners.
    pub(crate) fn open_for_reading(&self, path: &VfsPath) -> Result<OwnedFd> {
        let without_access_time = self.open_at(path, OFlags::RDONLY | OFlags::NOATIME);
        without_access_time.or_else(|_refused| self.open_at(path, OFlags::RDONLY))
    }

    fn open_unchecked(&self, path: &VfsPath, flags: OFlags) -> Result<OwnedFd> {
        check_not_reserved(path)?;
        let opened = match &self.resolver {
            PathResolver::Portable(_) if !flags.contains(OFlags::DIRECTORY) && !path.is_root() => {
                match self.resolve_entry(path) {
                    Ok(entry) => self.open_child(entry.parent.as_fd(), entry.name.as_bytes(), flags),
                    // The path is a link to its own directory, or to one above, which has no name to open it by.
                    Err(error) if error.kind() == ErrorKind::IsADirectory => {
                        self.open_relative(relative_path(path), flags | OFlags::DIRECTORY)
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => self.open_relative(relative_path(path), flags),
        };
        opened.map_err(|errno| from_errno_at(errno, path))
    }

    /// Opens a directory for listing.
    pub(crate) fn open_directory(&self, path: &VfsPath) -> Result<OwnedFd> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Returns the protected paths of this root.
    pub(crate) fn protected_paths(&self) -> &ProtectedPaths {
        &self.protected_paths
    }

    /// Returns the location of `fd`, which `path` led to, or `None` if nothing is hidden.
    pub(crate) fn folded_path(&self, fd: impl AsFd, path: &VfsPath) -> Result<Option<CaseFoldedPath>> {
        self.protected_paths.folded_path(self.fd.as_fd(), fd, path)
    }

    /// Fails if `access` is refused for `entry`, which `path` led to.
    pub(crate) fn check(&self, entry: &EntryLocation, access: PathAccess, path: &VfsPath) -> Result<()> {
        self.protected_paths.check(self.fd.as_fd(), &entry.parent, &[&entry.name], access, path)
    }

    fn open_relative(&self, relative_path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = with_common_flags(flags);
        match &self.resolver {
            PathResolver::Kernel(resolve) => {
                retry(|| fs::openat2(&self.fd, relative_path, flags, Mode::empty(), *resolve))
            }
            PathResolver::Host => retry(|| fs::openat(&self.fd, relative_path, flags, Mode::empty())),
            PathResolver::Portable(root) => {
                let opened = root.open_dir(relative_path).map_err(|error| {
                    // cap-std reports a path that would leave the root without an errno.
                    let escape = error.kind() == std::io::ErrorKind::PermissionDenied;
                    Errno::from_io_error(&error).unwrap_or(if escape { Errno::XDEV } else { Errno::IO })
                })?;
                // cap-std may open a directory with `O_PATH`, and such a descriptor cannot be listed.
                retry(|| fs::openat(&opened, ".", flags, Mode::empty()))
            }
        }
    }

    /// Returns the entry at `path`, without following a link at the end.
    pub(crate) fn entry(&self, path: &VfsPath) -> Result<EntryLocation> {
        check_not_reserved(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Err(
                Error::invalid_argument("the root itself cannot be changed; name something below it").with_path(path)
            );
        };
        let parent = self
            .open_relative(relative_path(&parent), OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|errno| from_errno_at(errno, path))?;
        Ok(EntryLocation { parent, name: name.to_owned() })
    }

    /// As [`Root::entry`], but if the entry is a link, returns the entry that the link leads to, which need not exist.
    pub(crate) fn resolve_entry(&self, path: &VfsPath) -> Result<EntryLocation> {
        let entry = self.entry(path)?;
        match entry.file_type() {
            Ok(Some(FileType::Symlink)) => self.resolve_links(path).map_err(|errno| from_errno_at(errno, path)),
            Ok(_) => Ok(entry),
            Err(errno) => Err(from_errno_at(errno, path)),
        }
    }

    /// Returns the path without links that `path` leads to. Nothing need exist there.
    pub(crate) fn real_path(&self, path: &VfsPath) -> Result<ResolveResult> {
        check_not_reserved(path)?;
        if let PathResolver::Kernel(resolve) = &self.resolver {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = *resolve | ResolveFlags::NO_SYMLINKS;
            match retry(|| fs::openat2(&self.fd, relative_path(path), flags, Mode::empty(), resolve)) {
                // Resolution ends at a part that is missing or a file: the parts before it are no links.
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => return Ok(ResolveResult::at(path.clone())),
                Err(Errno::LOOP) => {}
                Err(errno) => return Err(from_errno_at(errno, path)),
            }
        }
        let ResolvedPath { names, end } = follow_links(self, path).map_err(|errno| from_errno_at(errno, path))?;
        let real = String::from_utf8(names.join(&b'/')).map_err(|_| from_errno_at(Errno::ILSEQ, path))?;
        let real = VfsPath::parse(&format!("/{real}")).map_err(|error| error.with_path(path))?;
        Ok(ResolveResult::at(real).leads_nowhere(matches!(end, LinkResolutionEnd::Absent { is_unreachable: true, .. })))
    }

    /// Returns the entry that `path` leads to, which need not exist.
    fn resolve_links(&self, path: &VfsPath) -> io::Result<EntryLocation> {
        match follow_links(self, path)?.end {
            LinkResolutionEnd::Entry(entry) => Ok(entry),
            LinkResolutionEnd::Directory => Err(Errno::ISDIR),
            LinkResolutionEnd::Absent { cause, .. } => Err(cause),
        }
    }

    /// Returns whether the root directory itself was removed, so that nothing can be created in it.
    pub(crate) fn is_removed(&self) -> bool {
        Metadata::from_fd(self.fd.as_fd()).is_ok_and(|root| root.link_count() == 0)
    }

    pub(crate) fn is_host(&self) -> bool {
        matches!(self.resolver, PathResolver::Host)
    }

    /// Returns when reads update access times, or `None` if [`Root::open_cached`] is not supported.
    pub(crate) fn access_time_policy(&self) -> Option<AtimeMountOption> {
        self.cached_resolve.map(|_| file_systems::access_time_policy(&self.fd))
    }

    /// Opens one component of an open directory, without following a link or blocking.
    ///
    /// A single name that is not followed cannot leave its directory; the kernel only has to check whether another file
    /// system is mounted there.
    pub(crate) fn open_child(&self, dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = if flags.contains(OFlags::PATH) {
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC
        } else {
            flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | COMMON_FLAGS
        };
        match &self.resolver {
            PathResolver::Kernel(resolve) if resolve.contains(ResolveFlags::NO_XDEV) => {
                retry(|| fs::openat2(dir, name, flags, Mode::empty(), *resolve))
            }
            _ => retry(|| fs::openat(dir, name, flags, Mode::empty())),
        }
    }

    /// As [`Root::open_child`], but never enters another file system, regardless of the settings.
    pub(crate) fn open_child_on_same_mount(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
    ) -> io::Result<OwnedFd> {
        match &self.resolver {
            PathResolver::Kernel(resolve) => {
                let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | COMMON_FLAGS;
                let opened = retry(|| fs::openat2(dir, name, flags, Mode::empty(), *resolve | ResolveFlags::NO_XDEV));
                opened.map_err(|errno| if errno == Errno::XDEV { Errno::BUSY } else { errno })
            }
            _ => self.open_child(dir, name, flags),
        }
    }

    /// Returns the device and the inode of the root directory.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        Metadata::from_fd(self.fd.as_fd()).map(|metadata| metadata.identity())
    }
}

fn check_not_reserved(path: &VfsPath) -> Result<()> {
    if path.as_str().contains(RESERVED_PREFIX) && path.components().any(|name| name.starts_with(RESERVED_PREFIX)) {
        return Err(Error::new(
            ErrorKind::InvalidPath,
            "names that start with '.vfs-tmp-' are reserved; use another name",
        )
        .with_path(path));
    }
    Ok(())
}

fn supports_openat2(root: BorrowedFd<'_>) -> bool {
    fs::openat2(root, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH).is_ok()
}

/// Returns whether the kernel supports `resolve`, and no seccomp filter refuses it. The lookup may fail with `EAGAIN`
/// although it is supported.
fn supports_cached_lookup(root: BorrowedFd<'_>, resolve: ResolveFlags) -> bool {
    let opened = fs::openat2(root, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    matches!(opened, Ok(_) | Err(Errno::AGAIN))
}

/// Returns `flags` with those of every open.
fn with_common_flags(flags: OFlags) -> OFlags {
    // `O_PATH` allows few other flags, and such an open never blocks.
    if flags.contains(OFlags::PATH) {
        (flags & (OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW)) | OFlags::CLOEXEC
    } else {
        flags | COMMON_FLAGS | OFlags::NONBLOCK
    }
}

/// Returns `path` relative to the root, as the kernel expects it.
fn relative_path(path: &VfsPath) -> &str {
    if path.is_root() { "." } else { path.relative() }
}
