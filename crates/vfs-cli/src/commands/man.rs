//! Command `vfs man`: prints a manual page.

use std::io::Write;

use clap_mangen::Man;

use super::help::find_command;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) fn run(out: &mut StandardOutput, words: &[String]) -> Result<Exit, Failure> {
    let mut roff = Vec::new();
    Man::new(find_command(words)?).render(&mut roff)?;
    out.write_all(&roff)?;
    Ok(Exit::Success)
}
