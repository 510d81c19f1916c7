//! Remote backends over shells of this machine: laws, transport faults, hostile contents.

#![allow(clippy::missing_panics_doc, reason = "this is test code: a failure of the setup ends the test")]
#![allow(clippy::disallowed_methods, reason = "the tests check the effects of a backend on the disk itself")]

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
    // The laws of the system's shell and of busybox run with those of all other backends, in `tests/laws`.
    for place in [places::narrow(), places::coarse()] {
        trials.extend(place.laws());
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
