//! Versions of files over any backend: copy-on-write overlays, checkpoints, undo, diff and merge.
//!
//! * [`OverlayBackend`] keeps changes apart from a base until they are committed, discarded or merged into another overlay.
//! * [`Checkpoints`] takes snapshots of all files and undoes single operations.
//!
//! Both store contents by hash in a directory of any backend.

mod content_store;
mod diff;
mod merge;
mod overlay;
mod record_directory;
mod snapshots;
mod undo_log;
mod versioned_entry;

pub use merge::ForkMergeResult;
pub use overlay::{CommitConflict, CommitResult, OverlayBackend};
pub use snapshots::{CheckpointedBackend, Checkpoints};
pub use undo_log::{UndoEntry, UndoReport};
