//! Requests and results of deletes, renames and copies.

use serde::{Deserialize, Serialize};

use super::agent_state::FilesUpdate;
use super::version::Version;
use super::wire;
use crate::error::{Error, ErrorKind, Result};
use crate::path::VfsPath;

/// A request for [`Backend::delete`](crate::Backend::delete).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DeleteRequest {
    /// The file, link or directory, which must not be the root.
    pub path: VfsPath,
    /// Whether a directory is deleted with all entries below it. Default: deleting a directory fails.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub recursive: bool,
    /// The version that the file must have, else the delete fails with `conflict`. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<Version>,
    /// The entries that the request may delete. Default: [`DeleteScope::Anything`].
    #[serde(default, skip_serializing_if = "DeleteScope::is_anything", deserialize_with = "wire::or_default")]
    pub scope: DeleteScope,
}

/// The entries that a delete may remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeleteScope {
    /// Any entry; a directory only if the request is [`recursive`](DeleteRequest::recursive).
    #[default]
    Anything,
    /// An empty directory, checked and removed in one atomic step. Fails with `not_empty`, even if the request is recursive, and
    /// with `not_a_directory` for a file or link.
    EmptyDirectory,
}

impl DeleteScope {
    /// Returns whether this is the default.
    fn is_anything(&self) -> bool {
        *self == Self::Anything
    }
}

impl DeleteRequest {
    /// Creates a request to delete the file or link at `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, recursive: false, expected_version: None, scope: DeleteScope::Anything }
    }

    /// Deletes a directory with all entries below it too.
    #[must_use]
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Deletes an [empty directory](DeleteScope::EmptyDirectory) only.
    #[must_use]
    pub fn only_empty(mut self) -> Self {
        self.scope = DeleteScope::EmptyDirectory;
        self
    }

    /// Fails with `conflict` unless the file has this version.
    #[must_use]
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Checks that the request may remove a directory, which its path is.
    ///
    /// # Errors
    ///
    /// * `is_a_directory`: the request is not recursive.
    /// * `invalid_argument`: the request expects a version, which a directory has not.
    pub fn check_directory(&self) -> Result<()> {
        if !self.recursive {
            let message = "the path is a directory; request a recursive delete to remove everything in it";
            return Err(Error::new(ErrorKind::IsADirectory, message).with_path(&self.path));
        }
        if self.expected_version.is_some() {
            let message = "a directory has no version; delete it without an expected version";
            return Err(Error::invalid_argument(message).with_path(&self.path));
        }
        Ok(())
    }
}

/// The result of a delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeleteResult {
    /// The deleted path.
    pub path: VfsPath,
    /// The number of files and links that were deleted, without directories.
    pub files: u64,
    /// The update to merge into the caller's state, from a backend with [`MutationMode::Returned`](crate::backend::MutationMode::Returned).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl DeleteResult {
    /// Creates the result of a delete of `path`.
    pub fn new(path: VfsPath, files: u64) -> Self {
        Self { path, files, files_update: None }
    }
}

/// How a rename or copy treats an existing target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransferTargetMode {
    /// Fails with `already_exists`.
    #[default]
    CreateNew,
    /// A file replaces a file; a directory replaces an empty directory.
    Overwrite,
}

/// Checks the source and target of a rename or copy: neither may be the root, and the target must not be the source or below it.
///
/// # Errors
///
/// `invalid_argument` at the invalid path.
///
/// ```
/// use vfs_core::transfer::check_source_and_target;
/// use vfs_core::VfsPath;
///
/// let path = |text| VfsPath::parse(text).expect("a valid path");
/// assert!(check_source_and_target(&path("/a"), &path("/b")).is_ok());
/// assert!(check_source_and_target(&path("/a"), &path("/a/b")).is_err());
/// ```
pub fn check_source_and_target(from: &VfsPath, to: &VfsPath) -> Result<()> {
    let refuse = |message, path: &VfsPath| Err(Error::invalid_argument(message).with_path(path));
    if from.is_root() {
        refuse("the root cannot be renamed or copied; name an entry below it", from)
    } else if to.is_root() {
        refuse("the root cannot be replaced; name a target below it", to)
    } else if from == to {
        refuse("source and target are the same; choose another target", to)
    } else if to.starts_with(from) {
        refuse("the target lies below the source; choose a target outside it", to)
    } else {
        Ok(())
    }
}

macro_rules! transfer {
    ($(#[$request_doc:meta])* $request:ident, $(#[$result_doc:meta])* $result:ident { $($extra:tt)* }) => {
        $(#[$request_doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $request {
            /// The source.
            pub from: VfsPath,
            /// The target. Missing parent directories are created.
            pub to: VfsPath,
            /// How an existing target is treated. Default: [`TransferTargetMode::CreateNew`].
            #[serde(default, deserialize_with = "wire::or_default")]
            pub mode: TransferTargetMode,
        }

        impl $request {
            /// Creates a request from `from` to `to`, which must not exist.
            pub fn new(from: VfsPath, to: VfsPath) -> Self {
                Self { from, to, mode: TransferTargetMode::CreateNew }
            }

            /// Replaces an existing target.
            #[must_use]
            pub fn overwrite(mut self) -> Self {
                self.mode = TransferTargetMode::Overwrite;
                self
            }
        }

        $(#[$result_doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $result {
            /// The source.
            pub from: VfsPath,
            /// The target.
            pub to: VfsPath,
            /// Whether an existing target was replaced.
            pub replaced: bool,
            $($extra)*
            /// The update to merge into the caller's state, from a backend with
            /// [`MutationMode::Returned`](crate::backend::MutationMode::Returned).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub files_update: Option<FilesUpdate>,
        }
    };
}

transfer! {
    /// A request for [`Backend::rename`](crate::Backend::rename). A link is renamed itself, not its target.
    RenameRequest,
    /// The result of a rename.
    RenameResult {}
}

transfer! {
    /// A request for [`Backend::copy`](crate::Backend::copy). The target of a link is copied, not the link.
    CopyRequest,
    /// The result of a copy.
    CopyResult {
        /// The number of files that were copied.
        pub files: u64,
        /// The size of those files in bytes.
        pub bytes: u64,
    }
}

impl RenameResult {
    /// Creates the result of a rename.
    pub fn new(from: VfsPath, to: VfsPath, replaced: bool) -> Self {
        Self { from, to, replaced, files_update: None }
    }
}

impl CopyResult {
    /// Creates the result of a copy of `files` files with `bytes` bytes in total.
    pub fn new(from: VfsPath, to: VfsPath, replaced: bool, files: u64, bytes: u64) -> Self {
        Self { from, to, replaced, files, bytes, files_update: None }
    }
}
