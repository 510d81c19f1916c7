//! Output in bounded memory.

use std::collections::VecDeque;

/// The first and the last part of what was printed.
#[derive(Debug)]
pub(crate) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    max_head: usize,
    max_tail: usize,
    total: u64,
}

/// Room for the line that says how much is missing.
const MARK: usize = 64;

impl HeadAndTail {
    /// Keeps at most `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let max_head = max.div_ceil(2);
        Self { head: Vec::new(), tail: VecDeque::new(), max_head, max_tail: max - max_head, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.max_head - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.max_tail)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.max_tail);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// How many bytes were printed in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Whether some are missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// As text; what is not UTF-8 is shown as U+FFFD.
    pub(crate) fn text(&self) -> String {
        let (mut head, mut tail) = (self.head.clone(), self.tail.iter().copied().collect::<Vec<_>>());
        if !self.is_cut() {
            head.append(&mut tail);
            return lossy(head);
        }
        let mut mark = String::new();
        if self.max_head > MARK && self.max_tail > MARK {
            // Whole characters, and no more bytes than are asked for with the mark in it.
            head.truncate(whole_characters(&head[..self.max_head - MARK / 2]));
            tail.drain(..MARK / 2);
            let kept = (head.len() + tail.len()) as u64;
            mark = format!("\n[... {} bytes left out ...]\n", self.total - kept);
        }
        let starts = tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        lossy(head) + &mark + &String::from_utf8_lossy(&tail[starts..])
    }
}

/// The last part of what was printed, by places in all of it.
#[derive(Debug)]
pub(crate) struct Recent {
    bytes: VecDeque<u8>,
    max: usize,
    /// The place of the first byte that is kept.
    first: u64,
}

impl Recent {
    /// Keeps at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { bytes: VecDeque::new(), max, first: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let lost = bytes.len().saturating_sub(self.max);
        let surplus = (self.bytes.len() + bytes.len() - lost).saturating_sub(self.max);
        self.bytes.drain(..surplus);
        self.first += (surplus + lost) as u64;
        self.bytes.extend(&bytes[lost..]);
    }

    /// The place behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.bytes.len() as u64
    }

    /// At most `max` bytes from `cursor` on, as text: how many before are lost, the text, and where what comes next begins.
    /// A character that is not all there yet is left for the next time unless `is_all`.
    pub(crate) fn from(&self, cursor: u64, max: u64, is_all: bool) -> (u64, String, u64) {
        let start = cursor.clamp(self.first, self.end());
        let from = usize::try_from(start - self.first).unwrap_or(usize::MAX);
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        let mut part: Vec<u8> = self.bytes.iter().skip(from).take(most).copied().collect();
        let (whole, is_end) = (whole_characters(&part), start + part.len() as u64 == self.end());
        if (is_end && !is_all) || (!is_end && whole > 0) {
            part.truncate(whole);
        }
        let next = start + part.len() as u64;
        (self.first.saturating_sub(cursor), lossy(part), next)
    }
}

/// Where the last character begins that `bytes` have only a part of; else their length.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for (at, byte) in bytes.iter().enumerate().skip(start).rev() {
        let length = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if at + length > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_part_are_kept() {
        let mut kept = HeadAndTail::new(1_000);
        for number in 0..10_000 {
            kept.push(format!("{number}\n").as_bytes());
        }
        let text = kept.text();
        assert!(text.starts_with("0\n1\n") && text.ends_with("9998\n9999\n"), "{text}");
        assert!(text.contains("bytes left out") && text.len() <= 1_000, "{}", text.len());
        assert!(kept.is_cut() && kept.total() == 48_890);
        let mut small = HeadAndTail::new(5);
        small.push(b"abc");
        assert_eq!((small.text().as_str(), small.is_cut()), ("abc", false));
        small.push(b"defgh");
        assert_eq!((small.text().as_str(), small.is_cut()), ("abcgh", true));
        let mut none = HeadAndTail::new(0);
        none.push(b"abc");
        assert_eq!((none.text().as_str(), none.total()), ("", 3));
    }

    #[test]
    fn characters_are_not_cut_into_halves() {
        let mut kept = HeadAndTail::new(400);
        kept.push("é".repeat(1_000).as_bytes());
        assert!(!kept.text().contains('\u{fffd}'), "{}", kept.text());
        assert_eq!(whole_characters("aé".as_bytes()), 3);
        assert_eq!(whole_characters(&"aé".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(&"😀".as_bytes()[..3]), 0);
        assert_eq!(whole_characters(b"\xff\x80\x80\x80"), 4);
    }

    #[test]
    fn what_is_recent_is_found_by_its_place() {
        let mut recent = Recent::new(4);
        recent.push(b"ab");
        assert_eq!(recent.from(0, 100, false), (0, "ab".to_owned(), 2));
        recent.push(b"cdef");
        assert_eq!(recent.from(0, 100, false), (2, "cdef".to_owned(), 6));
        assert_eq!(recent.from(3, 2, false), (0, "de".to_owned(), 5));
        assert_eq!(recent.from(99, 2, false), (0, String::new(), 6));
        recent.push(&"é".as_bytes()[..1]);
        assert_eq!(recent.from(5, 100, false), (0, "f".to_owned(), 6));
        assert_eq!(recent.from(5, 100, true).1, "f\u{fffd}");
    }
}
