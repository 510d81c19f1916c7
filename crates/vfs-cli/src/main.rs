//! The `vfs` command: an agent's view of a directory, for people at a terminal and for scripts.
//!
//! Arguments are parsed in `args`, made into a backend in `session`, and carried out by one file a command in
//! `commands`. All semantics live in the libraries: nothing here decides what an operation means.

mod args;
mod commands;
mod escape;
mod exit;
mod hints;
mod jobs;
mod layers;
mod near;
mod output;
mod printer;
mod progress;
mod session;
mod streams;

use std::io;
use std::os::fd::AsFd as _;
use std::panic;
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Descriptors that must be free before a tokio runtime is built.
const SPARE_DESCRIPTORS: usize = 8;

fn main() -> ExitCode {
    // Sandboxes put this program into themselves, to hold what they run.
    vfs_sandbox::sandbox_helper_main();
    leave_errors_to_operations();
    let arguments = match jobs::arguments() {
        Ok(arguments) => arguments,
        Err(error) => return exit::code(Err(exit::Failure::Input(error))),
    };
    let args = match args::Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    match runtime() {
        Ok(runtime) => {
            let outcome = runtime.block_on(async {
                let _sizes = outlive_size_limit().map_err(exit::Failure::Runtime)?;
                commands::run(args).await
            });
            // A blocked read of standard input must not hold the process back once the output is closed.
            runtime.shutdown_background();
            exit::code(outcome)
        }
        Err(error) => exit::code(Err(exit::Failure::Runtime(error))),
    }
}

/// One thread drives everything: the blocking work is on the pools of the backend and its search.
fn runtime() -> io::Result<Runtime> {
    // Without these few descriptors tokio panics instead of failing.
    let spare =
        (0..SPARE_DESCRIPTORS).map(|_| io::stdin().as_fd().try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
    drop(spare);
    Builder::new_current_thread().enable_all().build()
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) an error instead of the end of this process. Unlike a
/// signal that is ignored, one that is handled is not passed on to the programs that are started.
fn outlive_size_limit() -> io::Result<Signal> {
    signal(SignalKind::from_raw(vfs_search::FILE_SIZE_SIGNAL))
}

/// Reports no panic that becomes the error of an operation, which says on one line what happened.
fn leave_errors_to_operations() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if !vfs_search::is_starting_thread() {
            report(panicked);
        }
    }));
}
