//! What comes of a search: items on their way from a worker to the consumer.

use std::ops::{AddAssign, ControlFlow};

use vfs_core::{Error, FileCount, FileInfo, GrepMatch, Problem, Skipped, Truncation};

use crate::walk::dir_entries::WalkFindings;

/// About how long the version of an entry is.
const ENTRY_TEXT: usize = 64;

/// One item of a search on its way from a worker to the consumer.
#[derive(Debug)]
pub(crate) enum Item {
    /// A matching line.
    Match(GrepMatch),
    /// A line of context before a match.
    Before(GrepMatch),
    /// A line of context after a match.
    After(GrepMatch),
    /// A file that matches.
    File(FileCount),
    /// An entry that could not be searched.
    Problem(Problem),
    /// A file is done; it may have been left at its own limit with matches to come.
    Done { searched: bool, left_early: bool, skipped: Skipped },
    /// An entry that was asked for.
    Entry(FileInfo),
    /// Counts that go before what follows.
    Counts(Counts),
    /// The search cannot go on.
    Failed(Error),
}

impl Item {
    /// Whether a consumer would see it, or end by it.
    pub(crate) fn is_visible(&self) -> bool {
        !matches!(self, Item::Counts(_))
    }

    /// The number of the line that it is, if it is one. The lines of a file come in order.
    pub(crate) fn line(&self) -> Option<u64> {
        match self {
            Item::Match(line) | Item::Before(line) | Item::After(line) => Some(line.line),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn cost(&self) -> usize {
        let text = match self {
            Item::Match(found) | Item::Before(found) | Item::After(found) => {
                found.text.len() + size_of_val(&*found.submatches)
            }
            Item::Problem(problem) => problem.path.len() + problem.message.len(),
            Item::Entry(info) => info.path.as_str().len() + ENTRY_TEXT,
            Item::File(_) | Item::Done { .. } | Item::Counts(_) | Item::Failed(_) => 0,
        };
        size_of::<Self>() + text
    }
}

/// What showed nothing, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Files that were searched.
    pub(crate) searched: u64,
    pub(crate) skipped: Skipped,
    /// Whether something lies deeper than the depth limit, or than a path can name.
    pub(crate) too_deep: bool,
    /// Whether directories were left out because the search had listed too many entries.
    pub(crate) too_many: bool,
}

impl Counts {
    /// What a walk left out.
    pub(crate) fn from_findings(findings: &WalkFindings) -> Self {
        let WalkFindings { problems: _, skipped, too_deep, too_many } = *findings;
        Self { searched: 0, skipped, too_deep, too_many }
    }

    /// Why there may be more than what was found.
    pub(crate) fn truncated(&self) -> Option<Truncation> {
        match self {
            Self { too_many: true, .. } => Some(Truncation::MaxEntries),
            Self { too_deep: true, .. } => Some(Truncation::Depth),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.searched += other.searched;
        self.skipped += other.skipped;
        self.too_deep |= other.too_deep;
        self.too_many |= other.too_many;
    }
}

/// Where items go.
pub(crate) trait ItemSink {
    /// Takes `item`; `Break` where nobody wants any more.
    fn put(&mut self, item: Item) -> ControlFlow<()>;
}
