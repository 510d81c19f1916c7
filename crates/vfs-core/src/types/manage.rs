//! Deleting, renaming and copying.

use serde::{Deserialize, Serialize};

use super::entry::Version;
use super::state::FilesUpdate;
use super::wire;
use crate::error::{Error, Result};
use crate::path::VfsPath;

/// Asks for a file, a link or a directory to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DeleteRequest {
    /// What is removed; never the root.
    pub path: VfsPath,
    /// Whether a directory goes with everything below it. Default: a directory is refused.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub recursive: bool,
    /// Refuses with `conflict` if the file is another version. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<Version>,
    /// What may be removed. Default: whatever is there.
    #[serde(default, skip_serializing_if = "DeleteScope::is_anything", deserialize_with = "wire::or_default")]
    pub scope: DeleteScope,
}

/// What a delete may remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeleteScope {
    /// Whatever is there, a directory as [`DeleteRequest::recursive`] says.
    #[default]
    Anything,
    /// A directory with nothing in it, in one step: what is put into it meanwhile keeps it there. Refuses with
    /// `not_empty`, also where the request is recursive, and with `not_a_directory` for a file or link.
    EmptyDirectory,
}

impl DeleteScope {
    /// Whether it is the default.
    fn is_anything(&self) -> bool {
        *self == Self::Anything
    }
}

impl DeleteRequest {
    /// Removes the file or link at `path`.
    pub fn new(path: VfsPath) -> Self {
        Self { path, recursive: false, expected_version: None, scope: DeleteScope::Anything }
    }

    /// Removes a directory with everything below it, too.
    #[must_use]
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Removes an [empty directory](DeleteScope::EmptyDirectory) and nothing else.
    #[must_use]
    pub fn only_empty(mut self) -> Self {
        self.scope = DeleteScope::EmptyDirectory;
        self
    }

    /// Refuses if the file is not `version`.
    #[must_use]
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }
}

/// Something was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeleteResult {
    /// What was removed.
    pub path: VfsPath,
    /// How many files and links went, directories not counted.
    pub files: u64,
    /// On an agent's state: the change to merge into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_update: Option<FilesUpdate>,
}

impl DeleteResult {
    /// `files` files went from `path`.
    pub fn new(path: VfsPath, files: u64) -> Self {
        Self { path, files, files_update: None }
    }
}

/// What a rename or copy does with a target that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransferMode {
    /// Refuses.
    #[default]
    CreateNew,
    /// Replaces a file by a file, or an empty directory by a directory.
    Overwrite,
}

/// Refuses a rename or copy of `from` to `to` that no backend makes: of the root, to the root, onto itself, or below itself.
///
/// # Errors
///
/// `invalid_argument` at the path that is wrong.
///
/// ```
/// use vfs_core::{VfsPath, check_source_and_target};
///
/// let path = |text| VfsPath::parse(text).expect("a valid path");
/// assert!(check_source_and_target(&path("/a"), &path("/b")).is_ok());
/// assert!(check_source_and_target(&path("/a"), &path("/a/b")).is_err());
/// ```
pub fn check_source_and_target(from: &VfsPath, to: &VfsPath) -> Result<()> {
    let refuse = |message, path: &VfsPath| Err(Error::invalid_argument(message).with_path(path));
    if from.is_root() {
        refuse("the root cannot be renamed or copied; name what is below it", from)
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
            /// The file, link or directory.
            pub from: VfsPath,
            /// Where it goes; directories above are made.
            pub to: VfsPath,
            /// What happens to a target that is there already. Default: refused.
            #[serde(default, deserialize_with = "wire::or_default")]
            pub mode: TransferMode,
        }

        impl $request {
            /// From `from` to `to`, which must be free.
            pub fn new(from: VfsPath, to: VfsPath) -> Self {
                Self { from, to, mode: TransferMode::CreateNew }
            }

            /// Replaces what is at the target.
            #[must_use]
            pub fn overwrite(mut self) -> Self {
                self.mode = TransferMode::Overwrite;
                self
            }
        }

        $(#[$result_doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct $result {
            /// Where it was.
            pub from: VfsPath,
            /// Where it is now.
            pub to: VfsPath,
            /// Whether something at the target was replaced.
            pub replaced: bool,
            $($extra)*
            /// On an agent's state: the change to merge into it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub files_update: Option<FilesUpdate>,
        }
    };
}

transfer! {
    /// Asks for a file, link or directory to be moved. A link is moved as a link.
    RenameRequest,
    /// Something was moved.
    RenameResult {}
}

transfer! {
    /// Asks for a file or directory to be copied. A link is copied as what it leads to.
    CopyRequest,
    /// Something was copied.
    CopyResult {
        /// How many files were copied.
        pub files: u64,
        /// How many bytes they have.
        pub bytes: u64,
    }
}

impl RenameResult {
    /// `from` is now at `to`.
    pub fn new(from: VfsPath, to: VfsPath, replaced: bool) -> Self {
        Self { from, to, replaced, files_update: None }
    }
}

impl CopyResult {
    /// `files` files of `bytes` bytes are now at `to`, too.
    pub fn new(from: VfsPath, to: VfsPath, replaced: bool, files: u64, bytes: u64) -> Self {
        Self { from, to, replaced, files, bytes, files_update: None }
    }
}
