//! What subscribers are told of a change to the map.

use std::sync::Arc;

use vfs_core::change_log::ChangeLog;
use vfs_core::{Change as Event, VfsPath};

use crate::file::File;
use crate::map::{Change, Entry, FileMap};

/// How a change is told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told<'a> {
    /// File by file.
    EachFile,
    /// As the removal of one path, with all that is below it.
    Removal(&'a VfsPath),
    /// As the rename of one path, with all that is below it.
    Rename(&'a VfsPath, &'a VfsPath),
}

impl Told<'_> {
    /// The events of a `change` that was made to the files `before`.
    pub(crate) fn events(self, before: &FileMap, change: &Change) -> Vec<Event> {
        match self {
            _ if change.is_empty() => Vec::new(),
            Told::EachFile => {
                let each = |(path, file): &(VfsPath, Option<Arc<File>>)| event(path, before.get(path), file.as_ref());
                change.iter().filter_map(each).collect()
            }
            Told::Removal(path) => vec![Event::Removed { path: path.clone() }],
            Told::Rename(from, to) => {
                let version = match before.find(from) {
                    Ok(Entry::File(file)) => Some(file.version().clone()),
                    _ => None,
                };
                vec![Event::Renamed { from: from.clone(), to: to.clone(), version }]
            }
        }
    }

    /// Finds the versions that the events will name, which may need hashing, before anybody has to wait for that.
    pub(crate) fn prepare(self, feed: &ChangeLog, before: &FileMap, change: &Change) {
        match self {
            _ if change.is_empty() || !feed.is_used() => {}
            Told::EachFile => change.iter().filter_map(|(_, file)| file.as_ref()).for_each(|file| {
                file.version();
            }),
            Told::Removal(_) => {}
            Told::Rename(from, _) => {
                before.get(from).map(|file| file.version());
            }
        }
    }
}

/// The events of putting the files `after` in the place of those `before`.
pub(crate) fn of_restoring(before: &FileMap, after: &FileMap) -> Vec<Event> {
    let events = before.differences(after).filter_map(|(path, old, new)| event(path, old, new));
    // The feed makes one overflow of more than it remembers, so that more need not be looked for.
    events.take(ChangeLog::DEFAULT_CAPACITY + 1).collect()
}

/// What became of the file at `path`; nothing where it has the content that it had.
fn event(path: &VfsPath, old: Option<&Arc<File>>, new: Option<&Arc<File>>) -> Option<Event> {
    let path = path.clone();
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some(Event::Created { path, version: Some(new.version().clone()) }),
        (Some(_), None) => Some(Event::Removed { path }),
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) || old.content() == new.content() => None,
        (Some(_), Some(new)) => Some(Event::Changed { path, version: Some(new.version().clone()) }),
    }
}
