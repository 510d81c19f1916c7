//! A process is killed, or a system call fails, in the middle of an operation: what is found afterwards is the state
//! before it or the state after it, and nothing else. Where a system call is unknown, an older one takes its place. What an
//! operation costs is counted in system calls.
//!
//! Killing and failing at each system call needs `strace`; where it is missing, or may not trace, those trials
//! show as ignored.
//! `VFS_CRASH_KILLS` sets how often a writing process is killed at random.

#![expect(clippy::print_stdout, reason = "what was tried is part of what this test tells")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::executor::block_on;
use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorDetail, LsRequest, OpContext, RenameRequest,
    VfsPath, WriteMode, WriteRequest,
};
use vfs_local::{LocalBackend, LocalConfig};

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
    let name = "crash::delete_tree::says_that_what_is_left_has_no_name";
    trials.push(ignored_without(strace, Trial::test(name, what_is_left_has_no_name)));
    let name = "crash::delete_tree::made_where_permissions_cannot_be_asked_for";
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

type State = BTreeMap<String, Vec<u8>>;

/// An operation on the tree that a test laid out.
type Run = fn(&LocalBackend, &OpContext) -> vfs_core::Result<()>;

/// One operation on a small tree.
struct Case {
    name: &'static str,
    run: Run,
    /// The files afterwards, from those before.
    after: fn(&mut State),
    /// What an error in the middle may leave: a tree cannot be deleted in one step.
    on_error: OnError,
}

#[derive(PartialEq)]
enum OnError {
    Old,
    PartOfOld,
}

const OLD: &str = "old line one\nold line two\n";

const CASES: &[Case] = &[
    Case {
        name: "write_new",
        run: |files, cx| block_on(files.write(cx, WriteRequest::new(path("/p/q/new"), big('n')))).map(drop),
        after: |state| drop(state.insert("/p/q/new".into(), big('n'))),
        on_error: OnError::Old,
    },
    Case {
        name: "overwrite",
        run: |files, cx| {
            block_on(files.write(cx, WriteRequest::new(path("/f"), big('o')).mode(WriteMode::Overwrite))).map(drop)
        },
        after: |state| drop(state.insert("/f".into(), big('o'))),
        on_error: OnError::Old,
    },
    Case {
        name: "append",
        run: |files, cx| {
            block_on(files.write(cx, WriteRequest::new(path("/f"), "more\n").mode(WriteMode::Append))).map(drop)
        },
        after: |state| state.get_mut("/f").expect("it is there").extend(b"more\n"),
        on_error: OnError::Old,
    },
    Case {
        name: "edit",
        run: |files, cx| block_on(files.edit(cx, EditRequest::new(path("/f"), "line one", "line 1"))).map(drop),
        after: |state| drop(state.insert("/f".into(), OLD.replace("line one", "line 1").into())),
        on_error: OnError::Old,
    },
    Case {
        name: "delete",
        run: |files, cx| block_on(files.delete(cx, DeleteRequest::new(path("/f")))).map(drop),
        after: |state| drop(state.remove("/f")),
        on_error: OnError::Old,
    },
    Case {
        name: "delete_tree",
        run: |files, cx| block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive())).map(drop),
        after: |state| state.retain(|path, _| !path.starts_with("/d/")),
        on_error: OnError::PartOfOld,
    },
    Case {
        name: "rename",
        run: |files, cx| block_on(files.rename(cx, RenameRequest::new(path("/f"), path("/d/g")).overwrite())).map(drop),
        after: |state| {
            let moved = state.remove("/f").expect("it is there");
            state.insert("/d/g".into(), moved);
        },
        on_error: OnError::Old,
    },
    Case {
        name: "copy_tree",
        run: |files, cx| block_on(files.copy(cx, CopyRequest::new(path("/d"), path("/e")))).map(drop),
        after: |state| {
            let copies: Vec<_> = state
                .iter()
                .filter_map(|(path, content)| Some((format!("/e/{}", path.strip_prefix("/d/")?), content.clone())))
                .collect();
            state.extend(copies);
        },
        on_error: OnError::Old,
    },
];

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of this test are valid")
}

fn big(letter: char) -> Vec<u8> {
    letter.to_string().repeat(50_000).into_bytes()
}

fn before() -> State {
    [("/f", OLD), ("/d/g", "g\n"), ("/d/sub/h", "h\n")].map(|(path, text)| (path.to_owned(), text.into())).into()
}

fn lay_out(root: &Path) {
    for (path, content) in before() {
        let path = root.join(&path[1..]);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories are made");
        fs::write(path, content).expect("files are written");
    }
}

/// What a user of the backend finds: every file of a full listing with its content.
fn found(root: &Path) -> State {
    let files = LocalBackend::open(root).expect("the root opens");
    let listing = block_on(files.ls(&OpContext::new(), LsRequest::new(VfsPath::root()).recursive())).expect("it lists");
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let listed = listing.entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.path.to_string());
    listed.map(|path| (path.clone(), fs::read(root.join(&path[1..])).expect("it reads"))).collect()
}

/// The names of unfinished writes that are really on the disk, listed or not.
fn litter(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("it lists").map(|entry| entry.expect("it lists")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(".vfs-tmp-") {
            found.push(name);
        } else if entry.path().is_dir() {
            found.extend(litter(&entry.path()));
        }
    }
    found
}

/// The child's part: one operation, and one line that says how it went.
fn perform(case: &str, root: &Path) -> ExitCode {
    let files = match LocalBackend::open(root) {
        Ok(files) => files,
        Err(error) => return say(&format!("error {}", error.kind())),
    };
    // Where the injection counts from.
    let cases = CASES.iter().map(|case| (case.name, case.run)).chain(OTHERS);
    let Some((_, run)) = cases.into_iter().find(|(name, _)| *name == case) else { return say("ready") };
    match run(&files, &OpContext::new()) {
        Ok(()) => say("ok"),
        Err(error) => say(&told(&error)),
    }
}

/// What a caller is told of a failure, on one line.
fn told(error: &vfs_core::Error) -> String {
    let gone = match error.detail() {
        Some(ErrorDetail::PartialDelete { files }) => format!(" after {files}"),
        _ => String::new(),
    };
    format!("error {} at {}{gone}", error.kind(), error.path().unwrap_or("no path"))
}

fn say(line: &str) -> ExitCode {
    println!("{line}");
    ExitCode::SUCCESS
}

/// How often each system call on files is made by the child, in the order of their first use.
fn calls(case: &str, root: &Path) -> BTreeMap<String, usize> {
    counted(&strace(&["-e", "trace=%file,%desc"], case, root).trace)
}

/// How often each system call is in a trace.
fn counted(trace: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in trace.lines() {
        // `PID call(arguments) = result`
        let call = line.split_whitespace().nth(1).and_then(|text| text.split('(').next()).unwrap_or_default();
        if !call.is_empty() && call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    counts
}

struct Traced {
    said: String,
    trace: String,
}

fn strace(options: &[&str], case: &str, root: &Path) -> Traced {
    let trace = root.with_extension("trace");
    let child = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(options)
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["perform", case])
        .arg(root)
        .stderr(Stdio::null())
        .output()
        .expect("strace starts");
    Traced {
        said: String::from_utf8_lossy(&child.stdout).trim().to_owned(),
        trace: fs::read_to_string(trace).expect("strace writes its trace"),
    }
}

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

fn killed_at_each_call(case: &Case) -> Result<(), Failed> {
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

fn failed_at_each_call(case: &Case) -> Result<(), Failed> {
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
fn what_is_left_has_no_name() -> Result<(), Failed> {
    let tree = tempfile::tempdir()?;
    let root = tree.path().join("root");
    lay_out(&root);
    // The first of each is made: the tree goes out of sight, and one of its two files goes.
    let [removal, rename] = ["unlinkat", "renameat2"].map(|call| format!("inject={call}:error=EROFS:when=2+"));
    let traced = strace(&["-e", &removal, "-e", &rename], "delete_tree_message", &root);
    let parts = ["permission_denied at /d/", "files that are gone: 1; ", "no longer under its name", " after 1"];
    if parts.iter().all(|part| traced.said.contains(part)) && found(&root).keys().eq(["/f"]) {
        return Ok(());
    }
    Err(format!("{:?} are left, and it says: {}", found(&root).keys(), traced.said).into())
}

/// Where a filter refuses `faccessat2`, and the process acts as another user than its own, a delete goes ahead.
fn made_without_faccessat2_as_another() -> Result<(), Failed> {
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

/// Operations that only some trials make.
const OTHERS: [(&str, Run); 4] = [
    ("write_deep", |files, cx| {
        block_on(files.write(cx, WriteRequest::new(path(&format!("{}/f", "/d".repeat(DEPTH))), "x"))).map(drop)
    }),
    ("delete_tree_message", |files, cx| {
        let deleted = block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive()));
        deleted.map(drop).inspect_err(|error| print!("{}; ", error.message()))
    }),
    ("delete_tree_as_another", |files, cx| {
        let (own, other) = (rustix::process::geteuid(), rustix::fs::Uid::from_raw(65534));
        if own.is_root() {
            // The system call changes the calling thread alone, which does all the work here.
            rustix::thread::set_thread_res_uid(other, own, own).expect("root may become anyone");
        }
        block_on(files.delete(cx, DeleteRequest::new(path("/d")).recursive())).map(drop)
    }),
    ("copy_wide", |files, cx| block_on(files.copy(cx, CopyRequest::new(path("/wide"), path("/copy")))).map(drop)),
];

/// As many directories as are made below one another.
const DEPTH: usize = 990;

/// How often `case` makes each system call beyond those that opening the root takes.
fn calls_of(case: &str, lay_out: impl Fn(&Path)) -> Result<BTreeMap<String, usize>, Failed> {
    let tree = tempfile::tempdir()?;
    let count = |name: &str| {
        let root = tree.path().join(name);
        fs::create_dir(&root)?;
        lay_out(&root);
        let traced = strace(&["-e", "trace=%file,%desc"], name, &root);
        let expected = if name == case { "ok" } else { "ready" };
        if traced.said == expected { Ok(counted(&traced.trace)) } else { Err(Failed::from(traced.said)) }
    };
    let (startup, mut whole) = (count("nothing")?, count(case)?);
    for (call, times) in startup {
        whole.entry(call).and_modify(|count| *count = count.saturating_sub(times));
    }
    Ok(whole)
}

fn missing_directories_are_opened_a_few_times() -> Result<(), Failed> {
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

/// Whether trees are copied on a disk here: on other file systems each file is synced.
fn is_on_disk() -> Result<bool, Failed> {
    let at = tempfile::tempdir()?;
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(at.path()).output()?;
    Ok(["ext2/ext3", "xfs", "btrfs", "f2fs"].contains(&String::from_utf8_lossy(&kind.stdout).trim()))
}

fn a_large_tree_is_synced_as_a_whole() -> Result<(), Failed> {
    let [single, whole] = syncs(300)?;
    // The copy's own name and those of directories above it are synced, too.
    let expected = if is_on_disk()? { single <= 4 && whole == 1 } else { single >= 300 };
    if expected { Ok(()) } else { Err(format!("fsync: {single}, syncfs: {whole}").into()) }
}

fn a_small_tree_is_synced_entry_by_entry() -> Result<(), Failed> {
    let [single, whole] = syncs(100)?;
    if single >= 107 && whole == 0 { Ok(()) } else { Err(format!("fsync: {single}, syncfs: {whole}").into()) }
}

/// Where the kernel or a filter does not know `call`, the operation is made by older ones.
fn made_without(call: &str, case: &Case) -> Result<(), Failed> {
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

/// A child that writes one of two long contents to a file, and makes and removes others, until it is killed. Prints a line
/// after each.
fn write_forever(root: &Path) -> ExitCode {
    let config = LocalConfig::new(root).durability(vfs_local::Durability::Atomic);
    let files = config.open().expect("the root opens");
    let cx = OpContext::new();
    for letter in ['a', 'b'].into_iter().cycle() {
        let write = WriteRequest::new(path("/f"), big(letter)).mode(WriteMode::Overwrite);
        block_on(files.write(&cx, write)).expect("it writes");
        println!("written");
        block_on(files.write(&cx, WriteRequest::new(path("/new/er"), big('c')))).expect("it writes");
        println!("made");
        block_on(files.delete(&cx, DeleteRequest::new(path("/new")).recursive())).expect("it deletes");
        println!("deleted");
    }
    ExitCode::SUCCESS
}

fn killed_at_random() -> Result<(), Failed> {
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
