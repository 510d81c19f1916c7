//! Detection of host directories that are reachable through two mounts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use vfs_core::VfsPath;

use crate::config_text::ConfigText;
use crate::error::{ConfigError, ConfigErrorKind};

/// The host directories of local mounts, and warnings about directories that are inside others.
#[derive(Debug, Default)]
pub(super) struct MountedHostDirectories {
    mounts: Vec<(VfsPath, PathBuf)>,
    pub(super) warnings: Vec<ConfigError>,
}

impl MountedHostDirectories {
    pub(super) fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// Returns the host directory that is mounted at `path`.
    pub(super) fn directory_at(&self, path: &VfsPath) -> Option<&Path> {
        self.mounts.iter().find(|(mount, _)| mount == path).map(|(_, real)| real.as_path())
    }

    /// Adds the host directory `real`, which the setting at `span` of `source` mounts at `path`.
    pub(super) fn add(&mut self, source: &ConfigText, span: Range<usize>, path: &VfsPath, real: PathBuf) {
        for (other, other_real) in &self.mounts {
            if is_reachable_through((path, &real), (other, other_real))
                || is_reachable_through((other, other_real), (path, &real))
            {
                let message = format!(
                    "files of this directory can be reached at '{other}' too, past the layers that are around '{path}' alone; \
                     mount directories of which none is inside another"
                );
                self.warnings.push(source.error(ConfigErrorKind::Conflict, span.clone(), message));
            }
        }
        self.mounts.push((path.clone(), real));
    }
}

/// Returns whether files of the mount `inner` can be reached through the mount `outer` at another path. At the same path,
/// `inner` shadows them.
fn is_reachable_through(inner: (&VfsPath, &Path), outer: (&VfsPath, &Path)) -> bool {
    let Ok(relative) = inner.1.strip_prefix(outer.1) else { return false };
    let path = relative.to_str().map(|relative| outer.0.join(relative));
    !path.is_some_and(|path| path.is_ok_and(|path| path == *inner.0))
}
