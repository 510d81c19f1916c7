//! What a job prints, as its keeper writes it down.

use std::io::{Error, Write};

/// The most that is kept of it: 1 GiB.
const MOST: u64 = 1 << 30;

/// What stands where there was more.
const FULL: &str = "\nvfs: the job printed more than 1 GiB; the rest is not kept\n";

/// An output that never fails its job: where something cannot be kept, it says so as soon as it can.
#[derive(Debug)]
pub(super) struct Recording<W> {
    output: W,
    /// How many bytes more are kept; none once it says that nothing is.
    room: Option<u64>,
    /// Why what was printed last is missing, where it is.
    gap: Option<Error>,
}

impl<W: Write> Recording<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, room: Some(MOST), gap: None }
    }

    /// Adds what was printed.
    pub(super) fn add(&mut self, text: &str) {
        let Some(room) = self.room else { return };
        let text = if room == 0 { FULL } else { text };
        let gap = match &self.gap {
            Some(reason) => format!("\nvfs: output is missing here that could not be written: {reason}\n"),
            None => String::new(),
        };
        self.gap = self.output.write_all(&[gap.as_bytes(), text.as_bytes()].concat()).err();
        if self.gap.is_none() {
            self.room = (room > 0).then(|| room.saturating_sub(text.len() as u64));
        }
    }

    /// Says what is missing at its end.
    pub(super) fn finish(&mut self) {
        if self.gap.is_some() {
            self.add("");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Result};

    use super::*;

    /// What was written, and how many more writes fail.
    struct Disk(String, usize);

    impl Write for Disk {
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

    fn recording(room: u64, failures: usize) -> Recording<Disk> {
        Recording { room: Some(room), ..Recording::new(Disk(String::new(), failures)) }
    }

    #[test]
    fn what_is_over_the_most_is_left_out_and_that_is_said_once() {
        let mut recording = recording(4, 0);
        recording.add("ab");
        recording.add("cd");
        assert_eq!(recording.output.0, "abcd", "nothing is missing yet");
        for _ in 0..3 {
            recording.add("ef");
        }
        recording.finish();
        assert_eq!(recording.output.0, format!("abcd{FULL}"));
    }

    #[test]
    fn what_cannot_be_written_leaves_a_word_in_its_place() {
        const GAP: &str = "\nvfs: output is missing here that could not be written: no storage space\n";
        let mut late = recording(100, 0);
        late.add("a");
        late.output.1 = 2;
        for text in ["b", "c", "d"] {
            late.add(text);
        }
        late.finish();
        assert_eq!(late.output.0, format!("a{GAP}d"));

        let mut last = recording(100, 1);
        last.add("a");
        last.finish();
        assert_eq!(last.output.0, GAP);
    }
}
