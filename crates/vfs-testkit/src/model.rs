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
//! # Ok::<(), proptest::test_runner::TestError<Vec<model::ModelStep>>>(())
//! ```

mod concurrent;
mod model_runner;
mod model_step;
mod reference_model;

pub use concurrent::check_concurrently;
pub use model_runner::check;
pub use model_step::{ExistingTargetMode, ModelStep, steps};
