//! `vfs watch`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{HANG_TIMEOUT, command, configured, tree, with_config};

/// Time within which a change would be reported.
const BREATH: Duration = Duration::from_millis(10);

/// A `vfs watch` of a directory, in which files are made.
struct Watching<'a> {
    root: &'a TempDir,
    child: Child,
    files: u32,
}

impl<'a> Watching<'a> {
    fn start(root: &'a TempDir, command: &mut Command) -> Self {
        Self { root, child: command.spawn().expect("the binary runs"), files: 0 }
    }

    /// Makes a file every now and then until `is_over`.
    fn write_until<T>(&mut self, what: &str, mut is_over: impl FnMut(&mut Child) -> Option<T>) -> T {
        let end = Instant::now() + HANG_TIMEOUT;
        while Instant::now() < end {
            self.files += 1;
            // Renamed, so that a watch that begins meanwhile does not see the content come after the file.
            let made = self.root.path().join("made");
            fs::write(&made, "x").expect("a file");
            fs::rename(made, self.root.path().join(format!("files/{}", self.files))).expect("a file");
            if let Some(over) = is_over(&mut self.child) {
                return over;
            }
        }
        panic!("{what} takes too long");
    }

    /// The first line. Nobody reads the others.
    fn first_line(&mut self) -> String {
        let mut out = BufReader::new(self.child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).expect("it is text");
            // The pipe is closed before anybody knows of the line.
            drop(out);
            sender.send(line).expect("it is waited for");
        });
        self.write_until("an event", |_| lines.recv_timeout(BREATH).ok())
    }

    /// Sees it end by itself, without a word.
    fn ends_quietly(self) {
        assert_eq!(self.ends(), "");
    }

    /// Sees it end by itself, because nobody reads its output, and returns what it wrote to standard error.
    fn ends(mut self) -> String {
        let status = self.write_until("the end", |child| {
            std::thread::sleep(BREATH);
            child.try_wait().expect("it is ours")
        });
        let mut stderr = String::new();
        self.child.stderr.take().expect("it is piped").read_to_string(&mut stderr).expect("text");
        assert!(status.success(), "{status}: {stderr}");
        stderr
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        // It has mostly ended, and then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_are_printed_as_lines_until_the_output_is_closed() {
    let root = tree(&[("files/a", "")]);
    let mut watching = Watching::start(&root, command(root.path()).args(["watch", "/files"]));
    let line = watching.first_line();
    assert!(line.starts_with("created /files/"), "{line}");
    watching.ends_quietly();
}

#[test]
fn mounts_without_a_change_feed_are_reported() {
    let overlaid = "[default]\ntype = 'local'\nroot = '.'\nlayers = [{ type = 'overlay' }]\n";
    let root = tree(&[("vfs.toml", overlaid)]);
    with_config(&root, &["watch"]).failure("unsupported: /: the mount at '/' has no change feed");

    let mounted = "[default]\ntype = 'local'\nroot = '.'\n\
                   [[mounts]]\npath = '/draft'\ntype = 'memory'\nlayers = [{ type = 'overlay' }]\n";
    let root = tree(&[("files/a", ""), ("vfs.toml", mounted)]);
    with_config(&root, &["watch", "/draft/d"]).failure("the mount at '/draft' has no change feed");
    let mut watching = Watching::start(&root, configured(&root).arg("watch"));
    assert_eq!(watching.first_line(), "overflow\n");
    let stderr = watching.ends();
    assert_eq!(stderr, "vfs: warning: the mount at '/draft' has no change feed; its changes are not reported\n");
}

#[test]
fn a_namespace_is_watched_through_its_layers_as_json() {
    let config = "[default]\ntype = 'memory'\n[[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'files'\n\
                  layers = [{ type = 'read_only' }]\n[[layers]]\ntype = 'policy'\ndefault = 'allow'\n";
    let root = tree(&[("files/a", ""), ("vfs.toml", config)]);
    let mut watching = Watching::start(&root, configured(&root).args(["watch", "--json", "/m"]));
    let line = watching.first_line();
    let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let path = event["change"]["created"]["path"].as_str().expect("a path");
    assert!(path.starts_with("/m/") && event["cursor"].is_string(), "{line}");
    watching.ends_quietly();
}

#[test]
fn a_watch_of_a_missing_path_says_so_and_waits_for_it() {
    let root = tree(&[("files/a", "")]);
    let mut watching = Watching::start(&root, command(root.path()).args(["watch", "/fiels"]));
    let err = BufReader::new(watching.child.stderr.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    for expected in ["vfs: /fiels does not exist yet; changes are reported once it does", "vfs: did you mean /files?"] {
        assert_eq!(lines.recv_timeout(HANG_TIMEOUT).as_deref(), Ok(expected));
    }
    fs::create_dir(root.path().join("fiels")).expect("a directory");
    assert_eq!(watching.first_line(), "created /fiels\n");
}
