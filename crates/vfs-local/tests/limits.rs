//! Operations at the resource limits of their process: file size and threads.
//!
//! Limits apply to a whole process, so each trial starts this program again.

#![expect(clippy::print_stdout, reason = "a limited process prints its result")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

use futures::executor::block_on;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::fs::Uid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use vfs_core::{
    Backend, BackendExt as _, CopyRequest, EditRequest, Error, GrepRequest, OpContext, ReadRequest, Result, VfsPath,
    WriteMode, WriteRequest,
};
use vfs_local::{LocalBackend, LocalConfig};

/// Maximum size of a file that the limited process may write, in bytes.
const LIMIT: usize = 8192;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("write-too-much") => return write_too_much(&arguments[2], Path::new(&arguments[3])),
        Some("start-no-thread") => return start_no_thread(Path::new(&arguments[2])),
        _ => {}
    }
    let mut trials: Vec<Trial> = WRITES
        .iter()
        .map(|(name, _)| {
            let trial = format!("limits::{name}_beyond_the_size_of_files_is_an_error");
            Trial::test(trial, || beyond_the_size_of_files(name))
        })
        .collect();
    trials.push(Trial::test("limits::without_a_thread_it_is_busy", without_a_thread));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of this test are valid")
}

fn run_child(arguments: &[&str], root: &Path) -> std::result::Result<Output, Failed> {
    Ok(Command::new(std::env::current_exe()?).args(arguments).arg(root).output()?)
}

fn limit(resource: Resource, current: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(current), maximum }).expect("a limit can be lowered");
}

type Run = fn(&LocalBackend, &OpContext) -> Result<()>;

fn large() -> Vec<u8> {
    vec![b'x'; 10 * LIMIT]
}

/// Operations that would create a file larger than the limit.
const WRITES: [(&str, Run); 6] = [
    ("a_new_file", |files, cx| block_on(files.write(cx, WriteRequest::new(path("/p/new"), large()))).map(drop)),
    ("an_overwrite", |files, cx| {
        block_on(files.write(cx, WriteRequest::new(path("/f"), large()).mode(WriteMode::Overwrite))).map(drop)
    }),
    ("an_append", |files, _| block_on(files.append_text("/f", &"x".repeat(LIMIT))).map(drop)),
    ("an_edit", |files, cx| {
        let edit = EditRequest::new(path("/f"), "old", "n".repeat(2 * LIMIT));
        block_on(files.edit(cx, edit)).map(drop)
    }),
    ("a_copy", |files, cx| block_on(files.copy(cx, CopyRequest::new(path("/large"), path("/copy")))).map(drop)),
    ("a_copy_with_holes", |files, cx| {
        block_on(files.copy(cx, CopyRequest::new(path("/sparse"), path("/copy")))).map(drop)
    }),
];

fn lay_out(root: &Path) -> std::io::Result<()> {
    fs::write(root.join("f"), "old")?;
    fs::write(root.join("large"), large())?;
    fs::File::create(root.join("sparse"))?.set_len(10 * LIMIT as u64)
}

/// Returns the pending, blocked and ignored signals of this thread.
fn signals() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").expect("there is /proc");
    let is_signal_set =
        |line: &&str| ["SigPnd", "ShdPnd", "SigBlk", "SigIgn"].iter().any(|name| line.starts_with(name));
    status.lines().filter(is_signal_set).map(str::to_owned).collect()
}

/// Runs one operation in the child process, with a limit on file sizes.
fn write_too_much(name: &str, root: &Path) -> ExitCode {
    let files = LocalBackend::open(root).expect("the root opens");
    let (_, run) = WRITES.iter().find(|(write, _)| *write == name).expect("it is one of them");
    let before = signals();
    limit(Resource::Fsize, LIMIT as u64);
    let failure = run(&files, &OpContext::new()).expect_err("it is too large");
    assert_eq!(signals(), before);
    print_error(&failure)
}

fn print_error(error: &Error) -> ExitCode {
    println!("{} {}", error.kind(), error.message());
    ExitCode::SUCCESS
}

fn beyond_the_size_of_files(name: &str) -> std::result::Result<(), Failed> {
    let root = tempfile::tempdir()?;
    lay_out(root.path())?;
    let output = run_child(&["write-too-much", name], root.path())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !stdout.starts_with("too_large") || !stdout.contains("ulimit -f") {
        return Err(format!("{}: {stdout}{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut names: Vec<_> =
        fs::read_dir(root.path())?.map(|entry| entry.map(|entry| entry.file_name())).collect::<std::io::Result<_>>()?;
    names.sort();
    if fs::read(root.path().join("f"))? == b"old" && names == ["f", "large", "sparse"] {
        Ok(())
    } else {
        Err(format!("something else is there: {names:?}").into())
    }
}

/// Runs operations in the child process while no thread can be started, and one after the limit is raised.
fn start_no_thread(root: &Path) -> ExitCode {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panicked| {
        if !vfs_search::is_starting_thread() {
            report(panicked);
        }
    }));
    let files = LocalConfig::new(root).open().expect("the root opens");
    let before = getrlimit(Resource::Nproc).current;
    if rustix::process::geteuid().is_root() {
        // The limit does not apply to root.
        let nobody = Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may become anyone");
    }
    limit(Resource::Nproc, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs no thread");
    runtime.block_on(async {
        let cx = OpContext::new();
        let write = |name| files.write(&cx, WriteRequest::new(path(name), "x"));
        let mut outcomes = Vec::new();
        let kind = |ended: std::result::Result<(), Error>| ended.err().map(|error| error.kind().code());
        outcomes.push(kind(write("/first").await.map(drop)));
        outcomes.push(kind(files.read(&cx, ReadRequest::new(path("/missing"))).await.map(drop)));
        outcomes.push(kind(files.grep(&cx, GrepRequest::literal("x")).await.map(drop)));
        setrlimit(Resource::Nproc, Rlimit { current: before, maximum: getrlimit(Resource::Nproc).maximum })
            .expect("the soft limit can be raised");
        // The thread that is started for this write has processed the earlier entries of the queue by then.
        outcomes.push(kind(write("/second").await.map(drop)));
        println!("{outcomes:?}");
    });
    ExitCode::SUCCESS
}

fn without_a_thread() -> std::result::Result<(), Failed> {
    let root = tempfile::tempdir()?;
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777))?;
    let output = run_child(&["start-no-thread"], root.path())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success()
        || !output.stderr.is_empty()
        || stdout.trim() != r#"[Some("busy"), Some("busy"), Some("busy"), None]"#
    {
        return Err(format!("{}: {stdout}{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    if root.path().join("first").exists() || !root.path().join("second").exists() {
        return Err("an operation that was refused as busy was performed".into());
    }
    Ok(())
}
