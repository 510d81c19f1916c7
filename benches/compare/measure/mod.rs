//! What is measured in a process of its own: this program, started again.

mod memory;
mod tasks;
mod tool_search;
mod window;

use std::io::Write;
use std::process::Command;

use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;

use crate::run::checked;
use crate::timing::Sample;

pub(crate) use tasks::{Class, Cores, Report, Store, Tasks};
pub(crate) use tool_search::{ToolSearch, counted_matches};
pub(crate) use window::Window;

/// What the process is to do. It prints one line of JSON.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Measure {
    /// Read a window of a file
    Window(Window),
    /// Read, edit and search in a thousand tasks
    Tasks(Tasks),
    /// Search by the native tool
    ToolSearch(ToolSearch),
}

/// Does it, in this process.
pub(crate) fn run(measure: &Measure) -> Result<()> {
    match measure {
        Measure::Window(window) => print(&window.measure()?),
        Measure::Tasks(tasks) => print(&tasks.measure()?),
        Measure::ToolSearch(search) => print(&search.measure()?),
    }
}

/// A window, read in a fresh process.
pub(crate) fn window_in_a_child(window: &Window) -> Result<Sample> {
    let line = checked(itself()?.arg("window").args(window.arguments()))?;
    Ok(serde_json::from_str(&line)?)
}

/// The tasks, in a fresh process.
pub(crate) fn tasks_in_a_child(tasks: &Tasks) -> Result<Report> {
    let line = checked(itself()?.arg("tasks").args(tasks.arguments()))?;
    Ok(serde_json::from_str(&line)?)
}

/// A search by the native tool, in a fresh process.
pub(crate) fn tool_search_in_a_child(search: &ToolSearch) -> Result<Sample> {
    let line = checked(itself()?.arg("tool-search").args(search.arguments()))?;
    Ok(serde_json::from_str(&line)?)
}

fn itself() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("measure");
    Ok(command)
}

fn print(measured: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout();
    serde_json::to_writer(&mut out, measured)?;
    writeln!(out)?;
    Ok(())
}
