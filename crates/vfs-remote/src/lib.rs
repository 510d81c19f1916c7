//! Remote execution backend: files and commands of any place that has a POSIX shell.
//!
//! [`SandboxBackend`] reaches a place through a [`RemoteExec`], by scripts for the place's shell. [`LocalProcess`] runs them on
//! this machine, [`ContainerExec`] in a container, [`Ssh`] on another host, and `http::HttpRun` (feature `http`) through a
//! service that runs code for an HTTP request.
//!
//! # How a script travels
//!
//! [`ContainerExec`] and [`Ssh`] start a client program of this machine, and the client starts a few lines of POSIX shell in
//! the place, which run the script. Those lines
//!
//! * print a random marker before the script's outputs and, with its exit code, after them, on both outputs. So text
//!   that a client, a login shell or a banner prints before the marker is not part of the response; a response without
//!   its end is an error, never a shorter response; and an exit code of the client is never taken for the script's;
//! * pass standard input on as a whole or not at all: a connection that breaks in the middle never looks to the script
//!   like the end of its input;
//! * end the script's process group, with SIGTERM and a moment later SIGKILL, as soon as the client exits: at a
//!   timeout, when a call is dropped, when the connection breaks, and when this process dies.
//!
//! The place needs `sh`, and `dd` with `iflag=fullblock` (GNU and busybox have it) for a script that reads standard input. The
//! end of a script by a signal is reported as shells report it: [`Exited`](RemoteExit::Exited) with 128 and the signal's number.

mod backend;
mod config;
mod exec;
mod operations;
mod remote_place_client;
mod script;
mod tree;

pub use backend::SandboxBackend;
pub use config::RemoteConfig;
pub use exec::container::{ContainerExec, ContainerExecConfig};
#[cfg(feature = "http")]
pub use exec::http;
pub use exec::local::LocalProcess;
pub use exec::ssh::{HostKeyPolicy, Ssh, SshConfig};
pub use exec::{RemoteExec, RemoteExit, RemoteOutput, RetainedOutputPart, ScriptInvocation, TransportLimits};
