//! Identities of mounts, which bind the record of a rename to its files.

use std::fmt;

use serde::{Deserialize, Serialize};
use vfs_core::{OpContext, VfsPath};

/// The files that a mount shows, whichever process mounts them and wherever.
///
/// # Behaviour
///
/// A recovery acts on a record only if both mounts have the identities that they had when it was written. It is written to the
/// journal, so it must hold no secret.
///
/// ```
/// use vfs_composite::MountIdentity;
///
/// let identity = MountIdentity::Local { root: "/srv/project".into() };
/// assert_eq!(identity.to_string(), "the directory '/srv/project'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum MountIdentity {
    /// A directory of this machine. The version of a file in it names its inode, as that of `vfs-local` does.
    Local {
        /// The path of the directory, without links.
        root: String,
    },
    /// A part of a durable store.
    Store {
        /// The URL of the store, without user, password and parameters.
        url: String,
        /// The namespace in the store, in which `{actor}` and `{session}` are those of the caller.
        namespace: String,
        /// The directory in the namespace.
        directory: VfsPath,
    },
    /// Files in memory, which end with the process.
    Memory,
    /// An overlay over other files.
    Overlay {
        /// The path of its store; `None` if it is in memory.
        store: Option<String>,
        /// The files below it.
        base: Box<MountIdentity>,
    },
}

impl MountIdentity {
    /// Returns whether the files end with the process.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory | Self::Overlay { store: None, .. })
    }

    /// Returns a text that is equal for two paths inside mounts if they lead to one file without links; `None` if the files
    /// cannot be those of another mount.
    pub(crate) fn location(&self, cx: &OpContext, inside: &VfsPath) -> Option<String> {
        let inside = inside.as_str().trim_end_matches('/');
        match self {
            Self::Local { root } => Some(format!("local:{}{inside}", root.trim_end_matches('/'))),
            Self::Store { url, namespace, directory } => {
                let namespace = namespace
                    .replace("{actor}", cx.actor().unwrap_or_default())
                    .replace("{session}", cx.session().unwrap_or_default());
                Some(format!("store:{url}\n{namespace}\n{}{inside}", directory.as_str().trim_end_matches('/')))
            }
            Self::Memory | Self::Overlay { .. } => None,
        }
    }
}

impl fmt::Display for MountIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { root } => write!(f, "the directory '{root}'"),
            Self::Store { url, namespace, directory } => {
                write!(f, "the store '{url}'")?;
                if !namespace.is_empty() {
                    write!(f, " with the namespace '{namespace}'")?;
                }
                if directory.is_root() { Ok(()) } else { write!(f, " in '{directory}'") }
            }
            Self::Memory => f.write_str("memory"),
            Self::Overlay { store: Some(store), base } => write!(f, "the overlay '{store}' over {base}"),
            Self::Overlay { store: None, base } => write!(f, "an overlay in memory over {base}"),
        }
    }
}

/// Returns whether the location `below` is `above` or below it.
pub(crate) fn is_within(below: &str, above: &str) -> bool {
    below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether equal versions at both ends of a rename can mean one file with two names.
///
/// The versions of stores and of memory depend on the content, so they are equal for equal files, too. Files of an
/// unknown mount can have either kind.
pub(crate) fn versions_name_files(source: Option<&MountIdentity>, target: Option<&MountIdentity>) -> bool {
    let is_not_local = |end: Option<&MountIdentity>| end.is_some_and(|end| !matches!(end, MountIdentity::Local { .. }));
    !is_not_local(source) && !is_not_local(target)
}
