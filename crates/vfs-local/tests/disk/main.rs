//! What only a disk has: links, special files, permissions, attributes, and files and trees too large for anything else.

#![expect(clippy::print_stdout, reason = "a test says which part of it this machine cannot run")]

mod attributes;
mod concurrency;
mod empty;
mod layers;
mod links;
mod names;
mod namespaces;
mod permissions;
mod protected;
mod size;
mod special;
mod watch;

use std::path::Path;
use std::time::Duration;

use vfs_core::{Error, ErrorKind, VfsPath};
use vfs_local::{Durability, LocalBackend, LocalConfig};

/// How long a test waits for what a correct backend always does. This bounds a hang and says nothing about speed.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Longer than any test takes, for a lock that has to be waited for however slow the disk is.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3600);

/// A temporary tree with a `root` that is opened, and an `outside` beside it that holds one file.
struct Disk {
    tree: tempfile::TempDir,
    files: LocalBackend,
}

const SECRET: &str = "only outside has this";

impl Disk {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(settings: impl FnOnce(LocalConfig) -> LocalConfig) -> Self {
        let tree = tempfile::tempdir().expect("a temporary directory");
        for name in ["root", "outside"] {
            std::fs::create_dir(tree.path().join(name)).expect("directories are made");
        }
        std::fs::write(tree.path().join("outside/secret"), SECRET).expect("files are written");
        let config =
            LocalConfig::new(tree.path().join("root")).durability(Durability::Atomic).lock_timeout(LOCK_TIMEOUT);
        let config = settings(config);
        Self { files: config.open().expect("the root opens"), tree }
    }

    fn root(&self) -> std::path::PathBuf {
        self.tree.path().join("root")
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories are made");
        std::fs::write(path, content).expect("files are written");
    }

    fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root().join(name)).expect("it reads")
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.root().join(name)).expect("links are made");
    }

    /// Asserts that the outside is as it was made.
    fn assert_outside_untouched(&self) {
        let outside = self.tree.path().join("outside");
        let names: Vec<_> =
            std::fs::read_dir(&outside).expect("it lists").map(|e| e.expect("it lists").file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(std::fs::read_to_string(outside.join("secret")).expect("it reads"), SECRET);
    }
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of these tests are valid")
}

#[track_caller]
fn assert_fails<T: std::fmt::Debug>(result: Result<T, Error>, kinds: &[ErrorKind]) {
    let error = result.expect_err("it is refused");
    assert!(kinds.contains(&error.kind()), "{error:?} is none of {kinds:?}");
    assert!(!error.for_model().contains("/tmp"), "a host path is shown: {}", error.for_model());
    assert!(error.path().is_some(), "no path is named: {error:?}");
}
