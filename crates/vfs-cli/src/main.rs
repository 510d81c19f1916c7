//! The `vfs` command: an agent's view of a directory, for people at a terminal and for scripts.
//!
//! Arguments are parsed in `args`, made into a backend in `session`, and carried out by one file a command in
//! `commands`. All semantics live in the libraries: nothing here decides what an operation means.

mod args;
mod commands;
mod escape;
mod exit;
mod jobs;
mod layers;
mod output;
mod printer;
mod progress;
mod session;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Sandboxes put this program into themselves, to hold what they run.
    vfs_sandbox::os::become_confine_if_asked();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    // One thread drives everything: the blocking work is on the pools of the backend and its search.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(commands::run(args));
            // A blocked read of standard input must not hold the process back once the output is closed.
            runtime.shutdown_background();
            exit::code(outcome)
        }
        Err(error) => exit::code(Err(exit::Failure::Runtime(error))),
    }
}
