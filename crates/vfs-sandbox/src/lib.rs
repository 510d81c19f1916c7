//! Commands and files in isolation: a sandbox of this system, and any place that can run a command.

pub mod os;
pub mod remote;
pub mod transports;
