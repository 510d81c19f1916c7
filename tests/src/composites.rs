//! Namespaces of several backends, as targets of the laws.

use std::sync::Arc;

use tempfile::TempDir;
use vfs_composite::CompositeBackend;
use vfs_core::{Backend, VfsPath};
use vfs_local::{Durability, LocalBackend, LocalConfig};
use vfs_memory::{FilesState, MemoryBackend, StateBackend};
use vfs_testkit::{LawTier, Target, TargetFactory};

use crate::{HostLinks, LOCK_TIMEOUT, directory};

/// The default backend and a mount of one namespace run all laws and those of storage; the rest are combinations of parts
/// that have targets of their own.
pub(crate) fn targets() -> Vec<TargetFactory> {
    vec![
        TargetFactory::new("composite-alone", || {
            Target::new(Arc::new(CompositeBackend::new(Arc::new(MemoryBackend::new()))))
        })
        .tier(LawTier::Smoke),
        TargetFactory::new("composite-default", || {
            let disks = Disks::new();
            let links = HostLinks { root: disks.default.path().into(), at: VfsPath::root() };
            below("/area", disks).with_host_marker("vfs-laws-").with_links(Arc::new(links))
        }),
        TargetFactory::new("composite-state", || below("/memories", Disks::new())).tier(LawTier::Wrapper),
        TargetFactory::new("composite-local", || {
            let disks = Disks::new();
            let links = HostLinks { root: disks.mounted.path().into(), at: path("/disk") };
            below("/disk/area", disks).with_host_marker("vfs-laws-").with_links(Arc::new(links))
        })
        .tier(LawTier::Storage),
        TargetFactory::new("composite-nested", || below("/disk/nested", Disks::new())).tier(LawTier::Wrapper),
    ]
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// The directories of two local roots. The laws' own directory has to be there.
struct Disks {
    default: TempDir,
    mounted: TempDir,
}

impl Disks {
    fn new() -> Self {
        let disks = Self { default: directory(), mounted: directory() };
        for root in [&disks.default, &disks.mounted] {
            std::fs::create_dir(root.path().join("area")).expect("a directory can be made");
        }
        disks
    }
}

fn open(root: &TempDir) -> LocalBackend {
    LocalConfig::new(root.path())
        .durability(Durability::Atomic)
        .lock_timeout(LOCK_TIMEOUT)
        .open()
        .expect("the root can be opened")
}

/// A local root, with an agent's state at `/memories`, another local root at `/disk`, and memory mounted in that.
fn below(base: &str, disks: Disks) -> Target {
    let mounts: [(&str, Arc<dyn Backend>); 3] = [
        ("/memories", Arc::new(StateBackend::session(FilesState::new()))),
        ("/disk", Arc::new(open(&disks.mounted))),
        ("/disk/nested", Arc::new(MemoryBackend::new())),
    ];
    let composite = mounts
        .into_iter()
        .try_fold(CompositeBackend::new(Arc::new(open(&disks.default))), |files, (at, backend)| {
            files.with_mount(at, backend)
        })
        .expect("different places");
    Target::new(Arc::new(composite)).below(path(base)).with_guard(disks)
}
