//! Seeded inputs: the same files on every machine and in every run.

use bytes::Bytes;
use vfs_core::{Result, VfsPath};

/// A small generator of repeatable numbers (the 64-bit linear congruential one of Knuth's MMIX).
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    /// The next index of something that has `length` of them.
    pub fn index(&mut self, length: usize) -> usize {
        // What is below a `usize` is one.
        self.below(length as u64) as usize
    }
}

/// `count` source-like files of about 4 KiB, 50 to a directory; one in a thousand holds [`RARE`].
///
/// # Errors
///
/// None in practice: the paths are valid.
pub fn source_tree(count: u64) -> Result<Vec<(VfsPath, Bytes)>> {
    let mut seeded = Seeded::new(7);
    (0..count)
        .map(|file| {
            let extension = if file % 2 == 0 { "go" } else { "rs" };
            let path = VfsPath::parse(&format!("/src/d{:04}/file{file:06}.{extension}", file / 50))?;
            let mut text = String::with_capacity(4_200);
            while text.len() < 4_096 {
                let value = seeded.below(1_000_000);
                match seeded.below(4) {
                    0 => text.push_str(&format!("\treturn compute_{value}(context, {value})\n")),
                    1 => text.push_str(&format!("func handler{value}(request *Request) error {{\n")),
                    2 => text.push_str(&format!("\tlet value_{value} = load(\"key-{value}\");\n")),
                    _ => text.push_str("}\n\n"),
                }
            }
            if file % 1_000 == 17 {
                text.push_str(RARE);
                text.push('\n');
            }
            Ok((path, text.into()))
        })
        .collect()
}

/// A text that few files of [`source_tree`] hold.
pub const RARE: &str = "xylophone_quartz";

/// Text of `lines` lines of some 93 bytes each.
pub fn long_text(lines: u64) -> String {
    let mut seeded = Seeded::new(11);
    let mut text = String::new();
    for line in 0..lines {
        text.push_str(&format!("{line:09} worker-{:02} INFO request took ", seeded.below(64)));
        text.push_str(&format!("{:>7} us and gave ", seeded.below(1_000_000)));
        text.push_str(&format!("{:>width$} bytes\n", seeded.below(1_000_000), width = 8 + seeded.below(40) as usize));
    }
    text
}
