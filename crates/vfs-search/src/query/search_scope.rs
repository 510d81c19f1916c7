//! Scope of a request: the directories in which it can find entries.

use vfs_core::{GlobRequest, GrepRequest, LsRequest, Result, VfsPath};

use crate::glob::GlobPattern;
use crate::query::file_filter::FileFilter;

/// The directories in which a request can find entries, derived from its patterns alone.
///
/// ```
/// use vfs_core::{GlobRequest, VfsPath};
/// use vfs_search::SearchScope;
///
/// let scope = SearchScope::of_glob(&GlobRequest::new("src/**/*.rs"))?;
/// assert!(scope.reaches(&VfsPath::parse("/src/net")?));
/// assert!(!scope.reaches(&VfsPath::parse("/docs")?));
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub struct SearchScope {
    start: VfsPath,
    filter: ReachLimit,
}

/// The part of a request that limits the directories below the start.
enum ReachLimit {
    Glob(GlobPattern),
    Grep(Box<FileFilter>),
    /// Directories at most this many levels below the start; `None` for all.
    Depth(Option<u32>),
}

impl SearchScope {
    /// Creates the scope of a glob.
    ///
    /// # Errors
    ///
    /// `invalid_pattern`.
    pub fn of_glob(req: &GlobRequest) -> Result<Self> {
        Ok(Self { start: req.path.clone(), filter: ReachLimit::Glob(GlobPattern::new(&req.pattern)?) })
    }

    /// Creates the scope of a grep.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` for one of its globs, and `invalid_argument` for one of its file types.
    pub fn of_grep(req: &GrepRequest) -> Result<Self> {
        Ok(Self { start: req.path.clone(), filter: ReachLimit::Grep(Box::new(FileFilter::new(req)?)) })
    }

    /// Creates the scope of a listing.
    pub fn of_ls(req: &LsRequest) -> Self {
        let depth = if req.recursive { req.max_depth } else { Some(0) };
        Self { start: req.path.clone(), filter: ReachLimit::Depth(depth) }
    }

    /// Returns whether the search enters `directory` or a directory below it.
    ///
    /// The search does so if an entry there can be a result, if it starts there or below, if it has to determine
    /// whether a listing is truncated there, or if the `.git/info/exclude` of a directory in scope may be there.
    pub fn reaches(&self, directory: &VfsPath) -> bool {
        if self.start.starts_with(directory) || self.may_contain_exclude_file(directory) {
            return true;
        }
        let Some(relative) = directory.strip_prefix(&self.start) else { return false };
        let mut above = 0;
        relative.split('/').enumerate().all(|(depth, name)| {
            let parent = &relative[..above];
            // The parent of the next name ends before the separator that follows this name.
            above += name.len() + usize::from(above > 0);
            self.should_enter(parent, name, depth)
        })
    }

    fn may_contain_exclude_file(&self, directory: &VfsPath) -> bool {
        let git = match directory.name() {
            Some("info") => directory.parent().filter(|above| above.name() == Some(".git")),
            Some(".git") => Some(directory.clone()),
            _ => None,
        };
        let worktree = git.and_then(|git| git.parent());
        !matches!(self.filter, ReachLimit::Depth(_)) && worktree.is_some_and(|worktree| self.reaches(&worktree))
    }

    fn should_enter(&self, parent: &str, name: &str, depth: usize) -> bool {
        match &self.filter {
            ReachLimit::Glob(pattern) => pattern.reaches_entry(parent, name),
            ReachLimit::Grep(filter) => filter.should_enter(parent, name),
            ReachLimit::Depth(max_depth) => max_depth.is_none_or(|max_depth| depth < max_depth as usize),
        }
    }
}

impl std::fmt::Debug for SearchScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchScope").field("start", &self.start).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::parse(text).expect("a valid path")
    }

    #[test]
    fn only_directories_that_the_patterns_can_reach_are_covered() {
        let glob = |pattern: &str, start: &str| {
            SearchScope::of_glob(&GlobRequest::new(pattern).path(path(start))).expect("a valid glob")
        };
        for (pattern, start, directory, expected) in [
            ("*.rs", "/", "/a/b/c", true),
            ("a/*.rs", "/", "/a", true),
            ("a/*.rs", "/", "/a/b", false),
            ("a/b/c/*.rs", "/", "/a/b", true),
            ("a/x/c/*.rs", "/", "/a/b/c", false),
            ("b/*.rs", "/a", "/a/b", true),
            ("b/*.rs", "/a", "/b", false),
            ("b/*.rs", "/a/c", "/a", true),
            ("*.rs", "/a", "/ab", false),
            ("a/*.rs", "/", "/.git", true),
            ("a/*.rs", "/", "/a/.git/info", true),
            ("a/*.rs", "/", "/b/.git", false),
            ("a/*.rs", "/", "/a/.git/objects", false),
            ("a/*.rs", "/", "/a/info", false),
            ("*.rs", "/a/b", "/a/.git", true),
        ] {
            let scope = glob(pattern, start);
            assert_eq!(scope.reaches(&path(directory)), expected, "{pattern} from {start} in {directory}");
        }
        let grep = SearchScope::of_grep(&GrepRequest::literal("x").glob("!docs")).expect("a valid glob");
        assert_eq!(["/docs/a", "/src/a"].map(|dir| grep.reaches(&path(dir))), [false, true]);
        for (req, expected) in [
            (LsRequest::new(path("/a")), [true, false, false, false]),
            (LsRequest::new(path("/a")).recursive(), [true, true, true, false]),
            (LsRequest::new(path("/a")).recursive().max_depth(1), [true, true, false, false]),
            (LsRequest::new(path("/a")).recursive().max_depth(2), [true, true, true, false]),
        ] {
            let scope = SearchScope::of_ls(&req);
            let reached = ["/", "/a/b", "/a/b/c", "/.git"].map(|dir| scope.reaches(&path(dir)));
            assert_eq!(reached, expected, "{req:?}");
        }
    }
}
