//! What comes of a claim, a panic included.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vfs_core::{Error, ErrorKind, Result};

use crate::engine::ordered_queue::Job;
use crate::item::Item;
use crate::walk::subtree::Stretch;

/// What came of a claim.
pub(super) struct Done<D> {
    /// Steps that anybody may take.
    pub(super) work: Option<Stretch<D>>,
    /// Items, and what they cost.
    pub(super) items: (Vec<Item>, usize),
    /// What is left for want of room.
    pub(super) rest: Option<Job<D>>,
}

pub(super) type Outcome<D> = Result<Done<D>>;

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
