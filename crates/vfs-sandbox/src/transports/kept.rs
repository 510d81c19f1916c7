//! What is kept of an output that may be longer than is of use.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::remote::{Completed, Ending, Invocation, Keep};

/// The parts of an output that are of use, and how much there was.
#[derive(Debug)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most_head: usize,
    most_tail: usize,
    total: u64,
}

impl Kept {
    /// Keeps what `invocation` has use for.
    pub(super) fn new(invocation: &Invocation) -> Self {
        let most = usize::try_from(invocation.max_output_bytes).unwrap_or(usize::MAX);
        let most_head = match invocation.keep {
            Keep::Beginning => most,
            Keep::Ends => most / 2,
        };
        Self { head: Vec::new(), tail: VecDeque::new(), most_head, most_tail: most - most_head, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.most_head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most_tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// What is kept, and how many bytes there were.
    fn into_output(mut self) -> (Bytes, u64) {
        self.head.extend(self.tail);
        (self.head.into(), self.total)
    }
}

/// A script that ended as `ending` and printed this.
pub(super) fn completed(ending: Ending, stdout: Kept, stderr: Kept) -> Completed {
    let ((stdout, stdout_bytes), (stderr, stderr_bytes)) = (stdout.into_output(), stderr.into_output());
    let mut completed = Completed::new(ending, stdout, stderr);
    completed.truncated = completed.stdout_bytes < stdout_bytes || completed.stderr_bytes < stderr_bytes;
    (completed.stdout_bytes, completed.stderr_bytes) = (stdout_bytes, stderr_bytes);
    completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_or_both_ends_are_kept_however_the_pieces_come() {
        let text: Vec<u8> = (0..100).collect();
        for most in [0, 1, 2, 7, 99, 100, 101] {
            for piece in [1, 3, 50, 100] {
                let mut invocation = Invocation::new("");
                invocation.max_output_bytes = most;
                let keep = |invocation: &Invocation| {
                    let mut kept = Kept::new(invocation);
                    text.chunks(piece).for_each(|piece| kept.push(piece));
                    completed(Ending::Exited(0), kept, Kept::new(invocation))
                };
                let beginning = keep(&invocation);
                invocation.keep = Keep::Ends;
                let ends = keep(&invocation);
                let (fits, half) = ((most as usize).min(100), most as usize / 2);
                assert_eq!(beginning.stdout, text[..fits]);
                let expected =
                    if fits == 100 { text.clone() } else { [&text[..half], &text[100 - (fits - half)..]].concat() };
                assert_eq!(ends.stdout, expected);
                for kept in [beginning, ends] {
                    assert_eq!((kept.truncated, kept.stdout_bytes), (fits < 100, 100));
                }
            }
        }
    }
}
