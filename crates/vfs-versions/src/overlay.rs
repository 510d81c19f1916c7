//! Copy-on-write overlay over any backend.

pub(crate) mod backend;
pub(crate) mod base;
mod change;
mod commit;
mod discard;
pub(crate) mod persistence;
pub(crate) mod plan;
pub(crate) mod state;
mod steps;
mod transfer;
mod tree;

pub use self::backend::OverlayBackend;
pub use self::commit::Commit;
pub use self::plan::CommitConflict;
