//! A stretch of a walk: what one worker takes on at a time.

use std::ops::Range;
use std::sync::Arc;

use crate::walk::dir_entries::{Level, Step};

/// Steps of a level that nobody has claimed.
#[derive(Debug)]
pub(crate) struct Cursor<D> {
    pub(crate) level: Arc<Level<D>>,
    pub(crate) steps: Range<usize>,
}

impl<D> Cursor<D> {
    /// Takes the first steps, at most `most`.
    pub(crate) fn take(&mut self, most: usize) -> Self {
        let middle = self.steps.end.min(self.steps.start + most);
        let first = Self { level: Arc::clone(&self.level), steps: self.steps.start..middle };
        self.steps.start = middle;
        first
    }
}

/// Steps that are taken one after the other, with all that lies below them: those of the last level come first. No cursor
/// of it is at its end.
#[derive(Debug)]
pub(crate) struct Stretch<D>(Vec<Cursor<D>>);

impl<D> Default for Stretch<D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<D> Stretch<D> {
    pub(crate) fn new(cursor: Cursor<D>) -> Self {
        let mut stretch = Self::default();
        stretch.enter(cursor);
        stretch
    }

    /// The next step, and the level that it is in.
    pub(crate) fn next(&self) -> Option<(Arc<Level<D>>, Step)> {
        let cursor = self.0.last()?;
        Some((Arc::clone(&cursor.level), cursor.level.step(cursor.steps.start)))
    }

    /// Goes past the next step. A level of which it was the last is let go.
    pub(crate) fn advance(&mut self) {
        if let Some(cursor) = self.0.last_mut() {
            cursor.steps.start += 1;
            if cursor.steps.is_empty() {
                self.0.pop();
            }
        }
    }

    /// Goes on with the steps of `cursor`.
    pub(crate) fn enter(&mut self, cursor: Cursor<D>) {
        if !cursor.steps.is_empty() {
            self.0.push(cursor);
        }
    }

    /// What is left, level by level.
    pub(crate) fn into_cursors(self) -> impl Iterator<Item = Cursor<D>> {
        self.0.into_iter()
    }

    /// Takes all steps but the next.
    pub(crate) fn split_off(&mut self) -> Self {
        let mut rest = std::mem::take(self);
        if let Some(cursor) = rest.0.last_mut() {
            self.enter(cursor.take(1));
        }
        rest.0.pop_if(|cursor| cursor.steps.is_empty());
        rest
    }

    /// Whether there are steps beyond the next.
    pub(crate) fn is_divisible(&self) -> bool {
        self.0.iter().map(|cursor| cursor.steps.len()).sum::<usize>() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;
    use crate::walk::dir_entries::{Entry, Findings};
    use crate::walk::dir_reader::{Opener, WalkState};
    use crate::walk::testing::{EVERYWHERE, OPTIONS, root, whole};

    #[test]
    fn a_stretch_goes_down_before_it_goes_on_and_leaves_what_comes_after_its_next_step() {
        let tree = TestTree::new([("/a/d/f", ""), ("/a/e", ""), ("/b", ""), ("/c", "")]);
        let (cursor, opener) = (
            root(&tree),
            Opener { tree: &tree, guide: &EVERYWHERE, options: OPTIONS, state: &WalkState::new(None, u64::MAX) },
        );
        let mut stretch = Stretch::new(cursor);
        let enter = |stretch: &mut Stretch<String>| {
            let (level, step) = stretch.next().expect("a directory");
            stretch.advance();
            let below = opener.descend(&level, step, &mut Findings::default()).expect("it goes on").expect("a level");
            stretch.enter(whole(below));
        };
        let next =
            |stretch: &Stretch<String>| stretch.next().map(|(level, step)| Entry::of(&level, step).name().to_owned());
        enter(&mut stretch);
        enter(&mut stretch);
        assert_eq!(next(&stretch).as_deref(), Some("f"));
        assert!(stretch.is_divisible());
        let rest = stretch.split_off();
        assert!(!stretch.is_divisible());
        assert_eq!(next(&stretch).as_deref(), Some("f"));
        stretch.advance();
        assert_eq!(next(&stretch), None);
        let keys: Vec<_> = rest.into_cursors().map(|cursor| cursor.level.key(cursor.steps.start)).collect();
        assert_eq!(keys.iter().map(|key| &**key).collect::<Vec<_>>(), ["/b", "/a/e"]);
    }
}
