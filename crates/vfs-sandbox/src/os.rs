//! Commands held by this system: namespaces, Landlock, and a filter over system calls.
//!
//! [`OsSandbox`] is a place for commands of somebody who is not trusted, on Linux. It proves when it is opened what it can
//! enforce ([`SandboxReport`]), and does not open weaker than its [settings](SandboxConfig) ask. [`Workspace`] brings the
//! files of any backend to where such commands can work on them, and their changes back.

mod backend;
mod belt;
mod bubblewrap;
mod commands;
mod config;
mod confine;
mod copied;
mod direct;
mod filter;
mod findings;
mod groups;
mod held;
mod helper;
mod leftovers;
mod namespaces;
mod nested_covers;
mod placeholders;
mod programs;
mod report;
mod rules;
mod sandbox;
mod self_test;
mod setup;
mod signals;
mod stamp;
mod system;
mod tree_scan;
mod workspace;

pub use self::backend::OsSandboxBackend;
pub use self::belt::{Belt, Mechanism};
pub use self::commands::SandboxCommands;
pub use self::config::{
    Helper, Mount, Network, Protected, ProtectedName, Protection, SandboxConfig, SelfTest, UnixSockets,
};
pub use self::helper::become_confine_if_asked;
pub use self::report::{Finding, Holding, SandboxReport};
pub use self::sandbox::OsSandbox;
pub use self::workspace::{CollectConflict, Collected, Workspace};
