//! The `vfs` command: files as an agent sees them, for people at a terminal and for scripts.
//!
//! `args` parses the arguments, `backend_session` opens the backend, and `commands` has one file for each command. The libraries define
//! what operations mean; this crate only parses, calls and prints.

mod args;
mod backend_session;
mod commands;
mod escape;
mod exit;
mod jobs;
mod layers_at_mount;
mod match_printer;
mod path_suggestions;
mod progress_line;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(not(feature = "sandbox"))]
#[path = "no_sandbox.rs"]
mod sandbox;
mod search_hints;
mod shell_selection;
mod standard_output;
mod standard_streams;
mod store_argument;
mod version;

use std::io;
use std::os::fd::AsFd as _;
use std::panic;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Number of descriptors that must be free before a tokio runtime is built.
const MIN_FREE_DESCRIPTORS: usize = 8;

fn main() -> ExitCode {
    sandbox::run_if_helper();
    silence_expected_panics();
    let arguments = match jobs::arguments() {
        Ok(arguments) => arguments,
        Err(error) => return exit::exit_code(Err(exit::Failure::Input(error))),
    };
    let args = match args::Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return exit::report_usage_error(&error),
    };
    match build_runtime() {
        Ok(runtime) => {
            let outcome = runtime.block_on(async {
                let _signal = catch_file_size_signal().map_err(exit::Failure::Runtime)?;
                commands::run(args).await
            });
            // A blocked read of standard input must not delay the exit.
            runtime.shutdown_background();
            exit::exit_code(outcome)
        }
        Err(error) => exit::exit_code(Err(exit::Failure::Runtime(error))),
    }
}

/// Builds a single-threaded runtime. Blocking work runs on the pools of the backend and its search.
fn build_runtime() -> io::Result<Runtime> {
    // Without free descriptors tokio panics instead of returning an error.
    let spare =
        (0..MIN_FREE_DESCRIPTORS).map(|_| io::stdin().as_fd().try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
    drop(spare);
    Builder::new_current_thread().enable_all().build()
}

/// Handles the signal of a write beyond the file size limit (`ulimit -f`), so that the write fails instead of ending the process.
/// The signal is handled and not ignored, because child processes inherit ignored signals.
fn catch_file_size_signal() -> io::Result<Signal> {
    signal(SignalKind::from_raw(vfs_search::FILE_SIZE_SIGNAL))
}

/// Suppresses the report of panics that become errors of operations.
fn silence_expected_panics() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic_info| {
        if !vfs_search::is_starting_thread() {
            default_hook(panic_info);
        }
    }));
}
