//! Handing out a directory as a descriptor, for what works in directories and not with paths.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use vfs_core::{OpContext, Result, VfsPath};

use crate::backend::LocalBackend;

impl LocalBackend {
    /// Opens a directory to be worked in: a place to start a process in, or to open files from. The descriptor can be
    /// neither listed nor written to, and is closed when a process of ours becomes another program.
    ///
    /// It is found as every path is: below the root, links inside it followed. Whoever has it can leave the root by `..`.
    ///
    /// # Errors
    ///
    /// `not_found`, `not_a_directory`, `permission_denied`, and `path_escape` where a link leads out of the root.
    pub async fn open_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<OwnedFd> {
        let wanted = path.clone();
        self.on_disk(cx, path.clone(), move |disk, _| disk.root.open_at(&wanted, OFlags::PATH | OFlags::DIRECTORY))
            .await
    }
}
