//! Protected paths, kept by where a descriptor really is: what path led there, and who swaps links meanwhile, is all the same.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::io::{self, Errno};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use crate::config::options::Protection;
use crate::fs::errno::error_at;

/// What is about to be done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A file is read, or a directory is listed.
    Read,
    /// A file is copied, or a directory with everything below it.
    Copy,
    /// An entry is written, removed or moved, or another takes its place.
    Change,
    /// A directory is made, or opened by whoever may write in it.
    Make,
}

/// Where something is below the root: nothing for the root itself, else names with a `/` before each, in lower case.
pub(crate) type Place = String;

/// The protected paths of a root, and the names that are protected at any depth.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    paths: Vec<(Place, Protection)>,
    /// In lower case.
    names: Vec<(String, Protection)>,
}

impl Guard {
    /// Guards these paths and names below `root`, which the system has to be able to tell.
    pub(crate) fn new(
        paths: &[(VfsPath, Protection)],
        names: &[(String, Protection)],
        root: BorrowedFd<'_>,
    ) -> Result<Self> {
        if !paths.is_empty() || !names.is_empty() {
            read_place(root, root).map_err(|errno| {
                let message = "paths are protected by where /proc says that they are; mount it";
                Error::new(ErrorKind::Unsupported, message).with_source(errno)
            })?;
        }
        Ok(Self {
            paths: paths.iter().map(|(path, protection)| (spelled(path), *protection)).collect(),
            names: names.iter().map(|(name, protection)| (name.to_lowercase(), *protection)).collect(),
        })
    }

    /// Whether `deed` is refused somewhere.
    fn is_awake(&self, deed: Deed) -> bool {
        let is_looking = matches!(deed, Deed::Read | Deed::Copy);
        let mut all = self.paths.iter().chain(&self.names);
        all.any(|(_, protection)| !is_looking || *protection == Protection::Hidden)
    }

    /// Whether some name is protected at any depth.
    pub(crate) fn protects_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether `name` is one of those that are protected at any depth.
    pub(crate) fn protects_name(&self, name: &[u8]) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let name = String::from_utf8_lossy(name).to_lowercase();
        self.names.iter().any(|(protected, _)| *protected == name)
    }

    /// Where `held` is, for [`check_place`](Self::check_place); `None` where nothing is hidden.
    pub(crate) fn place(&self, root: BorrowedFd<'_>, held: impl AsFd, path: &VfsPath) -> Result<Option<Place>> {
        if !self.is_awake(Deed::Read) {
            return Ok(None);
        }
        read_place(root, held.as_fd()).map(Some).map_err(|errno| error_at(errno, path))
    }

    /// Refuses reading what is at this place.
    pub(crate) fn check_place(&self, place: &str, path: &VfsPath) -> Result<()> {
        self.check_all(place, Deed::Read, path)
    }

    /// Refuses what may not be done with what has this path, for who follows no link on the way to it.
    pub(crate) fn check_path(&self, deed: Deed, path: &VfsPath) -> Result<()> {
        if self.is_awake(deed) { self.check_all(&spelled(path), deed, path) } else { Ok(()) }
    }

    /// Refuses what may not be done with what has these names, each in the one before it, the first in the directory `held`:
    /// with that itself where there are none. `path` led to it below `root`, and counts, too.
    pub(crate) fn check(
        &self,
        root: BorrowedFd<'_>,
        held: impl AsFd,
        names: &[&str],
        deed: Deed,
        path: &VfsPath,
    ) -> Result<()> {
        if !self.is_awake(deed) {
            return Ok(());
        }
        let mut place = read_place(root, held.as_fd()).map_err(|errno| error_at(errno, path))?;
        for name in names {
            place = below(&place, name);
        }
        self.check_all(&place, deed, path)?;
        self.check_path(deed, path)
    }

    fn check_all(&self, place: &str, deed: Deed, path: &VfsPath) -> Result<()> {
        let by_path = |(protected, protection): &(Place, _)| is_refused(place, protected, *protection, deed);
        let by_name = |(name, protection): &(String, _)| is_refused_by_name(place, name, *protection, deed);
        if self.paths.iter().any(by_path) || self.names.iter().any(by_name) {
            let message = "this path is protected, or leads to one that is";
            return Err(Error::new(ErrorKind::PolicyDenied, message).with_path(path));
        }
        Ok(())
    }
}

/// The place of an entry of the directory at `place`.
pub(crate) fn below(place: &str, name: &str) -> Place {
    format!("{place}/{}", name.to_lowercase())
}

/// The place that `path` is as it is spelled. A file system may fold case, so what differs by it alone is taken for the same.
fn spelled(path: &VfsPath) -> Place {
    if path.is_root() { Place::new() } else { path.as_str().to_lowercase() }
}

fn is_refused(place: &str, protected: &str, protection: Protection, deed: Deed) -> bool {
    // The kernel puts this behind the path of something that was removed, and anybody may put it behind a name.
    let plain = place.strip_suffix(" (deleted)");
    let is_at = [Some(place), plain].into_iter().flatten().any(|place| is_at_or_below(place, protected));
    let is_above = is_at_or_below(protected, place);
    match deed {
        Deed::Read => protection == Protection::Hidden && is_at,
        Deed::Copy => protection == Protection::Hidden && (is_at || is_above),
        Deed::Change => is_at || is_above,
        Deed::Make => is_at,
    }
}

/// What is above a protected name is moved with it, and it stays protected where it comes to be. Before a directory is removed
/// its entries are looked at by [`Guard::protects_name`].
fn is_refused_by_name(place: &str, name: &str, protection: Protection, deed: Deed) -> bool {
    let plain = place.strip_suffix(" (deleted)");
    let has_it = |place: &str| place.split('/').any(|component| component == name);
    let is_looking = matches!(deed, Deed::Read | Deed::Copy);
    (!is_looking || protection == Protection::Hidden) && [Some(place), plain].into_iter().flatten().any(has_it)
}

fn is_at_or_below(place: &str, above: &str) -> bool {
    place.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn read_place(root: BorrowedFd<'_>, held: BorrowedFd<'_>) -> io::Result<Place> {
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
            // Nothing that is protected has a name that is not UTF-8.
            let below = String::from_utf8_lossy(below).to_lowercase();
            return Ok(if below == "/" { Place::new() } else { below });
        }
    }
    Err(Errno::XDEV)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_told_by_the_place() {
        use Deed::{Change, Copy, Make, Read};
        use Protection::{Hidden, ReadOnly};
        for (place, protected, protection, deed, refused) in [
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
            ("/a", "/a/keys", ReadOnly, Make, false),
            ("/a/keys/new", "/a/keys", ReadOnly, Make, true),
            ("/anything", "", ReadOnly, Change, true),
        ] {
            let found = is_refused(place, protected, protection, deed);
            assert_eq!(found, refused, "{deed:?} at {place:?}, with {protected} {protection:?}");
        }
    }

    #[test]
    fn what_has_a_protected_name_is_refused_at_any_depth() {
        use Deed::{Change, Copy, Make, Read};
        use Protection::{Hidden, ReadOnly};
        for (place, name, protection, deed, refused) in [
            ("/a/b/.env", ".env", Hidden, Read, true),
            ("/a/.env (deleted)", ".env", Hidden, Read, true),
            ("/a/.env/key", ".env", Hidden, Copy, true),
            ("/a/.env", ".env", ReadOnly, Read, false),
            ("/a/.git/hooks/new", ".git", ReadOnly, Change, true),
            ("/a/.git", ".git", ReadOnly, Make, true),
            ("/a/.gitignore", ".git", ReadOnly, Change, false),
            ("/a", ".git", ReadOnly, Change, false),
            ("", ".git", ReadOnly, Change, false),
        ] {
            let found = is_refused_by_name(place, name, protection, deed);
            assert_eq!(found, refused, "{deed:?} at {place:?}, with {name} {protection:?}");
        }
    }

    #[test]
    fn case_makes_no_other_place() {
        assert_eq!(spelled(&VfsPath::parse("/A/.ENV").expect("a path")), "/a/.env");
        assert_eq!(below("/a", ".ENV"), "/a/.env");
    }
}
