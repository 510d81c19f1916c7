//! `vfs completions`.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::output::Output;

pub(super) fn run(out: &mut Output, shell: Shell) -> Result<Exit, Failure> {
    // The generator panics where it cannot write, so it writes into memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "vfs", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Success)
}
