//! What comes of a claim, a panic included.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vfs_core::{Error, ErrorKind, Result};

use crate::frontier::{Cursor, Visit};
use crate::item::{Item, Tally};
use crate::level::Findings;

/// What came of a claim.
pub(super) struct Done<D> {
    pub(super) cursor: Option<Cursor<D>>,
    /// Items, and what they cost.
    pub(super) items: (Vec<Item>, usize),
    /// What is left for want of room.
    pub(super) rest: Option<Visit<D>>,
}

pub(super) type Outcome<D> = Result<Done<D>>;

/// What was found beside entries, in the order it is shown.
pub(super) fn items(findings: Findings) -> Vec<Item> {
    let Findings { problems, skipped, too_deep } = findings;
    let tally = Tally { searched: 0, skipped, too_deep };
    let mut items: Vec<_> = if tally.is_empty() { Vec::new() } else { vec![Item::Tally(tally)] };
    items.extend(problems.into_iter().map(Item::Problem));
    items
}

/// `items` and what they cost.
pub(super) fn costed(items: Vec<Item>) -> (Vec<Item>, usize) {
    let bytes = items.iter().map(Item::cost).sum();
    (items, bytes)
}

/// Does a claim; a panic in it becomes an error.
pub(super) fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::new(ErrorKind::Internal, "a search worker panicked")
            .with_source(std::io::Error::other(words(&*panic))))
    })
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
