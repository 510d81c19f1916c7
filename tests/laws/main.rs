//! The laws on everything that this workspace has, as one named trial each.
//!
//! * `backend::operation::law`: the laws of a backend, on every backend; and those of a namespace.
//! * `store::subject::law`: the laws of a store, on every store.
//! * `shell::subject::law`: the laws of a shell, on every shell.
//!
//! A target runs the laws of its tier. `VFS_LAWS=all` runs the full product.

mod backends;
mod buckets;
mod durable;
mod in_process;
mod servers;
mod shells;
mod stores;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use libtest_mimic::{Arguments, Failed, Trial};

const CONTRACT: &str = include_str!("../../docs/contract.md");

/// More threads than processors, since most laws wait: for a server, a disk or a process.
const THREADS: usize = 8;

fn main() {
    // The sandbox starts this program as its helper.
    vfs_sandbox::sandbox_helper_main();
    vfs_testkit::plant_environment();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let (backends, schema) = backends::trials();
    let groups = [("backends", backends), ("stores", stores::trials()), ("shells", shells::trials())];
    let counts: Vec<_> = groups.iter().map(|(group, trials)| (*group, trials.len())).collect();
    let mut trials: Vec<_> = groups.into_iter().flat_map(|(_, trials)| trials).collect();
    trials.push(Trial::test("contract::the_page_has_the_number_of_trials", move || documented(&counts)));
    trials.sort_by_cached_key(mixed);
    let conclusion = libtest_mimic::run(&arguments, trials);
    durable::clear(schema);
    conclusion.exit();
}

/// An order in which the trials that wait for one server are not all at once.
fn mixed(trial: &Trial) -> u64 {
    let mut hasher = DefaultHasher::new();
    trial.name().hash(&mut hasher);
    hasher.finish()
}

/// Whether `docs/contract.md` has these counts, in rows `| of backends | by default | of the full product |`.
fn documented(counts: &[(&str, usize)]) -> Result<(), Failed> {
    let column = if vfs_testkit::runs_every_law() { 2 } else { 1 };
    for (group, count) in counts {
        let row = CONTRACT.lines().find_map(|line| line.strip_prefix(&format!("| of {group} |")));
        let documented = row.and_then(|row| row.split('|').nth(column - 1)).map(str::trim);
        if documented != Some(count.to_string().as_str()) {
            return Err(format!("docs/contract.md says {documented:?} for {group}; there are {count} trials").into());
        }
    }
    Ok(())
}
