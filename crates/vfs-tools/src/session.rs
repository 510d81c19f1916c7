//! What a session has shown to its model, so that stale edits are found and repeated reads are short.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use futures::channel::oneshot;
use futures::lock::MutexGuard;
use vfs_core::shell::JobId;
use vfs_core::timer::Timer;
use vfs_core::{OpContext, Result, Version, VfsPath};

/// Maximum number of files that a session remembers. Beyond it, the file that was shown longest ago is forgotten.
const MAX_FILES: usize = 1_000;

/// Maximum number of jobs of which a session remembers what it showed. Beyond it, all are forgotten.
const MAX_JOBS: usize = 1_000;

/// Maximum number of windows of a file that a session remembers.
const MAX_WINDOWS: usize = 64;

/// Maximum size in bytes of the text of a file that a session remembers.
const MAX_TEXT_BYTES: usize = 16_000;

/// What a session has shown to its model.
#[derive(Debug, Default)]
pub(crate) struct Session {
    shown: Mutex<ShownFiles>,
    /// Held by a call of a native tool from its checks of what was shown to the end of its change.
    changes: futures::lock::Mutex<()>,
    /// Files with edits of a call that was dropped before its end, and that no call has named yet.
    interrupted: Mutex<Vec<VfsPath>>,
    /// Where the output of each job begins that the model has not seen.
    job_cursors: Mutex<BTreeMap<JobId, u64>>,
}

/// Remembers the files that a call has edited until it ends.
pub(crate) struct InterruptedEditGuard<'a> {
    session: &'a Session,
    edited: Vec<VfsPath>,
}

impl InterruptedEditGuard<'_> {
    /// Adds a file that is about to be edited.
    pub(crate) fn add(&mut self, path: &VfsPath) {
        self.edited.push(path.clone());
    }

    /// Ends the call, whose outcome says what was edited.
    pub(crate) fn end(mut self) {
        self.edited.clear();
    }
}

impl Drop for InterruptedEditGuard<'_> {
    fn drop(&mut self) {
        self.session.add_interrupted(std::mem::take(&mut self.edited));
    }
}

#[derive(Debug, Default)]
struct ShownFiles {
    by_path: BTreeMap<VfsPath, ShownFile>,
    /// Number of the last showing.
    clock: u64,
}

/// What was shown of a file.
#[derive(Debug, Clone)]
pub(crate) struct ShownFile {
    pub(crate) version: Version,
    /// The whole text, if all of it was shown at once.
    pub(crate) text: Option<String>,
    /// Windows of lines that were shown.
    windows: Vec<RangeInclusive<u64>>,
    last_shown: u64,
}

impl Session {
    /// Waits for the changes of other calls.
    ///
    /// # Errors
    ///
    /// `cancelled` or `timeout`.
    pub(crate) async fn change(&self, cx: &OpContext) -> Result<MutexGuard<'_, ()>> {
        cx.run_until_cancelled(moment, self.changes.lock()).await
    }

    /// Begins to edit files. If the guard is dropped before its end, the next call names the files.
    pub(crate) fn begin_edits(&self) -> InterruptedEditGuard<'_> {
        InterruptedEditGuard { session: self, edited: Vec::new() }
    }

    /// Returns the files with edits of a call that was dropped before its end, once.
    pub(crate) fn take_interrupted(&self) -> Vec<VfsPath> {
        std::mem::take(&mut self.interrupted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds files that the next call has to name.
    pub(crate) fn add_interrupted(&self, mut files: Vec<VfsPath>) {
        self.interrupted.lock().unwrap_or_else(PoisonError::into_inner).append(&mut files);
    }

    /// Returns where the output of a job begins that the model has not seen.
    pub(crate) fn job_cursor(&self, id: &JobId) -> u64 {
        self.job_cursors.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied().unwrap_or(0)
    }

    /// Forgets which output of jobs was shown, as another shell has other jobs with these ids.
    pub(crate) fn forget_jobs(&self) {
        self.job_cursors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Records that the output of a job was shown up to `cursor`.
    pub(crate) fn set_job_cursor(&self, id: &JobId, cursor: u64) {
        let mut cursors = self.job_cursors.lock().unwrap_or_else(PoisonError::into_inner);
        if cursors.len() >= MAX_JOBS && !cursors.contains_key(id) {
            cursors.clear();
        }
        let seen = cursors.entry(id.clone()).or_default();
        *seen = cursor.max(*seen);
    }

    /// Returns what was shown of the file last, or what the model itself has written to it.
    pub(crate) fn get(&self, path: &VfsPath) -> Option<ShownFile> {
        self.lock().by_path.get(path).cloned()
    }

    /// Returns the version of the file that was shown last.
    pub(crate) fn version(&self, path: &VfsPath) -> Option<Version> {
        self.lock().by_path.get(path).map(|file| file.version.clone())
    }

    /// Records that `lines` of a version are shown, and returns whether they had been shown before. A second repetition is new again,
    /// as the model may no longer have what was shown.
    pub(crate) fn show_lines(&self, path: &VfsPath, version: &Version, lines: RangeInclusive<u64>) -> bool {
        let mut shown = self.lock();
        let file = shown.file(path, version);
        match file.windows.iter().position(|window| *window == lines) {
            Some(at) => {
                file.windows.remove(at);
                true
            }
            None => {
                if file.windows.len() == MAX_WINDOWS {
                    file.windows.remove(0);
                }
                file.windows.push(lines);
                false
            }
        }
    }

    /// Records that a version is known to the model, with its whole text if that is known too.
    pub(crate) fn show(&self, path: &VfsPath, version: &Version, text: Option<String>) {
        let mut shown = self.lock();
        let file = shown.file(path, version);
        if let Some(text) = text {
            file.text = (text.len() <= MAX_TEXT_BYTES).then_some(text);
        }
    }

    /// Forgets a file.
    pub(crate) fn forget(&self, path: &VfsPath) {
        self.lock().by_path.retain(|shown, _| !shown.starts_with(path));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ShownFiles> {
        // Every change leaves the map consistent.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShownFiles {
    /// Returns what was shown of this version.
    fn file(&mut self, path: &VfsPath, version: &Version) -> &mut ShownFile {
        self.clock += 1;
        if self.by_path.len() >= MAX_FILES && !self.by_path.contains_key(path) {
            let oldest = self.by_path.iter().min_by_key(|(_, file)| file.last_shown).map(|(path, _)| path.clone());
            oldest.map(|oldest| self.by_path.remove(&oldest));
        }
        let new = || ShownFile { version: version.clone(), text: None, windows: Vec::new(), last_shown: 0 };
        let file = self.by_path.entry(path.clone()).or_insert_with(new);
        if file.version != *version {
            *file = new();
        }
        file.last_shown = self.clock;
        file
    }
}

/// Completes at an instant.
pub(crate) async fn moment(moment: Instant) {
    let (reached, waiting) = oneshot::channel();
    let _timer = Timer::set(moment, || {
        // The receiver may be gone already.
        let _ = reached.send(());
    });
    // The timer does not drop the sender before it fires.
    let _ = waiting.await;
}

/// Returns the short form of a version that a model sees, such as `@25e4`.
pub(crate) fn short_version(version: &Version) -> String {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    format!("@{:04x}", hasher.finish() & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_repetition_of_a_window_is_known_and_the_second_is_new() {
        let (session, path, version) =
            (Session::default(), VfsPath::root().child("a").expect("a valid name"), Version::from("1"));
        let show = |version: &Version, lines| session.show_lines(&path, version, lines);
        assert_eq!([show(&version, 1..=5), show(&version, 1..=5), show(&version, 1..=5)], [false, true, false]);
        assert!(!show(&version, 2..=5));
        assert!(!show(&Version::from("2"), 1..=5), "another version has been shown nowhere");
        assert_eq!(session.version(&path), Some(Version::from("2")));
    }

    #[test]
    fn the_number_of_files_is_bounded_and_the_oldest_is_forgotten() {
        let (session, version) = (Session::default(), Version::from("1"));
        let path = |number: usize| VfsPath::root().child(&number.to_string()).expect("a valid name");
        for number in 0..=MAX_FILES {
            session.show(&path(number), &version, None);
        }
        assert!(session.get(&path(0)).is_none() && session.get(&path(1)).is_some());
        assert!(session.get(&path(MAX_FILES)).is_some());
    }
}
