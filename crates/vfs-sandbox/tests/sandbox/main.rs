//! Tests of the local sandbox as a whole: visible files, refusals, and the files of an overlay in a workspace.
//!
//! If bubblewrap is missing or may not create namespaces, the trials are reported as ignored.
#![expect(clippy::disallowed_methods, reason = "a sandbox shows files of the host")]

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
use vfs_sandbox::{Guarantee, HelperLocation, OsSandbox, OsSandboxBackend, SandboxConfig, sandbox_helper_main};

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
    let on_fuse = Trial::test("sandbox::placeholders_are_removed_on_fuse", || runtime().block_on(placeholders::fuse()));
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
    ("every_mount_is_at_its_path", || runtime().block_on(shown::several_mounts())),
    ("protection_applies_to_commands_and_file_tools", || runtime().block_on(protection::protected())),
    ("a_link_at_a_protected_path_stops_commands", || runtime().block_on(protection::links())),
    ("a_missing_protected_path_cannot_be_created", || runtime().block_on(protection::missing())),
    ("placeholders_are_removed_after_the_last_command", || runtime().block_on(placeholders::last_command())),
    ("git_lists_no_placeholder", || runtime().block_on(placeholders::git())),
    ("file_tools_do_not_follow_swapped_links", || runtime().block_on(protection::swapped())),
    ("a_planted_link_does_not_weaken_the_sandbox", || runtime().block_on(protection::planted())),
    ("names_are_protected_at_any_depth", || runtime().block_on(names::nested())),
    ("leftovers_of_a_command_are_reported_and_then_protected", || runtime().block_on(names::reported())),
    ("a_recreated_entry_is_reported_again", || runtime().block_on(names::replaced())),
    ("a_mount_that_becomes_a_repository_is_reported", || runtime().block_on(names::root_repository())),
    ("leftovers_of_a_job_are_reported_by_the_next_command", || runtime().block_on(names::jobs())),
    ("leftovers_of_file_tools_are_reported", || runtime().block_on(names::file_tools())),
    ("a_directory_that_a_command_closes_is_reported", || runtime().block_on(names::closed())),
    ("a_report_does_not_reveal_files_of_the_host", || runtime().block_on(names::outward_links())),
    ("a_report_is_bounded_and_continues_later", || runtime().block_on(names::too_many_to_name())),
    ("entries_below_a_read_only_name_are_protected", || runtime().block_on(names::below_read_only())),
    ("without_namespaces_names_are_reported", || runtime().block_on(names::without_namespaces())),
    ("a_stream_reports_what_its_command_left", || runtime().block_on(names::streamed())),
    ("a_link_with_a_protected_name_is_reported", || runtime().block_on(names::links())),
    ("too_many_entries_to_search_are_refused", || runtime().block_on(names::bounded())),
    ("an_unlistable_directory_is_hidden", || runtime().block_on(names::unlistable())),
    ("without_the_helper_names_are_reported", || runtime().block_on(names::without_helper())),
    ("many_names_are_covered", || runtime().block_on(names::many())),
    ("names_of_several_mounts_are_protected", || runtime().block_on(names::several_mounts())),
    ("sockets_of_the_host_cannot_be_reached", || runtime().block_on(sockets::denied())),
    ("files_of_many_sockets_stop_no_command", || runtime().block_on(sockets::many())),
    ("a_command_can_have_sockets_of_its_own", || runtime().block_on(sockets::allowed())),
    ("programs_that_commands_can_change_are_not_run", || runtime().block_on(programs::programs())),
    ("the_running_program_is_its_helper_wherever_it_lies", || runtime().block_on(programs::own_helper())),
    ("a_path_replaced_while_a_command_starts_stops_it", || runtime().block_on(programs::exchanged())),
    ("nested_mounts_and_tools_are_refused", || runtime().block_on(opening::nested())),
    ("a_lower_limit_on_processes_is_retained", || runtime().block_on(opening::lower_bound())),
    ("too_many_protected_paths_are_refused", || runtime().block_on(opening::too_many())),
    ("an_environment_that_is_too_long_is_refused", || runtime().block_on(opening::too_long())),
    ("missing_required_guarantees_are_named", || runtime().block_on(opening::required())),
    ("mounts_that_cannot_be_shown_are_refused", || runtime().block_on(shown::unshowable())),
    ("a_command_starts_only_in_a_visible_directory", || runtime().block_on(shown::directories())),
    ("the_environment_reaches_only_the_command", || runtime().block_on(shown::environment())),
    ("processes_that_a_command_leaves_are_killed", || runtime().block_on(shown::leftovers())),
    ("without_the_helper_namespaces_and_the_filter_hold", || runtime().block_on(opening::without_helper())),
    ("without_namespaces_landlock_and_the_filter_hold", || runtime().block_on(opening::without_namespaces())),
    ("a_self_test_that_passed_is_not_repeated", || runtime().block_on(self_test::recorded())),
    ("a_self_test_that_failed_is_repeated", || runtime().block_on(self_test::failed())),
    ("cached_results_are_hidden_from_commands_and_file_tools", || runtime().block_on(self_test::hidden())),
    ("cached_results_are_hidden_through_other_mounts", || runtime().block_on(self_test::hidden_alias())),
    ("a_report_is_read_back_as_it_was_written", || runtime().block_on(opening::reports())),
    ("an_overlay_is_worked_on_and_collected", || runtime().block_on(overlays::overlay())),
    ("a_file_changed_on_both_sides_is_a_conflict", || runtime().block_on(overlays::conflicts())),
];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn own() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn config(directory: &tempfile::TempDir) -> SandboxConfig {
    SandboxConfig::new(directory.path()).helper(HelperLocation::At(own()))
}

/// Maximum time that a test waits for one event. Only a failing test waits that long.
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

/// Returns the names of the entries of a directory, in order.
fn names(directory: &tempfile::TempDir) -> std::io::Result<Vec<String>> {
    let mut names: Vec<_> = std::fs::read_dir(directory.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}
