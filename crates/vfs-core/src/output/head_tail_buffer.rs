//! Bounded buffer of the head and tail of an output.

use std::collections::VecDeque;

/// A buffer of the first and last part of an output of any size, in bounded memory.
///
/// # Behaviour
///
/// The content depends on the bytes alone, not on the chunks in which they arrive. The text contains whole characters only: the
/// rest of a character that was cut is omitted. Bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// use vfs_core::output::HeadTailBuffer;
///
/// let mut buffer = HeadTailBuffer::new(10);
/// buffer.push(b"0123456789");
/// assert_eq!(buffer.text(), "0123456789");
/// buffer.push(b"abcdef");
/// assert_eq!(buffer.text(), "01234\n[... 6 bytes left out ...]\nbcdef");
/// assert_eq!((buffer.total(), buffer.is_cut()), (16, true));
/// ```
#[derive(Debug, Clone)]
pub struct HeadTailBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_capacity: usize,
    tail_capacity: usize,
    total: u64,
}

impl HeadTailBuffer {
    /// Creates a buffer of at most `max` bytes, half of them from the beginning.
    pub fn new(max: usize) -> Self {
        Self::with_capacities(max / 2, max - max / 2)
    }

    /// Creates a buffer of at most `max` bytes, all of them from the beginning.
    pub fn head_only(max: usize) -> Self {
        Self::with_capacities(max, 0)
    }

    fn with_capacities(head_capacity: usize, tail_capacity: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), head_capacity, tail_capacity, total: 0 }
    }

    /// Appends `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_capacity - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_capacity)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_capacity);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Records a gap of `bytes` lost bytes: the bytes before the gap are the head, those after it the tail.
    pub fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.total = self.total.saturating_add(bytes);
            self.head_capacity = self.head.len();
            self.tail.clear();
        }
    }

    /// Returns the size of the whole output in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether the buffer lacks some bytes of the output.
    pub fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the output as text; if it is cut, a line between head and tail says how many bytes are left out.
    ///
    /// The size limit does not include that line.
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

    /// Returns the head followed by the tail.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.head.extend(self.tail);
        self.head
    }
}

/// Returns the length of `bytes` without an incomplete character at the end. Invalid UTF-8 counts as complete.
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

    fn filled_buffer(max: usize, pieces: &[&[u8]]) -> HeadTailBuffer {
        let mut buffer = HeadTailBuffer::new(max);
        pieces.iter().for_each(|piece| buffer.push(piece));
        buffer
    }

    #[test]
    fn the_text_has_head_and_tail_and_the_size_of_the_gap() {
        for (max, text, expected) in [
            (10, "0123456789", "0123456789"),
            (10, "0123456789a", "01234\n[... 1 bytes left out ...]\n6789a"),
            (10, "0123\n56789abcdefgh", "0123\n[... 8 bytes left out ...]\ndefgh"),
            (0, "", ""),
            (0, "0123", "[... 4 bytes left out ...]\n"),
            (1, "0123", "[... 3 bytes left out ...]\n3"),
            // Cut within characters.
            (4, "ääää", "ä\n[... 4 bytes left out ...]\nä"),
            (5, "ääää", "ä\n[... 4 bytes left out ...]\nä"),
            (3, "🦀🦀", "[... 8 bytes left out ...]\n"),
            (8, "a🦀b🦀c", "a\n[... 9 bytes left out ...]\nc"),
            (10, "a🦀b🦀c", "a🦀\n[... 1 bytes left out ...]\n🦀c"),
        ] {
            let buffer = filled_buffer(max, &[text.as_bytes()]);
            assert_eq!(buffer.text(), expected, "{max} {text}");
            assert_eq!(buffer.is_cut(), expected.contains("left out"), "{max} {text}");
        }
    }

    #[test]
    fn skipped_bytes_are_counted() {
        let gap = |max, before: &str, missing, after: &str| {
            let mut buffer = filled_buffer(max, &[before.as_bytes()]);
            buffer.skip(missing);
            buffer.push(after.as_bytes());
            (buffer.text(), buffer.total())
        };
        assert_eq!(gap(10, "01", 0, "23"), ("0123".to_owned(), 4));
        assert_eq!(gap(10, "01", 5, "78"), ("01\n[... 5 bytes left out ...]\n78".to_owned(), 9));
        assert_eq!(gap(4, "0123", 5, "9abc"), ("01\n[... 9 bytes left out ...]\nbc".to_owned(), 13));
    }

    #[test]
    fn an_incomplete_last_character_is_not_counted() {
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
        fn the_content_does_not_depend_on_the_chunks(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), max in 0usize..220, piece in 1usize..50,
        ) {
            let mut whole = HeadTailBuffer::new(max);
            whole.push(&bytes);
            let pieces: Vec<_> = bytes.chunks(piece).collect();
            let buffer = filled_buffer(max, &pieces);
            prop_assert_eq!(buffer.text(), whole.text());
            let expected = match bytes.len() <= max {
                true => bytes.clone(),
                false => [&bytes[..max / 2], &bytes[bytes.len() - (max - max / 2)..]].concat(),
            };
            prop_assert_eq!(buffer.into_bytes(), expected);
            let mut head = HeadTailBuffer::head_only(max);
            pieces.iter().for_each(|piece| head.push(piece));
            prop_assert_eq!(head.into_bytes(), &bytes[..max.min(bytes.len())]);
        }
    }
}
