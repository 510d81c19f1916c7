//! What a command printed, as far as it was kept: a first part, a last part, and how much there was.

use bytes::Bytes;
use memchr::memmem;

use super::script::Marker;

/// An output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printed {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// How many bytes between them are gone.
    missing: u64,
}

impl Printed {
    /// What stands behind the marker in an output of which `kept` is there, the first and the last half of `total` bytes.
    /// `None` where there is no marker.
    pub(super) fn after(marker: &Marker, kept: &Bytes, total: u64) -> Option<Self> {
        let missing = total.saturating_sub(kept.len() as u64);
        let (head, tail) = if missing == 0 { (&kept[..], &[][..]) } else { kept.split_at(kept.len() / 2) };
        let start = memmem::find(head, marker.as_bytes())? + marker.as_bytes().len();
        Some(Self { head: head[start..].to_vec(), tail: tail.to_vec(), missing })
    }

    /// How many bytes there were.
    pub(super) fn total(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.missing
    }

    /// Whether it does not fit into `most` bytes.
    pub(super) fn is_cut(&self, most: usize) -> bool {
        self.missing > 0 || self.total() > most as u64
    }

    /// This output, and another behind it.
    pub(super) fn followed_by(&self, next: &Self) -> Self {
        let mut all = self.clone();
        match (self.missing, next.missing) {
            (0, _) => {
                all.head.extend_from_slice(&next.head);
                all.tail.clone_from(&next.tail);
                all.missing = next.missing;
            }
            (_, 0) => all.tail.extend_from_slice(&next.head),
            _ => {
                all.missing += self.tail.len() as u64 + next.head.len() as u64 + next.missing;
                all.tail.clone_from(&next.tail);
            }
        }
        all
    }

    /// It as text of at most `most` bytes, of which the first and the last part are kept, with a line between them that says
    /// how much is left out.
    pub(super) fn text(&self, most: usize) -> String {
        if !self.is_cut(most) {
            let whole = [&self.head[..], &self.tail[..]].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let (first, last) = (most / 2, most - most / 2);
        let whole = if self.missing == 0 { [&self.head[..], &self.tail[..]].concat() } else { Vec::new() };
        let (head, tail) = if self.missing == 0 { (&whole[..], &whole[..]) } else { (&self.head[..], &self.tail[..]) };
        let head = beginning(&head[..head.len().min(first)]);
        let tail = end(&tail[tail.len() - tail.len().min(last)..]);
        let left_out = self.total() - (head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let line_break = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{line_break}[... {left_out} bytes left out ...]\n{tail}")
    }
}

/// `bytes` without a character at their end that goes on behind it.
fn beginning(bytes: &[u8]) -> &[u8] {
    let Some(start) = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80) else { return bytes };
    let length = match bytes[start] {
        0xF0..=0xF7 => 4,
        0xE0..=0xEF => 3,
        0xC0..=0xDF => 2,
        _ => 1,
    };
    if bytes.len() - start < length { &bytes[..start] } else { bytes }
}

/// `bytes` without the rest of a character that began before them.
fn end(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(head: &str, missing: u64, tail: &str) -> Printed {
        Printed { head: head.into(), tail: tail.into(), missing }
    }

    #[test]
    fn what_stands_before_the_marker_is_not_the_commands() {
        let marker = Marker::random();
        let text = |text: &str| Bytes::from(text.replace('M', std::str::from_utf8(marker.as_bytes()).expect("ASCII")));
        let whole = text("banner\nMoutput");
        assert_eq!(Printed::after(&marker, &whole, whole.len() as u64), Some(printed("output", 0, "")));
        let cut = text("Mhead-----------------------------------------and the tail of the output, which is longer");
        let known = Printed::after(&marker, &cut, cut.len() as u64 + 10).expect("it has begun");
        assert_eq!(known.total(), (cut.len() - marker.as_bytes().len()) as u64 + 10);
        assert_eq!(Printed::after(&marker, &Bytes::from_static(b"not begun"), 9), None);
    }

    #[test]
    fn first_and_last_part_are_kept_and_what_is_missing_is_told() {
        for (output, most, expected) in [
            (printed("0123456789", 0, ""), 10, "0123456789"),
            (printed("0123456789a", 0, ""), 10, "01234\n[... 1 bytes left out ...]\n6789a"),
            (printed("0123\n", 5, "abcdefgh"), 10, "0123\n[... 8 bytes left out ...]\ndefgh"),
            (printed("0123", 0, ""), 0, "[... 4 bytes left out ...]\n"),
            (printed("ääää", 0, ""), 4, "ä\n[... 4 bytes left out ...]\nä"),
            (printed("ääää", 0, ""), 5, "ä\n[... 4 bytes left out ...]\nä"),
            (printed("🦀🦀", 0, ""), 3, "[... 8 bytes left out ...]\n"),
        ] {
            assert_eq!(output.text(most), expected, "{output:?} {most}");
        }
    }

    #[test]
    fn two_outputs_are_one_behind_the_other() {
        let joined = |one: Printed, next: Printed| one.followed_by(&next);
        assert_eq!(joined(printed("a", 0, ""), printed("b", 0, "")), printed("ab", 0, ""));
        assert_eq!(joined(printed("a", 3, "z"), printed("b", 0, "")), printed("a", 3, "zb"));
        assert_eq!(joined(printed("a", 0, ""), printed("b", 3, "z")), printed("ab", 3, "z"));
        assert_eq!(joined(printed("a", 3, "y"), printed("b", 3, "z")), printed("a", 8, "z"));
    }
}
