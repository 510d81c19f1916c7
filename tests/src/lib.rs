//! The backends of this workspace as targets of the laws, and what else its tests share.

#![allow(clippy::missing_panics_doc, reason = "this is test code: what cannot be set up ends the test")]

mod composites;
#[cfg(doctest)]
mod guide;
mod layers;
pub mod nasty;
pub mod places;
pub mod process;
pub mod programs;
pub mod settings;
pub mod sketch;
pub mod sshd;

use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vfs_core::VfsPath;
use vfs_local::{Durability, LocalConfig, SearchCache};
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_testkit::{LawTier, LinkMaker, ReturnedUpdateApplier, StrictBackend, Target, TargetFactory};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

/// How long a change waits for its turn: for a hang only, however slow the disk is.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Every backend of this workspace, and the strict double. One backend of each kind runs the laws of every tier.
pub fn targets() -> Vec<TargetFactory> {
    let mut targets = vec![
        TargetFactory::new("memory", || Target::new(Arc::new(MemoryBackend::new()))),
        TargetFactory::new("state-pure", state_pure).tier(LawTier::Storage),
        TargetFactory::new("state-session", || Target::new(Arc::new(StateBackend::session(FilesState::new())))),
        TargetFactory::new("local", local),
        TargetFactory::new("local-host", local_host).tier(LawTier::Storage),
        TargetFactory::new("strict", || Target::new(Arc::new(StrictBackend::new(Arc::new(MemoryBackend::new())))))
            .tier(LawTier::Storage),
        TargetFactory::new("virtual-shell", virtual_shell).tier(LawTier::Wrapper),
    ];
    targets.extend(composites::targets());
    targets.extend(layers::targets());
    targets
}

/// The target `name`.
pub fn target(name: &str) -> TargetFactory {
    targets().into_iter().find(|target| target.name == name).unwrap_or_else(|| panic!("{name} is not a target"))
}

/// Files behind a shell that passes them on.
fn virtual_shell() -> Target {
    Target::new(Arc::new(VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new())))
}

/// An agent's state whose changes a runtime merges.
fn state_pure() -> Target {
    let adapter = ReturnedUpdateApplier::new(|files| {
        let update = files.into_iter().map(|(path, file)| (path, Some(file))).collect();
        let state = FilesState::new().apply(update).expect("what a backend returned can be merged");
        Arc::new(StateBackend::pure(state))
    });
    Target::new(Arc::new(adapter))
}

/// A memory of searches that trusts what was unchanged for longer than a file system's clock counts in: trees of a test are
/// young, and nobody writes to them through a memory map.
pub fn eager_memory() -> SearchCache {
    SearchCache::of_unchanged(SearchCache::DEFAULT_MAX_BYTES, Duration::from_millis(20))
}

/// A fresh directory of the host. `Durability::Full` would only make the same laws slower: what a power cut leaves is not
/// theirs to check.
fn directory() -> TempDir {
    tempfile::Builder::new().prefix("vfs-laws-").tempdir().expect("a temporary directory can be made")
}

fn local() -> Target {
    let root = directory();
    let backend = LocalConfig::new(root.path())
        .durability(Durability::Atomic)
        .lock_timeout(LOCK_TIMEOUT)
        .search_cache(eager_memory())
        .open()
        .expect("the root can be opened");
    Target::new(Arc::new(backend))
        .with_host_marker("vfs-laws-")
        .with_links(Arc::new(HostLinks { root: root.path().into(), at: VfsPath::root() }))
        .with_guard(root)
}

fn local_host() -> Target {
    let directory = directory();
    // A temporary directory behind a link would be another name for the base than the one that entries are listed under.
    let real = directory.path().canonicalize().expect("it was just made");
    let base = VfsPath::parse(real.to_str().expect("its name is UTF-8")).expect("it is a valid path");
    let backend = LocalConfig::host(&real)
        .durability(Durability::Atomic)
        .lock_timeout(LOCK_TIMEOUT)
        .open()
        .expect("the host can be opened");
    Target::new(Arc::new(backend))
        .below(base)
        .with_links(Arc::new(HostLinks { root: "/".into(), at: VfsPath::root() }))
        .with_guard(directory)
}

/// Makes links on the host's own disk: what is below `at` of the backend is below `root` there.
#[derive(Debug)]
struct HostLinks {
    root: PathBuf,
    at: VfsPath,
}

impl HostLinks {
    fn host_path(&self, path: &VfsPath) -> PathBuf {
        self.root.join(path.strip_prefix(&self.at).expect("laws make links where they can be made"))
    }
}

impl LinkMaker for HostLinks {
    fn link(&self, at: &VfsPath, to: &str) -> io::Result<()> {
        symlink(to, self.host_path(at))
    }

    fn is_link(&self, at: &VfsPath) -> bool {
        self.host_path(at).is_symlink()
    }
}
