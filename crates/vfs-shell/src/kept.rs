//! What is kept of a text that may be endless.

use std::collections::VecDeque;

/// The first and the last part of a text.
#[derive(Debug)]
pub(crate) struct Kept {
    head: String,
    head_bytes: usize,
    is_head_full: bool,
    tail: VecDeque<u8>,
    tail_bytes: usize,
    left_out: u64,
}

impl Kept {
    /// Keeps at most `bytes`, half of them from the beginning.
    pub(crate) fn new(bytes: usize) -> Self {
        let head_bytes = bytes / 2;
        Self {
            head: String::new(),
            head_bytes,
            is_head_full: false,
            tail: VecDeque::new(),
            tail_bytes: bytes - head_bytes,
            left_out: 0,
        }
    }

    pub(crate) fn push(&mut self, mut text: &str) {
        if !self.is_head_full {
            let room = text.floor_char_boundary(self.head_bytes - self.head.len());
            let (fits, rest) = text.split_at(room);
            self.head.push_str(fits);
            text = rest;
            self.is_head_full = !rest.is_empty();
        }
        let bytes = text.as_bytes();
        let over = (self.tail.len() + bytes.len()).saturating_sub(self.tail_bytes);
        let old = over.min(self.tail.len());
        self.tail.drain(..old);
        self.tail.extend(&bytes[over - old..]);
        self.left_out += over as u64;
    }

    /// Whether something was left out.
    pub(crate) fn is_truncated(&self) -> bool {
        self.left_out > 0
    }

    /// The whole text, or its two parts with a line between them that says how much is missing.
    pub(crate) fn into_text(mut self) -> String {
        // Where the tail begins within a character, the rest of that is gone, too.
        while self.left_out > 0 && self.tail.front().is_some_and(|&byte| byte & 0xC0 == 0x80) {
            self.tail.pop_front();
            self.left_out += 1;
        }
        let tail = String::from_utf8_lossy(self.tail.make_contiguous());
        if self.left_out == 0 {
            self.head.push_str(&tail);
            return self.head;
        }
        let line_break = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        format!("{}{line_break}[... {} bytes left out ...]\n{tail}", self.head, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: usize, pieces: &[&str]) -> (String, bool) {
        let mut kept = Kept::new(bytes);
        for piece in pieces {
            kept.push(piece);
        }
        let truncated = kept.is_truncated();
        (kept.into_text(), truncated)
    }

    #[test]
    fn head_and_tail_are_kept_and_what_is_missing_is_told() {
        for (bytes, pieces, expected) in [
            (10, &["0123456789"][..], "0123456789"),
            (10, &["01234", "5678", "9"], "0123456789"),
            (10, &["0123456789a"], "01234\n[... 1 bytes left out ...]\n6789a"),
            (10, &["0123\n", "56789", "abcdefgh"], "0123\n[... 8 bytes left out ...]\ndefgh"),
            (0, &["0123"], "[... 4 bytes left out ...]\n"),
            (1, &["0123"], "[... 3 bytes left out ...]\n3"),
            // Cut where characters are.
            (4, &["ääää"], "ä\n[... 4 bytes left out ...]\nä"),
            (5, &["ääää"], "ä\n[... 4 bytes left out ...]\nä"),
            (3, &["🦀🦀"], "[... 8 bytes left out ...]\n"),
            (8, &["a🦀b🦀c"], "a\n[... 9 bytes left out ...]\nc"),
            (10, &["a🦀b🦀c"], "a🦀\n[... 1 bytes left out ...]\n🦀c"),
        ] {
            let (text, truncated) = kept(bytes, pieces);
            assert_eq!(text, expected, "{bytes} {pieces:?}");
            assert_eq!(truncated, text.contains("left out"), "{bytes} {pieces:?}");
        }
    }

    #[test]
    fn one_byte_at_a_time_or_all_at_once_is_the_same() {
        let text: String = ('a'..='z').cycle().take(5000).collect();
        let at_once = kept(101, &[&text]);
        let pieces: Vec<&str> = (0..text.len()).map(|at| &text[at..=at]).collect();
        assert_eq!(kept(101, &pieces), at_once);
    }
}
