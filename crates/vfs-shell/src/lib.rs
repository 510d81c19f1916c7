//! Shell on the host beside the files of a local root, with supervised commands.
//!
//! [`LocalShellBackend`] is the backend. Its parts can be used alone: [`CommandRunner`] runs and terminates the commands of
//! any [`Spawner`], and [`WithShell`] combines files and a shell.

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-shell needs Linux: its supervisor finds processes in /proc");

mod async_fd;
mod blocking;
mod command_runner;
mod config;
mod environment;
mod full_output_file;
mod host_spawner;
mod jobs;
mod local;
mod output_reader;
mod process;
mod pty_input;
mod running_command;
mod spawner;
mod standard_streams;
mod with_shell;

pub use command_runner::CommandRunner;
pub use config::{OrphanPolicy, ShellConfig};
pub use host_spawner::HostSpawner;
pub use local::LocalShellBackend;
pub use spawner::{Limits, SpawnSpec, Spawner};
pub use standard_streams::{ClosedStreams, closed_streams};
pub use with_shell::WithShell;
