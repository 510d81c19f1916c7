//! Operations as pure functions over a map of files, which all backends of this crate share.
//!
//! A mutation returns a change with the result; the backend applies the change or returns it to the caller.

mod delete;
mod edit;
mod read;
mod transfer;
mod write;

#[cfg(test)]
mod fixture;

use vfs_core::Result;

use crate::file_map::MapChanges;

pub(crate) use delete::delete;
pub(crate) use edit::edit;
pub(crate) use read::{download, read, stat};
pub(crate) use transfer::{copy, rename};
pub(crate) use write::write;

/// The change that an operation makes, and its result.
pub(crate) type MutationPlan<R> = Result<(MapChanges, R)>;
