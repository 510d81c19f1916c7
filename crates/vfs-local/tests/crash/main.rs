//! Crash consistency: a process is killed, or a system call fails, within an operation.
//!
//! Afterwards the tree must be in the state before the operation or in the state after it, and no other. If a system
//! call is unavailable, an older one replaces it. The cost of an operation is counted in system calls.
//!
//! Killing and failing at each system call needs `strace`; if it is missing, or may not trace, those trials are
//! reported as ignored. `VFS_CRASH_KILLS` sets how often a writing process is killed at random.

#![expect(clippy::print_stdout, reason = "the number of attempts is part of the result of this test")]

mod cases;
mod child;
mod consistency;
mod cost;

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};

use self::cases::CASES;
use self::child::{perform, write_forever};
use self::consistency::{
    failed_at_each_call, killed_at_each_call, killed_at_random, made_without, made_without_faccessat2_as_another,
    reports_files_under_a_reserved_name,
};
use self::cost::{
    a_large_tree_is_synced_as_a_whole, a_small_tree_is_synced_entry_by_entry,
    missing_directories_are_opened_a_few_times,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("perform") => return perform(&arguments[2], Path::new(&arguments[3])),
        Some("write-forever") => return write_forever(Path::new(&arguments[2])),
        _ => {}
    }
    let mut trials = vec![Trial::test("crash::a_killed_writer_leaves_old_or_new", killed_at_random)];
    let strace = Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success());
    for case in CASES {
        let name = format!("crash::{}::killed_at_each_system_call", case.name);
        trials.push(ignored_without(strace, Trial::test(name, || killed_at_each_call(case))));
        let name = format!("crash::{}::failed_at_each_system_call", case.name);
        trials.push(ignored_without(strace, Trial::test(name, || failed_at_each_call(case))));
    }
    for case in CASES.iter().filter(|case| ["overwrite", "append", "edit"].contains(&case.name)) {
        for call in ["faccessat2", "renameat2"] {
            let name = format!("crash::{}::made_without_{call}", case.name);
            trials.push(ignored_without(strace, Trial::test(name, move || made_without(call, case))));
        }
    }
    let name = "crash::delete_tree::reports_files_under_a_reserved_name";
    trials.push(ignored_without(strace, Trial::test(name, reports_files_under_a_reserved_name)));
    let name = "crash::delete_tree::made_without_faccessat2";
    trials.push(ignored_without(strace, Trial::test(name, made_without_faccessat2_as_another)));
    let counted = [
        ("a_write_opens_each_missing_directory_a_few_times", missing_directories_are_opened_a_few_times as fn() -> _),
        ("a_large_tree_is_synced_as_a_whole", a_large_tree_is_synced_as_a_whole),
        ("a_small_tree_is_synced_entry_by_entry", a_small_tree_is_synced_entry_by_entry),
    ];
    for (name, test) in counted {
        trials.push(ignored_without(strace, Trial::test(format!("calls::{name}"), test)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn ignored_without(strace: bool, trial: Trial) -> Trial {
    if strace { trial } else { trial.with_kind("ignored: strace is missing or may not trace").with_ignored_flag(true) }
}
