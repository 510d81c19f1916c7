//! What the files of a soak hold, and what they are called: a fixed set of names, and lines that are all of one length, so
//! that a half of anything shows.

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

/// A directory that may be there.
pub(crate) fn directory(random: &mut Rng) -> VfsPath {
    path(&format!("/d{}", random.u8(..DIRECTORIES)))
}

/// A file that may be there.
pub(crate) fn file(random: &mut Rng) -> VfsPath {
    let below = if random.u8(..4) == 0 { "/below" } else { "" };
    path(&format!("/d{}{below}/f{}", random.u8(..DIRECTORIES), random.u8(..FILES)))
}

/// What begins a line and can be replaced by another of these.
pub(crate) fn mark(random: &mut Rng) -> String {
    format!("{:<8} {:08}", WORDS[random.usize(..WORDS.len())], random.u16(..30))
}

/// A few lines, or now and then many.
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

/// Whether `text` is made of whole lines.
pub(crate) fn is_whole(text: &[u8]) -> bool {
    text.len().is_multiple_of(LINE) && text.chunks(LINE).all(is_line)
}

fn is_line(line: &[u8]) -> bool {
    line.ends_with(b"\n") && WORDS.iter().any(|word| line.starts_with(word.as_bytes()))
}
