//! A temporary tree on a real disk, shared by the test binaries of this crate.

pub(crate) mod feed;

use std::time::Duration;

use vfs_core::{Error, ErrorKind, VfsPath};
use vfs_local::{Durability, LocalBackend, LocalConfig};

/// Maximum time that a test waits for an event. It bounds a hang, and is no expectation of speed.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout of locks that is longer than any test, for slow disks.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(3600);

/// A temporary tree with a `root` that is opened, and an `outside` beside it that contains one file.
pub(crate) struct Disk {
    pub(crate) tree: tempfile::TempDir,
    pub(crate) files: LocalBackend,
}

/// The content of the file outside.
pub(crate) const SECRET: &str = "only outside has this";

impl Disk {
    pub(crate) fn new() -> Self {
        Self::with(|config| config)
    }

    pub(crate) fn with(settings: impl FnOnce(LocalConfig) -> LocalConfig) -> Self {
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

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.tree.path().join("root")
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories are made");
        std::fs::write(path, content).expect("files are written");
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root().join(name)).expect("it reads")
    }
}

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of these tests are valid")
}

#[track_caller]
pub(crate) fn assert_fails<T: std::fmt::Debug>(result: Result<T, Error>, kinds: &[ErrorKind]) {
    let error = result.expect_err("it is refused");
    assert!(kinds.contains(&error.kind()), "{error:?} is none of {kinds:?}");
    assert!(!error.for_model().contains("/tmp"), "a host path is shown: {}", error.for_model());
    assert!(error.path().is_some(), "no path is named: {error:?}");
}
