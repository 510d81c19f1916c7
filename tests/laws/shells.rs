//! Every law of a shell on every shell, as one named trial each: `shell::subject::law`.
//!
//! What a shell cannot do is said in `without`; its laws are then shown as ignored, and others check that it refuses. A law
//! that cannot hold for a reason that lies in the place, and not in the shell, is left out by its number, with the reason.

mod layered;
mod subjects;

use libtest_mimic::{Arguments, Trial};
use vfs_testkit::{ShellFactory, plant_environment, shell_trials};

fn main() {
    // The sandbox starts this program again inside, to put its second belt on.
    vfs_sandbox::os::become_confine_if_asked();
    plant_environment();
    let arguments = Arguments::from_args();
    let trials: Vec<Trial> = factories().into_iter().flat_map(shell_trials).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn factories() -> Vec<ShellFactory> {
    let mut all = vec![subjects::local(), subjects::os_sandbox()];
    all.extend(vfs_tests::places::Place::ALL.map(subjects::place));
    all.extend([subjects::virtual_over_memory(), subjects::virtual_over_sqlite()]);
    all.extend(layered::over(subjects::local));
    all.extend(layered::over(subjects::virtual_over_memory));
    all
}
