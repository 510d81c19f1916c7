//! Corpus B: one file of 93 MB and a million lines, and one of 10 GB that has them at its start.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use vfs_benches::Seeded;

/// The file of 93 MB, below the corpus.
pub(crate) const LARGE: &str = "large.txt";
/// The file of 10 GB, below the corpus.
pub(crate) const HUGE: &str = "huge.txt";
/// A file of a few lines, to warm up with.
pub(crate) const SMALL: &str = "small.txt";

const LINES: u64 = 1_000_000;
const HUGE_BYTES: u64 = 10_000_000_000;

/// Writes B below `root`. The huge file is sparse after its first million lines.
pub(super) fn write(root: &Path) -> Result<()> {
    std::fs::write(root.join(SMALL), "one line\nanother\n")?;
    write_lines(&mut BufWriter::new(File::create(root.join(LARGE))?), LINES)?;
    let huge = File::create(root.join(HUGE))?;
    write_lines(&mut BufWriter::new(&huge), LINES)?;
    huge.set_len(HUGE_BYTES)?;
    Ok(())
}

/// Lines of 61 to 125 bytes, 93 on average, each with its number.
fn write_lines(out: &mut impl Write, lines: u64) -> io::Result<()> {
    let mut seeded = Seeded::new(11);
    let words = "the quick brown fox jumps over the lazy dog while ".repeat(3);
    for line in 0..lines {
        let length = 52 + seeded.index(65);
        writeln!(out, "{line:07} {}", &words[..length])?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_file_has_a_million_lines_and_93_megabytes() {
        let mut text = Vec::new();
        write_lines(&mut text, LINES).unwrap();
        assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 1_000_000);
        assert!((92_900_000..93_100_000).contains(&text.len()), "{} bytes", text.len());
    }
}
