//! Checks of the tree after a process was killed or a system call failed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::executor::block_on;
use libtest_mimic::Failed;
use vfs_core::{Backend, BackendExt, DeleteRequest, OpContext};
use vfs_local::LocalBackend;

use super::cases::{Case, OnError, State, before, big, found, lay_out, litter, path};
use super::child::{calls, strace};

/// Runs `case` once for each system call that it makes, with `injection` at that call, and passes the outcome to
/// `check`.
fn at_each_call(
    case: &Case,
    injection: &str,
    mut check: impl FnMut(&str, &str, &Path) -> Result<(), String>,
) -> Result<usize, Failed> {
    let tree = tempfile::tempdir()?;
    let count = |name: &str| {
        let root = tree.path().join(format!("count-{name}"));
        lay_out(&root);
        calls(name, &root)
    };
    let (startup, whole) = (count("nothing"), count(case.name));
    let mut runs = 0;
    for (call, total) in whole {
        for nth in startup.get(&call).copied().unwrap_or(0) + 1..=total {
            let root = tree.path().join(format!("{call}-{nth}"));
            lay_out(&root);
            let option = format!("inject={call}:{injection}:when={nth}");
            let traced = strace(&["-e", &option], case.name, &root);
            check(&call, &traced.output, &root)
                .map_err(|reason| format!("{} with {option} ({}): {reason}", case.name, traced.output))?;
            fs::remove_dir_all(&root)?;
            runs += 1;
        }
    }
    Ok(runs)
}

fn states(case: &Case) -> (State, State) {
    let (old, mut new) = (before(), before());
    (case.after)(&mut new);
    (old, new)
}

pub(super) fn killed_at_each_call(case: &Case) -> Result<(), Failed> {
    let (old, new) = states(case);
    let runs = at_each_call(case, "signal=KILL", |_, _, root| {
        let found = found(root);
        if found != old && found != new {
            return Err(format!("neither old nor new: {:?}", found.keys()));
        }
        // The lock of the dead process is released, and the next change of the file removes its leftovers.
        let files = LocalBackend::open(root).map_err(|error| error.to_string())?;
        block_on(files.write_text("/f", "afterwards")).map_err(|error| error.to_string())?;
        Ok(())
    })?;
    println!("{}: killed at {runs} system calls", case.name);
    Ok(())
}

pub(super) fn failed_at_each_call(case: &Case) -> Result<(), Failed> {
    let (old, new) = states(case);
    let mut runs = 0;
    for errno in ["EIO", "ENOSPC", "EINTR", "EMFILE"] {
        runs += at_each_call(case, &format!("error={errno}"), |call, output, root| {
            let found = found(root);
            let part_of_old = found.iter().all(|(path, content)| old.get(path) == Some(content));
            match output {
                "ok" if found == new => {}
                "ok" => return Err(format!("acknowledged, but {:?}", found.keys())),
                _ if !output.starts_with("error ") => return Err("no typed error".into()),
                _ if found == old && !output.contains(" after ") => {}
                _ if case.on_error == OnError::PartOfOld && part_of_old => {
                    check_partial_delete(output, old.len() - found.len(), root)?;
                }
                _ => return Err(format!("an error, but not the old files: {:?}", found.keys())),
            }
            let litter = litter(root);
            // If removals fail, leftovers remain, but no listing shows them.
            if !litter.is_empty() && !matches!(call, "unlinkat" | "renameat2") {
                return Err(format!("left {litter:?}"));
            }
            Ok(())
        })?;
    }
    println!("{}: failed at {runs} system calls", case.name);
    Ok(())
}

/// If a file system becomes read-only in the middle of a delete, the remaining tree cannot be renamed back, and the
/// error reports both.
pub(super) fn reports_files_under_a_reserved_name() -> Result<(), Failed> {
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    lay_out(&root);
    // The first call of each kind succeeds: the tree gets a reserved name, and one of its two files is removed.
    let [removal, rename] = ["unlinkat", "renameat2"].map(|call| format!("inject={call}:error=EROFS:when=2+"));
    let traced = strace(&["-e", &removal, "-e", &rename], "delete_tree_message", &root);
    let parts = ["permission_denied at /d/", "removed files: 1; ", "could not be renamed back", " after 1"];
    if parts.iter().all(|part| traced.output.contains(part)) && found(&root).keys().eq(["/f"]) {
        return Ok(());
    }
    Err(format!("{:?} are left, and the output is: {}", found(&root).keys(), traced.output).into())
}

/// If a filter refuses `faccessat2`, and the effective user is not the real one, a delete succeeds.
pub(super) fn made_without_faccessat2_as_another() -> Result<(), Failed> {
    let tree = tempfile::tempdir()?;
    for errno in ["EPERM", "ENOSYS"] {
        let root = tree.path().join(errno);
        lay_out(&root);
        let traced = strace(&["-e", &format!("inject=faccessat2:error={errno}")], "delete_tree_as_another", &root);
        if !traced.trace.contains("(INJECTED)") {
            return Err("the delete does not make faccessat2".into());
        }
        if traced.output != "ok" || !found(&root).keys().eq(["/f"]) {
            return Err(format!("with {errno}: {}", traced.output).into());
        }
    }
    Ok(())
}

/// Checks that the error of a partial delete has the number of removed files, and the path of an entry that still
/// exists.
fn check_partial_delete(output: &str, removed: usize, root: &Path) -> Result<(), String> {
    let (place, files) = output.split_once(" after ").ok_or(format!("{removed} files are removed, and unreported"))?;
    let entry = place.rsplit_once(" at /").map(|(_, entry)| root.join(entry)).ok_or("the error has no path")?;
    if files != removed.to_string() {
        return Err(format!("{removed} files are removed, and {files} are reported"));
    }
    if entry.symlink_metadata().is_err() { Err(format!("nothing is at {}", entry.display())) } else { Ok(()) }
}

/// If the kernel lacks `call`, or a filter refuses it, the operation uses older calls.
pub(super) fn made_without(call: &str, case: &Case) -> Result<(), Failed> {
    let (_, new) = states(case);
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    lay_out(&root);
    let traced = strace(&["-e", &format!("inject={call}:error=ENOSYS")], case.name, &root);
    if !traced.trace.contains("(INJECTED)") {
        return Err(format!("{} does not make {call}", case.name).into());
    }
    match traced.output.as_str() {
        "ok" if found(&root) == new => Ok(()),
        output => Err(format!("{} without {call}: {output}", case.name).into()),
    }
}

pub(super) fn killed_at_random() -> Result<(), Failed> {
    let kills: u32 = std::env::var("VFS_CRASH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    fs::create_dir(&root)?;
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64 | 1;
    println!("seed {random}");
    for _ in 0..kills {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("write-forever")
            .arg(&root)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Kill the child at a random moment after a random number of changes, regardless of how long each of them
        // takes.
        let mut made = BufReader::new(child.stdout.take().ok_or("its output is piped")?).lines();
        for _ in 0..=(random >> 33) % 8 {
            made.next().ok_or("the child ended by itself")??;
        }
        std::thread::sleep(Duration::from_micros((random >> 40) % 1_000));
        child.kill()?;
        child.wait()?;
        let found = found(&root);
        for (name, content) in &found {
            let whole = match name.as_str() {
                "/f" => *content == big('a') || *content == big('b'),
                "/new/er" => *content == big('c'),
                _ => false,
            };
            if !whole {
                return Err(format!("{name} of {} bytes is neither old nor new", content.len()).into());
            }
        }
        if found.contains_key("/new/er") {
            block_on(
                LocalBackend::open(&root)?.delete(&OpContext::new(), DeleteRequest::new(path("/new")).recursive()),
            )?;
        }
    }
    println!("{kills} kills");
    Ok(())
}
