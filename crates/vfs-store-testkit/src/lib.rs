//! Executable contract of a [`Store`](vfs_store::Store).
//!
//! [`STORE`] is the table of laws: each checks one numbered behaviour of `docs/contract.md` on any store.
//! [`store_trials`] runs them as named tests, `store::subject::law`. The laws of backends and shells are in
//! [`vfs_testkit`].
//!
//! The following test target without a harness checks your own store:
//!
//! ```no_run
//! use vfs_store::MemoryStore as MyStore;
//! use vfs_store_testkit::{StoreFactory, StoreTarget, store_trials};
//!
//! let factory = StoreFactory::new("mine", || async { Ok(StoreTarget::new(MyStore::default())) });
//! libtest_mimic::run(&libtest_mimic::Arguments::from_args(), store_trials(factory)).exit();
//! ```

mod laws;
mod target;
mod trials;

pub use laws::{STORE, StoreLaw};
pub use target::{MakeStore, StoreFactory, StoreNeed, StoreTarget, VersionScheme};
pub use trials::store_trials;
