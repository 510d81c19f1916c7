//! Protected paths, kept by where a descriptor really is: what path led there, and who swaps links meanwhile, is all the same.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::config::Protection;
use crate::errno::error_at;

/// What is about to be done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A file is read or a directory listed.
    Read,
    /// Everything below a directory is read by the names in it, but for what is hidden.
    Walk,
    /// A file is copied, or a directory with everything below it.
    Copy,
    /// A file is written.
    Write,
    /// An entry is removed or moved, or another takes its place.
    Remove,
}

/// The protected paths of a root.
#[derive(Debug, Default)]
pub(crate) struct Guard(Vec<(Vec<u8>, Protection)>);

impl Guard {
    /// Guards these paths below `root`, which the system has to be able to tell.
    pub(crate) fn new(protected: &[(VfsPath, Protection)], root: BorrowedFd<'_>) -> Result<Self> {
        if !protected.is_empty() {
            place(root, root).map_err(|errno| {
                let message = "paths are protected by where /proc says that they are; mount it";
                Error::new(ErrorKind::Unsupported, message).with_source(errno)
            })?;
        }
        let spelled = |path: &VfsPath| if path.is_root() { Vec::new() } else { path.as_str().as_bytes().to_vec() };
        Ok(Self(protected.iter().map(|(path, protection)| (spelled(path), *protection)).collect()))
    }

    /// Whether nothing is protected.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what is hidden by its own path, on the way down from a directory that may be walked.
    pub(crate) fn check_name(&self, path: &VfsPath) -> Result<()> {
        let is_hidden = |(protected, protection): &(Vec<u8>, Protection)| {
            *protection == Protection::Hidden && is_at_or_below(path.as_str().as_bytes(), protected)
        };
        if self.0.iter().any(is_hidden) { Err(refusal(path)) } else { Ok(()) }
    }

    /// Refuses what may not be done with what `held` is, which `path` led to below `root`.
    pub(crate) fn check(&self, root: BorrowedFd<'_>, held: impl AsFd, deed: Deed, path: &VfsPath) -> Result<()> {
        self.check_below(root, held, &[], deed, path)
    }

    /// As [`check`](Self::check), for what has these names, each in the one before it, the first in the directory `held`.
    pub(crate) fn check_below(
        &self,
        root: BorrowedFd<'_>,
        held: impl AsFd,
        names: &[&str],
        deed: Deed,
        path: &VfsPath,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut place = place(root, held.as_fd()).map_err(|errno| error_at(errno, path))?;
        for name in names {
            place.push(b'/');
            place.extend_from_slice(name.as_bytes());
        }
        if self.0.iter().any(|(protected, protection)| is_refused(&place, protected, *protection, deed, path)) {
            return Err(refusal(path));
        }
        Ok(())
    }
}

fn refusal(path: &VfsPath) -> Error {
    Error::new(ErrorKind::PolicyDenied, "this path is protected, or leads to one that is").with_path(path)
}

fn is_refused(place: &[u8], protected: &[u8], protection: Protection, deed: Deed, path: &VfsPath) -> bool {
    match deed {
        Deed::Read => protection == Protection::Hidden && is_at_or_below(place, protected),
        // Who asked for the directory by its own path knows by their own what is protected below it.
        Deed::Walk => {
            let is_led = place != path.as_str().trim_end_matches('/').as_bytes();
            protection == Protection::Hidden
                && (is_at_or_below(place, protected) || (is_led && is_at_or_below(protected, place)))
        }
        Deed::Copy => {
            protection == Protection::Hidden && (is_at_or_below(place, protected) || is_at_or_below(protected, place))
        }
        Deed::Write => is_at_or_below(place, protected),
        Deed::Remove => is_at_or_below(place, protected) || is_at_or_below(protected, place),
    }
}

fn is_at_or_below(place: &[u8], above: &[u8]) -> bool {
    place.strip_prefix(above).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

/// What the kernel puts behind the path of something that was removed.
const REMOVED: &[u8] = b" (deleted)";

/// Where `held` is below `root`: nothing for the root itself, else names with a `/` before each.
fn place(root: BorrowedFd<'_>, held: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let told = |fd: BorrowedFd<'_>| {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        rustix::fs::readlink(link, Vec::new()).map(std::ffi::CString::into_bytes)
    };
    // Where the root itself is moved between the two looks, the next ones tell.
    for _ in 0..3 {
        let (root, place) = (told(root)?, told(held)?);
        let root = if root == b"/" { &[][..] } else { &root[..] };
        if let Some(below) = place.strip_prefix(root)
            && matches!(below.first(), None | Some(b'/'))
        {
            let below = below.strip_suffix(REMOVED).unwrap_or(below);
            return Ok(if below == b"/" { Vec::new() } else { below.to_vec() });
        }
    }
    Err(Errno::XDEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_told_by_the_place() {
        use Deed::{Copy, Read, Remove, Walk, Write};
        use Protection::{Hidden, ReadOnly};
        for (place, protected, protection, deed, path, refused) in [
            ("/.env", "/.env", Hidden, Read, "/link", true),
            ("/.env", "/.env", ReadOnly, Read, "/link", false),
            ("/.env", "/.env", ReadOnly, Write, "/link", true),
            ("/.git/hooks/new", "/.git", ReadOnly, Write, "/link/new", true),
            ("/.gitignore", "/.git", ReadOnly, Write, "/.gitignore", false),
            ("/a", "/a/keys", ReadOnly, Write, "/a", false),
            ("/a", "/a/keys", ReadOnly, Remove, "/link", true),
            ("/ab", "/a/keys", ReadOnly, Remove, "/ab", false),
            ("", "/.env", Hidden, Walk, "/", false),
            ("", "/.env", Hidden, Walk, "/link", true),
            ("", "/.env", Hidden, Read, "/link", false),
            ("/a", "/a/keys", Hidden, Walk, "/a", false),
            ("/a", "/a/keys", Hidden, Walk, "/link", true),
            ("/a", "/a/keys", ReadOnly, Walk, "/link", false),
            ("/a/keys/old", "/a/keys", Hidden, Walk, "/a/keys/old", true),
            ("/b", "/a/keys", Hidden, Walk, "/link", false),
            ("/a", "/a/keys", Hidden, Copy, "/a", true),
            ("/a", "/a/keys", ReadOnly, Copy, "/a", false),
            ("/a/keys", "/a/keys", Hidden, Copy, "/link", true),
            ("/anything", "", ReadOnly, Write, "/anything", true),
        ] {
            let path = VfsPath::parse(path).expect("a path");
            let found = is_refused(place.as_bytes(), protected.as_bytes(), protection, deed, &path);
            assert_eq!(found, refused, "{deed:?} at {place:?} by {path}, with {protected} {protection:?}");
        }
    }
}
