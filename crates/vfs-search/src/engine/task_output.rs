//! What comes of a claim, a panic included.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vfs_core::{Error, ErrorKind, Result};

use crate::engine::ordered_queue::TaskKind;
use crate::item::Item;
use crate::walk::subtree::Subtree;

/// What came of a claim.
pub(super) struct TaskOutput<D> {
    /// Steps that anybody may take.
    pub(super) work: Option<Subtree<D>>,
    /// Items, and what they cost.
    pub(super) items: (Vec<Item>, usize),
    /// What is left for want of room.
    pub(super) rest: Option<TaskKind<D>>,
}

pub(super) type TaskResult<D> = Result<TaskOutput<D>>;

/// Does a claim; a panic in it becomes an error.
pub(super) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::new(ErrorKind::Internal, "a search worker panicked")
            .with_source(std::io::Error::other(panic_message(&*panic))))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
