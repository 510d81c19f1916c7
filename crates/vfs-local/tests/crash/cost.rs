//! Tests of the cost of operations, counted in system calls.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;

use super::cases::DEPTH;
use super::child::{counted, strace};

/// Returns the number of each system call that `case` makes beyond those for opening the root.
fn calls_of(case: &str, lay_out: impl Fn(&Path)) -> Result<BTreeMap<String, usize>, Failed> {
    let tree = tempfile::tempdir()?;
    let count = |name: &str| {
        let root = tree.path().join(name);
        fs::create_dir(&root)?;
        lay_out(&root);
        let traced = strace(&["-e", "trace=%file,%desc"], name, &root);
        let expected = if name == case { "ok" } else { "ready" };
        if traced.output == expected { Ok(counted(&traced.trace)) } else { Err(Failed::from(traced.output)) }
    };
    let (startup, mut whole) = (count("nothing")?, count(case)?);
    for (call, times) in startup {
        whole.entry(call).and_modify(|count| *count = count.saturating_sub(times));
    }
    Ok(whole)
}

pub(super) fn missing_directories_are_opened_a_few_times() -> Result<(), Failed> {
    let calls = calls_of("write_deep", |_| {})?;
    let opened: usize = ["openat", "openat2"].iter().filter_map(|call| calls.get(*call)).sum();
    if calls.get("mkdirat") == Some(&DEPTH) && opened <= 6 * DEPTH {
        return Ok(());
    }
    Err(format!("{opened} opens for {:?} directories", calls.get("mkdirat")).into())
}

fn syncs(files: usize) -> Result<[usize; 2], Failed> {
    let calls = calls_of("copy_wide", |root| {
        for file in 0..files {
            let at = root.join(format!("wide/d{}/f{file}", file % 7));
            fs::create_dir_all(at.parent().expect("it is below the root")).expect("directories are made");
            fs::write(at, "content").expect("files are written");
        }
    })?;
    Ok(["fsync", "syncfs"].map(|call| calls.get(call).copied().unwrap_or(0)))
}

/// Returns whether temporary files are on a disk: on other file systems, each file is synced.
fn is_on_disk() -> Result<bool, Failed> {
    let at = tempfile::tempdir()?;
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(at.path()).output()?;
    Ok(["ext2/ext3", "xfs", "btrfs", "f2fs"].contains(&String::from_utf8_lossy(&kind.stdout).trim()))
}

pub(super) fn a_large_tree_is_synced_as_a_whole() -> Result<(), Failed> {
    let [single, whole] = syncs(300)?;
    // The copy's own name and those of directories above it are synced, too.
    let expected = if is_on_disk()? { single <= 4 && whole == 1 } else { single >= 300 };
    if expected { Ok(()) } else { Err(format!("fsync: {single}, syncfs: {whole}").into()) }
}

pub(super) fn a_small_tree_is_synced_entry_by_entry() -> Result<(), Failed> {
    let [single, whole] = syncs(100)?;
    if single >= 107 && whole == 0 { Ok(()) } else { Err(format!("fsync: {single}, syncfs: {whole}").into()) }
}
