//! Files of any place that can run a command.

mod execute;

pub use execute::{Completed, Ending, Execute, Invocation, Transport};
