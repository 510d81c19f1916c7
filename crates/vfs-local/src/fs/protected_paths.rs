//! Enforcement of protected paths, by the real location of an open descriptor.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::config::policies::ProtectionLevel;
use crate::fs::errno::from_errno_at;

/// An access that a protected path may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathAccess {
    /// A file is read, or a directory is listed.
    Read,
    /// A file is copied, or a directory with everything below it.
    Copy,
    /// An entry is written, removed, moved or replaced.
    Change,
    /// A directory is created, or opened by a caller who may write in it.
    CreateDir,
}

/// A location below the root in lower case: empty for the root itself, otherwise names with a `/` before each.
pub(crate) type CaseFoldedPath = String;

/// The protected paths of a root, and the names that are protected at any depth.
#[derive(Debug, Default)]
pub(crate) struct ProtectedPaths {
    paths: Vec<(CaseFoldedPath, ProtectionLevel)>,
    /// In lower case.
    names: Vec<(String, ProtectionLevel)>,
}

impl ProtectedPaths {
    /// Protects these paths and names below `root`. Fails if `/proc` cannot report the location of a descriptor.
    pub(crate) fn new(
        paths: &[(VfsPath, ProtectionLevel)],
        names: &[(String, ProtectionLevel)],
        root: BorrowedFd<'_>,
    ) -> Result<Self> {
        if !paths.is_empty() || !names.is_empty() {
            read_folded_path(root, root).map_err(|errno| {
                let message =
                    "protected paths cannot be checked: /proc does not show the location of a descriptor; mount /proc";
                Error::new(ErrorKind::Unsupported, message).with_source(errno)
            })?;
        }
        Ok(Self {
            paths: paths.iter().map(|(path, protection)| (fold_path(path), *protection)).collect(),
            names: names.iter().map(|(name, protection)| (name.to_lowercase(), *protection)).collect(),
        })
    }

    /// Returns whether any protected path or name can refuse `access`.
    fn applies_to(&self, access: PathAccess) -> bool {
        let is_read = matches!(access, PathAccess::Read | PathAccess::Copy);
        let mut all = self.paths.iter().chain(&self.names);
        all.any(|(_, protection)| !is_read || *protection == ProtectionLevel::Hidden)
    }

    /// Returns whether any name is protected at every depth.
    pub(crate) fn has_protected_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns whether `name` is protected at every depth.
    pub(crate) fn is_protected_name(&self, name: &[u8]) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let name = String::from_utf8_lossy(name).to_lowercase();
        self.names.iter().any(|(protected, _)| *protected == name)
    }

    /// Returns the location of `fd` for [`check_readable`](Self::check_readable), or `None` if nothing is hidden.
    pub(crate) fn folded_path(
        &self,
        root: BorrowedFd<'_>,
        fd: impl AsFd,
        path: &VfsPath,
    ) -> Result<Option<CaseFoldedPath>> {
        if !self.applies_to(PathAccess::Read) {
            return Ok(None);
        }
        read_folded_path(root, fd.as_fd()).map(Some).map_err(|errno| from_errno_at(errno, path))
    }

    /// Fails if the file at this location may not be read.
    pub(crate) fn check_readable(&self, folded: &str, path: &VfsPath) -> Result<()> {
        self.check_folded(folded, PathAccess::Read, path)
    }

    /// Fails if `path` refuses `access`. Only for callers who follow no link on the way to it.
    pub(crate) fn check_path(&self, access: PathAccess, path: &VfsPath) -> Result<()> {
        if self.applies_to(access) { self.check_folded(&fold_path(path), access, path) } else { Ok(()) }
    }

    /// Fails if `access` is refused at the location that `names` lead to from the directory `fd`, one below the other;
    /// without names, at the location of `fd` itself. The caller's `path`, which led there below `root`, is checked as
    /// well.
    pub(crate) fn check(
        &self,
        root: BorrowedFd<'_>,
        fd: impl AsFd,
        names: &[&str],
        access: PathAccess,
        path: &VfsPath,
    ) -> Result<()> {
        if !self.applies_to(access) {
            return Ok(());
        }
        let mut folded = read_folded_path(root, fd.as_fd()).map_err(|errno| from_errno_at(errno, path))?;
        for name in names {
            folded = join_folded(&folded, name);
        }
        self.check_folded(&folded, access, path)?;
        self.check_path(access, path)
    }

    fn check_folded(&self, folded: &str, access: PathAccess, path: &VfsPath) -> Result<()> {
        let by_path =
            |(protected, protection): &(CaseFoldedPath, _)| is_path_denied(folded, protected, *protection, access);
        let by_name = |(name, protection): &(String, _)| is_name_denied(folded, name, *protection, access);
        if self.paths.iter().any(by_path) || self.names.iter().any(by_name) {
            let message = "this path is protected, or leads to a protected one";
            return Err(Error::new(ErrorKind::PolicyDenied, message).with_path(path));
        }
        Ok(())
    }
}

/// Returns the location of the entry `name` of the directory at `folded`.
pub(crate) fn join_folded(folded: &str, name: &str) -> CaseFoldedPath {
    format!("{folded}/{}", name.to_lowercase())
}

/// Returns the location that `path` denotes without following links. A file system may fold case, so paths that differ
/// only in case count as equal.
fn fold_path(path: &VfsPath) -> CaseFoldedPath {
    if path.is_root() { CaseFoldedPath::new() } else { path.as_str().to_lowercase() }
}

fn is_path_denied(folded: &str, protected: &str, protection: ProtectionLevel, access: PathAccess) -> bool {
    // The kernel appends this suffix to the path of a removed file, and anybody may use it in a name.
    let without_suffix = folded.strip_suffix(" (deleted)");
    let is_at = [Some(folded), without_suffix].into_iter().flatten().any(|folded| is_at_or_below(folded, protected));
    let is_above = is_at_or_below(protected, folded);
    match access {
        PathAccess::Read => protection == ProtectionLevel::Hidden && is_at,
        PathAccess::Copy => protection == ProtectionLevel::Hidden && (is_at || is_above),
        PathAccess::Change => is_at || is_above,
        PathAccess::CreateDir => is_at,
    }
}

/// Returns whether a component of `folded` has the protected `name`. Directories above such an entry may be moved
/// together with it, since the name stays protected in its new location. Before a directory is removed, its entries are
/// checked by [`ProtectedPaths::is_protected_name`].
fn is_name_denied(folded: &str, name: &str, protection: ProtectionLevel, access: PathAccess) -> bool {
    let without_suffix = folded.strip_suffix(" (deleted)");
    let contains_name = |folded: &str| folded.split('/').any(|component| component == name);
    let is_read = matches!(access, PathAccess::Read | PathAccess::Copy);
    (!is_read || protection == ProtectionLevel::Hidden)
        && [Some(folded), without_suffix].into_iter().flatten().any(contains_name)
}

fn is_at_or_below(folded: &str, above: &str) -> bool {
    folded.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn read_folded_path(root: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> io::Result<CaseFoldedPath> {
    let read_link = |fd: BorrowedFd<'_>| {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        rustix::fs::readlink(link, Vec::new()).map(std::ffi::CString::into_bytes)
    };
    // If the root itself is moved between the two calls, the next attempt sees its new location.
    for _ in 0..3 {
        let (root, folded) = (read_link(root)?, read_link(fd)?);
        let root = if root == b"/" { &[][..] } else { &root[..] };
        if let Some(rest) = folded.strip_prefix(root)
            && matches!(rest.first(), None | Some(b'/'))
        {
            // Protected paths are valid UTF-8, so the replacement of invalid bytes cannot hide one.
            let rest = String::from_utf8_lossy(rest).to_lowercase();
            return Ok(if rest == "/" { CaseFoldedPath::new() } else { rest });
        }
    }
    Err(Errno::XDEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_paths_deny_by_location() {
        use PathAccess::{Change, Copy, CreateDir, Read};
        use ProtectionLevel::{Hidden, ReadOnly};
        for (folded, protected, protection, access, denied) in [
            ("/.env", "/.env", Hidden, Read, true),
            ("/.env (deleted)", "/.env", Hidden, Read, true),
            ("/.env (deleted)", "/.env (deleted)", Hidden, Read, true),
            ("/.env", "/.env", ReadOnly, Read, false),
            ("/.env", "/.env", ReadOnly, Change, true),
            ("/.git/hooks/new", "/.git", ReadOnly, Change, true),
            ("/.gitignore", "/.git", ReadOnly, Change, false),
            ("/a", "/a/keys", ReadOnly, Change, true),
            ("/ab", "/a/keys", ReadOnly, Change, false),
            ("", "/.env", Hidden, Read, false),
            ("", "/.env", Hidden, Copy, true),
            ("/a", "/a/keys", Hidden, Copy, true),
            ("/a", "/a/keys", ReadOnly, Copy, false),
            ("/a/keys", "/a/keys", Hidden, Copy, true),
            ("/a/keys/old", "/a/keys", Hidden, Read, true),
            ("/a", "/a/keys", ReadOnly, CreateDir, false),
            ("/a/keys/new", "/a/keys", ReadOnly, CreateDir, true),
            ("/anything", "", ReadOnly, Change, true),
        ] {
            let found = is_path_denied(folded, protected, protection, access);
            assert_eq!(found, denied, "{access:?} at {folded:?}, with {protected} {protection:?}");
        }
    }

    #[test]
    fn protected_names_deny_at_any_depth() {
        use PathAccess::{Change, Copy, CreateDir, Read};
        use ProtectionLevel::{Hidden, ReadOnly};
        for (folded, name, protection, access, denied) in [
            ("/a/b/.env", ".env", Hidden, Read, true),
            ("/a/.env (deleted)", ".env", Hidden, Read, true),
            ("/a/.env/key", ".env", Hidden, Copy, true),
            ("/a/.env", ".env", ReadOnly, Read, false),
            ("/a/.git/hooks/new", ".git", ReadOnly, Change, true),
            ("/a/.git", ".git", ReadOnly, CreateDir, true),
            ("/a/.gitignore", ".git", ReadOnly, Change, false),
            ("/a", ".git", ReadOnly, Change, false),
            ("", ".git", ReadOnly, Change, false),
        ] {
            let found = is_name_denied(folded, name, protection, access);
            assert_eq!(found, denied, "{access:?} at {folded:?}, with {name} {protection:?}");
        }
    }

    #[test]
    fn paths_that_differ_in_case_are_equal() {
        assert_eq!(fold_path(&VfsPath::parse("/A/.ENV").expect("a path")), "/a/.env");
        assert_eq!(join_folded("/a", ".ENV"), "/a/.env");
    }
}
