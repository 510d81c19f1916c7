//! Files of any place that can run a command.
//!
//! [`SandboxBackend`] reaches them through an [`Execute`], by scripts for the shell of the place. [`LocalProcess`] is an
//! `Execute` of this machine; those of [`transports`](crate::transports) lead elsewhere.

mod backend;
mod bulk;
mod config;
mod contents;
mod dispositions;
mod edit;
mod execute;
mod facts;
mod failure;
mod functions;
mod lines;
mod listing;
mod local_process;
mod look;
mod place;
mod printed;
mod probe;
mod read;
mod ready;
mod recent;
mod remove;
mod reply;
mod script;
mod shell;
mod transfer;
mod tree;
mod turns;
mod write;

pub use backend::SandboxBackend;
pub(crate) use config::Names;
pub use config::RemoteConfig;
pub use execute::{Completed, Ending, Execute, Invocation, Keep, Transport};
pub use local_process::LocalProcess;
