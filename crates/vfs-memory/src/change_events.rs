//! Conversion of map changes to events of the change feed.

use std::sync::Arc;

use vfs_core::VfsPath;
use vfs_core::change_log::ChangeLog;
use vfs_core::watch::Change as Event;

use crate::file_map::{FileMap, FileOrDirectory, MapChanges};
use crate::memory_file::MemoryFile;

/// The granularity of the events that report a change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventGranularity<'a> {
    /// One event for each file.
    PerFile,
    /// One removal of a path with everything below it.
    Removal(&'a VfsPath),
    /// One rename of a path with everything below it.
    Rename(&'a VfsPath, &'a VfsPath),
}

impl EventGranularity<'_> {
    /// Returns the events of `change`, which was made to the files `before`.
    pub(crate) fn events(self, before: &FileMap, change: &MapChanges) -> Vec<Event> {
        match self {
            _ if change.is_empty() => Vec::new(),
            EventGranularity::PerFile => {
                let each = |(path, file): &(VfsPath, Option<Arc<MemoryFile>>)| {
                    file_event(path, before.get(path), file.as_ref())
                };
                change.iter().filter_map(each).collect()
            }
            EventGranularity::Removal(path) => vec![Event::Removed { path: path.clone() }],
            EventGranularity::Rename(from, to) => {
                let version = match before.find(from) {
                    Ok(FileOrDirectory::File(file)) => Some(file.version().clone()),
                    _ => None,
                };
                vec![Event::Renamed { from: from.clone(), to: to.clone(), version }]
            }
        }
    }

    /// Computes the versions that the events will have, so that no hashing happens under the lock.
    pub(crate) fn compute_versions(self, feed: &ChangeLog, before: &FileMap, change: &MapChanges) {
        match self {
            _ if change.is_empty() || !feed.is_used() => {}
            EventGranularity::PerFile => change.iter().filter_map(|(_, file)| file.as_ref()).for_each(|file| {
                file.version();
            }),
            EventGranularity::Removal(_) => {}
            EventGranularity::Rename(from, _) => {
                before.get(from).map(|file| file.version());
            }
        }
    }
}

/// Returns the events of replacing the files `before` by `after`.
pub(crate) fn restore_events(before: &FileMap, after: &FileMap) -> Vec<Event> {
    let events = before.differences(after).filter_map(|(path, old, new)| file_event(path, old, new));
    // The feed replaces more events than its capacity by one overflow, so further ones are not computed.
    events.take(ChangeLog::DEFAULT_CAPACITY + 1).collect()
}

/// Returns the event of the file at `path`; `None` if its content is unchanged.
fn file_event(path: &VfsPath, old: Option<&Arc<MemoryFile>>, new: Option<&Arc<MemoryFile>>) -> Option<Event> {
    let path = path.clone();
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Event::Created { path, version: Some(new.version().clone()) }),
        (Some(_), None) => Some(Event::Removed { path }),
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) || old.content() == new.content() => None,
        (Some(_), Some(new)) => Some(Event::Changed { path, version: Some(new.version().clone()) }),
    }
}
