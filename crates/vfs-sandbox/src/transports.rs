//! Ways to a place that can run a command: a container, a host behind SSH, a service that runs code.
//!
//! # How a script travels
//!
//! [`ContainerExec`] and [`Ssh`] start a client program of this machine, and the client starts a few lines of POSIX
//! shell in the place, which run the script. Those lines
//!
//! * print a random marker before the script's outputs and, with its exit code, after them, on both outputs. What a
//!   client, a login shell or a banner prints before is thereby no part of the answer; an answer without its end is an
//!   error, never a shorter answer; and an exit code of the client is never taken for the script's;
//! * hand standard input over whole or not at all: a connection that breaks in the middle never looks to the script
//!   like the end of its input;
//! * end the script's process group, with SIGTERM and a moment later SIGKILL, as soon as the client is gone: at a
//!   timeout, when a call is dropped, when the connection breaks, and when this process dies.
//!
//! The place needs `sh`, and `dd` with `iflag=fullblock` (GNU and busybox have it) for a script that reads standard
//! input. A script that a signal ended is told as shells tell it: [`Exited`](crate::remote::Ending::Exited) with 128
//! and the signal's number.
//!
//! [`HttpRun`] asks a service to run the script, which tells its outputs and how it ended in its own format.

mod bootstrap;
mod client;
mod container;
mod framed;
#[cfg(feature = "http")]
mod http;
mod said;
mod ssh;

pub use container::{ContainerExec, ContainerExecConfig};
#[cfg(feature = "http")]
pub use http::{
    Agentkit, ApiRequest, BearerToken, HttpRun, HttpRunConfig, JsonApi, Repeat, RunCodeApi, Secret, Sign, Unsigned,
    VolcengineSignature,
};
pub use ssh::{HostKeys, Ssh, SshConfig};
