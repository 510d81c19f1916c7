//! Table of the mounts of this process, for all paths at which a file is visible.
#![expect(clippy::disallowed_methods, reason = "files of the kernel are in no backend")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The mounts that this process can reach, in the order of the kernel.
#[derive(Debug, Default)]
pub(super) struct MountTable(Vec<MountEntry>);

/// One line of the table of mounts.
#[derive(Debug)]
struct MountEntry {
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    mount_point: PathBuf,
}

/// The file that lists the mounts.
pub(super) const FILE: &str = "/proc/thread-self/mountinfo";

impl MountTable {
    /// Reads the mounts. If that fails, the table is empty.
    pub(super) fn read() -> Self {
        std::fs::read(FILE).map(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    pub(super) fn parse(bytes: &[u8]) -> Self {
        let entry = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let device = fields.next()?.to_owned();
            Some(MountEntry { device, root: unescape(fields.next()?), mount_point: unescape(fields.next()?) })
        };
        Self(bytes.split(|byte| *byte == b'\n').filter_map(entry).collect())
    }

    /// Returns all paths of the file at `path`, which need not exist: `path` itself first, then those through other
    /// mounts of the same file system. Mounts that are covered by other mounts count as well.
    pub(super) fn paths_of(&self, path: &Path) -> Vec<PathBuf> {
        let mut paths = vec![path.to_owned()];
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.mount_point));
        // Of two mounts at one path, the later one is visible.
        let Some(own) = around.max_by_key(|mount| mount.mount_point.components().count()) else { return paths };
        let Ok(relative) = path.strip_prefix(&own.mount_point) else { return paths };
        let inner = own.root.join(relative);
        for other in self.0.iter().filter(|other| other.device == own.device) {
            if let Ok(relative) = inner.strip_prefix(&other.root) {
                let path = other.mount_point.join(relative);
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }
}

/// Decodes a field: the kernel writes a space, a tab, a line feed and a backslash as three octal digits after a
/// backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => bytes.push(*first),
        }
    }
    OsStr::from_bytes(&bytes).into()
}
