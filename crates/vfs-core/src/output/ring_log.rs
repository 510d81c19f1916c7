//! Ring buffer of the output of a background job, read by cursor.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::shell::{CommandExit, JobOutputResult};

/// A ring buffer of the last output of a job, read by cursor, with the job's exit.
///
/// # Behaviour
///
/// A cursor is a byte offset in the whole output. A reader that continues from the cursor of the last result receives each byte
/// once, and the number of bytes that were dropped meanwhile.
///
/// ```
/// use vfs_core::output::RingLog;
/// use vfs_core::shell::CommandExit;
///
/// let mut log = RingLog::new(4);
/// log.push("abcdef");
/// let first = log.read(0, 3)?;
/// assert_eq!((first.output.as_str(), first.cursor, first.missed_bytes), ("cde", 5, 2));
/// log.set_exit(CommandExit::default());
/// let last = log.read(first.cursor, 100)?;
/// assert_eq!((last.output.as_str(), last.exit), ("f", Some(CommandExit::default())));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug)]
pub struct RingLog {
    text: VecDeque<u8>,
    capacity: usize,
    /// The number of dropped bytes.
    dropped: u64,
    exit: Option<CommandExit>,
}

impl RingLog {
    /// Creates a log of the last `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { text: VecDeque::new(), capacity, dropped: 0, exit: None }
    }

    /// Appends `text`.
    pub fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let over = (self.text.len() + bytes.len()).saturating_sub(self.capacity);
        let old = over.min(self.text.len());
        self.text.drain(..old);
        self.text.extend(&bytes[over - old..]);
        self.dropped += over as u64;
    }

    /// Sets the exit of the job; later calls have no effect.
    pub fn set_exit(&mut self, exit: CommandExit) {
        self.exit.get_or_insert(exit);
    }

    /// Returns the cursor at the end of the output.
    pub fn end(&self) -> u64 {
        self.dropped + self.text.len() as u64
    }

    /// Returns the exit of the job, or `None` while it runs.
    pub fn exit(&self) -> Option<CommandExit> {
        self.exit
    }

    /// Returns at most `max` bytes from `cursor` on, in whole characters, and at least one character unless `max` is 0.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if `cursor` is past the end of the output.
    pub fn read(&self, cursor: u64, max: u64) -> Result<JobOutputResult> {
        let end = self.end();
        if cursor > end {
            return Err(Error::invalid_argument(format!(
                "the cursor {cursor} is past the end of the output, which has {end} bytes so far"
            )));
        }
        let begin = usize::try_from(cursor.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let starts = |at: usize| self.text.get(at).is_none_or(|&byte| byte & 0xC0 != 0x80);
        let next_start = |at: usize| (at..).find(|&at| starts(at)).unwrap_or(at);
        // The stored part, or a cursor that this log did not issue, may begin within a character.
        let begin = next_start(begin);
        let max_end = usize::try_from(max).unwrap_or(usize::MAX).saturating_add(begin).min(self.text.len());
        let mut until = (begin..=max_end).rev().find(|&at| starts(at)).unwrap_or(begin);
        if until == begin && max > 0 && begin < self.text.len() {
            until = next_start(begin + 1);
        }
        let bytes: Vec<u8> = self.text.range(begin..until).copied().collect();
        let first = self.dropped + begin as u64;
        let mut output = JobOutputResult::default();
        output.output = String::from_utf8_lossy(&bytes).into_owned();
        output.missed_bytes = first - cursor;
        output.cursor = self.dropped + until as u64;
        output.exit = self.exit.filter(|_| output.cursor == end);
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_the_stored_part_and_counts_the_dropped_one() {
        let mut log = RingLog::new(8);
        log.set_exit(CommandExit::default());
        for (push, cursor, max, expected) in [
            ("", 0, 10, ("", 0, 0, true)),
            ("abcd", 0, 10, ("abcd", 4, 0, true)),
            ("", 2, 10, ("cd", 4, 0, true)),
            ("", 4, 10, ("", 4, 0, true)),
            ("", 1, 2, ("bc", 3, 0, false)),
            ("", 0, 0, ("", 0, 0, false)),
            ("efgh", 4, 10, ("efgh", 8, 0, true)),
            ("ij", 0, 100, ("cdefghij", 10, 2, true)),
            ("ij", 10, 100, ("ij", 12, 0, true)),
            // 12 bytes so far; the next push leaves two of them before `ää🦀`.
            ("ää🦀", 12, 3, ("ä", 14, 0, false)),
            ("", 12, 1, ("ä", 14, 0, false)),
            ("", 13, 2, ("ä", 16, 1, false)),
            ("", 16, 2, ("🦀", 20, 0, true)),
            ("x", 0, 100, ("ä🦀x", 21, 14, true)),
        ] {
            log.push(push);
            let output = log.read(cursor, max).expect("within");
            let found = (output.output.as_str(), output.cursor, output.missed_bytes, output.exit.is_some());
            assert_eq!(found, expected, "{push} {cursor} {max}");
        }
        assert_eq!(log.read(22, 1).expect_err("past the end").kind(), crate::error::ErrorKind::InvalidArgument);
    }
}
