//! Files that need not be read: telling from what is remembered that nothing is in one, and learning what to remember.

use std::io::{self, Read};

use vfs_core::BinaryMode;
use vfs_core::tree::{Learn, Sketch, Sketcher, Tree};

use crate::query::compiled::CompiledQuery;
use crate::searcher::encoding::is_transcoded;
use crate::searcher::outcome::FileOutcome;
use crate::walk::dir_entries::WalkEntry;

/// How many files are asked about before it can be told whether that is worth it.
const WARMUP_LOOKUPS: u32 = 64;

/// Where fewer than one of so many can be left unread, asking costs more than it saves.
const HIT_RATE_THRESHOLD: u32 = 8;

/// Where asking is not worth it, one of so many is asked about all the same: other directories may be otherwise.
const PROBE_INTERVAL: u32 = 16;

/// How many bytes are learned between two looks whether to go on.
const SKETCH_CHUNK_BYTES: usize = 256 << 10;

/// What one worker is told of files that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Prefilter {
    lookups: u32,
    hits: u32,
    skipped_lookups: u32,
}

impl Prefilter {
    /// What a search of the file `entry` would come to, where that can be told without opening it.
    pub(crate) fn lookup<T: Tree>(
        &mut self,
        query: &CompiledQuery,
        tree: &T,
        entry: WalkEntry<'_, T::Dir>,
    ) -> Option<FileOutcome> {
        if query.required.is_none() || !self.should_look_up() {
            return None;
        }
        let sketch = tree.known(&entry.context().dir, entry.name(), entry.kind())?;
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

/// What a search of a content would come to, of which `sketch` is remembered.
fn outcome_of_sketch(sketch: &Sketch, query: &CompiledQuery) -> Option<FileOutcome> {
    // What is too large may be a problem, whatever is in it: from as many bytes on as the searcher may hold.
    let is_small = sketch.size() <= query.max_file_size.unwrap_or(u64::MAX) && sketch.size() < query.heap_limit as u64;
    let required = query.required.as_ref().filter(|_| is_small)?;
    if sketch.is_binary() {
        return (query.binary == BinaryMode::Skip).then(FileOutcome::binary);
    }
    (!sketch.may_hold(required)).then_some(FileOutcome::Searched)
}

/// A file of up to so many bytes is learned at once: opening it costs about as much as learning it.
const SMALL_FILE_BYTES: u64 = 16 << 10;

/// Of the bytes of longer files, one of so many is learned: that costs some three times as much as searching it.
const LEARN_SHARE: u64 = 8;

/// How many bytes of longer files are learned beyond that, so that a few of them are not left out for ever.
const LEARN_ALLOWANCE_BYTES: u64 = 16 << 20;

/// A longer file is not told from what is remembered, whatever that is: it may hold a line that is a problem.
const MAX_LEARNED_BYTES: u64 = 64 << 20;

/// What one worker learns of files, beside searching them.
#[derive(Debug, Default)]
pub(crate) struct ContentLearner {
    sketcher: Sketcher,
    /// How many bytes of long files were read, and learned.
    read_bytes: u64,
    learned_bytes: u64,
}

impl ContentLearner {
    /// `learn`, where a content of `size` bytes is to be learned.
    pub(crate) fn accept(&mut self, query: &CompiledQuery, learn: Option<Learn>, size: u64) -> Option<Learn> {
        // Other searches do not look whether it is binary.
        let learn = learn.filter(|_| query.binary == BinaryMode::Skip)?;
        if size <= SMALL_FILE_BYTES {
            return Some(learn);
        }
        self.read_bytes = self.read_bytes.saturating_add(size);
        let is_turn =
            size <= MAX_LEARNED_BYTES && self.learned_bytes <= self.read_bytes / LEARN_SHARE + LEARN_ALLOWANCE_BYTES;
        if is_turn {
            self.learned_bytes += size;
        }
        is_turn.then_some(learn)
    }

    /// Learns `content`, which is a whole file and came to `outcome`.
    pub(crate) fn learn_whole(
        &mut self,
        learn: Learn,
        content: &[u8],
        outcome: &FileOutcome,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        if outcome.is_binary() {
            return learn(Sketch::of_binary(content.len() as u64));
        }
        // It is not searched as it is.
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

    /// Begins to learn a content of about `size` bytes that begins with `head` and goes on with what is read from `rest`.
    pub(crate) fn wrap_reader<R: Read>(&mut self, size: u64, head: &[u8], rest: R) -> LearningReader<'_, R> {
        self.sketcher.begin(size);
        self.sketcher.push(head);
        LearningReader { rest, sketcher: &mut self.sketcher, is_whole: false }
    }
}

/// A reader that learns what goes through it.
pub(crate) struct LearningReader<'a, R> {
    rest: R,
    sketcher: &'a mut Sketcher,
    is_whole: bool,
}

impl<R> LearningReader<'_, R> {
    /// Gives what was learned to `learn`, if that is all of the content; `outcome` is what it came to.
    pub(crate) fn finish_into(self, learn: Learn, size: u64, outcome: &FileOutcome) {
        if outcome.is_binary() {
            learn(Sketch::of_binary(size));
        } else if self.is_whole {
            learn(self.sketcher.finish());
        }
    }
}

impl<R: Read> Read for LearningReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        self.is_whole = read == 0 && !buffer.is_empty();
        self.sketcher.push(&buffer[..read]);
        Ok(read)
    }
}
