//! Remote backends over shells of this machine: laws, transport faults, hostile contents.

#![allow(clippy::missing_panics_doc, reason = "this is test code: what cannot be set up ends the test")]
#![allow(clippy::disallowed_methods, reason = "what a backend did is looked at beside it, on the disk")]

mod chunks;
mod contention;
mod cost;
mod fault_injector;
mod faults;
mod hostile;
mod narrow;
mod places;
mod runtime;
mod tools;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = faults::trials();
    trials.extend(hostile::trials());
    trials.extend(contention::trials());
    trials.extend(chunks::trials());
    trials.extend(cost::trials());
    // Those of the system's shell and of busybox are checked beside all other backends.
    for place in [places::narrow(), places::coarse()] {
        trials.extend(place.laws());
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
