//! What is remembered of a content, so that it need not be read again to tell that a text is not in it.

use std::fmt;
use std::sync::Arc;

/// How long the runs of bytes are that a sketch tells of.
const NGRAM_BYTES: usize = 4;

/// The least and the most bits that a sketch is made in. What has more runs than that leaves room for too few texts that
/// it could tell to be missing.
const MIN_BITS: u64 = 64;
const MAX_BITS: u64 = 1 << 20;

/// How full a sketch may be, in tenths: the fuller, the smaller, and the more often it cannot tell.
const MAX_FILL_TENTHS: u64 = 6;

/// What is remembered of a content: whether it is binary, and which runs of four bytes may be in it.
///
/// # Behaviour
///
/// * It is a Bloom filter with one hash, of about a fortieth of the size of source code. Upper and lower case of ASCII
///   letters are the same to it. It may take a text to be in a content that does not hold it, never the other way round.
/// * A clone is a handle on the same one.
///
/// ```
/// use vfs_core::tree::{Sketcher, Sought};
///
/// let mut sketcher = Sketcher::default();
/// sketcher.begin(22);
/// sketcher.push(b"fn main() { ");
/// sketcher.push(b"run(1) }\n");
/// let sketch = sketcher.finish();
/// assert!(sketch.may_hold(&Sought::exactly(["main() { run", "other"]).ok_or("too short")?));
/// assert!(!sketch.may_hold(&Sought::exactly(["register"]).ok_or("too short")?));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch {
    size: u64,
    text: Text,
    /// The bit of each run, by the low bits of its hash. Where there are none, nothing is known of the runs.
    runs: Arc<[u64]>,
}

/// What the bytes of a content are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Binary,
    Ascii,
    Other,
}

impl Sketch {
    /// Of a content of `size` bytes that a search takes for binary. Nothing else is known of it.
    pub fn of_binary(size: u64) -> Self {
        Self { size, text: Text::Binary, runs: Arc::default() }
    }

    /// How many bytes the content has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether a search takes it for binary.
    pub fn is_binary(&self) -> bool {
        self.text == Text::Binary
    }

    /// Whether one of the texts that are `sought` may be in the content. Where not, none is.
    pub fn may_hold(&self, sought: &Sought) -> bool {
        // In any case some letters are more than ASCII, such as the sign for Kelvin, whose bytes are others.
        let is_known = !self.runs.is_empty() && (sought.case == Case::Exact || self.text == Text::Ascii);
        !is_known || sought.texts.iter().any(|hashes| hashes.iter().all(|hash| self.may_hold_run(*hash)))
    }

    /// How much memory it takes beside itself, in bytes.
    pub fn memory(&self) -> usize {
        // The two counters of a shared value.
        size_of_val(&*self.runs) + 2 * size_of::<usize>()
    }

    fn may_hold_run(&self, hash: u32) -> bool {
        let bit = place(hash, self.runs.len() * 64);
        self.runs[bit / 64] >> (bit % 64) & 1 == 1
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sketch").field("size", &self.size).field("text", &self.text).finish_non_exhaustive()
    }
}

/// Texts of which a content is to hold at least one, as a [`Sketch`] is asked for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    case: Case,
    /// The hashes of the runs of each.
    texts: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Exact,
    Any,
}

impl Sought {
    /// At least one of `texts`, byte by byte; `None` where there is none, or one has under four bytes, of which a sketch
    /// knows nothing.
    pub fn exactly<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        Self::new(Case::Exact, texts)
    }

    /// At least one of `texts`, whatever the case of its letters; `None` where there is none, or one has under four bytes
    /// of ASCII in a row.
    pub fn in_any_case<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        Self::new(Case::Any, texts)
    }

    fn new<T: AsRef<[u8]>>(case: Case, texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let hashes = |text: T| {
            let is_sure = |run: &&[u8]| case == Case::Exact || run.is_ascii();
            let hashes: Vec<_> = text.as_ref().windows(NGRAM_BYTES).filter(is_sure).map(hash).collect();
            (!hashes.is_empty()).then_some(hashes)
        };
        let texts: Vec<_> = texts.into_iter().map(hashes).collect::<Option<_>>()?;
        (!texts.is_empty()).then_some(Self { case, texts })
    }
}

/// The hash of a run, the same in upper and lower case: by multiplication, so that its high bits depend on every byte.
fn hash(run: &[u8]) -> u32 {
    scattered(u32::from_le_bytes([run[0], run[1], run[2], run[3]]) | LOWERCASE_MASK)
}

/// What makes upper case lower, and does nothing worse to the rest than making some of it one.
const LOWERCASE_MASK: u32 = 0x2020_2020;

fn scattered(run: u32) -> u32 {
    run.wrapping_mul(0x9E37_79B1)
}

/// Where the bit of a run is among `bits`, which are a power of two.
fn place(hash: u32, bits: usize) -> usize {
    (hash >> (u32::BITS - bits.trailing_zeros())) as usize
}

/// Makes sketches, one after the other.
///
/// # Behaviour
///
/// It keeps up to a mebibyte for the next one. Making a sketch takes about a nanosecond for each byte of the content.
#[derive(Debug, Default)]
pub struct Sketcher {
    /// A byte for each bit: bytes are set sooner. All of it is 0 between two sketches.
    marks: Vec<u8>,
    bits: usize,
    size: u64,
    is_ascii: bool,
    /// The last bytes, whose runs go on.
    last: Vec<u8>,
}

impl Sketcher {
    /// Begins a sketch of a content that has about `size` bytes. One that was begun before is forgotten.
    pub fn begin(&mut self, size: u64) {
        self.marks[..self.bits].fill(0);
        self.bits = size.clamp(MIN_BITS, MAX_BITS).next_power_of_two() as usize;
        if self.marks.len() < self.bits {
            self.marks.resize(self.bits, 0);
        }
        (self.size, self.is_ascii) = (0, true);
        self.last.clear();
    }

    /// Takes the next bytes of the content.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bits == 0 {
            self.begin(0);
        }
        self.size += bytes.len() as u64;
        self.is_ascii &= bytes.is_ascii();
        if !self.last.is_empty() {
            let mut border = std::mem::take(&mut self.last);
            border.extend_from_slice(&bytes[..bytes.len().min(NGRAM_BYTES - 1)]);
            self.mark(&border);
            self.last = border;
        }
        self.mark(bytes);
        if bytes.len() >= NGRAM_BYTES - 1 {
            self.last.clear();
            self.last.extend_from_slice(&bytes[bytes.len() - (NGRAM_BYTES - 1)..]);
        } else if self.last.is_empty() {
            self.last.extend_from_slice(bytes);
        } else {
            // The border holds them already.
            self.last.drain(..self.last.len().saturating_sub(NGRAM_BYTES - 1));
        }
    }

    fn mark(&mut self, bytes: &[u8]) {
        let marks = &mut self.marks[..self.bits];
        let (last, shift) = (marks.len() - 1, u32::BITS - marks.len().trailing_zeros());
        let mut mark = |run: u32| marks[(scattered(run) >> shift) as usize & last] = 1;
        let mut rest = bytes;
        while let Some(eight) = rest.first_chunk::<8>() {
            let eight = u64::from_le_bytes(*eight) | (u64::from(LOWERCASE_MASK) << 32 | u64::from(LOWERCASE_MASK));
            for at in 0..NGRAM_BYTES {
                mark((eight >> (8 * at)) as u32);
            }
            rest = &rest[NGRAM_BYTES..];
        }
        rest.windows(NGRAM_BYTES)
            .for_each(|run| mark(u32::from_le_bytes([run[0], run[1], run[2], run[3]]) | LOWERCASE_MASK));
    }

    /// The sketch of what was pushed since it was begun, which has to be all of the content.
    pub fn finish(&mut self) -> Sketch {
        let mut runs = Vec::with_capacity(self.bits / 64);
        for marks in self.marks[..self.bits].chunks_exact(64) {
            runs.push(marks.chunks_exact(8).rev().fold(0, |word, marks| word << 8 | packed(marks)));
        }
        self.marks[..self.bits].fill(0);
        self.bits = 0;
        let text = if self.is_ascii { Text::Ascii } else { Text::Other };
        Sketch { size: self.size, text, runs: folded(runs).into() }
    }
}

/// The bits of eight marks.
fn packed(marks: &[u8]) -> u64 {
    let marks = marks.iter().rev().fold(0, |word, mark| word << 8 | u64::from(*mark));
    // Each mark is moved to a bit of its own in the highest byte.
    marks.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The smallest sketch that is not too full: neighbours become one. None where it is too full as it is.
fn folded(mut runs: Vec<u64>) -> Vec<u64> {
    let ones = |runs: &[u64]| runs.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    let is_full = |ones: u64, words: usize| ones * 10 > words as u64 * 64 * MAX_FILL_TENTHS;
    if is_full(ones(&runs), runs.len()) {
        return Vec::new();
    }
    while runs.len() > 1 {
        let pairs = runs.iter().map(|word| u64::from(paired(*word).count_ones())).sum();
        if is_full(pairs, runs.len() / 2) {
            break;
        }
        for at in 0..runs.len() / 2 {
            runs[at] = joined(paired(runs[2 * at])) | joined(paired(runs[2 * at + 1])) << 32;
        }
        runs.truncate(runs.len() / 2);
    }
    runs
}

/// Of each pair of neighbours whether one is set, in the lower place.
fn paired(word: u64) -> u64 {
    (word | word >> 1) & 0x5555_5555_5555_5555
}

/// The even bits side by side, which stand apart.
fn joined(pairs: u64) -> u64 {
    let steps = [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0xFFFF_FFFF),
    ];
    steps.into_iter().fold(pairs, |word, (by, mask)| (word | word >> by) & mask)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(sketcher: &mut Sketcher, pieces: &[&[u8]]) -> Sketch {
        sketcher.begin(pieces.concat().len() as u64);
        pieces.iter().for_each(|piece| sketcher.push(piece));
        sketcher.finish()
    }

    fn of(content: &[u8]) -> Sketch {
        sketch(&mut Sketcher::default(), &[content])
    }

    fn exactly(text: &str) -> Sought {
        Sought::exactly([text]).expect("it is long enough")
    }

    fn in_any_case(text: &str) -> Sought {
        Sought::in_any_case([text]).expect("it is long enough")
    }

    #[test]
    fn what_is_missing_is_mostly_told() {
        let words: Vec<String> = (0..2_000).map(|number| format!("word{number:05}")).collect();
        let sketch = of(words.join(" ").as_bytes());
        let told = (2_000..4_000).filter(|number| !sketch.may_hold(&exactly(&format!("other{number:05}")))).count();
        assert!(told > 1_950, "{told} of 2000");
        // A sketch is small beside its content.
        assert!(sketch.memory() * 5 < 2_000 * 10, "{} bytes", sketch.memory());
    }

    #[test]
    fn letters_of_another_case_are_told_apart_only_where_they_are_sure() {
        let (ascii, other) = (of(b"A Needle here"), of("A Needle h\u{e9}re".as_bytes()));
        for (sketch, sought, expected) in [
            (&ascii, exactly("Needle"), true),
            // Both cases are one to a sketch.
            (&ascii, exactly("needle"), true),
            (&ascii, in_any_case("NEEDLE"), true),
            (&ascii, in_any_case("thread"), false),
            (&ascii, exactly("thread"), false),
            (&other, exactly("thread"), false),
            (&other, in_any_case("thread"), true),
            // The sign for Kelvin is a `k`, too.
            (&of(b"kelvin"), in_any_case("\u{212a}elvin"), true),
            (&of(b"Celsius"), in_any_case("\u{212a}elvin"), false),
        ] {
            assert_eq!(sketch.may_hold(&sought), expected, "{sketch:?} {sought:?}");
        }
    }

    #[test]
    fn texts_of_which_nothing_is_known_are_no_question() {
        assert_eq!(Sought::exactly(["long enough", "abc"]), None);
        assert_eq!(Sought::exactly::<&str>([]), None);
        assert_eq!(Sought::in_any_case(["gr\u{fc}\u{df}e"]), None);
        assert!(Sought::exactly(["gr\u{fc}\u{df}e"]).is_some());
    }

    #[test]
    fn what_is_too_full_is_not_known() {
        // More different runs than a sketch has bits for.
        let content: Vec<u8> = (0..1_500_000_u32).flat_map(|n| n.wrapping_mul(0x9E37_79B9).to_le_bytes()).collect();
        let sketch = of(&content);
        assert!(sketch.may_hold(&exactly("anything")));
        assert_eq!((sketch.size(), sketch.is_binary()), (6_000_000, false));
        assert!(sketch.memory() < 100);
    }

    #[test]
    fn a_sketch_that_was_not_begun_begins_by_itself() {
        let mut sketcher = Sketcher::default();
        assert!(sketcher.finish().may_hold(&exactly("anything")));
        sketcher.push(b"some content");
        assert!(sketcher.finish().may_hold(&exactly("content")));
    }

    #[test]
    fn a_sketch_that_was_given_up_leaves_nothing_behind() {
        let mut sketcher = Sketcher::default();
        sketcher.begin(100);
        sketcher.push(b"something else, which is never finished");
        assert_eq!(sketch(&mut sketcher, &[b"content"]), of(b"content"));
        assert_eq!(sketch(&mut sketcher, &[]), of(b""));
        assert!(!of(b"").may_hold(&exactly("text")));
    }

    proptest! {
        #[test]
        fn all_that_is_in_a_content_may_be_in_it(
            content in prop_oneof![
                prop::collection::vec(any::<u8>(), 4..3_000),
                "[a-cA-C \n]{4,3000}".prop_map(String::into_bytes),
            ],
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            (start, length) in (any::<prop::sample::Index>(), 4_usize..40),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(content.len())).collect();
            cuts.sort_unstable();
            let ends = cuts.iter().copied().chain([content.len()]);
            let pieces: Vec<_> = std::iter::once(0).chain(cuts.iter().copied()).zip(ends).map(|(from, to)| &content[from..to]).collect();
            let sketch = sketch(&mut Sketcher::default(), &pieces);
            prop_assert_eq!(&sketch, &of(&content));
            let start = start.index(content.len() - 3);
            let text = &content[start..(start + length).min(content.len())];
            prop_assert!(sketch.may_hold(&Sought::exactly([text]).expect("it is long enough")));
            if let Some(sought) = Sought::in_any_case([text.to_ascii_uppercase()]) {
                prop_assert!(sketch.may_hold(&sought));
            }
        }
    }
}
