//! Walks of test trees, everywhere.

use std::sync::Arc;

use vfs_core::VfsPath;
use vfs_core::tree::{Located, Tree as _};

use crate::testing::TestTree;
use crate::walk::dir_entries::{Findings, Level};
use crate::walk::dir_reader::{Opener, WalkState};
use crate::walk::options::{Directories, Guide, WalkOptions};
use crate::walk::subtree::Cursor;
use crate::walk::visibility::Visibility;

pub(crate) struct Everywhere;

pub(crate) const EVERYWHERE: Everywhere = Everywhere;

impl Guide for Everywhere {
    fn enters(&self, _: &str, _: &str) -> bool {
        true
    }

    fn check(&self) -> vfs_core::Result<()> {
        Ok(())
    }
}

pub(crate) const OPTIONS: WalkOptions = WalkOptions {
    visibility: Visibility::ALL,
    links: vfs_core::LinkMode::Skip,
    max_depth: None,
    directories: Directories::OnlyEntered,
};

pub(crate) fn root(tree: &TestTree) -> Cursor<String> {
    let Located::Directory(dir) = tree.locate(&VfsPath::root()).expect("the root") else { panic!("a directory") };
    let opener = Opener { tree, guide: &EVERYWHERE, options: OPTIONS, state: &WalkState::new(None, u64::MAX) };
    whole(opener.start(dir, &VfsPath::root(), &mut Findings::default()).expect("it lists").expect("a level"))
}

pub(crate) fn whole(level: Level<String>) -> Cursor<String> {
    Cursor { steps: 0..level.len(), level: Arc::new(level) }
}
