//! Directories of the host that are shown at two places.

use std::ops::Range;
use std::path::{Path, PathBuf};

use vfs_core::VfsPath;

use crate::error::{ConfigError, ConfigErrorKind};
use crate::source::Source;

/// The directories that local places show, and what is to be said where one is in another.
#[derive(Debug, Default)]
pub(super) struct SharedDirectories {
    shown: Vec<(VfsPath, PathBuf)>,
    pub(super) warnings: Vec<ConfigError>,
}

impl SharedDirectories {
    pub(super) fn is_anything_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Returns the directory of the host that is shown at `at`.
    pub(super) fn directory(&self, at: &VfsPath) -> Option<&Path> {
        self.shown.iter().find(|(shown, _)| shown == at).map(|(_, real)| real.as_path())
    }

    /// Adds the directory `real` of the host, which `span` of `source` shows at `at`.
    pub(super) fn add(&mut self, source: &Source, span: Range<usize>, at: &VfsPath, real: PathBuf) {
        for (other, other_real) in &self.shown {
            let is_twice =
                is_seen_twice((at, &real), (other, other_real)) || is_seen_twice((other, other_real), (at, &real));
            if is_twice {
                let message = format!(
                    "files of this directory can be reached at '{other}' too, past the layers that are around '{at}' alone; \
                     show directories of which none is in another"
                );
                self.warnings.push(source.error(ConfigErrorKind::Conflict, span.clone(), message));
            }
        }
        self.shown.push((at.clone(), real));
    }
}

/// Whether the place `outer` shows what `inner` shows, at another path. At the same path `inner` shadows it.
fn is_seen_twice(inner: (&VfsPath, &Path), outer: (&VfsPath, &Path)) -> bool {
    let Ok(relative) = inner.1.strip_prefix(outer.1) else { return false };
    let path = relative.to_str().map(|relative| outer.0.join(relative));
    !path.is_some_and(|path| path.is_ok_and(|path| path == *inner.0))
}
