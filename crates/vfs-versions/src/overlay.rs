//! Copy-on-write overlay over any backend.

pub(crate) mod backend;
pub(crate) mod base_access;
mod commit;
mod commit_executor;
pub(crate) mod commit_plan;
mod discard;
mod draft_mutations;
mod draft_transfers;
pub(crate) mod overlay_persistence;
pub(crate) mod overlay_state;
mod overlay_tree;

pub use self::backend::OverlayBackend;
pub use self::commit::CommitResult;
pub use self::commit_plan::CommitConflict;
