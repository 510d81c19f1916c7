//! Broken shells, whose faults the laws must detect, and an intact one, for which they hold.

mod broken_shells;

use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;
use vfs_core::BackendExt;
use vfs_local::{Durability, LocalBackend, LocalConfig};
use vfs_shell::{LocalShellBackend, ShellConfig, WithShell};
use vfs_testkit::{SHELL, ShellFactory, ShellFeature, ShellLaw, ShellTarget, Target, plant_environment, shell_trials};

use broken_shells::{BrokenShell, Fault};

/// The name of the threads on which laws are broken: their panics are not printed.
const BREAKING: &str = "breaking";

/// How long a law may take to hold for a shell that is wrong. Many laws wait for what such a shell never does, which they
/// would do for most of a minute; those that hold take a second or two.
const HOLDS_WITHIN: Duration = Duration::from_secs(15);

/// More threads than processors: nearly all of the time is waiting for what a wrong shell never does.
const THREADS: usize = 12;

fn main() {
    plant_environment();
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |how| {
        if thread::current().name() != Some(BREAKING) {
            default_hook(how);
        }
    }));
    let mut trials = shell_trials(ShellFactory::new("right", async || Ok(target(Fault::Nothing))));
    for (fault, numbers) in FAULTS {
        for number in *numbers {
            let law = SHELL.iter().find(|law| law.number == *number).unwrap_or_else(|| panic!("{number} is no law"));
            let name = format!("{fault:?}::{}::{}", law.subject, law.name);
            trials.push(Trial::test(name, move || is_found(law, *fault)));
        }
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    libtest_mimic::run(&arguments, trials).exit();
}

/// Faults with the laws that must detect them.
const FAULTS: &[(Fault, &[&str])] = &[
    (Fault::DropsErrors, &["XO1", "XO9", "XE2", "XB3"]),
    (Fault::LosesExitCodes, &["XE1", "XE7", "XF9"]),
    (Fault::LosesSignals, &["XE4", "XE5"]),
    (Fault::OmitsDuration, &["XE8"]),
    (Fault::PutsOneOutputBeforeTheOther, &["XO2"]),
    (Fault::TrimsOutput, &["XO3"]),
    (Fault::EndsAtNul, &["XO5"]),
    (Fault::DecodesInPieces, &["XO6"]),
    (Fault::OmitsTruncation, &["XB1", "XB2", "XB5"]),
    (Fault::KeepsTheHead, &["XB1", "XB4"]),
    (Fault::KeepsTheTail, &["XB1"]),
    (Fault::WritesNoFile, &["XB9"]),
    (Fault::LeaksItsEnvironment, &["XV1"]),
    (Fault::PassesSecretsOn, &["XV4"]),
    (Fault::RunsInTheRoot, &["XD1", "XD3"]),
    (Fault::TakesTheRootForWhatIsMissing, &["XD4", "XD5"]),
    (Fault::GivesNothingToRead, &["XI2", "XI3"]),
    (Fault::TakesAnyTime, &["XR1"]),
    (Fault::ForgetsAtTheTimeout, &["XT1", "XT17"]),
    (Fault::HidesTheTimeout, &["XT1"]),
    (Fault::LeavesAllRunning, &["XT3", "XT6", "XT7", "XT8", "XT9", "XT16"]),
    (Fault::WaitsForAll, &["XT13"]),
    (Fault::StreamsAtTheEnd, &["XS2", "XS4"]),
    (Fault::EndsTwice, &["XS1"]),
    (Fault::KeepsForTheEnd, &["XS1"]),
    (Fault::EndsWithoutExit, &["XS1", "XS6"]),
    (Fault::ReadsOnWithoutReader, &["XS13", "XS10"]),
    (Fault::CutsItems, &["XS5"]),
    (Fault::RepeatsOutput, &["XJ3"]),
    (Fault::LosesOutputBetween, &["XJ3"]),
    (Fault::ReportsExitEarly, &["XJ4", "XJ7"]),
    (Fault::StopsInWordOnly, &["XJ9"]),
    (Fault::KnowsAnyJob, &["XJ11"]),
    (Fault::EndsJobsWithTheirCall, &["XJ8"]),
    (Fault::ListsNoJobs, &["XJ2"]),
    (Fault::ShowsJobsToAll, &["XJ17"]),
    (Fault::TakesAnyCursor, &["XJ18"]),
    (Fault::RunsElsewhere, &["XF1", "XF2", "XF10"]),
    (Fault::RunsOneAtATime, &["XC3"]),
    (Fault::AnswersForAnother, &["XC1", "XC2"]),
    (Fault::IgnoresTerminals, &["XP2", "XP3"]),
    (Fault::AlwaysHasATerminal, &["XP1"]),
    (Fault::WaitsForTheBackground, &["XJ1", "XR5"]),
    (Fault::DropsWhatItCannot, &["XB12", "XR4", "XV6"]),
];

fn open(root: &TempDir) -> LocalBackend {
    LocalConfig::new(root.path()).durability(Durability::Atomic).open().expect("the root can be opened")
}

fn target(fault: Fault) -> ShellTarget {
    let directory = || tempfile::Builder::new().prefix("vfs-doubles-").tempdir().expect("a directory can be made");
    let (root, elsewhere) = (directory(), directory());
    let files = open(&root);
    let place = if fault == Fault::RunsElsewhere { open(&elsewhere) } else { files.clone() };
    let shell = BrokenShell::new(LocalShellBackend::with_files(place, ShellConfig::new()), fault);
    let backend = WithShell::new("broken", std::sync::Arc::new(files), shell);
    let target =
        Target::new(std::sync::Arc::new(backend)).with_host_marker("vfs-doubles-").with_guard((root, elsewhere));
    // The host's commands see the files at the host's paths.
    let target = ShellTarget::new(target).without(&[ShellFeature::SamePaths]);
    match fault {
        Fault::DropsWhatItCannot => {
            target.without(&[ShellFeature::FullOutputMode, ShellFeature::Terminal, ShellFeature::InheritedEnvironment])
        }
        _ => target,
    }
}

/// Asserts that `law` does not hold for a shell with the `fault`.
fn is_found(law: &'static ShellLaw, fault: Fault) -> Result<(), Failed> {
    let holds = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let target = match (law.number, fault) {
                ("XR5", _) => target(fault).without(&[ShellFeature::Background]),
                _ => target(fault),
            };
            target.files.backend.exists("/nothing").await.expect("the files are there");
            assert_eq!(target.exception_of(law), None, "the law is for such shells");
            tokio::time::timeout(HOLDS_WITHIN, (law.run)(&target)).await
        })
    };
    let thread = thread::Builder::new().name(BREAKING.to_owned());
    let thread = thread.spawn(move || panic::catch_unwind(AssertUnwindSafe(holds)))?;
    match thread.join().expect("a panic is caught") {
        Ok(Ok(Ok(()))) => Err(format!("{} holds for a shell that is wrong", law.number).into()),
        _ => Ok(()),
    }
}
