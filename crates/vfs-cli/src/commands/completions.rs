//! Command `vfs completions`: prints a completion script.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) fn run(out: &mut StandardOutput, shell: Shell) -> Result<Exit, Failure> {
    // The generator panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "vfs", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Success)
}
