//! Command output behind the marker, with a head and a tail where the transport truncated it.

use bytes::Bytes;
use memchr::memmem;
use vfs_core::output::HeadTailBuffer;

use crate::script::Marker;

/// An output of a command, as far as the transport returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TruncatedOutput<'a> {
    head: &'a [u8],
    /// How many bytes behind the head are gone.
    missing: u64,
    tail: &'a [u8],
}

impl<'a> TruncatedOutput<'a> {
    /// Returns the output behind the marker. `output` is the first and the last half of `total` bytes. Returns `None` if there
    /// is no marker.
    pub(crate) fn after(marker: &Marker, output: &'a Bytes, total: u64) -> Option<Self> {
        let missing = total.saturating_sub(output.len() as u64);
        let (head, tail) = if missing == 0 { (&output[..], &[][..]) } else { output.split_at(output.len() / 2) };
        let start = memmem::find(head, marker.as_bytes())? + marker.as_bytes().len();
        Some(Self { head: &head[start..], missing, tail })
    }
}

/// At most `most` bytes of `outputs`, one behind the other.
pub(crate) fn joined(outputs: &[TruncatedOutput<'_>], most: usize) -> HeadTailBuffer {
    let mut joined = HeadTailBuffer::new(most);
    for output in outputs {
        joined.push(output.head);
        joined.skip(output.missing);
        joined.push(output.tail);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(head: &'static str, missing: u64, tail: &'static str) -> TruncatedOutput<'static> {
        TruncatedOutput { head: head.as_bytes(), missing, tail: tail.as_bytes() }
    }

    #[test]
    fn what_stands_before_the_marker_is_not_the_commands() {
        let marker = Marker::random();
        let text = |text: &str| Bytes::from(text.replace('M', std::str::from_utf8(marker.as_bytes()).expect("ASCII")));
        let whole = text("banner\nMoutput");
        assert_eq!(TruncatedOutput::after(&marker, &whole, whole.len() as u64), Some(printed("output", 0, "")));
        let cut = text("Mhead-----------------------------------------and the tail of the output, which is longer");
        let truncated = TruncatedOutput::after(&marker, &cut, cut.len() as u64 + 10).expect("it has begun");
        assert_eq!(joined(&[truncated], 10).total(), (cut.len() - marker.as_bytes().len()) as u64 + 10);
        assert_eq!(TruncatedOutput::after(&marker, &Bytes::from_static(b"not begun"), 9), None);
    }

    #[test]
    fn outputs_are_concatenated_and_missing_bytes_are_counted() {
        for (outputs, most, expected) in [
            (&[printed("0123456789", 0, "")][..], 10, "0123456789"),
            (&[printed("0123\n", 5, "abcdefgh")], 10, "0123\n[... 8 bytes left out ...]\ndefgh"),
            (&[printed("a", 0, ""), printed("b", 0, "")], 10, "ab"),
            (&[printed("a", 3, "z"), printed("b", 0, "")], 10, "a\n[... 3 bytes left out ...]\nzb"),
            (&[printed("a", 0, ""), printed("b", 3, "z")], 10, "ab\n[... 3 bytes left out ...]\nz"),
            (&[printed("a", 3, "y"), printed("b", 3, "z")], 10, "a\n[... 8 bytes left out ...]\nz"),
        ] {
            assert_eq!(joined(outputs, most).text(), expected, "{outputs:?} {most}");
        }
    }
}
