//! The reasons for which a path is invalid.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason for which a path is invalid. `Display` says what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathFault {
    /// A component is `..`.
    ParentComponent,
    /// The path contains a NUL character.
    Nul,
    /// The path starts with `~`.
    HomeDirectory,
    /// The path starts with a Windows drive letter.
    DriveLetter,
    /// The path starts with `\\`, as Windows UNC paths do.
    Unc,
    /// A component is over 255 bytes.
    LongName,
    /// The path is over 4,096 bytes.
    LongPath,
    /// A name that must be one component is empty, `.`, or contains `/` or NUL.
    NotOneName,
    /// The path has a loop of symbolic links, or too many of them.
    LinkLoop,
}

impl PathFault {
    /// Returns the message of this fault.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            PathFault::ParentComponent => "'..' is not allowed; write the absolute path of the file itself",
            PathFault::Nul => "the path contains a NUL character; remove it",
            PathFault::HomeDirectory => "'~' is not expanded; write an absolute path such as '/notes.txt'",
            PathFault::DriveLetter => {
                "Windows drive letters are not supported; write an absolute path such as '/src/main.rs'"
            }
            PathFault::Unc => "UNC paths are not supported; write an absolute path such as '/src/main.rs'",
            PathFault::LongName => "a component is longer than 255 bytes; use a shorter name",
            PathFault::LongPath => "the path is longer than 4096 bytes; use a shorter path",
            PathFault::NotOneName => "the name is not one path component; use a name without '/' or NUL",
            PathFault::LinkLoop => {
                "the symbolic links form a loop, are too many, or are of a kind that is not followed; use the path of the file itself"
            }
        }
    }
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.advice())
    }
}
