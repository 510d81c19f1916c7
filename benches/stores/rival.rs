//! deepagents' store, timed by a script of its own.

use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use crate::timed::shown;

const SCRIPT: &str = include_str!("rival.py");

/// The cells of its row that it has: ls, glob, read, and grep as the next of several.
pub(crate) fn time(python: &str, files: usize) -> anyhow::Result<String> {
    let output =
        Command::new(python).args(["-c", SCRIPT, &files.to_string()]).output().context("python cannot be run")?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let times: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let cell = |name: &str| {
        let millis = times[name].as_f64().with_context(|| format!("{name} was not timed"))?;
        anyhow::Ok(shown(Duration::from_secs_f64(millis / 1e3)))
    };
    Ok(format!("| {} | {} | {} | | | {} | | | |", cell("ls")?, cell("glob")?, cell("read")?, cell("grep")?))
}
