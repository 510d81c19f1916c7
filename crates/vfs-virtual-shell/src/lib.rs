//! A shell without processes for files of any backend.
//!
//! [`VirtualShell`] gives a backend a [`Shell`](vfs_core::Shell) and a [`StreamingShell`](vfs_core::StreamingShell) that
//! interpret bash in this process: pipelines, redirections and the usual tools work on files that exist only in the
//! library, in memory, in stores, across mounts. Nothing of the host is in reach, and [`VirtualShellConfig`] bounds what a
//! command may use; as a [`Layer`](vfs_core::Layer) it can be put around anything.

mod backend;
mod config;
mod directories;
mod faults;
mod files;
mod guard;
mod jobs;
mod record;
mod run;
mod shell;
mod stop;
mod stream;

pub use backend::VirtualShell;
pub use config::VirtualShellConfig;
