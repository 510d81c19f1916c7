//! Commands on the host that end when they should: a shell beside the files of a local root.
//!
//! [`LocalShellBackend`] is the backend. What it is made of serves others, too: [`Commands`] runs whatever a [`Launcher`]
//! starts and sees to its end, and [`WithShell`] puts files and a shell together.

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-shell needs Linux: it ends processes by what their supervisor sees in /proc");

mod commands;
mod config;
mod environment;
mod full_output;
mod hop;
mod host;
mod jobs;
mod launch;
mod local;
mod outputs;
mod process;
mod ready;
mod running;
mod standard_streams;
mod typing;
mod with_shell;

pub use commands::Commands;
pub use config::{Leftovers, ShellConfig};
pub use host::HostLauncher;
pub use launch::{Launch, Launcher, Limits};
pub use local::LocalShellBackend;
pub use standard_streams::{ClosedStreams, closed_streams};
pub use with_shell::WithShell;
