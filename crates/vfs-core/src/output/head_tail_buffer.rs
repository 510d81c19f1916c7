//! What is kept of an output that may be endless.

use std::collections::VecDeque;

/// The first and the last part of an output, and how much there was: bounded memory, however much is printed.
///
/// # Behaviour
/// Bytes go in as they come, in pieces of any size; what is kept depends on all of them together only. As text, characters are
/// whole: where one was cut, the rest of it is left out, too. Bytes that are not UTF-8 are shown as U+FFFD.
///
/// ```
/// use vfs_core::output::HeadAndTail;
///
/// let mut kept = HeadAndTail::new(10);
/// kept.push(b"0123456789");
/// assert_eq!(kept.text(), "0123456789");
/// kept.push(b"abcdef");
/// assert_eq!(kept.text(), "01234\n[... 6 bytes left out ...]\nbcdef");
/// assert_eq!((kept.total(), kept.is_cut()), (16, true));
/// ```
#[derive(Debug, Clone)]
pub struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most_head: usize,
    most_tail: usize,
    total: u64,
}

impl HeadAndTail {
    /// Keeps at most `most` bytes, half of them from the beginning.
    pub fn new(most: usize) -> Self {
        Self::of(most / 2, most - most / 2)
    }

    /// Keeps at most `most` bytes, all of them from the beginning.
    pub fn head_only(most: usize) -> Self {
        Self::of(most, 0)
    }

    fn of(most_head: usize, most_tail: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), most_head, most_tail, total: 0 }
    }

    /// What was printed next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.most_head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most_tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// So many bytes were printed next that nobody has any more: what came before them is the head, what comes now the tail.
    pub fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.total = self.total.saturating_add(bytes);
            self.most_head = self.head.len();
            self.tail.clear();
        }
    }

    /// How many bytes were printed in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether some of them are not kept.
    pub fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The whole, or its two parts with a line between them that says how many bytes are left out. That line is not counted
    /// among the bytes that are kept.
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if !self.is_cut() {
            return lossy([&self.head, front, back].concat());
        }
        let head = &self.head[..whole_characters(&self.head)];
        let tail = [front, back].concat();
        let tail = &tail[tail.iter().take(3).take_while(|&&byte| is_continuation(byte)).count()..];
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let line_break = if head.is_empty() || head.ends_with(b"\n") { "" } else { "\n" };
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}{line_break}[... {left_out} bytes left out ...]\n{tail}")
    }

    /// The bytes that are kept, the tail right behind the head.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.head.extend(self.tail);
        self.head
    }
}

/// How many of `bytes` make whole characters: all, or without a character at their end that goes on behind it. What is not
/// UTF-8 counts as whole.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|&byte| !is_continuation(byte));
    let Some(before_end) = last.map(|at| at + 1) else { return bytes.len() };
    let length = match bytes[bytes.len() - before_end] {
        0xF0..=0xF7 => 4,
        0xE0..=0xEF => 3,
        0xC0..=0xDF => 2,
        _ => 1,
    };
    if length > before_end { bytes.len() - before_end } else { bytes.len() }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(most: usize, pieces: &[&[u8]]) -> HeadAndTail {
        let mut kept = HeadAndTail::new(most);
        pieces.iter().for_each(|piece| kept.push(piece));
        kept
    }

    #[test]
    fn head_and_tail_are_kept_and_what_is_missing_is_told() {
        for (most, text, expected) in [
            (10, "0123456789", "0123456789"),
            (10, "0123456789a", "01234\n[... 1 bytes left out ...]\n6789a"),
            (10, "0123\n56789abcdefgh", "0123\n[... 8 bytes left out ...]\ndefgh"),
            (0, "", ""),
            (0, "0123", "[... 4 bytes left out ...]\n"),
            (1, "0123", "[... 3 bytes left out ...]\n3"),
            // Cut where characters are.
            (4, "ääää", "ä\n[... 4 bytes left out ...]\nä"),
            (5, "ääää", "ä\n[... 4 bytes left out ...]\nä"),
            (3, "🦀🦀", "[... 8 bytes left out ...]\n"),
            (8, "a🦀b🦀c", "a\n[... 9 bytes left out ...]\nc"),
            (10, "a🦀b🦀c", "a🦀\n[... 1 bytes left out ...]\n🦀c"),
        ] {
            let kept = kept(most, &[text.as_bytes()]);
            assert_eq!(kept.text(), expected, "{most} {text}");
            assert_eq!(kept.is_cut(), expected.contains("left out"), "{most} {text}");
        }
    }

    #[test]
    fn what_nobody_has_any_more_is_counted() {
        let gap = |most, before: &str, missing, after: &str| {
            let mut kept = kept(most, &[before.as_bytes()]);
            kept.skip(missing);
            kept.push(after.as_bytes());
            (kept.text(), kept.total())
        };
        assert_eq!(gap(10, "01", 0, "23"), ("0123".to_owned(), 4));
        assert_eq!(gap(10, "01", 5, "78"), ("01\n[... 5 bytes left out ...]\n78".to_owned(), 9));
        assert_eq!(gap(4, "0123", 5, "9abc"), ("01\n[... 9 bytes left out ...]\nbc".to_owned(), 13));
    }

    #[test]
    fn what_is_not_a_whole_character_is_found() {
        for (bytes, expected) in [
            (&b""[..], 0),
            ("aé".as_bytes(), 3),
            (&"aé".as_bytes()[..2], 1),
            (&"😀".as_bytes()[..3], 0),
            ("😀".as_bytes(), 4),
            (b"\xff\x80\x80\x80", 4),
        ] {
            assert_eq!(whole_characters(bytes), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_what_is_kept_are_the_ends(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), most in 0usize..220, piece in 1usize..50,
        ) {
            let mut whole = HeadAndTail::new(most);
            whole.push(&bytes);
            let pieces: Vec<_> = bytes.chunks(piece).collect();
            let kept = kept(most, &pieces);
            prop_assert_eq!(kept.text(), whole.text());
            let expected = match bytes.len() <= most {
                true => bytes.clone(),
                false => [&bytes[..most / 2], &bytes[bytes.len() - (most - most / 2)..]].concat(),
            };
            prop_assert_eq!(kept.into_bytes(), expected);
            let mut head = HeadAndTail::head_only(most);
            pieces.iter().for_each(|piece| head.push(piece));
            prop_assert_eq!(head.into_bytes(), &bytes[..most.min(bytes.len())]);
        }
    }
}
