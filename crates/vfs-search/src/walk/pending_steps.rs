//! Depth-first walk position of one worker: the steps that it has claimed and not taken yet.

use std::ops::Range;
use std::sync::Arc;

use crate::walk::dir_entries::{DirEntries, WalkStep};

/// Consecutive steps of one directory.
#[derive(Debug)]
pub(crate) struct DirSteps {
    pub(crate) entries: Arc<DirEntries>,
    pub(crate) steps: Range<usize>,
}

impl DirSteps {
    /// Splits off the first steps, at most `max_steps`.
    pub(crate) fn take(&mut self, max_steps: usize) -> Self {
        let middle = self.steps.end.min(self.steps.start + max_steps);
        let first = Self { entries: Arc::clone(&self.entries), steps: self.steps.start..middle };
        self.steps.start = middle;
        first
    }
}

/// Steps that are taken one after the other, each with everything below it. The steps of the last range come first,
/// and no range is empty.
#[derive(Debug, Default)]
pub(crate) struct PendingSteps(Vec<DirSteps>);

impl PendingSteps {
    pub(crate) fn new(range: DirSteps) -> Self {
        let mut subtree = Self::default();
        subtree.enter(range);
        subtree
    }

    /// Returns the next step and its directory.
    pub(crate) fn next(&self) -> Option<(Arc<DirEntries>, WalkStep)> {
        let range = self.0.last()?;
        Some((Arc::clone(&range.entries), range.entries.step(range.steps.start)))
    }

    /// Advances past the next step, and releases the directory if that was its last one.
    pub(crate) fn advance(&mut self) {
        if let Some(range) = self.0.last_mut() {
            range.steps.start += 1;
            if range.steps.is_empty() {
                self.0.pop();
            }
        }
    }

    /// Continues with the steps of `range`.
    pub(crate) fn enter(&mut self, range: DirSteps) {
        if !range.steps.is_empty() {
            self.0.push(range);
        }
    }

    /// Returns the remaining ranges, one for each directory.
    pub(crate) fn into_ranges(self) -> impl Iterator<Item = DirSteps> {
        self.0.into_iter()
    }

    /// Splits off all steps but the next.
    pub(crate) fn split_off(&mut self) -> Self {
        let mut rest = std::mem::take(self);
        if let Some(range) = rest.0.last_mut() {
            self.enter(range.take(1));
        }
        rest.0.pop_if(|range| range.steps.is_empty());
        rest
    }

    /// Returns whether there are steps beyond the next.
    pub(crate) fn is_divisible(&self) -> bool {
        self.0.iter().map(|range| range.steps.len()).sum::<usize>() > 1
    }
}

#[cfg(test)]
mod tests {
    use vfs_core::tree::Tree;

    use super::*;
    use crate::testing::TestTree;
    use crate::walk::dir_entries::WalkEntry;
    use crate::walk::dir_reader::{DirReader, SharedWalkState};
    use crate::walk::testing::{EVERYWHERE, OPTIONS, full_range, root};
    use crate::walk::walk_findings::WalkFindings;

    #[test]
    fn a_subtree_is_walked_depth_first_and_can_split_off_all_steps_but_the_next() {
        let tree: Arc<dyn Tree> = Arc::new(TestTree::new([("/a/d/f", ""), ("/a/e", ""), ("/b", ""), ("/c", "")]));
        let (range, reader) = (
            root(&tree),
            DirReader {
                tree: &tree,
                control: EVERYWHERE,
                options: OPTIONS,
                state: &SharedWalkState::new(None, u64::MAX),
            },
        );
        let mut subtree = PendingSteps::new(range);
        let enter = |subtree: &mut PendingSteps| {
            let (entries, step) = subtree.next().expect("a directory");
            subtree.advance();
            let below =
                reader.descend(&entries, step, &mut WalkFindings::default()).expect("it goes on").expect("a level");
            subtree.enter(full_range(below));
        };
        let next = |subtree: &PendingSteps| {
            subtree.next().map(|(entries, step)| WalkEntry::of(&entries, step).name().to_owned())
        };
        enter(&mut subtree);
        enter(&mut subtree);
        assert_eq!(next(&subtree).as_deref(), Some("f"));
        assert!(subtree.is_divisible());
        let rest = subtree.split_off();
        assert!(!subtree.is_divisible());
        assert_eq!(next(&subtree).as_deref(), Some("f"));
        subtree.advance();
        assert_eq!(next(&subtree), None);
        let keys: Vec<_> = rest.into_ranges().map(|range| range.entries.key(range.steps.start)).collect();
        assert_eq!(keys.iter().map(|key| &**key).collect::<Vec<_>>(), ["/b", "/a/e"]);
    }
}
