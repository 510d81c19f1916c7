//! Command output after the marker, with a head and a tail if the transport truncated it.

use bytes::Bytes;
use memchr::memmem;
use vfs_core::output::HeadTailBuffer;

use crate::script::ReplyMarker;

/// An output of a command, as far as the transport returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadTailOutput<'a> {
    head: &'a [u8],
    /// Number of bytes between head and tail that the transport dropped.
    missing: u64,
    tail: &'a [u8],
}

impl<'a> HeadTailOutput<'a> {
    /// Returns the output after the marker, or `None` if there is no marker. `output` is the whole of `total` bytes, or
    /// their beginning followed by their end, in equal parts.
    pub(crate) fn after(marker: &ReplyMarker, output: &'a Bytes, total: u64) -> Option<Self> {
        let missing = total.saturating_sub(output.len() as u64);
        let (head, tail) = if missing == 0 { (&output[..], &[][..]) } else { output.split_at(output.len() / 2) };
        let start = memmem::find(head, marker.as_bytes())? + marker.as_bytes().len();
        Some(Self { head: &head[start..], missing, tail })
    }
}

/// Concatenates `outputs` to a buffer of at most `max_bytes`.
pub(crate) fn join(outputs: &[HeadTailOutput<'_>], max_bytes: usize) -> HeadTailBuffer {
    let mut buffer = HeadTailBuffer::new(max_bytes);
    for output in outputs {
        buffer.push(output.head);
        buffer.skip(output.missing);
        buffer.push(output.tail);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(head: &'static str, missing: u64, tail: &'static str) -> HeadTailOutput<'static> {
        HeadTailOutput { head: head.as_bytes(), missing, tail: tail.as_bytes() }
    }

    #[test]
    fn text_before_the_marker_is_not_output_of_the_command() {
        let marker = ReplyMarker::random();
        let text = |text: &str| Bytes::from(text.replace('M', std::str::from_utf8(marker.as_bytes()).expect("ASCII")));
        let whole = text("banner\nMoutput");
        assert_eq!(HeadTailOutput::after(&marker, &whole, whole.len() as u64), Some(printed("output", 0, "")));
        let cut = text("Mhead-----------------------------------------and the tail of the output, which is longer");
        let truncated = HeadTailOutput::after(&marker, &cut, cut.len() as u64 + 10).expect("it has begun");
        assert_eq!(join(&[truncated], 10).total(), (cut.len() - marker.as_bytes().len()) as u64 + 10);
        assert_eq!(HeadTailOutput::after(&marker, &Bytes::from_static(b"not begun"), 9), None);
    }

    #[test]
    fn outputs_are_concatenated_and_missing_bytes_are_counted() {
        for (outputs, max_bytes, expected) in [
            (&[printed("0123456789", 0, "")][..], 10, "0123456789"),
            (&[printed("0123\n", 5, "abcdefgh")], 10, "0123\n[... 8 bytes left out ...]\ndefgh"),
            (&[printed("a", 0, ""), printed("b", 0, "")], 10, "ab"),
            (&[printed("a", 3, "z"), printed("b", 0, "")], 10, "a\n[... 3 bytes left out ...]\nzb"),
            (&[printed("a", 0, ""), printed("b", 3, "z")], 10, "ab\n[... 3 bytes left out ...]\nz"),
            (&[printed("a", 3, "y"), printed("b", 3, "z")], 10, "a\n[... 8 bytes left out ...]\nz"),
        ] {
            assert_eq!(join(outputs, max_bytes).text(), expected, "{outputs:?} {max_bytes}");
        }
    }
}
