//! Shell on the host beside the files of a local root, with supervised commands.
//!
//! [`LocalShellBackend`] is the backend. Its parts can be used alone: [`CommandRunner`] runs and terminates the commands of
//! any [`Spawner`], and [`WithShell`] combines files and a shell.

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-shell needs Linux: its supervisor finds processes in /proc");

mod async_fd;
mod closed_standard_streams;
mod command_environment;
mod command_runner;
mod config;
mod full_output_file;
mod host_spawner;
mod job_table;
mod local_shell_backend;
mod output_reader;
mod process;
mod pty_input;
mod running_command;
mod spawner;
mod tokio_runtime;
mod with_shell;

pub use closed_standard_streams::{ClosedStandardStreams, closed_streams};
pub use command_runner::CommandRunner;
pub use config::{OrphanPolicy, ShellConfig};
pub use host_spawner::HostSpawner;
pub use local_shell_backend::LocalShellBackend;
pub use spawner::{Limits, SpawnSpec, Spawner};
pub use with_shell::WithShell;
