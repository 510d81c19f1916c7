//! Model test: random operations on a backend, compared with a simple reference.
//!
//! [`steps`] generates them, [`check`] runs them on a target and on the reference, one after the other. In
//! [`check_concurrently`] many tasks change one file, each on the version that it read.
//!
//! ```no_run
//! use proptest::test_runner::TestRunner;
//! use vfs_testkit::{Target, model};
//! # fn target() -> Target { unreachable!() }
//!
//! TestRunner::default().run(&model::steps(), |steps| {
//!     model::check(&target(), &steps);
//!     Ok(())
//! })?;
//! # Ok::<(), proptest::test_runner::TestError<Vec<model::Step>>>(())
//! ```

mod concurrent;
mod reference;
mod run;
mod step;

pub use concurrent::check_concurrently;
pub use run::check;
pub use step::{Step, StepMode, steps};
