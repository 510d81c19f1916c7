//! Sparse index of line positions in large files.

use std::sync::Arc;

use super::content_source::BLOCK_BYTES;

/// The initial distance of two marks in bytes.
const MARK_INTERVAL: u64 = BLOCK_BYTES as u64;

/// The maximum number of marks: enough for 1 GiB at the initial distance.
const MAX_MARKS: usize = 4096;

/// A sparse index of line positions in one version of a file, which reads fill and use.
///
/// # Behaviour
///
/// * The index has a position every 256 KiB in the part of the file that was read. If it exceeds [`LineIndex::MAX_BYTES`], the
///   distance of the positions doubles.
/// * An index is valid for one version of one file.
/// * A clone is cheap, and independent of the original.
#[derive(Debug, Clone, Default)]
pub struct LineIndex {
    marks: Arc<Vec<LineIndexMark>>,
    /// How often the distance of the marks was doubled.
    doublings: u32,
}

/// A position in a file, which need not be the start of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineIndexMark {
    pub(super) at: u64,
    /// The number of lines that end before the position.
    pub(super) lines: u64,
}

impl LineIndex {
    /// The maximum memory of an index in bytes: 64 KiB.
    pub const MAX_BYTES: usize = MAX_MARKS * size_of::<LineIndexMark>();

    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the last indexed position in bytes; 0 if the index is empty.
    pub fn reach(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.at)
    }

    /// Returns the last mark before the end of the line `lines`, counted from 1.
    pub(super) fn before(&self, lines: u64) -> Option<LineIndexMark> {
        let after = self.marks.partition_point(|mark| mark.lines < lines);
        self.marks[..after].last().copied()
    }

    /// Adds `mark`, if it is far enough after the last one.
    pub(super) fn add(&mut self, mark: LineIndexMark) {
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
    fn the_mark_before_a_long_line_is_before_its_end() {
        let mut index = LineIndex::new();
        for (block, lines) in [(1, 10), (2, 20), (3, 20), (4, 30)] {
            index.add(LineIndexMark { at: block * MARK_INTERVAL, lines });
        }
        let found = |lines| index.before(lines).map(|mark| mark.at / MARK_INTERVAL);
        assert_eq!([0, 1, 10].map(found), [None; 3]);
        assert_eq!([11, 20, 21, 30, 31, u64::MAX].map(found), [1, 1, 3, 3, 4, 4].map(Some));
    }

    #[test]
    fn memory_is_bounded_for_files_of_any_size() {
        let mut index = LineIndex::new();
        let before = index.clone();
        for block in 1..=1_000_000 {
            index.add(LineIndexMark { at: block * MARK_INTERVAL, lines: block * 3 });
            assert!(index.marks.len() < MAX_MARKS);
        }
        assert!(index.marks.len() >= MAX_MARKS / 2 - 1, "{}", index.marks.len());
        assert!(index.marks.windows(2).all(|pair| pair[1].at - pair[0].at == MARK_INTERVAL << index.doublings));
        let farthest = index.before(u64::MAX).expect("it knows something");
        assert_eq!((farthest.at, farthest.lines), (index.reach(), index.reach() / MARK_INTERVAL * 3));
        assert_eq!((before.reach(), before.before(9)), (0, None), "a clone grows apart");
    }
}
