//! Bash interpreter as the shell of any backend, without processes.
//!
//! [`VirtualShell`] gives a backend a [`Shell`](vfs_core::Shell) and a [`StreamingShell`](vfs_core::StreamingShell) that
//! interpret bash in this process: pipelines, redirections and the usual tools work on files that exist only in the
//! library, in memory, in stores, across mounts. Scripts cannot reach the host, and [`VirtualShellConfig`] bounds what a
//! command may use; as a [`Layer`](vfs_core::Layer) it can be put around anything.

mod backend;
mod backend_file_system;
mod builtin_guard;
mod config;
mod error_conversion;
mod interpreter;
mod job_table;
mod output_recorder;
mod output_sink;
mod runtime_interceptor;
mod script_exit;
mod script_only_dirs;
mod script_stream;
mod shell_facet;
mod stop_signal;

pub use backend::VirtualShell;
pub use config::VirtualShellConfig;
