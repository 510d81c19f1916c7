//! What each operation does with a map of files: pure functions that every backend here shares.
//!
//! A mutation is computed on the map of one moment and comes back as a change with the result; making the change, or
//! handing it to the caller, is the backend's part.

mod delete;
mod edit;
mod inspect;
mod transfer;
mod write;

#[cfg(test)]
mod fixture;

use vfs_core::Result;

use crate::map::Change;

pub(crate) use delete::delete;
pub(crate) use edit::edit;
pub(crate) use inspect::{download, read, stat};
pub(crate) use transfer::{copy, rename};
pub(crate) use write::write;

/// A change to make, and what to tell the caller once it is made.
pub(crate) type Planned<R> = Result<(Change, R)>;
