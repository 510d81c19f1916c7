//! Reader of lines with a maximum length.

use std::io::{self, BufRead};

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// The whole line, without its line break.
    Whole(Vec<u8>),
    /// The line exceeds the maximum length and was skipped.
    TooLong,
}

impl InputLine {
    /// Returns how many bytes of the line are in memory.
    pub(super) fn len(&self) -> usize {
        match self {
            InputLine::Whole(text) => text.len(),
            InputLine::TooLong => 0,
        }
    }
}

/// Reads the next line of at most `limit` bytes; returns `None` at the end of the input. The last line needs no line break.
pub(super) fn read_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<InputLine>> {
    let mut line = Some(Vec::new());
    let mut started = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(started.then(|| line.map_or(InputLine::TooLong, InputLine::Whole)));
        }
        started = true;
        let end = memchr::memchr(b'\n', available);
        let part = &available[..end.unwrap_or(available.len())];
        line = line.filter(|line| line.len() + part.len() <= limit);
        if let Some(line) = &mut line {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(line.map_or(InputLine::TooLong, InputLine::Whole)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn a_long_line_is_skipped_and_the_next_line_is_read_whole() {
        for (input, expected) in [
            ("", vec![]),
            ("ab", vec![Some("ab")]),
            ("ab\n", vec![Some("ab")]),
            ("\n\n", vec![Some(""), Some("")]),
            ("abcd\nabcde\nef", vec![Some("abcd"), None, Some("ef")]),
            ("abcdefghijklmnop", vec![None]),
            ("abcdefghijklmnop\n", vec![None]),
        ] {
            for capacity in [1, 3, 100] {
                let mut reader = BufReader::with_capacity(capacity, input.as_bytes());
                let mut lines = Vec::new();
                while let Some(line) = read_line(&mut reader, 4).expect("memory does not fail") {
                    lines.push(line);
                }
                let expected: Vec<_> = expected
                    .iter()
                    .map(|line| line.map_or(InputLine::TooLong, |line| InputLine::Whole(line.as_bytes().to_vec())))
                    .collect();
                assert_eq!(lines, expected, "{input:?} in pieces of {capacity}");
            }
        }
    }
}
