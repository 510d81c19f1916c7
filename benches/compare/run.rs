//! Programs that are run, and words to the one who waits.

use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a program; its output, or why it failed.
pub(crate) fn checked(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{name} cannot be run"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        bail!("{name} failed ({}): {last}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first line that a program prints, where it can be run.
pub(crate) fn first_line(command: &mut Command) -> Option<String> {
    checked(command).ok()?.lines().next().map(str::to_owned)
}

/// Says what is under way.
#[expect(clippy::print_stderr, reason = "progress goes to the terminal of the one who waits")]
pub(crate) fn say(what: fmt::Arguments<'_>) {
    eprintln!("compare: {what}");
}
