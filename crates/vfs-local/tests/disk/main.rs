//! Tests of features that only a disk has: links, special files, permissions, xattrs, size.

#![expect(clippy::print_stdout, reason = "a test reports which part of it this machine cannot run")]

mod attributes;
mod concurrency;
mod copying;
mod deletion;
mod empty;
mod links;
mod names;
mod permissions;
mod protected;
mod size;
mod special;
mod watch;

#[path = "../support/mod.rs"]
mod support;

use std::path::Path;

use support::{Disk, LOCK_TIMEOUT, SECRET, assert_fails, path};

impl Disk {
    fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.root().join(name)).expect("links are made");
    }

    /// Asserts that the directory outside is unchanged.
    fn assert_outside_untouched(&self) {
        let outside = self.tree.path().join("outside");
        let names: Vec<_> =
            std::fs::read_dir(&outside).expect("it lists").map(|e| e.expect("it lists").file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(std::fs::read_to_string(outside.join("secret")).expect("it reads"), SECRET);
    }
}
