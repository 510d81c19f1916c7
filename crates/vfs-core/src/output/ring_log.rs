//! What a command in the background prints, for those who ask from time to time.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::shell::{CommandExit, JobOutput};

/// The last part of what a job printed, found by cursors, and how it ended.
///
/// # Behaviour
/// A cursor is a place in all that was ever printed; who goes on from the cursor of the last answer misses nothing and sees
/// nothing twice. What is no longer kept is counted.
///
/// ```
/// use vfs_core::CommandExit;
/// use vfs_core::output::JobLog;
///
/// let mut log = JobLog::new(4);
/// log.push("abcdef");
/// let first = log.read(0, 3)?;
/// assert_eq!((first.output.as_str(), first.cursor, first.missed_bytes), ("cde", 5, 2));
/// log.ended(CommandExit::default());
/// let last = log.read(first.cursor, 100)?;
/// assert_eq!((last.output.as_str(), last.exit), ("f", Some(CommandExit::default())));
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug)]
pub struct JobLog {
    text: VecDeque<u8>,
    most: usize,
    /// Bytes that are no longer kept.
    gone: u64,
    exit: Option<CommandExit>,
}

impl JobLog {
    /// Keeps the last `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { text: VecDeque::new(), most, gone: 0, exit: None }
    }

    /// What was printed next.
    pub fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let over = (self.text.len() + bytes.len()).saturating_sub(self.most);
        let old = over.min(self.text.len());
        self.text.drain(..old);
        self.text.extend(&bytes[over - old..]);
        self.gone += over as u64;
    }

    /// It ended; the first end counts.
    pub fn ended(&mut self, exit: CommandExit) {
        self.exit.get_or_insert(exit);
    }

    /// The cursor behind all that was printed.
    pub fn end(&self) -> u64 {
        self.gone + self.text.len() as u64
    }

    /// How it ended, where it has.
    pub fn exit(&self) -> Option<CommandExit> {
        self.exit
    }

    /// At most `most` bytes from `cursor` on, but at least a character where there is one and any is wanted.
    ///
    /// # Errors
    /// `invalid_argument` for a cursor behind all that was printed.
    pub fn read(&self, cursor: u64, most: u64) -> Result<JobOutput> {
        let end = self.end();
        if cursor > end {
            return Err(Error::invalid_argument(format!(
                "the cursor {cursor} is past the end; {end} bytes were printed so far"
            )));
        }
        let begin = usize::try_from(cursor.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        let starts = |at: usize| self.text.get(at).is_none_or(|&byte| byte & 0xC0 != 0x80);
        let next_start = |at: usize| (at..).find(|&at| starts(at)).unwrap_or(at);
        // What is kept, and any cursor that is not one of ours, may begin within a character.
        let begin = next_start(begin);
        let most_end = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(begin).min(self.text.len());
        let mut until = (begin..=most_end).rev().find(|&at| starts(at)).unwrap_or(begin);
        if until == begin && most > 0 && begin < self.text.len() {
            until = next_start(begin + 1);
        }
        let bytes: Vec<u8> = self.text.range(begin..until).copied().collect();
        let first = self.gone + begin as u64;
        let mut output = JobOutput::default();
        output.output = String::from_utf8_lossy(&bytes).into_owned();
        output.missed_bytes = first - cursor;
        output.cursor = self.gone + until as u64;
        output.exit = self.exit.filter(|_| output.cursor == end);
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_finds_what_is_kept_and_tells_what_is_not() {
        let mut log = JobLog::new(8);
        log.ended(CommandExit::default());
        for (push, cursor, most, expected) in [
            ("", 0, 10, ("", 0, 0, true)),
            ("abcd", 0, 10, ("abcd", 4, 0, true)),
            ("", 2, 10, ("cd", 4, 0, true)),
            ("", 4, 10, ("", 4, 0, true)),
            ("", 1, 2, ("bc", 3, 0, false)),
            ("", 0, 0, ("", 0, 0, false)),
            ("efgh", 4, 10, ("efgh", 8, 0, true)),
            ("ij", 0, 100, ("cdefghij", 10, 2, true)),
            ("ij", 10, 100, ("ij", 12, 0, true)),
            // 12 bytes so far; six of `ää🦀` and two before them are kept after the next.
            ("ää🦀", 12, 3, ("ä", 14, 0, false)),
            ("", 12, 1, ("ä", 14, 0, false)),
            ("", 13, 2, ("ä", 16, 1, false)),
            ("", 16, 2, ("🦀", 20, 0, true)),
            ("x", 0, 100, ("ä🦀x", 21, 14, true)),
        ] {
            log.push(push);
            let output = log.read(cursor, most).expect("within");
            let found = (output.output.as_str(), output.cursor, output.missed_bytes, output.exit.is_some());
            assert_eq!(found, expected, "{push} {cursor} {most}");
        }
        assert_eq!(log.read(22, 1).expect_err("past the end").kind(), crate::error::ErrorKind::InvalidArgument);
    }
}
