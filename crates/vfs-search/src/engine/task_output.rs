//! Output of a task, with panics converted to errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vfs_core::{Error, ErrorKind, Result};

use crate::engine::ordered_queue::TaskKind;
use crate::item::Item;
use crate::walk::subtree::Subtree;

/// The output of a task.
pub(super) struct TaskOutput<D> {
    /// Steps that any worker may take.
    pub(super) work: Option<Subtree<D>>,
    /// The items, and their cost.
    pub(super) items: (Vec<Item>, usize),
    /// The rest of the task, which stopped for lack of room.
    pub(super) rest: Option<TaskKind<D>>,
}

pub(super) type TaskResult<D> = Result<TaskOutput<D>>;

/// Runs `work` and converts a panic to an error.
pub(super) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(Error::new(ErrorKind::Internal, "a search worker panicked")
            .with_source(std::io::Error::other(panic_message(&*panic))))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic without a message").to_owned()
}
