//! Unrestricted walks of test trees.

use std::sync::Arc;

use vfs_core::VfsPath;
use vfs_core::tree::Tree;

use crate::walk::dir_entries::DirEntries;
use crate::walk::dir_reader::{DirReader, SharedWalkState};
use crate::walk::pending_steps::DirSteps;
use crate::walk::visibility::VisibilitySettings;
use crate::walk::walk_findings::WalkFindings;
use crate::walk::walk_options::{DirectoryYieldMode, WalkControl, WalkFilter, WalkOptions};

/// A filter that enters every directory.
struct Everywhere;

pub(crate) const EVERYWHERE: WalkControl<'static> = WalkControl { filter: &Everywhere, check: &|| Ok(()) };

impl WalkFilter for Everywhere {
    fn should_enter(&self, _: &str, _: &str) -> bool {
        true
    }
}

pub(crate) const OPTIONS: WalkOptions = WalkOptions {
    visibility: VisibilitySettings::ALL,
    links: vfs_core::search::LinkMode::Skip,
    max_depth: None,
    directories: DirectoryYieldMode::OnlyEntered,
};

pub(crate) fn root(tree: &Arc<dyn Tree>) -> DirSteps {
    let dir = tree.find_dir(&VfsPath::root()).expect("the root").expect("a directory");
    let reader =
        DirReader { tree, control: EVERYWHERE, options: OPTIONS, state: &SharedWalkState::new(None, u64::MAX) };
    full_range(reader.start(dir, &VfsPath::root(), &mut WalkFindings::default()).expect("it lists").expect("a level"))
}

pub(crate) fn full_range(entries: DirEntries) -> DirSteps {
    DirSteps { steps: 0..entries.len(), entries: Arc::new(entries) }
}
