//! Incremental decoder of one framed output: text before the frame, script output, exit code.

use memchr::memmem;
use vfs_core::output::HeadTailBuffer;

/// Maximum number of bytes that are retained of the text before the frame.
const MAX_PREFACE: usize = 8 * 1024;

/// Decoder of one output, which is fed piece by piece.
#[derive(Debug)]
pub(super) struct FrameDecoder {
    marker: Vec<u8>,
    stage: FrameDecoderState,
    /// Bytes that were read and not yet scanned.
    pending: Vec<u8>,
    preface: Vec<u8>,
    output: HeadTailBuffer,
}

/// The position of a decoder relative to the two markers.
#[derive(Debug)]
enum FrameDecoderState {
    /// Before the first marker.
    Before,
    /// In the output of the script.
    Within,
    /// The record after the second marker.
    After(String),
}

/// Maximum size in bytes of the record between a marker and the end of its line.
const MAX_RECORD: usize = 16;

impl FrameDecoder {
    /// Creates a decoder that collects the script's output in `output`.
    pub(super) fn new(marker: &str, output: HeadTailBuffer) -> Self {
        Self {
            marker: marker.as_bytes().to_vec(),
            stage: FrameDecoderState::Before,
            pending: Vec::new(),
            preface: Vec::new(),
            output,
        }
    }

    /// Decodes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if matches!(self.stage, FrameDecoderState::After(_)) {
            return;
        }
        self.pending.extend_from_slice(bytes);
        let mut from = 0;
        while let Some(found) = memmem::find(&self.pending[from..], &self.marker) {
            let start = from + found;
            let rest = &self.pending[start + self.marker.len()..];
            let Some(length) = memchr::memchr(b'\n', &rest[..rest.len().min(MAX_RECORD)]) else {
                if rest.len() < MAX_RECORD {
                    self.consume_until(start);
                    return;
                }
                // A shell that prints its commands prints the marker too, but no record.
                from = start + self.marker.len();
                continue;
            };
            let record = String::from_utf8_lossy(&rest[..length]).into_owned();
            let end = start + self.marker.len() + length + 1;
            match (&self.stage, record.is_empty()) {
                (FrameDecoderState::Before, true) => {
                    self.consume_until(start);
                    self.pending.drain(..end - start);
                    self.stage = FrameDecoderState::Within;
                    from = 0;
                }
                (FrameDecoderState::Within, false) => {
                    self.consume_until(start);
                    self.pending = Vec::new();
                    self.stage = FrameDecoderState::After(record);
                    return;
                }
                _ => from = end,
            }
        }
        let unsure = self.marker.len() - 1;
        self.consume_until(self.pending.len().saturating_sub(unsure).max(from));
    }

    /// Decodes the end of the output.
    pub(super) fn finish(&mut self) {
        if !matches!(self.stage, FrameDecoderState::After(_)) {
            self.consume_until(self.pending.len());
        }
    }

    /// Moves the scanned bytes up to `end` to the preface or the output.
    fn consume_until(&mut self, end: usize) {
        let scanned = &self.pending[..end];
        match self.stage {
            FrameDecoderState::Before => {
                let room = MAX_PREFACE - self.preface.len();
                self.preface.extend_from_slice(&scanned[..end.min(room)]);
            }
            FrameDecoderState::Within | FrameDecoderState::After(_) => self.output.push(scanned),
        }
        self.pending.drain(..end);
    }

    /// Returns whether the script's output has begun.
    pub(super) fn is_started(&self) -> bool {
        !matches!(self.stage, FrameDecoderState::Before)
    }

    /// Returns the record of the script's exit, if the output is complete.
    pub(super) fn ending(&self) -> Option<&str> {
        match &self.stage {
            FrameDecoderState::After(record) => Some(record),
            FrameDecoderState::Before | FrameDecoderState::Within => None,
        }
    }

    /// Returns the first bytes of the text before the script's output.
    pub(super) fn preface(&self) -> &[u8] {
        &self.preface
    }

    /// Returns the script's output.
    pub(super) fn into_output(self) -> HeadTailBuffer {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{RemoteExit, RemoteOutput, ScriptInvocation};

    fn read(chunk: usize, limit: u64, text: &[u8]) -> FrameDecoder {
        let mut invocation = ScriptInvocation::new("");
        invocation.max_output_bytes = limit;
        let mut framed = FrameDecoder::new("MARK", invocation.output_buffer());
        for piece in text.chunks(chunk) {
            framed.feed(piece);
        }
        framed.finish();
        framed
    }

    fn output(framed: FrameDecoder) -> (Vec<u8>, bool) {
        let nothing = ScriptInvocation::new("").output_buffer();
        let completed = RemoteOutput::from_buffers(RemoteExit::Exited(0), framed.into_output(), nothing);
        (completed.stdout.to_vec(), completed.truncated)
    }

    #[test]
    fn an_output_is_the_text_between_the_markers() {
        let text = b"banner\n+ sh -c x sh MARK 0 0\nMARK\nout\0put without end of lineMARK17\nlate";
        for chunk in 1..text.len() {
            let framed = read(chunk, 1000, text);
            assert_eq!(framed.ending(), Some("17"), "{chunk}");
            assert_eq!(framed.preface(), b"banner\n+ sh -c x sh MARK 0 0\n");
            assert_eq!(output(framed), (b"out\0put without end of line".to_vec(), false));
        }
    }

    #[test]
    fn an_output_that_breaks_off_has_no_ending() {
        for (text, expected) in
            [(&b"MARK\nhalf"[..], &b"half"[..]), (b"MARK\nhalfMAR", b"halfMAR"), (b"MARK\nhalfMARK1", b"halfMARK1")]
        {
            for chunk in 1..text.len() {
                let framed = read(chunk, 1000, text);
                assert!(framed.is_started() && framed.ending().is_none());
                assert_eq!(output(framed).0, expected);
            }
        }
        let framed = read(3, 1000, b"Connection refused");
        assert!(!framed.is_started());
        assert_eq!(framed.preface(), b"Connection refused");
    }

    #[test]
    fn output_beyond_the_limit_is_dropped_and_counted() {
        for chunk in 1..20 {
            let framed = read(chunk, 4, b"MARK\n0123456789MARK0\n");
            assert_eq!(framed.ending(), Some("0"));
            assert_eq!(output(framed), (b"0123".to_vec(), true));
            let framed = read(chunk, 10, b"MARK\n0123456789MARK0\n");
            assert_eq!(output(framed), (b"0123456789".to_vec(), false));
            let framed = read(chunk, 0, b"MARK\nMARK0\n");
            assert_eq!(output(framed), (Vec::new(), false));
        }
    }
}
