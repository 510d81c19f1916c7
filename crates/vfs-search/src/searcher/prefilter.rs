//! Files that need not be read: telling from what is remembered that nothing is in one, and learning what to remember.

use std::io::{self, Read};

use vfs_core::BinaryMode;
use vfs_core::tree::{Learn, Sketch, Sketcher, Tree};

use crate::query::compiled::Plan;
use crate::searcher::encoding::is_transcoded;
use crate::searcher::outcome::Outcome;
use crate::walk::dir_entries::Entry;

/// How many files are asked about before it can be told whether that is worth it.
const TRIED: u32 = 64;

/// Where fewer than one of so many can be left unread, asking costs more than it saves.
const WORTH: u32 = 8;

/// Where asking is not worth it, one of so many is asked about all the same: other directories may be otherwise.
const SELDOM: u32 = 16;

/// How many bytes are learned between two looks whether to go on.
const PIECE: usize = 256 << 10;

/// What one worker is told of files that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    asked: u32,
    told: u32,
    passed: u32,
}

impl Recall {
    /// What a search of the file `entry` would come to, where that can be told without opening it.
    pub(crate) fn outcome<T: Tree>(&mut self, plan: &Plan, tree: &T, entry: Entry<'_, T::Dir>) -> Option<Outcome> {
        if plan.sought.is_none() || !self.is_worth_it() {
            return None;
        }
        let sketch = tree.known(&entry.place().dir, entry.name(), entry.kind())?;
        self.asked += 1;
        let outcome = told_by(&sketch, plan);
        self.told += u32::from(outcome.is_some());
        outcome
    }

    fn is_worth_it(&mut self) -> bool {
        if self.asked < TRIED || self.told * WORTH >= self.asked {
            return true;
        }
        self.passed += 1;
        self.passed.is_multiple_of(SELDOM)
    }
}

/// What a search of a content would come to, of which `sketch` is remembered.
fn told_by(sketch: &Sketch, plan: &Plan) -> Option<Outcome> {
    // What is too large may be a problem, whatever is in it: from as many bytes on as the searcher may hold.
    let is_small = sketch.size() <= plan.max_file_size.unwrap_or(u64::MAX) && sketch.size() < plan.heap_limit as u64;
    let sought = plan.sought.as_ref().filter(|_| is_small)?;
    if sketch.is_binary() {
        return (plan.binary == BinaryMode::Skip).then(Outcome::binary);
    }
    (!sketch.may_hold(sought)).then_some(Outcome::Searched)
}

/// A file of up to so many bytes is learned at once: opening it costs about as much as learning it.
const SHORT: u64 = 16 << 10;

/// Of the bytes of longer files, one of so many is learned: that costs some three times as much as searching it.
const SHARE: u64 = 8;

/// How many bytes of longer files are learned beyond that, so that a few of them are not left out for ever.
const ALLOWANCE: u64 = 16 << 20;

/// A longer file is not told from what is remembered, whatever that is: it may hold a line that is a problem.
const LONGEST: u64 = 64 << 20;

/// What one worker learns of files, beside searching them.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    sketcher: Sketcher,
    /// How many bytes of long files were read, and learned.
    read: u64,
    learned: u64,
}

impl Learning {
    /// `learn`, where a content of `size` bytes is to be learned.
    pub(crate) fn taken(&mut self, plan: &Plan, learn: Option<Learn>, size: u64) -> Option<Learn> {
        // Other searches do not look whether it is binary.
        let learn = learn.filter(|_| plan.binary == BinaryMode::Skip)?;
        if size <= SHORT {
            return Some(learn);
        }
        self.read = self.read.saturating_add(size);
        let is_turn = size <= LONGEST && self.learned <= self.read / SHARE + ALLOWANCE;
        if is_turn {
            self.learned += size;
        }
        is_turn.then_some(learn)
    }

    /// Learns `content`, which is a whole file and came to `outcome`.
    pub(crate) fn whole(&mut self, learn: Learn, content: &[u8], outcome: &Outcome, interrupted: &dyn Fn() -> bool) {
        if outcome.is_binary() {
            return learn(Sketch::of_binary(content.len() as u64));
        }
        // It is not searched as it is.
        if is_transcoded(content) {
            return;
        }
        self.sketcher.begin(content.len() as u64);
        for piece in content.chunks(PIECE) {
            if interrupted() {
                return;
            }
            self.sketcher.push(piece);
        }
        learn(self.sketcher.finish());
    }

    /// Begins to learn a content of about `size` bytes that begins with `head` and goes on with what is read from `rest`.
    pub(crate) fn as_read<R: Read>(&mut self, size: u64, head: &[u8], rest: R) -> Learned<'_, R> {
        self.sketcher.begin(size);
        self.sketcher.push(head);
        Learned { rest, sketcher: &mut self.sketcher, is_whole: false }
    }
}

/// A reader that learns what goes through it.
pub(crate) struct Learned<'a, R> {
    rest: R,
    sketcher: &'a mut Sketcher,
    is_whole: bool,
}

impl<R> Learned<'_, R> {
    /// Gives what was learned to `learn`, if that is all of the content; `outcome` is what it came to.
    pub(crate) fn give(self, learn: Learn, size: u64, outcome: &Outcome) {
        if outcome.is_binary() {
            learn(Sketch::of_binary(size));
        } else if self.is_whole {
            learn(self.sketcher.finish());
        }
    }
}

impl<R: Read> Read for Learned<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        self.is_whole = read == 0 && !buffer.is_empty();
        self.sketcher.push(&buffer[..read]);
        Ok(read)
    }
}
