//! Counts by directory, in place of a list that is too long.

use std::collections::BTreeMap;

use vfs_core::VfsPath;

use super::page::Page;

/// Maximum number of directories that are counted apart; those beyond it are counted with the directory above them.
const MAX_DIRECTORIES: usize = 10_000;

/// Key of the files that are counted together, since there are too many.
const OTHERS: &str = "(others)/";

/// What was found below a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MatchCounts {
    pub(super) files: u64,
    pub(super) matches: u64,
}

/// Counts by directory below a path.
#[derive(Debug)]
pub(super) struct CountsByDirectory<'a> {
    path: &'a VfsPath,
    depth: usize,
    /// What was found, by the path below `path`; that of a directory ends in `/`.
    counts: BTreeMap<String, MatchCounts>,
}

impl<'a> CountsByDirectory<'a> {
    /// Creates a summary of what is below `path`, in which directories have a count of their own down to `depth` levels.
    pub(super) fn new(path: &'a VfsPath, depth: usize) -> Self {
        Self { path, depth, counts: BTreeMap::new() }
    }

    /// Counts a file.
    pub(super) fn add(&mut self, path: &VfsPath, matches: u64) {
        let relative = relative(path, self.path);
        let mut key = prefix(relative, self.depth);
        if self.counts.len() >= MAX_DIRECTORIES && !self.counts.contains_key(key) {
            key = Some(prefix(relative, 1)).filter(|first| first.ends_with('/')).unwrap_or(OTHERS);
        }
        let found = self.counts.entry(key.to_owned()).or_default();
        found.files += 1;
        found.matches += matches;
    }

    /// Returns at most `limit` lines in at most `max_bytes`, made by `line`: of the deepest level of directories at which all fit, or of
    /// the first ones.
    pub(super) fn lines(&self, limit: u64, max_bytes: usize, line: impl Fn(&str, MatchCounts) -> String) -> Page {
        let mut page = Page::new(max_bytes);
        for depth in (1..=self.depth).rev() {
            let mut counts: BTreeMap<&str, MatchCounts> = BTreeMap::new();
            for (key, found) in &self.counts {
                let sum = counts.entry(prefix(key, depth)).or_default();
                sum.files += found.files;
                sum.matches += found.matches;
            }
            let lines: Vec<_> = counts.iter().map(|(key, found)| line(key, *found)).collect();
            let fits =
                lines.len() as u64 <= limit && lines.iter().map(|line| line.len() + 1).sum::<usize>() < max_bytes;
            if fits || depth == 1 {
                let shown =
                    lines.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).take_while(|line| page.push(line));
                let shown = shown.count();
                if shown < lines.len() {
                    page.push_last(&format!("... and {} more", lines.len() - shown));
                }
                break;
            }
        }
        page
    }
}

/// Returns `path` without `above`, which it lies below.
pub(super) fn relative<'a>(path: &'a VfsPath, above: &VfsPath) -> &'a str {
    let rest = if above.is_root() {
        path.as_str()
    } else {
        path.as_str().strip_prefix(above.as_str()).unwrap_or(path.as_str())
    };
    rest.trim_start_matches('/')
}

/// Returns the first `depth` directories of a path with the `/` after them, or the whole path if it has fewer.
fn prefix(path: &str, depth: usize) -> &str {
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at + 1);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_a_count_of_their_own_as_deep_as_all_lines_fit() {
        let path = VfsPath::parse("/src").expect("a valid path");
        let mut summary = CountsByDirectory::new(&path, 2);
        for file in ["/src/a/x/1", "/src/a/x/2", "/src/a/y/1", "/src/b", "/src/c/1"] {
            summary.add(&VfsPath::parse(file).expect("a valid path"), 2);
        }
        let lines = |limit| {
            let page = summary.lines(limit, 8_000, |key, found| format!("{key} {}:{}", found.files, found.matches));
            page.into_text("", "").trim_start().to_owned()
        };
        assert_eq!(lines(4), "a/x/ 2:4\na/y/ 1:2\nb 1:2\nc/1 1:2");
        assert_eq!(lines(3), "a/ 3:6\nb 1:2\nc/ 1:2");
        assert_eq!(lines(1), "a/ 3:6\n... and 2 more");
    }
}
