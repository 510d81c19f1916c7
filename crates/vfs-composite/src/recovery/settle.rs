//! The recovery of one recorded rename, to its end or back to its beginning.

use std::collections::BTreeSet;
use std::mem;

use vfs_core::{
    Backend as _, DeleteRequest, Error, ErrorKind, OpContext, ResolveRequest, Result, StatRequest, Version, VfsPath,
};

use super::{Recovered, RecoveryObserver};
use crate::backend::CompositeBackend;
use crate::identity::{is_within, versions_name_files};
use crate::journal::{MoveRecord, RecordedFile, RecordedMount};
use crate::transfer::{Kind, link_at_target};

/// The recovery of one rename.
pub(super) struct Settlement<'a> {
    composite: &'a CompositeBackend,
    /// The context of the caller of the rename.
    cx: OpContext,
    record: MoveRecord,
    /// Whether `record` has fewer files than that in the journal.
    is_changed: bool,
    /// Called, and taken, before the first file is copied.
    observer: Option<&'a dyn RecoveryObserver>,
}

/// The place of one file of a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Placement {
    /// At the target, and at the source in this version.
    Both(Version),
    /// Not at the source, or there as a link that leads nowhere.
    NotAtSource,
    /// Only at the source, where it was changed since.
    OnlyAtSource,
}

impl<'a> Settlement<'a> {
    pub(super) fn new(
        composite: &'a CompositeBackend,
        cx: &OpContext,
        record: MoveRecord,
        observer: Option<&'a dyn RecoveryObserver>,
    ) -> Self {
        Self { composite, cx: record.context(cx), record, is_changed: false, observer }
    }

    /// Returns the record with the files that are not settled, and whether that is another one than before.
    pub(super) fn into_record(self) -> (MoveRecord, bool) {
        (self.record, self.is_changed)
    }

    /// Finishes the rename, or rolls it back if nothing has arrived.
    pub(super) async fn settle(&mut self) -> Result<Recovered> {
        self.check_mounts()?;
        if !self.record.has_arrived && !self.record.files.is_empty() && !self.has_arrived().await? {
            return self.roll_back().await;
        }
        let mut left = self.finish_files().await?;
        for directory in &self.record.empty {
            self.composite.make_directory(&self.cx, directory).await?;
        }
        match self.composite.remove_emptied(&self.cx, &self.record.from).await {
            Err(error) if error.kind() == ErrorKind::NotEmpty => {
                if left.is_empty() {
                    left.push(self.record.from.clone());
                }
            }
            removed => removed?,
        }
        Ok(if left.is_empty() { Recovered::Finished } else { Recovered::FinishedExcept(left) })
    }

    /// Fails if other files are mounted than those of the record, or if both ends may be the same files.
    fn check_mounts(&self) -> Result<()> {
        let (record, table) = (&self.record, self.composite.table());
        for (end, recorded) in [(&record.from, &record.source), (&record.to, &record.target)] {
            let mount = table.route(end);
            let mounted = RecordedMount { path: mount.at().clone(), identity: mount.identity.clone() };
            if mounted != *recorded {
                return Err(other_mount(end, recorded, &mounted));
            }
        }
        let (from, to) = (table.location(&self.cx, &record.from)?, table.location(&self.cx, &record.to)?);
        match from.zip(to) {
            Some((from, to)) if is_within(&from, &to) || is_within(&to, &from) => Err(same_files(&record.to)),
            _ => Ok(()),
        }
    }

    /// Whether any file is at the target that was not there before the rename.
    async fn has_arrived(&self) -> Result<bool> {
        for file in &self.record.files {
            if self.is_at_target(file).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a file is at the target of `file` that was not there before the rename.
    async fn is_at_target(&self, file: &RecordedFile) -> Result<bool> {
        match self.composite.stat(&self.cx, StatRequest::new(file.to.clone())).await {
            Ok(there) if there.version == file.replaces => Ok(false),
            Ok(_) if file.replaced_digest.is_none() => Ok(true),
            Ok(_) => Ok(!file.is_replaced(&self.composite.fetch(&self.cx, &file.to).await?)),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Verifies that every file is at the source, and removes directories that the rename has made.
    async fn roll_back(&self) -> Result<Recovered> {
        for file in &self.record.files {
            match self.composite.stat(&self.cx, StatRequest::new(file.from.clone())).await {
                Ok(_) => {}
                Err(error) if error.is_absence() => return Err(missing_at_both(&file.from)),
                Err(error) => return Err(error),
            }
        }
        if !self.record.replaced && self.record.is_of_directory() {
            self.remove_made_directories().await;
        }
        Ok(Recovered::RolledBack)
    }

    /// Removes the empty ones among the directories that the rename needed at the target.
    async fn remove_made_directories(&self) {
        let root = StatRequest::new(self.record.to.clone());
        if !self.composite.stat(&self.cx, root).await.is_ok_and(|there| there.is_dir) {
            return;
        }
        let mut needed = BTreeSet::new();
        let parents = self.record.files.iter().filter_map(|file| file.to.parent());
        for deepest in parents.chain(self.record.empty.iter().cloned()) {
            let mut next = Some(deepest).filter(|path| path.starts_with(&self.record.to));
            while let Some(path) = next {
                next = path.parent().filter(|parent| parent.starts_with(&self.record.to));
                needed.insert(path);
            }
        }
        // In the order of paths, a directory comes after the one that it is in. One that stays does no harm, and may be
        // somebody else's.
        for directory in needed.into_iter().rev() {
            let _ = self.composite.delete(&self.cx, DeleteRequest::new(directory).only_empty()).await;
        }
    }

    /// Moves the files that are not settled; returns those that stay at the source.
    ///
    /// # Errors
    ///
    /// A temporary one, at which the rest is left as it is; otherwise the first one, and the other files are moved all the same.
    async fn finish_files(&mut self) -> Result<Vec<VfsPath>> {
        let files = mem::take(&mut self.record.files);
        let (mut settled, mut left, mut failure) = (BTreeSet::new(), Vec::new(), None);
        // All are copied before any is deleted: one may be a link to another.
        let placements = self.place_files(&files, &mut failure).await;
        for (index, placement) in placements {
            if failure.as_ref().is_some_and(Error::is_temporary) {
                break;
            }
            match self.clear_source(&files[index], placement).await {
                Ok(is_moved) => {
                    settled.insert(index);
                    if is_moved {
                        self.record.has_arrived = true;
                    } else {
                        left.push(files[index].from.clone());
                    }
                }
                Err(error) => add_failure(&mut failure, error),
            }
        }
        self.is_changed = !settled.is_empty();
        let unsettled = files.into_iter().enumerate().filter(|(index, _)| !settled.contains(index));
        self.record.files = unsettled.map(|(_, file)| file).collect();
        match failure {
            Some(error) => Err(error),
            None => Ok(left),
        }
    }

    /// Copies the files that are not at the target, up to the first temporary error; returns those that did not fail.
    async fn place_files(&mut self, files: &[RecordedFile], failure: &mut Option<Error>) -> Vec<(usize, Placement)> {
        let mut placements = Vec::new();
        for (index, file) in files.iter().enumerate() {
            match self.place_file(file).await {
                Ok(placement) => placements.push((index, placement)),
                Err(error) => add_failure(failure, error),
            }
            if failure.as_ref().is_some_and(Error::is_temporary) {
                break;
            }
        }
        placements
    }

    /// Copies a file, unless it is at the target or must stay at the source.
    async fn place_file(&mut self, file: &RecordedFile) -> Result<Placement> {
        let source = match self.composite.fetch(&self.cx, &file.from).await {
            Ok(source) => source,
            Err(error) if error.is_absence() => return Ok(Placement::NotAtSource),
            Err(error) => return Err(error),
        };
        let there = match self.composite.fetch(&self.cx, &file.to).await {
            Ok(target) => Some(target),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A link may lead to the source itself.
        if self.composite.kind(&self.cx, &file.to).await? == Kind::Link {
            return Err(link_at_target(&file.to));
        }
        if there.as_ref().is_some_and(|there| there.version == source.version) && self.do_versions_name_files() {
            return Err(same_files(&file.to));
        }
        // A rollback writes sources again, in new versions.
        let is_expected = source.version == file.version || self.record.is_rolling_back;
        let is_untouched = there.as_ref().is_none_or(|there| file.is_replaced(there));
        match there {
            _ if !is_expected && is_untouched => return Ok(Placement::OnlyAtSource),
            _ if !is_expected => return Err(Error::conflict(&file.from, Some(source.version))),
            Some(there) if there.content == source.content => {}
            Some(there) if !is_untouched => return Err(Error::conflict(&file.to, Some(there.version))),
            there => {
                if let Some(observer) = self.observer.take() {
                    observer.before_copying(&self.record.from, &self.record.to);
                }
                self.composite.put(&self.cx, &file.to, &source, there.as_ref()).await?;
                self.composite.compare(&self.cx, &file.to, &source).await?;
            }
        }
        Ok(Placement::Both(source.version))
    }

    fn do_versions_name_files(&self) -> bool {
        versions_name_files(self.record.source.identity.as_ref(), self.record.target.identity.as_ref())
    }

    /// Deletes the source of a file that is at the target; `false` if something stays at the source.
    async fn clear_source(&self, file: &RecordedFile, placement: Placement) -> Result<bool> {
        match placement {
            Placement::Both(version) => self.remove_source(file, version).await.map(|()| true),
            Placement::NotAtSource => self.clear_missing(file).await,
            Placement::OnlyAtSource => Ok(false),
        }
    }

    /// Deletes the source of a file that is at the target, in the version whose content is there.
    async fn remove_source(&self, file: &RecordedFile, version: Version) -> Result<()> {
        // A link has no version that its removal could depend on, so its kind is looked up last.
        let kind = self.composite.kind(&self.cx, &file.from).await?;
        if kind == Kind::Link && file.kind == Kind::File {
            return Err(Error::conflict(&file.from, Some(version)));
        }
        self.composite.delete(&self.cx, kind.removal(file.from.clone(), version)).await.map(drop)
    }

    /// Verifies that a file which cannot be read at the source is at the target; `false` if a link stays at the source.
    ///
    /// A link to a file that was moved with it leads nowhere by now, and is removed.
    async fn clear_missing(&self, file: &RecordedFile) -> Result<bool> {
        let is_at_target = self.is_at_target(file).await?;
        if file.kind == Kind::File || self.composite.kind(&self.cx, &file.from).await? != Kind::Link {
            return if is_at_target { Ok(true) } else { Err(missing_at_both(&file.from)) };
        }
        let real = self.composite.resolve(&self.cx, ResolveRequest::new(file.from.clone())).await?.path;
        if !is_at_target || !real.starts_with(&self.record.from) {
            return Ok(false);
        }
        self.composite.delete(&self.cx, DeleteRequest::new(file.from.clone())).await.map(|_| true)
    }
}

/// Keeps the first failure, or the temporary one at which a recovery ends.
fn add_failure(failure: &mut Option<Error>, error: Error) {
    if error.is_temporary() || failure.is_none() {
        *failure = Some(error);
    }
}

/// Returns the error for an end at which other files are mounted than when the rename was recorded.
fn other_mount(end: &VfsPath, recorded: &RecordedMount, mounted: &RecordedMount) -> Error {
    let describe = |mount: &RecordedMount| match &mount.identity {
        Some(identity) => format!("{identity} at '{}'", mount.path),
        None => format!("an unnamed backend at '{}'", mount.path),
    };
    let message = format!(
        "it was recorded with {}, but this namespace has {}; open the configuration that it was recorded with, or remove the \
         record if both ends are as they should be",
        describe(recorded),
        describe(mounted)
    );
    Error::new(ErrorKind::CrossBackend, message).with_path(end)
}

/// Returns the error for a file that may be one at both ends, of which none must be deleted.
fn same_files(path: &VfsPath) -> Error {
    let message =
        "both ends may be one and the same file, so none is deleted; mount different files, or remove the record";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Returns the error for a file that is at neither end.
fn missing_at_both(path: &VfsPath) -> Error {
    let message = "the file is neither at the source nor at the target; mount the disk that it is on, or remove the record if it \
                   was deleted";
    Error::new(ErrorKind::NotFound, message).with_path(path)
}
