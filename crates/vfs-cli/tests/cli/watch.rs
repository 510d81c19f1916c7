//! `vfs watch`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::{command, configured, tree};

/// Writes files until `watch` tells of one, and gives its line.
fn first_line(root: &TempDir, watch: &mut Command) -> (Child, String) {
    let mut child = watch.spawn().expect("the binary runs");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        out.read_line(&mut line).expect("it is text");
        // The pipe is closed before anybody knows of the line.
        drop(out);
        sender.send(line).expect("it is waited for");
    });
    for number in 0..3000 {
        fs::write(root.path().join(format!("files/{number}")), "x").expect("a file");
        if let Ok(line) = lines.recv_timeout(Duration::from_millis(10)) {
            return (child, line);
        }
    }
    panic!("no event in 30 seconds");
}

/// Goes on writing until `child` ends by itself, because nobody reads what it says.
fn ends_quietly(root: &TempDir, mut child: Child) {
    for number in 0..3000 {
        fs::write(root.path().join(format!("files/more-{number}")), "x").expect("a file");
        if let Some(status) = child.try_wait().expect("it is ours") {
            assert!(status.success(), "{status}");
            let mut said = String::new();
            std::io::Read::read_to_string(&mut child.stderr.take().expect("it is piped"), &mut said).expect("text");
            assert_eq!(said, "");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it runs");
    panic!("it goes on without a reader");
}

#[test]
fn changes_are_told_as_lines_until_nobody_reads_them() {
    let root = tree(&[("files/a", "")]);
    let (child, line) = first_line(&root, command(root.path()).args(["watch", "/files"]));
    assert!(line.starts_with("created /files/"), "{line}");
    ends_quietly(&root, child);
}

#[test]
fn a_namespace_is_watched_through_its_layers_as_json() {
    let config = "[default]\ntype = 'memory'\n[[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'files'\n\
                  layers = [{ type = 'read_only' }]\n[[layers]]\ntype = 'policy'\ndefault = 'allow'\n";
    let root = tree(&[("files/a", ""), ("vfs.toml", config)]);
    let (child, line) = first_line(&root, configured(&root).args(["watch", "--json", "/m"]));
    let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let path = event["change"]["created"]["path"].as_str().expect("a path");
    assert!(path.starts_with("/m/") && event["cursor"].is_string(), "{line}");
    ends_quietly(&root, child);
}
