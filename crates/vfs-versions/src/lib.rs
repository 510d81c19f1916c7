//! Versions of files over any backend: copy-on-write overlays, checkpoints, undo, diff and merge.
//!
//! * [`OverlayBackend`] keeps changes apart from a base until they are committed, discarded or merged into another overlay.
//! * [`Checkpoints`] takes snapshots of all files and undoes single operations.
//!
//! Both keep contents by their hash in a directory of any backend.

mod content_store;
mod overlay;
mod snapshots;

pub use overlay::{Commit, CommitConflict, Merge, OverlayBackend};
pub use snapshots::{CheckpointedBackend, Checkpoints, UndoEntry, Undone};
