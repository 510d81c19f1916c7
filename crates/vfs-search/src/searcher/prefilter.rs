//! N-gram prefilter: skips files whose cached sketch rules out a match, and builds new sketches.

use std::io::{self, Read};

use vfs_core::search::BinaryMode;
use vfs_core::tree::{Sketch, SketchCallback, Sketcher};

use crate::query::compiled_grep_request::CompiledGrepRequest;
use crate::searcher::encoding::is_transcoded;
use crate::searcher::file_outcome::FileOutcome;
use crate::walk::dir_entries::WalkEntry;

/// Number of lookups before their hit rate is evaluated.
const WARMUP_LOOKUPS: u32 = 64;

/// If fewer than one in this many lookups saves reading a file, lookups cost more than they save.
const HIT_RATE_THRESHOLD: u32 = 8;

/// If lookups do not pay off, one file in this many is looked up nevertheless, since other directories may differ.
const PROBE_INTERVAL: u32 = 16;

/// Number of bytes that are added to a sketch between two checks for an interruption.
const SKETCH_CHUNK_BYTES: usize = 256 << 10;

/// One worker's lookups of cached sketches, with their hit rate.
#[derive(Debug, Default)]
pub(crate) struct Prefilter {
    lookups: u32,
    hits: u32,
    skipped_lookups: u32,
}

impl Prefilter {
    /// Returns the outcome of searching the file `entry`, if its sketch decides it without opening the file.
    pub(crate) fn lookup(&mut self, query: &CompiledGrepRequest, entry: WalkEntry<'_>) -> Option<FileOutcome> {
        if query.required.is_none() || !self.should_look_up() {
            return None;
        }
        let sketch = entry.dir().prefilter(entry.name(), entry.kind())?;
        self.lookups += 1;
        let outcome = outcome_of_sketch(&sketch, query);
        self.hits += u32::from(outcome.is_some());
        outcome
    }

    fn should_look_up(&mut self) -> bool {
        if self.lookups < WARMUP_LOOKUPS || self.hits * HIT_RATE_THRESHOLD >= self.lookups {
            return true;
        }
        self.skipped_lookups += 1;
        self.skipped_lookups.is_multiple_of(PROBE_INTERVAL)
    }
}

/// Returns the outcome of searching content with the sketch `sketch`, if the sketch decides it.
fn outcome_of_sketch(sketch: &Sketch, query: &CompiledGrepRequest) -> Option<FileOutcome> {
    // Content that does not fit into the searcher's buffer may be a problem whether or not it matches.
    let is_small = sketch.size() <= query.max_file_size.unwrap_or(u64::MAX) && sketch.size() < query.heap_limit as u64;
    let required = query.required.as_ref().filter(|_| is_small)?;
    if sketch.is_binary() {
        return (query.binary == BinaryMode::Skip).then(FileOutcome::binary);
    }
    (!sketch.may_hold(required)).then_some(FileOutcome::Searched)
}

/// Maximum size of a small file in bytes. Its sketch is built at once: opening the file costs about as much.
const SMALL_FILE_BYTES: u64 = 16 << 10;

/// One in this many bytes of longer files is added to sketches, which costs about three times as much as searching.
const LEARN_SHARE: u64 = 8;

/// Number of bytes of longer files that are added to sketches beyond [`LEARN_SHARE`], so that a few such files are not
/// left out permanently.
const LEARN_ALLOWANCE_BYTES: u64 = 16 << 20;

/// Maximum size in bytes of a file that a sketch can rule out. A longer file may contain a line that is a problem.
const MAX_LEARNED_BYTES: u64 = 64 << 20;

/// Builds sketches of files while one worker searches them.
#[derive(Debug, Default)]
pub(crate) struct SketchRecorder {
    sketcher: Sketcher,
    /// Number of bytes of long files that were read, and that were added to sketches.
    read_bytes: u64,
    learned_bytes: u64,
}

impl SketchRecorder {
    /// Returns `learn` if the caller should build a sketch of content of `size` bytes.
    pub(crate) fn accept(
        &mut self,
        query: &CompiledGrepRequest,
        learn: Option<SketchCallback>,
        size: u64,
    ) -> Option<SketchCallback> {
        // Other searches do not check whether the content is binary.
        let learn = learn.filter(|_| query.binary == BinaryMode::Skip)?;
        if size <= SMALL_FILE_BYTES {
            return Some(learn);
        }
        self.read_bytes = self.read_bytes.saturating_add(size);
        let is_accepted =
            size <= MAX_LEARNED_BYTES && self.learned_bytes <= self.read_bytes / LEARN_SHARE + LEARN_ALLOWANCE_BYTES;
        if is_accepted {
            self.learned_bytes += size;
        }
        is_accepted.then_some(learn)
    }

    /// Builds the sketch of `content`, a whole file whose search had the outcome `outcome`.
    pub(crate) fn learn_whole(
        &mut self,
        learn: SketchCallback,
        content: &[u8],
        outcome: &FileOutcome,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        if outcome.is_binary() {
            return learn(Sketch::of_binary(content.len() as u64));
        }
        // A search does not see the bytes of transcoded content but the transcoded text.
        if is_transcoded(content) {
            return;
        }
        self.sketcher.begin(content.len() as u64);
        for piece in content.chunks(SKETCH_CHUNK_BYTES) {
            if is_interrupted() {
                return;
            }
            self.sketcher.push(piece);
        }
        learn(self.sketcher.finish());
    }

    /// Starts the sketch of about `size` bytes of content, which begins with `head` and continues with the bytes read
    /// from `rest`.
    pub(crate) fn wrap_reader<R: Read>(&mut self, size: u64, head: &[u8], rest: R) -> SketchingReader<'_, R> {
        self.sketcher.begin(size);
        self.sketcher.push(head);
        SketchingReader { rest, sketcher: &mut self.sketcher, is_whole: false }
    }
}

/// A reader that adds everything it reads to a sketch.
pub(crate) struct SketchingReader<'a, R> {
    rest: R,
    sketcher: &'a mut Sketcher,
    is_whole: bool,
}

impl<R> SketchingReader<'_, R> {
    /// Passes the sketch to `learn` if it covers the whole content, whose search had the outcome `outcome`.
    pub(crate) fn finish_into(self, learn: SketchCallback, size: u64, outcome: &FileOutcome) {
        if outcome.is_binary() {
            learn(Sketch::of_binary(size));
        } else if self.is_whole {
            learn(self.sketcher.finish());
        }
    }
}

impl<R: Read> Read for SketchingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        self.is_whole = read == 0 && !buffer.is_empty();
        self.sketcher.push(&buffer[..read]);
        Ok(read)
    }
}
