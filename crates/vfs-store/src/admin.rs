//! Administration of whole stores of any kind: opening by URL, copy, verification and counts.

pub(crate) mod check;
mod copy;
mod open;
pub(crate) mod problem;
pub(crate) mod stats;
pub(crate) mod url;
mod visit;

pub use self::check::check;
pub use self::copy::{ConflictPolicy, CopyOptions, CopyReport, copy};
pub use self::open::open_store;
pub use self::stats::stats;
pub use self::url::{Parameters, StoreUrl};
