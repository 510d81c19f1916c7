//! Bloom filters of the 4-grams of files, which exclude files from a search without reading them.

use std::fmt;
use std::sync::Arc;

/// The length of an n-gram in bytes.
const NGRAM_BYTES: usize = 4;

/// The range of sizes of a filter in bits. A larger content sets too many bits for the filter to exclude texts.
const MIN_BITS: u64 = 64;
const MAX_BITS: u64 = 1 << 20;

/// The maximum share of set bits, in tenths: a fuller filter is smaller, but has more false positives.
const MAX_FILL_TENTHS: u64 = 6;

/// A Bloom filter of the 4-grams of a file's content.
///
/// # Behaviour
///
/// * The filter has one hash function, ignores the case of ASCII letters, and takes about a fortieth of the size of source code.
/// * The filter has false positives, but no false negatives.
/// * A clone shares the memory of the filter.
///
/// ```
/// use vfs_core::tree::{Sketcher, SketchQuery};
///
/// let mut sketcher = Sketcher::default();
/// sketcher.begin(22);
/// sketcher.push(b"fn main() { ");
/// sketcher.push(b"run(1) }\n");
/// let sketch = sketcher.finish();
/// assert!(sketch.may_hold(&SketchQuery::exactly(["main() { run", "other"]).ok_or("too short")?));
/// assert!(!sketch.may_hold(&SketchQuery::exactly(["register"]).ok_or("too short")?));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch {
    size: u64,
    text: ContentClass,
    /// The bits of the 4-grams. If empty, the sketch has no filter.
    filter: Arc<[u64]>,
}

/// The type of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentClass {
    Binary,
    Ascii,
    Other,
}

impl Sketch {
    /// Creates the sketch of a binary content of `size` bytes, without a filter.
    pub fn of_binary(size: u64) -> Self {
        Self { size, text: ContentClass::Binary, filter: Arc::default() }
    }

    /// Returns the size of the content in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether a search treats the content as binary.
    pub fn is_binary(&self) -> bool {
        self.text == ContentClass::Binary
    }

    /// Returns whether the content may contain one of the texts of `sought`. If not, the content contains none of them.
    pub fn may_hold(&self, sought: &SketchQuery) -> bool {
        // Some letters outside ASCII fold to ASCII letters, such as the Kelvin sign, and have other bytes.
        let is_usable =
            !self.filter.is_empty() && (sought.case == SketchCase::Exact || self.text == ContentClass::Ascii);
        !is_usable || sought.texts.iter().any(|hashes| hashes.iter().all(|hash| self.may_hold_ngram(*hash)))
    }

    /// Returns the heap memory of the sketch in bytes.
    pub fn memory(&self) -> usize {
        // An `Arc` has two counters.
        size_of_val(&*self.filter) + 2 * size_of::<usize>()
    }

    fn may_hold_ngram(&self, hash: u32) -> bool {
        let bit = bit_index(hash, self.filter.len() * 64);
        self.filter[bit / 64] >> (bit % 64) & 1 == 1
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sketch").field("size", &self.size).field("text", &self.text).finish_non_exhaustive()
    }
}

/// A set of texts to look up in a [`Sketch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SketchQuery {
    case: SketchCase,
    /// The hashes of the 4-grams of each text.
    texts: Vec<Vec<u32>>,
}

/// Whether the texts are looked up case-sensitively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SketchCase {
    Exact,
    Any,
}

impl SketchQuery {
    /// Creates a case-sensitive query for any of `texts`.
    ///
    /// Returns `None` if `texts` is empty, or a text has fewer than four bytes.
    pub fn exactly<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        Self::new(SketchCase::Exact, texts)
    }

    /// Creates a case-insensitive query for any of `texts`.
    ///
    /// Returns `None` if `texts` is empty, or a text has fewer than four ASCII bytes in a row.
    pub fn in_any_case<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Option<Self> {
        Self::new(SketchCase::Any, texts)
    }

    fn new<T: AsRef<[u8]>>(case: SketchCase, texts: impl IntoIterator<Item = T>) -> Option<Self> {
        let hashes = |text: T| {
            let is_sure = |ngram: &&[u8]| case == SketchCase::Exact || ngram.is_ascii();
            let hashes: Vec<_> = text.as_ref().windows(NGRAM_BYTES).filter(is_sure).map(hash).collect();
            (!hashes.is_empty()).then_some(hashes)
        };
        let texts: Vec<_> = texts.into_iter().map(hashes).collect::<Option<_>>()?;
        (!texts.is_empty()).then_some(Self { case, texts })
    }
}

/// Returns the case-insensitive hash of a 4-gram.
fn hash(ngram: &[u8]) -> u32 {
    multiply_hash(u32::from_le_bytes([ngram[0], ngram[1], ngram[2], ngram[3]]) | LOWERCASE_MASK)
}

/// Sets the bit that makes ASCII letters lower case. Other bytes may collide, which adds false positives only.
const LOWERCASE_MASK: u32 = 0x2020_2020;

/// Multiplicative hash, whose high bits depend on every byte.
fn multiply_hash(ngram: u32) -> u32 {
    ngram.wrapping_mul(0x9E37_79B1)
}

/// Returns the index of the bit for `hash` in a filter of `bits` bits, a power of two.
fn bit_index(hash: u32, bits: usize) -> usize {
    (hash >> (u32::BITS - bits.trailing_zeros())) as usize
}

/// A builder of sketches, for one content after the other.
///
/// The builder reuses up to 1 MiB of memory. A sketch costs about a nanosecond per byte of content.
#[derive(Debug, Default)]
pub struct Sketcher {
    /// One byte per bit, as bytes are faster to set; all 0 between two sketches.
    marks: Vec<u8>,
    bits: usize,
    size: u64,
    is_ascii: bool,
    /// The last bytes, which start 4-grams of the next chunk.
    last: Vec<u8>,
}

impl Sketcher {
    /// Begins the sketch of a content of about `size` bytes. An unfinished sketch is discarded.
    pub fn begin(&mut self, size: u64) {
        self.marks[..self.bits].fill(0);
        self.bits = size.clamp(MIN_BITS, MAX_BITS).next_power_of_two() as usize;
        if self.marks.len() < self.bits {
            self.marks.resize(self.bits, 0);
        }
        (self.size, self.is_ascii) = (0, true);
        self.last.clear();
    }

    /// Adds the next bytes of the content.
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
            // The border already contains these bytes.
            self.last.drain(..self.last.len().saturating_sub(NGRAM_BYTES - 1));
        }
    }

    fn mark(&mut self, bytes: &[u8]) {
        let marks = &mut self.marks[..self.bits];
        let (last, shift) = (marks.len() - 1, u32::BITS - marks.len().trailing_zeros());
        let mut mark = |ngram: u32| marks[(multiply_hash(ngram) >> shift) as usize & last] = 1;
        let mut rest = bytes;
        while let Some(eight) = rest.first_chunk::<8>() {
            let eight = u64::from_le_bytes(*eight) | (u64::from(LOWERCASE_MASK) << 32 | u64::from(LOWERCASE_MASK));
            for at in 0..NGRAM_BYTES {
                mark((eight >> (8 * at)) as u32);
            }
            rest = &rest[NGRAM_BYTES..];
        }
        rest.windows(NGRAM_BYTES)
            .for_each(|ngram| mark(u32::from_le_bytes([ngram[0], ngram[1], ngram[2], ngram[3]]) | LOWERCASE_MASK));
    }

    /// Returns the sketch of the bytes pushed since [`begin`](Self::begin), which must be the whole content.
    pub fn finish(&mut self) -> Sketch {
        let mut words = Vec::with_capacity(self.bits / 64);
        for marks in self.marks[..self.bits].chunks_exact(64) {
            words.push(marks.chunks_exact(8).rev().fold(0, |word, marks| word << 8 | pack(marks)));
        }
        self.marks[..self.bits].fill(0);
        self.bits = 0;
        let text = if self.is_ascii { ContentClass::Ascii } else { ContentClass::Other };
        Sketch { size: self.size, text, filter: fold_while_sparse(words).into() }
    }
}

/// Packs eight marks into bits.
fn pack(marks: &[u8]) -> u64 {
    let marks = marks.iter().rev().fold(0, |word, mark| word << 8 | u64::from(*mark));
    // The multiplication moves each mark to its own bit of the highest byte.
    marks.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Halves the filter by merging neighbouring bits while it is sparse enough. Returns an empty filter if it is already too full.
fn fold_while_sparse(mut words: Vec<u64>) -> Vec<u64> {
    let ones = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    let is_full = |ones: u64, words: usize| ones * 10 > words as u64 * 64 * MAX_FILL_TENTHS;
    if is_full(ones(&words), words.len()) {
        return Vec::new();
    }
    while words.len() > 1 {
        let pairs = words.iter().map(|word| u64::from(merge_pairs(*word).count_ones())).sum();
        if is_full(pairs, words.len() / 2) {
            break;
        }
        for at in 0..words.len() / 2 {
            words[at] = compact(merge_pairs(words[2 * at])) | compact(merge_pairs(words[2 * at + 1])) << 32;
        }
        words.truncate(words.len() / 2);
    }
    words
}

/// Sets the lower bit of each pair of bits if either is set.
fn merge_pairs(word: u64) -> u64 {
    (word | word >> 1) & 0x5555_5555_5555_5555
}

/// Moves the even bits into the lower half.
fn compact(pairs: u64) -> u64 {
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

    fn exactly(text: &str) -> SketchQuery {
        SketchQuery::exactly([text]).expect("it is long enough")
    }

    fn in_any_case(text: &str) -> SketchQuery {
        SketchQuery::in_any_case([text]).expect("it is long enough")
    }

    #[test]
    fn most_missing_texts_are_excluded() {
        let words: Vec<String> = (0..2_000).map(|number| format!("word{number:05}")).collect();
        let sketch = of(words.join(" ").as_bytes());
        let excluded = (2_000..4_000).filter(|number| !sketch.may_hold(&exactly(&format!("other{number:05}")))).count();
        assert!(excluded > 1_950, "{excluded} of 2000");
        // A sketch is small beside its content.
        assert!(sketch.memory() * 5 < 2_000 * 10, "{} bytes", sketch.memory());
    }

    #[test]
    fn case_folding_beyond_ascii_is_never_excluded() {
        let (ascii, other) = (of(b"A Needle here"), of("A Needle h\u{e9}re".as_bytes()));
        for (sketch, sought, expected) in [
            (&ascii, exactly("Needle"), true),
            // A sketch ignores the case of ASCII letters.
            (&ascii, exactly("needle"), true),
            (&ascii, in_any_case("NEEDLE"), true),
            (&ascii, in_any_case("thread"), false),
            (&ascii, exactly("thread"), false),
            (&other, exactly("thread"), false),
            (&other, in_any_case("thread"), true),
            // The Kelvin sign folds to `k`.
            (&of(b"kelvin"), in_any_case("\u{212a}elvin"), true),
            (&of(b"Celsius"), in_any_case("\u{212a}elvin"), false),
        ] {
            assert_eq!(sketch.may_hold(&sought), expected, "{sketch:?} {sought:?}");
        }
    }

    #[test]
    fn texts_without_a_usable_n_gram_make_no_query() {
        assert_eq!(SketchQuery::exactly(["long enough", "abc"]), None);
        assert_eq!(SketchQuery::exactly::<&str>([]), None);
        assert_eq!(SketchQuery::in_any_case(["gr\u{fc}\u{df}e"]), None);
        assert!(SketchQuery::exactly(["gr\u{fc}\u{df}e"]).is_some());
    }

    #[test]
    fn a_full_filter_excludes_nothing() {
        // More distinct 4-grams than a filter has bits.
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
            prop_assert!(sketch.may_hold(&SketchQuery::exactly([text]).expect("it is long enough")));
            if let Some(sought) = SketchQuery::in_any_case([text.to_ascii_uppercase()]) {
                prop_assert!(sketch.may_hold(&sought));
            }
        }
    }
}
