//! Directory descriptors for callers that work with descriptors instead of paths.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, OpContext, Result, VfsPath};

use crate::backend::LocalBackend;
use crate::fs::errno::from_errno;
use crate::fs::protected_paths::PathAccess;
use crate::fs::root::{RESERVED_PREFIX, Root};

impl LocalBackend {
    /// Opens a directory as a descriptor, to start a process in it or to open files relative to it. The descriptor can
    /// be neither listed nor written to, and is closed when a process of ours executes another program.
    ///
    /// The path is resolved as every path is: below the root, following links inside it. A holder of the descriptor can
    /// leave the root by `..`.
    ///
    /// # Errors
    ///
    /// `not_found`, `not_a_directory`, `permission_denied`, and `path_escape` if a link leads out of the root.
    pub async fn open_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<OwnedFd> {
        let dir_path = path.clone();
        self.run_blocking(cx, path.clone(), move |local_fs, _| {
            local_fs.root.open_at(&dir_path, OFlags::PATH | OFlags::DIRECTORY)
        })
        .await
    }

    /// Opens a directory of the program's own as [`open_directory`](Self::open_directory) does, but follows no link,
    /// and creates the directory and its parents if they are missing. Other programs that can write below the root
    /// therefore cannot redirect it.
    ///
    /// # Errors
    ///
    /// `path_escape` if there is a link at the path or above it, `not_a_directory`, `permission_denied`,
    /// `policy_denied` if the path is protected, and `invalid_path` for a reserved name.
    pub async fn make_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<OwnedFd> {
        let dir_path = path.clone();
        self.run_blocking(cx, path.clone(), move |local_fs, _| create_dirs(&local_fs.root, &dir_path)).await
    }
}

fn create_dirs(root: &Root, path: &VfsPath) -> Result<OwnedFd> {
    if path.components().any(|name| name.starts_with(RESERVED_PREFIX)) {
        let message = "names that start with '.vfs-tmp-' are reserved; use another directory";
        return Err(Error::new(ErrorKind::InvalidPath, message));
    }
    root.protected_paths().check_path(PathAccess::CreateDir, path)?;
    let mut directory = root.open_at(&VfsPath::root(), OFlags::PATH | OFlags::DIRECTORY)?;
    for name in path.components() {
        directory = open_or_create_dir(root, &directory, name)?;
    }
    Ok(directory)
}

fn open_or_create_dir(root: &Root, parent: &OwnedFd, name: &str) -> Result<OwnedFd> {
    let open = || root.open_child(parent.as_fd(), name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY);
    let opened = open().or_else(|errno| match errno {
        Errno::NOENT => match fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => open(),
            Err(errno) => Err(errno),
        },
        errno => Err(errno),
    });
    opened.map_err(|errno| {
        let is_link = fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        if !is_link {
            return from_errno(errno);
        }
        let message = "there is a link at this path or above it, and links are not followed here; remove it, or name the \
                       directory that it leads to";
        Error::new(ErrorKind::PathEscape, message)
    })
}
