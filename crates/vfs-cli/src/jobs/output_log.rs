//! Append-only log of the output of a job, which tolerates write errors.

use std::io::{Error, Write};

/// Maximum size of the log, 1 GiB.
const MAX_LOG_SIZE: u64 = 1 << 30;

/// The last line of a log that has reached the maximum size.
const TRUNCATION_NOTICE: &str = "\nvfs: the job printed more than 1 GiB; the rest is discarded\n";

/// A log whose write errors do not fail the job: a notice in the log says what is missing.
#[derive(Debug)]
pub(super) struct OutputLog<W> {
    output: W,
    /// Bytes that can still be written, or `None` after the truncation notice.
    remaining: Option<u64>,
    /// The error because of which the last output is missing.
    pending_error: Option<Error>,
}

impl<W: Write> OutputLog<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, remaining: Some(MAX_LOG_SIZE), pending_error: None }
    }

    /// Appends output of the job.
    pub(super) fn append(&mut self, text: &str) {
        let Some(remaining) = self.remaining else { return };
        let text = if remaining == 0 { TRUNCATION_NOTICE } else { text };
        let notice = match &self.pending_error {
            Some(reason) => format!("\nvfs: output is missing here, because it could not be written: {reason}\n"),
            None => String::new(),
        };
        self.pending_error = self.output.write_all(&[notice.as_bytes(), text.as_bytes()].concat()).err();
        if self.pending_error.is_none() {
            self.remaining = (remaining > 0).then(|| remaining.saturating_sub(text.len() as u64));
        }
    }

    /// Appends a notice if output is missing at the end.
    pub(super) fn finish(&mut self) {
        if self.pending_error.is_some() {
            self.append("");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Result};

    use super::*;

    /// The text that was written, and the number of further writes that fail.
    struct FailingWriter(String, usize);

    impl Write for FailingWriter {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            if self.1 > 0 {
                self.1 -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            self.0.push_str(std::str::from_utf8(bytes).expect("pieces are text"));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn log(remaining: u64, failures: usize) -> OutputLog<FailingWriter> {
        OutputLog { remaining: Some(remaining), ..OutputLog::new(FailingWriter(String::new(), failures)) }
    }

    #[test]
    fn output_beyond_the_maximum_size_is_discarded_with_one_notice() {
        let mut log = log(4, 0);
        log.append("ab");
        log.append("cd");
        assert_eq!(log.output.0, "abcd", "nothing is missing yet");
        for _ in 0..3 {
            log.append("ef");
        }
        log.finish();
        assert_eq!(log.output.0, format!("abcd{TRUNCATION_NOTICE}"));
    }

    #[test]
    fn output_that_cannot_be_written_is_replaced_by_a_notice() {
        const GAP: &str = "\nvfs: output is missing here, because it could not be written: no storage space\n";
        let mut late = log(100, 0);
        late.append("a");
        late.output.1 = 2;
        for text in ["b", "c", "d"] {
            late.append(text);
        }
        late.finish();
        assert_eq!(late.output.0, format!("a{GAP}d"));

        let mut last = log(100, 1);
        last.append("a");
        last.finish();
        assert_eq!(last.output.0, GAP);
    }
}
