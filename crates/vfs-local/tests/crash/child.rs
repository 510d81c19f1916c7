//! The traced child process that runs one operation.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use futures::executor::block_on;
use vfs_core::error::ErrorDetail;
use vfs_core::{Backend, DeleteRequest, OpContext, WriteMode, WriteRequest};
use vfs_local::{LocalBackend, LocalConfig};

use super::cases::{CASES, OTHERS, big, path};

/// Runs one operation in the child process, and prints its outcome on one line.
pub(super) fn perform(case: &str, root: &Path) -> ExitCode {
    let files = match LocalBackend::open(root) {
        Ok(files) => files,
        Err(error) => return print_line(&format!("error {}", error.kind())),
    };
    // The number of system calls up to here is subtracted from the counts of a case.
    let cases = CASES.iter().map(|case| (case.name, case.run)).chain(OTHERS);
    let Some((_, run)) = cases.into_iter().find(|(name, _)| *name == case) else { return print_line("ready") };
    match run(&files, &OpContext::new()) {
        Ok(()) => print_line("ok"),
        Err(error) => print_line(&describe(&error)),
    }
}

/// Describes an error on one line, with the number of removed files.
fn describe(error: &vfs_core::Error) -> String {
    let removed = match error.detail() {
        Some(ErrorDetail::PartialDelete { files }) => format!(" after {files}"),
        _ => String::new(),
    };
    format!("error {} at {}{removed}", error.kind(), error.path().unwrap_or("no path"))
}

fn print_line(line: &str) -> ExitCode {
    println!("{line}");
    ExitCode::SUCCESS
}

/// Writes one of two long contents to a file, and creates and removes others, until the process is killed. Prints a
/// line after each operation.
pub(super) fn write_forever(root: &Path) -> ExitCode {
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

/// Returns the number of each system call on files that the child makes.
pub(super) fn calls(case: &str, root: &Path) -> BTreeMap<String, usize> {
    counted(&strace(&["-e", "trace=%file,%desc"], case, root).trace)
}

/// Returns the number of each system call in a trace.
pub(super) fn counted(trace: &str) -> BTreeMap<String, usize> {
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

pub(super) struct Traced {
    pub(super) output: String,
    pub(super) trace: String,
}

pub(super) fn strace(options: &[&str], case: &str, root: &Path) -> Traced {
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
        output: String::from_utf8_lossy(&child.stdout).trim().to_owned(),
        trace: fs::read_to_string(trace).expect("strace writes its trace"),
    }
}
