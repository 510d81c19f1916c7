//! The backend that a command works on, and the paths that name its files.

use vfs_core::{OpContext, Result, VfsPath};
use vfs_local::LocalBackend;

use crate::args::Place;
use crate::exit::Failure;

/// The files, as one command sees them.
#[derive(Debug)]
pub(crate) struct Session {
    /// The files.
    pub(crate) backend: LocalBackend,
    /// The circumstances of every call: no deadline; ending the process cancels.
    pub(crate) cx: OpContext,
}

impl Session {
    /// Opens the root that the arguments name.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        let opened = if place.host { LocalBackend::host(&place.root) } else { LocalBackend::open(&place.root) };
        let backend = opened.map_err(|error| Failure::Root(place.root.clone(), error))?;
        Ok(Self { backend, cx: OpContext::new() })
    }

    /// The path that `text` names: below the root, or with `--host` wherever a shell would look.
    pub(crate) fn path(&self, text: &str) -> Result<VfsPath> {
        self.backend.resolve(text)
    }

    /// The same; the root directory where `text` is left out.
    pub(crate) fn path_or_root(&self, text: Option<&str>) -> Result<VfsPath> {
        self.path(text.unwrap_or("."))
    }
}
