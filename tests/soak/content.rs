//! Names and contents of the files of a soak: a fixed set of names, and lines of one length, so that a partial write is
//! detected.

use std::fmt::Write as _;

use fastrand::Rng;
use vfs_core::VfsPath;

/// Begins each line.
pub(crate) const WORDS: [&str; 4] = ["alpha", "bravo", "charlie", "delta"];

/// Bytes of a line with its ending.
pub(crate) const LINE: usize = 64;

/// A file larger than this is not added to.
pub(crate) const LARGE: u64 = 256 << 10;

const DIRECTORIES: u8 = 6;
const FILES: u8 = 10;

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the names of a soak are valid")
}

/// Returns the path of a directory that may exist.
pub(crate) fn directory(random: &mut Rng) -> VfsPath {
    path(&format!("/d{}", random.u8(..DIRECTORIES)))
}

/// Returns the path of a file that may exist.
pub(crate) fn file(random: &mut Rng) -> VfsPath {
    let below = if random.u8(..4) == 0 { "/below" } else { "" };
    path(&format!("/d{}{below}/f{}", random.u8(..DIRECTORIES), random.u8(..FILES)))
}

/// Returns the beginning of a line, which an edit can replace by another one.
pub(crate) fn mark(random: &mut Rng) -> String {
    format!("{:<8} {:08}", WORDS[random.usize(..WORDS.len())], random.u16(..30))
}

/// Returns a few lines, or now and then many.
pub(crate) fn text(random: &mut Rng) -> String {
    let lines = match random.u8(..100) {
        0 => 3_000,
        1..20 => 0,
        _ => random.usize(..100),
    };
    let mut text = String::with_capacity(lines * LINE);
    for _ in 0..lines {
        let _ = writeln!(text, "{} {:<width$}", mark(random), "is what this line says", width = LINE - 19);
    }
    text
}

/// Returns whether `text` consists of whole lines.
pub(crate) fn is_whole(text: &[u8]) -> bool {
    text.len().is_multiple_of(LINE) && text.chunks(LINE).all(is_line)
}

fn is_line(line: &[u8]) -> bool {
    line.ends_with(b"\n") && WORDS.iter().any(|word| line.starts_with(word.as_bytes()))
}
