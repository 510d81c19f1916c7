//! Items of a search, on their way from a worker to the consumer.

use std::ops::{AddAssign, ControlFlow};

use vfs_core::search::{MatchedFile, Skipped};
use vfs_core::{Error, FileInfo, GrepMatch, Problem, TruncationReason};

use crate::walk::dir_entries::WalkEntry;
use crate::walk::walk_findings::WalkFindings;

/// Approximate length of the version of an entry, in bytes.
const ENTRY_TEXT: usize = 64;

/// One item of a search.
#[derive(Debug)]
pub(crate) enum SearchItem {
    /// A matching line.
    Match(GrepMatch),
    /// A line of context before a match.
    Before(GrepMatch),
    /// A line of context after a match.
    After(GrepMatch),
    /// A matching file.
    File(MatchedFile),
    /// An entry or a file of ignore rules that could not be read, or not to its end.
    Problem(Problem),
    /// The end of an entry. `left_early` says that the file has more matches than its own limit allows.
    Done { searched: bool, left_early: bool, skipped: Skipped },
    /// An entry of a glob or a listing.
    Entry(FileInfo),
    /// Counts that precede the following items.
    Counts(SearchCounts),
    /// The search cannot continue.
    Failed(Error),
}

impl SearchItem {
    /// Returns the description of `entry`, or the problem that prevents one.
    pub(crate) fn describe(entry: WalkEntry<'_>) -> Self {
        match entry.path().and_then(|path| entry.dir().stat(entry.name(), path)) {
            Ok(info) => SearchItem::Entry(info),
            Err(error) => SearchItem::Problem(entry.problem(error)),
        }
    }

    /// Returns whether the consumer sees the item, or ends because of it.
    pub(crate) fn is_visible(&self) -> bool {
        !matches!(self, SearchItem::Counts(_))
    }

    /// Returns the line number, if the item is a line. The lines of a file come in order.
    pub(crate) fn line(&self) -> Option<u64> {
        match self {
            SearchItem::Match(line) | SearchItem::Before(line) | SearchItem::After(line) => Some(line.line),
            _ => None,
        }
    }

    /// Returns the approximate size of the item in bytes.
    pub(crate) fn cost(&self) -> usize {
        let text = match self {
            SearchItem::Match(found) | SearchItem::Before(found) | SearchItem::After(found) => {
                found.text.len() + size_of_val(&*found.submatches)
            }
            SearchItem::Problem(problem) => problem.path.len() + problem.message.len(),
            SearchItem::Entry(info) => info.path.as_str().len() + ENTRY_TEXT,
            SearchItem::File(_) | SearchItem::Done { .. } | SearchItem::Counts(_) | SearchItem::Failed(_) => 0,
        };
        size_of::<Self>() + text
    }
}

/// Counts of files and entries that yield no other item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SearchCounts {
    /// Number of files that were searched.
    pub(crate) searched: u64,
    pub(crate) skipped: Skipped,
    /// Whether there are entries deeper than the depth limit, or deeper than a path can express.
    pub(crate) too_deep: bool,
    /// Whether directories were left out because the search had listed too many entries.
    pub(crate) too_many: bool,
}

impl SearchCounts {
    /// Converts the findings of a walk, without its problems, to counts.
    pub(crate) fn from_findings(findings: &WalkFindings) -> Self {
        let WalkFindings { problems: _, skipped, too_deep, too_many } = *findings;
        Self { searched: 0, skipped, too_deep, too_many }
    }

    /// Returns the limit that may have cut the results, if any.
    pub(crate) fn truncated(&self) -> Option<TruncationReason> {
        match self {
            Self { too_many: true, .. } => Some(TruncationReason::MaxEntries),
            Self { too_deep: true, .. } => Some(TruncationReason::Depth),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for SearchCounts {
    fn add_assign(&mut self, other: Self) {
        self.searched += other.searched;
        self.skipped += other.skipped;
        self.too_deep |= other.too_deep;
        self.too_many |= other.too_many;
    }
}

/// A consumer of items.
pub(crate) trait ItemSink {
    /// Takes `item`. Returns `Break` if the consumer needs no more items.
    fn put(&mut self, item: SearchItem) -> ControlFlow<()>;
}
