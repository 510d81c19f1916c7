//! What can be wrong with a path.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::VfsPath;
use crate::error::{Error, ErrorDetail, ErrorKind};

/// What is wrong with a path. `Display` says what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathFault {
    /// A component is `..`.
    ParentComponent,
    /// It contains a NUL.
    Nul,
    /// It starts with `~`.
    HomeDirectory,
    /// It starts with a drive letter of Windows.
    DriveLetter,
    /// It starts with `\\`, as the paths of Windows to other machines do.
    Unc,
    /// A component is over 255 bytes.
    LongName,
    /// It is over 4,096 bytes.
    LongPath,
    /// A name that is to be one component is none, or several.
    NotOneName,
    /// Links lead in a circle, or are too many.
    LinkLoop,
}

impl PathFault {
    /// What to do about it.
    const fn advice(self) -> &'static str {
        match self {
            PathFault::ParentComponent => "'..' is not allowed; write the absolute path of the file itself",
            PathFault::Nul => "it contains a NUL character; remove it",
            PathFault::HomeDirectory => "'~' is not expanded here; write an absolute path such as '/notes.txt'",
            PathFault::DriveLetter => {
                "Windows drive letters have no meaning here; write an absolute path such as '/src/main.rs'"
            }
            PathFault::Unc => "UNC paths have no meaning here; write an absolute path such as '/src/main.rs'",
            PathFault::LongName => "a name in it is longer than 255 bytes; use a shorter name",
            PathFault::LongPath => "the path is longer than 4096 bytes; use a shorter one",
            PathFault::NotOneName => "a name is one component without '/' or NUL",
            PathFault::LinkLoop => "symbolic links go in a circle, are too many, or are of a kind that is not followed",
        }
    }

    /// The error of a path with this fault, which is not named yet.
    ///
    /// ```
    /// use vfs_core::{ErrorDetail, ErrorKind, PathFault};
    ///
    /// let error = PathFault::LinkLoop.error();
    /// assert_eq!(error.kind(), ErrorKind::InvalidPath);
    /// assert_eq!(error.detail(), Some(&ErrorDetail::InvalidPath { fault: PathFault::LinkLoop }));
    /// ```
    pub fn error(self) -> Error {
        Error::new(ErrorKind::InvalidPath, self.advice()).with_detail(ErrorDetail::InvalidPath { fault: self })
    }
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.advice())
    }
}

/// What is wrong with one component that is not empty.
pub(super) fn of_component(component: &str) -> Option<PathFault> {
    if component == ".." {
        Some(PathFault::ParentComponent)
    } else if component.len() > VfsPath::MAX_COMPONENT {
        Some(PathFault::LongName)
    } else {
        None
    }
}
