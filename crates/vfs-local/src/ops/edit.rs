//! Edits: text replacements that are retried if the file changes meanwhile.

use vfs_core::edit::ApplyMode;
use vfs_core::{EditRequest, EditResult, Error, ErrorKind, OpContext, Result, edit};

use super::read::read_to_end;
use super::write::detect_change;
use crate::fs::protected_paths::PathAccess;
use crate::local_fs::LocalFs;
use crate::staging::entry_lock::LockPurpose;
use crate::staging::staged_file::StagedFile;

/// Maximum number of attempts of an edit if other programs change the file in place repeatedly.
const MAX_EDIT_ATTEMPTS: usize = 64;

impl LocalFs {
    pub(crate) fn edit(&self, request: EditRequest, cx: &OpContext) -> Result<EditResult> {
        edit::check(&request)?;
        let path = &request.path;
        if path.is_root() {
            return Err(Error::at(ErrorKind::IsADirectory, path));
        }
        let entry = self.root.resolve_entry(path)?;
        let (access, purpose) = match request.mode {
            ApplyMode::DryRun => (PathAccess::Read, LockPurpose::Inspect),
            _ => (PathAccess::Change, LockPurpose::Change),
        };
        self.root.check(&entry, access, path)?;
        let locked = self.lock_entry(purpose, &entry, self.hard_links, cx).map_err(|error| error.or_path(path))?;
        let Some(mut file) = locked.file else {
            return Err(Error::not_found(path));
        };
        for _ in 0..MAX_EDIT_ATTEMPTS {
            let version = file.metadata.version();
            if request.expected_version.as_ref().is_some_and(|expected| *expected != version) {
                return Err(Error::conflict(path, Some(version)));
            }
            let old =
                read_to_end(&file.fd, &file.metadata, self.max_file_size, cx).map_err(|error| error.or_path(path))?;
            let edited =
                edit::apply(&old, &request.replacements, self.max_file_size).map_err(|error| error.or_path(path))?;
            let diff = request.wants_diff().then(|| edit::diff(path, &old, &edited.content));
            let size = edited.content.len() as u64;
            if request.mode == ApplyMode::DryRun {
                return Ok(EditResult::new(path.clone(), edited.occurrences, version, size).with_diff(diff));
            }
            let staged =
                StagedFile::create(&entry, Some(&file), self.durability).map_err(|error| error.or_path(path))?;
            staged.write(&edited.content, cx).map_err(|error| error.or_path(path))?;
            match self.publish_if_unchanged(staged, &entry, &file) {
                Ok(metadata) => {
                    let result = EditResult::new(path.clone(), edited.occurrences, metadata.version(), size);
                    return Ok(result.with_diff(diff));
                }
                Err(failure) if failure.kind() == ErrorKind::Conflict => {
                    // If the same file has new content, the next attempt edits that. If another file has replaced it,
                    // the edit fails.
                    let now = detect_change(&entry, &file).map_err(|error| error.or_path(path))?;
                    file.metadata = now.ok_or_else(|| failure.or_path(path))?;
                }
                Err(failure) => return Err(failure.or_path(path)),
            }
        }
        Err(Error::at(ErrorKind::Busy, path))
    }
}
