//! Conservative parser of shell command lines, for command rules.

mod command_line;
mod command_line_parser;
mod command_pattern;
mod program_deny_list;
mod simple_command;

#[cfg(test)]
mod tests;

pub use self::command_line::CommandLine;
pub(crate) use self::command_pattern::{CommandPattern, RequestedCommand};
pub use self::simple_command::{CommandArgument, SimpleCommand};
