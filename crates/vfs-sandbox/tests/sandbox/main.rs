//! The local sandbox as a whole: what it shows, what it refuses, and the way of an overlay's files through it.
//!
//! Where there is no bubblewrap, or it may make no namespaces, these trials show as ignored.
#![expect(clippy::disallowed_methods, reason = "what a sandbox shows is the host's own")]

mod names;
mod opening;
mod overlays;
mod placeholders;
mod programs;
mod protection;
mod self_test;
mod shown;
mod sockets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::{ExecuteRequest, ExecuteResponse, OpContext, Shell as _, VfsPath};
use vfs_sandbox::{Guarantee, Helper, OsSandbox, OsSandboxBackend, SandboxConfig, sandbox_helper_main};

type Outcome = Result<(), Failed>;

fn main() -> ExitCode {
    sandbox_helper_main();
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|argument| argument == sockets::OPTION) {
        return sockets::act(&arguments[2..]);
    }
    let report = runtime().block_on(async {
        let directory = tempfile::tempdir()?;
        OsSandbox::check(config(&directory)).await.map_err(std::io::Error::other)
    });
    let report = report.expect("a report");
    let missing = (!report.enforces(Guarantee::Namespaces)).then(|| format!("ignored: {report}"));
    let trials =
        TRIALS.iter().map(|&(name, run)| ignored_if(Trial::test(format!("sandbox::{name}"), run), missing.as_deref()));
    let on_fuse = Trial::test("sandbox::placeholders_go_on_fuse", || runtime().block_on(placeholders::fuse()));
    let no_fuse = missing.clone().or_else(|| Some(format!("ignored: {}", placeholders::FuseMount::new(&[]).err()?)));
    let trials = trials.chain([ignored_if(on_fuse, no_fuse.as_deref())]);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn ignored_if(trial: Trial, why: Option<&str>) -> Trial {
    match why {
        Some(why) => trial.with_kind(why.replace('\n', "; ")).with_ignored_flag(true),
        None => trial,
    }
}

type Run = fn() -> Outcome;

const TRIALS: &[(&str, Run)] = &[
    ("files_and_commands_see_the_same_paths", || runtime().block_on(shown::same_paths())),
    ("every_mount_is_where_it_is_said_to_be", || runtime().block_on(shown::several_mounts())),
    ("what_is_protected_from_commands_is_from_file_tools", || runtime().block_on(protection::protected())),
    ("a_link_in_place_of_what_is_protected_stops_commands", || runtime().block_on(protection::links())),
    ("what_is_missing_and_protected_cannot_be_made", || runtime().block_on(protection::missing())),
    ("placeholders_go_with_the_last_command", || runtime().block_on(placeholders::last_command())),
    ("git_lists_no_placeholder", || runtime().block_on(placeholders::git())),
    ("a_link_that_is_swapped_leads_file_tools_nowhere", || runtime().block_on(protection::swapped())),
    ("a_planted_link_is_no_reason_for_less", || runtime().block_on(protection::planted())),
    ("names_are_protected_at_any_depth", || runtime().block_on(names::nested())),
    ("what_a_command_leaves_is_reported_and_protected_from_then_on", || runtime().block_on(names::reported())),
    ("what_is_made_again_is_reported_again", || runtime().block_on(names::replaced())),
    ("a_mount_that_becomes_a_repository_is_reported", || runtime().block_on(names::root_repository())),
    ("what_a_job_leaves_is_reported_by_the_next", || runtime().block_on(names::jobs())),
    ("what_file_tools_leave_is_reported", || runtime().block_on(names::file_tools())),
    ("a_directory_that_a_command_closes_is_reported", || runtime().block_on(names::closed())),
    ("a_report_does_not_tell_what_the_host_has", || runtime().block_on(names::outward_links())),
    ("a_report_is_bounded_and_goes_on_later", || runtime().block_on(names::too_many_to_name())),
    ("what_is_below_a_read_only_name_is_protected", || runtime().block_on(names::below_read_only())),
    ("without_namespaces_names_are_reported", || runtime().block_on(names::without_namespaces())),
    ("a_stream_reports_what_its_command_left", || runtime().block_on(names::streamed())),
    ("a_link_with_a_protected_name_is_reported", || runtime().block_on(names::links())),
    ("more_than_can_be_searched_is_refused", || runtime().block_on(names::bounded())),
    ("what_cannot_be_listed_is_hidden", || runtime().block_on(names::unlistable())),
    ("without_the_helper_names_are_reported", || runtime().block_on(names::without_helper())),
    ("many_names_are_covered", || runtime().block_on(names::many())),
    ("names_of_several_mounts_are_protected", || runtime().block_on(names::several_mounts())),
    ("sockets_of_the_host_cannot_be_reached", || runtime().block_on(sockets::denied())),
    ("files_of_many_sockets_stop_no_command", || runtime().block_on(sockets::many())),
    ("a_command_can_have_sockets_of_its_own", || runtime().block_on(sockets::allowed())),
    ("what_commands_can_change_is_not_run", || runtime().block_on(programs::programs())),
    ("the_running_program_is_its_helper_wherever_it_lies", || runtime().block_on(programs::own_helper())),
    ("what_is_exchanged_while_a_command_starts_stops_it", || runtime().block_on(programs::exchanged())),
    ("what_lies_in_one_another_is_refused", || runtime().block_on(opening::nested())),
    ("a_lower_bound_of_processes_stays", || runtime().block_on(opening::lower_bound())),
    ("more_than_can_be_covered_is_refused", || runtime().block_on(opening::too_many())),
    ("an_environment_that_is_too_long_is_refused", || runtime().block_on(opening::too_long())),
    ("what_is_required_and_missing_is_named", || runtime().block_on(opening::required())),
    ("mounts_that_cannot_be_shown_are_refused", || runtime().block_on(shown::unshowable())),
    ("a_command_starts_in_what_is_shown_only", || runtime().block_on(shown::directories())),
    ("the_environment_reaches_nothing_but_the_command", || runtime().block_on(shown::environment())),
    ("what_a_command_leaves_running_is_gone", || runtime().block_on(shown::leftovers())),
    ("without_the_helper_namespaces_and_the_filter_hold", || runtime().block_on(opening::without_helper())),
    ("without_namespaces_landlock_and_the_filter_hold", || runtime().block_on(opening::without_namespaces())),
    ("a_self_test_that_passed_is_not_repeated", || runtime().block_on(self_test::recorded())),
    ("a_self_test_that_failed_is_repeated", || runtime().block_on(self_test::failed())),
    ("stamps_are_hidden_from_commands_and_file_tools", || runtime().block_on(self_test::hidden())),
    ("stamps_are_hidden_through_other_mounts", || runtime().block_on(self_test::hidden_alias())),
    ("a_report_is_read_back_as_it_was_written", || runtime().block_on(opening::reports())),
    ("an_overlay_is_worked_on_and_collected", || runtime().block_on(overlays::overlay())),
    ("what_changed_on_both_sides_is_a_conflict", || runtime().block_on(overlays::conflicts())),
];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn own() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn config(directory: &tempfile::TempDir) -> SandboxConfig {
    SandboxConfig::new(directory.path()).helper(Helper::At(own()))
}

/// Longest that a test waits for one event. Only a test that fails waits as long, however busy the machine is.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl FnMut() -> std::io::Result<bool>) -> Outcome {
    let end = Instant::now() + HANG_TIMEOUT;
    while !holds()? {
        if Instant::now() > end {
            return Err(format!("{what}: not after {HANG_TIMEOUT:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn run(sandbox: &OsSandboxBackend, command: &str) -> vfs_core::Result<ExecuteResponse> {
    let request = ExecuteRequest::new(command).cwd(VfsPath::parse("/workspace")?);
    sandbox.shell().execute(&OpContext::new(), request).await
}

/// What lies in a directory, in order.
fn names(directory: &tempfile::TempDir) -> std::io::Result<Vec<String>> {
    let mut names: Vec<_> = std::fs::read_dir(directory.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}
