//! The real `vfs` binary on real directories: every command, its output and its exit code.
#![allow(
    clippy::disallowed_methods,
    reason = "what the command meets on the host is set up and looked at from outside"
)]

mod audit;
mod batch;
mod batch_commands;
mod batch_fields;
mod checkpoints;
mod config;
mod exec;
mod files;
mod first_hour;
mod guide;
mod help;
mod hints;
mod jobs;
mod moves;
mod overlay;
mod policy;
mod search;
mod store;
mod terminal;
mod tool;
mod watch;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Longest that a test waits for one event. Only a test that fails waits as long, however busy the machine is.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// What became of one run.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    out: Vec<u8>,
    err: String,
}

impl Run {
    fn out(&self) -> &str {
        std::str::from_utf8(&self.out).expect("the output is text")
    }

    /// Asserts exit 0 and silence on standard error; returns the output.
    #[track_caller]
    fn success(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out()
    }

    /// Asserts exit 1 and silence on standard error; returns the output.
    #[track_caller]
    fn refused(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (Some(1), ""), "{self:?}");
        self.out()
    }

    /// Asserts exit 2, no output, and one line on standard error that holds `reason`.
    #[track_caller]
    fn failure(&self, reason: &str) {
        assert_eq!((self.code, self.out()), (Some(2), ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("vfs: ") && self.err.contains(reason), "{self:?}");
    }

    /// Asserts exit 2, no output, and on standard error a line that holds `reason`, followed by `hints`.
    #[track_caller]
    fn failure_with_hints(&self, reason: &str, hints: &[&str]) {
        assert_eq!((self.code, self.out()), (Some(2), ""), "{self:?}");
        let mut lines = self.err.lines();
        assert!(lines.next().is_some_and(|line| line.starts_with("vfs: ") && line.contains(reason)), "{self:?}");
        assert_eq!(lines.collect::<Vec<_>>(), hints, "{self:?}");
    }
}

fn command(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.arg("--root").arg(root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A command on the namespace that `vfs.toml` in `root` describes.
fn configured(root: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
    command.arg("--config").arg(root.path().join("vfs.toml"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One run of it.
fn with_config(root: &TempDir, args: &[&str]) -> Run {
    finish(configured(root).args(args), b"")
}

/// The lines of a run, as JSON.
fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn vfs(root: &TempDir, args: &[&str]) -> Run {
    finish(command(root.path()).args(args), b"")
}

fn vfs_with_input(root: &TempDir, args: &[&str], input: &[u8]) -> Run {
    finish(command(root.path()).args(args), input)
}

fn finish(command: &mut Command, input: &[u8]) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // The command may end before it has read all of this, and then the pipe is closed.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("it ends")
    });
    let err = String::from_utf8(output.stderr).expect("messages are text");
    Run { code: output.status.code(), out: output.stdout, err }
}

/// Returns the command that runs `line` in a shell in `root`, where `vfs` is the binary.
fn shell(root: &TempDir, line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("vfs() {{ {:?} \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_vfs"))]);
    shell.current_dir(root.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// A directory with these files.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories");
        fs::write(path, content).expect("a file");
    }
    root
}
