//! Tests in namespaces of their own, where file systems are mounted and kernel limits lowered.
//!
//! This program starts itself in new namespaces for each trial. If an ordinary user may not create them on this
//! machine, the trial is reported as ignored.

mod layers;
mod limit;
#[path = "../support/mod.rs"]
mod support;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// Set for a trial that runs in its namespaces.
const INSIDE: &str = "VFS_TEST_INSIDE_NAMESPACES";

/// A test and its name.
type Test = (&'static str, fn());

/// Tests that run in namespaces of the same kind.
struct Group {
    /// The operation that the machine has to permit in the namespaces.
    need: &'static str,
    /// The shell command that prepares the namespaces, and fails if that is not permitted.
    preparation: &'static str,
    tests: &'static [Test],
}

macro_rules! tests {
    ($($module:ident::$name:ident),+ $(,)?) => {
        &[$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),+]
    };
}

const GROUPS: [Group; 3] = [
    Group {
        need: "an overlay mount",
        preparation: layers::MOUNT,
        tests: tests![
            layers::what_was_read_of_a_lower_layer_can_be_changed,
            layers::a_refused_change_leaves_a_file_of_a_lower_layer_as_it_is,
            layers::a_directory_of_a_lower_layer_is_deleted_and_copied,
            layers::an_untouched_file_keeps_its_version_when_the_layers_are_mounted_again,
            layers::a_directory_of_a_lower_layer_that_goes_deep_is_deleted,
            layers::what_was_read_of_a_lower_layer_on_another_disk_can_be_changed,
        ],
    },
    Group {
        need: "a mount",
        preparation: "mount -t tmpfs tmpfs $(mktemp -d)",
        tests: tests![
            layers::what_something_is_mounted_on_is_refused_for_good,
            layers::a_tree_with_something_mounted_below_stays_whole,
        ],
    },
    Group {
        need: "a limit of watches",
        preparation: limit::LOWER,
        tests: tests![
            limit::a_feed_that_cannot_watch_all_directories_reports_it_and_ends,
            limit::a_feed_that_cannot_begin_reports_why_and_does_not_affect_others,
        ],
    },
];

fn main() -> ExitCode {
    let is_inside = std::env::var_os(INSIDE).is_some();
    let trials = GROUPS.iter().flat_map(|&Group { need, preparation, tests }| {
        let is_possible = is_inside || prepared(preparation).arg("true").output().is_ok_and(|ran| ran.status.success());
        tests.iter().map(move |&(name, test)| {
            let trial = Trial::test(name, move || {
                if is_inside {
                    test();
                    return Ok(());
                }
                run_inside(preparation, name)
            });
            if is_possible {
                return trial;
            }
            let reason = format!("ignored: it needs unshare(1), user namespaces and {need} in them");
            trial.with_kind(reason).with_ignored_flag(true)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Returns a command that runs in new user and mount namespaces, after `preparation`.
fn prepared(preparation: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{preparation} && exec \"$@\"");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
    command
}

fn run_inside(preparation: &str, name: &str) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let mut again = prepared(preparation);
    let output = again.arg(program).args(["--exact", name, "--test-threads=1"]).env(INSIDE, "1").output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && printed.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{printed}{}", String::from_utf8_lossy(&output.stderr)).into())
}
