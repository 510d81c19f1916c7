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

/// Runs `case` once for each system call that it makes, with `injection` at that call, and hands over what came of it.
fn at_each_call(
    case: &Case,
    injection: &str,
    mut judge: impl FnMut(&str, &str, &Path) -> Result<(), String>,
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
            judge(&call, &traced.said, &root)
                .map_err(|reason| format!("{} with {option} ({}): {reason}", case.name, traced.said))?;
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
        // The lock of the dead process is not in the way, and what it left is cleared by the next change of the file.
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
        runs += at_each_call(case, &format!("error={errno}"), |call, said, root| {
            let found = found(root);
            let part_of_old = found.iter().all(|(path, content)| old.get(path) == Some(content));
            match said {
                "ok" if found == new => {}
                "ok" => return Err(format!("acknowledged, but {:?}", found.keys())),
                _ if !said.starts_with("error ") => return Err("no typed error".into()),
                _ if found == old && !said.contains(" after ") => {}
                _ if case.on_error == OnError::PartOfOld && part_of_old => {
                    require_told(said, old.len() - found.len(), root)?;
                }
                _ => return Err(format!("an error, but not the old files: {:?}", found.keys())),
            }
            let litter = litter(root);
            // What cannot be removed because removing is what fails stays, out of every listing.
            if !litter.is_empty() && !matches!(call, "unlinkat" | "renameat2") {
                return Err(format!("left {litter:?}"));
            }
            Ok(())
        })?;
    }
    println!("{}: failed at {runs} system calls", case.name);
    Ok(())
}

/// If a file system becomes read-only in the middle of a delete, the rest cannot get its name back, and the error says both.
pub(super) fn what_is_left_has_no_name() -> Result<(), Failed> {
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    lay_out(&root);
    // The first of each is made: the tree goes out of sight, and one of its two files goes.
    let [removal, rename] = ["unlinkat", "renameat2"].map(|call| format!("inject={call}:error=EROFS:when=2+"));
    let traced = strace(&["-e", &removal, "-e", &rename], "delete_tree_message", &root);
    let parts = ["permission_denied at /d/", "removed files: 1; ", "could not be renamed back", " after 1"];
    if parts.iter().all(|part| traced.said.contains(part)) && found(&root).keys().eq(["/f"]) {
        return Ok(());
    }
    Err(format!("{:?} are left, and it says: {}", found(&root).keys(), traced.said).into())
}

/// Where a filter refuses `faccessat2`, and the process acts as another user than its own, a delete goes ahead.
pub(super) fn made_without_faccessat2_as_another() -> Result<(), Failed> {
    let tree = tempfile::tempdir()?;
    for errno in ["EPERM", "ENOSYS"] {
        let root = tree.path().join(errno);
        lay_out(&root);
        let traced = strace(&["-e", &format!("inject=faccessat2:error={errno}")], "delete_tree_as_another", &root);
        if !traced.trace.contains("(INJECTED)") {
            return Err("the delete does not make faccessat2".into());
        }
        if traced.said != "ok" || !found(&root).keys().eq(["/f"]) {
            return Err(format!("with {errno}: {}", traced.said).into());
        }
    }
    Ok(())
}

/// A delete that came to an end in the middle says how many files are gone, and names an entry that is still there.
fn require_told(said: &str, gone: usize, root: &Path) -> Result<(), String> {
    let (place, files) = said.split_once(" after ").ok_or(format!("{gone} files are gone, and it does not say so"))?;
    let entry = place.rsplit_once(" at /").map(|(_, entry)| root.join(entry)).ok_or("it names no path")?;
    if files != gone.to_string() {
        return Err(format!("{gone} files are gone, and it says {files}"));
    }
    if entry.symlink_metadata().is_err() { Err(format!("nothing is at {}", entry.display())) } else { Ok(()) }
}

/// Where the kernel or a filter does not know `call`, the operation is made by older ones.
pub(super) fn made_without(call: &str, case: &Case) -> Result<(), Failed> {
    let (_, new) = states(case);
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    lay_out(&root);
    let traced = strace(&["-e", &format!("inject={call}:error=ENOSYS")], case.name, &root);
    if !traced.trace.contains("(INJECTED)") {
        return Err(format!("{} does not make {call}", case.name).into());
    }
    match traced.said.as_str() {
        "ok" if found(&root) == new => Ok(()),
        said => Err(format!("{} without {call}: {said}", case.name).into()),
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
        // The kill comes some changes after the child has begun, however long each of them takes, and then at any moment of the
        // next ones: that moment is what is random here.
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
