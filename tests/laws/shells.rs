//! Every law of a shell on every shell, as one named trial each: `shell::subject::law`.
//!
//! `without` lists the features that a shell lacks; their laws are shown as ignored, and others check that it refuses. A law
//! that cannot hold for a reason that lies in the place, and not in the shell, is left out by its number, with the reason.

mod layered;
mod subjects;

use libtest_mimic::Trial;
use vfs_testkit::{ShellFactory, shell_trials};

pub(crate) fn trials() -> Vec<Trial> {
    factories().into_iter().flat_map(shell_trials).collect()
}

fn factories() -> Vec<ShellFactory> {
    let mut all = vec![subjects::local(), subjects::os_sandbox()];
    all.extend(vfs_tests::places::Place::ALL.map(subjects::place));
    all.extend([subjects::virtual_over_memory(), subjects::virtual_over_sqlite()]);
    all.extend(layered::over(subjects::local));
    all.extend(layered::over(subjects::virtual_over_memory));
    all
}
