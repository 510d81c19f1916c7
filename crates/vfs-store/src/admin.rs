//! Administration of whole stores of any kind: opening by URL, copy, verification and counts.

pub(crate) mod check;
mod copy;
pub(crate) mod open;
pub(crate) mod operator_problem;
pub(crate) mod stats;
pub(crate) mod store_url;
mod value_traversal;

pub use self::check::check;
pub use self::copy::{ConflictPolicy, CopyOptions, CopyReport, copy};
pub use self::open::open_store;
pub use self::stats::stats;
pub use self::store_url::{StoreUrl, StoreUrlParameters};
