//! Where the lines of a huge file are, as far as earlier reads have found out.

use std::sync::Arc;

use super::source::BLOCK_BYTES;

/// The bytes between two marks, until there are too many of them.
const MARK_INTERVAL: u64 = BLOCK_BYTES as u64;

/// The most marks of one file: enough for 1 GiB at the first stride.
const MAX_MARKS: usize = 4096;

/// What reads of one version of a file have found out about where its lines are, so that the next one starts nearby.
///
/// # Behaviour
///
/// * It knows a place every 256 KiB, as far as the file was looked through for a line. In a file so large that this
///   would be more than [`LineIndex::MAX_BYTES`], the places lie further apart.
/// * It holds for one version of one file: another version needs a new one.
/// * A clone is cheap, and grows apart from the original.
#[derive(Debug, Clone, Default)]
pub struct LineIndex {
    marks: Arc<Vec<Mark>>,
    /// How often the stride was doubled.
    doublings: u32,
}

/// A place in a file; it need not be where a line begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: u64,
    /// How many lines end before it.
    pub(super) lines: u64,
}

impl LineIndex {
    /// The most memory that one takes, in bytes: 64 KiB.
    pub const MAX_BYTES: usize = MAX_MARKS * size_of::<Mark>();

    /// An index that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How far into the file it reaches, in bytes; 0 where it knows nothing.
    pub fn reach(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.at)
    }

    /// The last known place before the end of the line `lines`, counted from 1.
    pub(super) fn before(&self, lines: u64) -> Option<Mark> {
        let after = self.marks.partition_point(|mark| mark.lines < lines);
        self.marks[..after].last().copied()
    }

    /// Takes note of `mark`, if it is far enough behind the last one.
    pub(super) fn note(&mut self, mark: Mark) {
        if mark.at < self.reach().saturating_add(MARK_INTERVAL << self.doublings) {
            return;
        }
        let marks = Arc::make_mut(&mut self.marks);
        marks.push(mark);
        if marks.len() == MAX_MARKS {
            let mut every_second = [false, true].into_iter().cycle();
            marks.retain(|_| every_second.next() == Some(true));
            self.doublings += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_before_a_line_is_before_its_end_even_where_a_line_is_longer_than_the_stride() {
        let mut index = LineIndex::new();
        for (block, lines) in [(1, 10), (2, 20), (3, 20), (4, 30)] {
            index.note(Mark { at: block * MARK_INTERVAL, lines });
        }
        let found = |lines| index.before(lines).map(|mark| mark.at / MARK_INTERVAL);
        assert_eq!([0, 1, 10].map(found), [None; 3]);
        assert_eq!([11, 20, 21, 30, 31, u64::MAX].map(found), [1, 1, 3, 3, 4, 4].map(Some));
    }

    #[test]
    fn it_is_bounded_however_large_the_file_is() {
        let mut index = LineIndex::new();
        let before = index.clone();
        for block in 1..=1_000_000 {
            index.note(Mark { at: block * MARK_INTERVAL, lines: block * 3 });
            assert!(index.marks.len() < MAX_MARKS);
        }
        assert!(index.marks.len() >= MAX_MARKS / 2 - 1, "{}", index.marks.len());
        assert!(index.marks.windows(2).all(|pair| pair[1].at - pair[0].at == MARK_INTERVAL << index.doublings));
        let farthest = index.before(u64::MAX).expect("it knows something");
        assert_eq!((farthest.at, farthest.lines), (index.reach(), index.reach() / MARK_INTERVAL * 3));
        assert_eq!((before.reach(), before.before(9)), (0, None), "a clone grows apart");
    }
}
