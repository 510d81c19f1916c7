//! Choice of covers for the entries that a scan found deep in the mounts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use vfs_core::backend::AccessMode;
use vfs_core::{Error, ErrorKind, Result};

use crate::config::ProtectionLevel;
use crate::protect::nested_covers::{NestedCoverMethod, NestedEntry};
use crate::protect::open_mount::OpenMount;
use crate::protect::tree_scan::{ScanMatch, ScanMatchReason};

/// Upper bound on the entries that are covered in one command: the kernel bounds the mounts of a namespace, too.
const MAX_NESTED_COVERS: usize = 4_096;

/// Upper bound on the sockets that are covered in addition if the filter denies all unix sockets. The oldest ones are covered, so
/// that sockets that a command creates by other means cannot use up the bound.
const MAX_DENIED_SOCKETS: usize = 1_024;

/// Returns how the helper covers these entries, each directory before the entries in it. `socket` covers sockets.
pub(crate) fn nested_entries(
    mounts: &[OpenMount],
    entries: &[(usize, ScanMatch)],
    socket: NestedCoverMethod,
) -> Result<Vec<NestedEntry>> {
    let mut nested: Vec<NestedEntry> = Vec::new();
    // Outermost directory with each of these covers around the current entry.
    let (mut hidden_above, mut read_only_above) = (None, None);
    let newest_covered = newest_covered_socket(entries);
    let mut denied_sockets = 0;
    for (number, entry) in entries {
        let Some(mount) = mounts.get(*number) else { continue };
        let hidden =
            if entry.is_directory() { NestedCoverMethod::HiddenDirectory } else { NestedCoverMethod::HiddenFile };
        let cover = match entry.kind {
            ScanMatchReason::Link | ScanMatchReason::RootRepository => continue,
            ScanMatchReason::Name(ProtectionLevel::ReadOnly) | ScanMatchReason::Repository => {
                NestedCoverMethod::ReadOnly
            }
            ScanMatchReason::Name(ProtectionLevel::Hidden) | ScanMatchReason::Unlistable => hidden,
            ScanMatchReason::Socket => socket,
        };
        if cover == NestedCoverMethod::ReadOnly && mount.access != AccessMode::ReadWrite {
            continue;
        }
        let path = [mount.at.as_str().as_bytes(), &entry.path].concat();
        let is_below = |above: &Option<Vec<u8>>| above.as_ref().is_some_and(|above| path.starts_with(above));
        if is_below(&hidden_above) || (cover == NestedCoverMethod::ReadOnly && is_below(&read_only_above)) {
            continue;
        }
        if cover == NestedCoverMethod::DeniedSocket {
            if denied_sockets == MAX_DENIED_SOCKETS || newest_covered.is_some_and(|newest| changed_at(entry) > newest) {
                continue;
            }
            denied_sockets += 1;
        } else if nested.len() - denied_sockets == MAX_NESTED_COVERS {
            let message = format!(
                "there are more than {MAX_NESTED_COVERS} entries that have to be covered before a command starts; mount a \
                 smaller directory, or remove some outside of the sandbox, where no cover is in the way"
            );
            return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(&mount.at));
        }
        let prefix = || Some([&*path, b"/"].concat());
        match cover {
            NestedCoverMethod::HiddenDirectory => hidden_above = prefix(),
            NestedCoverMethod::ReadOnly => read_only_above = prefix(),
            NestedCoverMethod::HiddenFile | NestedCoverMethod::DeniedSocket => {}
        }
        let file = Some((entry.status.st_dev, entry.status.st_ino));
        nested.push(NestedEntry { path: OsString::from_vec(path), cover, file });
    }
    Ok(nested)
}

/// Returns the time of change of the newest socket that is covered; `None` if all sockets are covered.
fn newest_covered_socket(entries: &[(usize, ScanMatch)]) -> Option<(i64, u64)> {
    let sockets = entries.iter().filter(|(_, entry)| entry.kind == ScanMatchReason::Socket);
    let mut times: Vec<_> = sockets.map(|(_, entry)| changed_at(entry)).collect();
    (times.len() > MAX_DENIED_SOCKETS).then(|| *times.select_nth_unstable(MAX_DENIED_SOCKETS - 1).1)
}

/// Returns the time of the last change of the entry, which no process can set.
fn changed_at(entry: &ScanMatch) -> (i64, u64) {
    (entry.status.st_ctime, entry.status.st_ctime_nsec)
}
