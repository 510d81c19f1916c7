//! Conservative parser of shell command lines, for command rules.

mod command_line;
mod pattern;
mod programs;
mod reader;
mod simple_command;

#[cfg(test)]
mod tests;

pub use self::command_line::CommandLine;
pub(crate) use self::pattern::{CommandPattern, RequestedCommand};
pub use self::simple_command::{CommandWord, SimpleCommand};
