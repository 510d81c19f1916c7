//! Recovery of one recorded rename: completion or rollback.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vfs_core::timer::Timer;
use vfs_core::{
    Backend as _, DeleteRequest, Error, ErrorKind, OpContext, ResolveRequest, Result, StatRequest, Version, VfsPath,
};

use super::RecoveryOutcome;
use super::recovery_notifier::RecoveryNotifier;
use crate::backend::CompositeBackend;
use crate::journal::{EntryKind, MoveRecord, RecordedFile, RecordedMount};
use crate::mount_identity::{is_within, versions_name_files};
use crate::transfer::{VersionedContent, link_at_target};

/// Delay after which the observer is called even if nothing is copied.
const NOTICE_DELAY: Duration = Duration::from_millis(500);

/// The recovery of one rename.
pub(super) struct MoveRecovery<'a> {
    composite: &'a CompositeBackend,
    /// The context of the caller of the rename.
    cx: OpContext,
    record: MoveRecord,
    /// Whether `record` differs from the one in the journal.
    is_changed: bool,
    /// The moment after which no step begins except the first one.
    yield_at: Option<Instant>,
    has_begun: bool,
    notice: Option<Arc<RecoveryNotifier>>,
}

/// The location of one file of a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FilePlacement {
    /// At the target, and at the source in this version.
    Both(Version),
    /// Not at the source, or there as a dangling link.
    NotAtSource,
    /// Only at the source, where it was changed since.
    OnlyAtSource,
}

/// The next action on one file of a rename.
enum FileAction {
    Move,
    /// The file stays until a link to it is copied.
    Defer,
    /// The file stays for good, because a link to it does.
    Keep,
}

impl<'a> MoveRecovery<'a> {
    pub(super) fn new(
        composite: &'a CompositeBackend,
        cx: &OpContext,
        record: MoveRecord,
        yield_at: Option<Instant>,
        notice: Option<Arc<RecoveryNotifier>>,
    ) -> Self {
        Self { composite, cx: record.context(cx), record, is_changed: false, yield_at, has_begun: false, notice }
    }

    /// Returns the record with the files that are not settled, and whether it differs from the one in the journal.
    pub(super) fn into_record(self) -> (MoveRecord, bool) {
        (self.record, self.is_changed)
    }

    /// Finishes the rename, or rolls it back if nothing has arrived.
    pub(super) async fn settle(&mut self) -> Result<RecoveryOutcome> {
        self.check_mounts()?;
        let notice = self.notice.clone();
        let _alarm = notice.map(|notice| Timer::set(Instant::now() + NOTICE_DELAY, move || notice.send()));
        if !self.record.has_arrived && !self.record.files.is_empty() {
            match self.has_arrived().await? {
                None => return Ok(self.unfinished()),
                Some(false) => return self.roll_back().await,
                // The search for a file at the target does not count as progress, so one file is tried in any case.
                Some(true) => self.has_begun = false,
            }
        }
        let Some(mut left) = self.finish_files().await? else { return Ok(self.unfinished()) };
        while let Some(directory) = self.record.empty.last().cloned() {
            if !self.begin_step() {
                return Ok(self.unfinished());
            }
            self.composite.make_directory(&self.cx, &directory).await?;
            self.record.empty.pop();
            self.is_changed = true;
        }
        match self.composite.remove_emptied(&self.cx, &self.record.from).await {
            Err(error) if error.kind() == ErrorKind::NotEmpty => {
                if left.is_empty() {
                    left.push(self.record.from.clone());
                }
            }
            removed => removed?,
        }
        Ok(if left.is_empty() { RecoveryOutcome::Finished } else { RecoveryOutcome::FinishedExcept(left) })
    }

    /// Returns whether there is time for another step. The first one always begins, so that each recovery makes
    /// progress.
    fn begin_step(&mut self) -> bool {
        let is_over = self.yield_at.is_some_and(|moment| Instant::now() >= moment);
        !(mem::replace(&mut self.has_begun, true) && is_over) && self.cx.check().is_ok()
    }

    fn unfinished(&self) -> RecoveryOutcome {
        RecoveryOutcome::Unfinished { remaining: self.record.files.len() + self.record.empty.len() }
    }

    /// Fails if other files are mounted than those of the record, or if both ends may be the same files.
    fn check_mounts(&self) -> Result<()> {
        let (record, table) = (&self.record, self.composite.table());
        for (end, recorded) in [(&record.from, &record.source), (&record.to, &record.target)] {
            let mount = table.route(end);
            let current = RecordedMount { path: mount.at().clone(), identity: mount.identity.clone() };
            if current != *recorded {
                return Err(other_mount(end, recorded, &current));
            }
            // Paths below the inner mount would lead to other files than those of the record.
            if let Some(inside) = table.below(end).next() {
                return Err(mount_inside(end, inside.at()));
            }
        }
        let (from, to) = (table.location(&self.cx, &record.from)?, table.location(&self.cx, &record.to)?);
        match from.zip(to) {
            Some((from, to)) if is_within(&from, &to) || is_within(&to, &from) => Err(same_files(&record.to)),
            _ => Ok(()),
        }
    }

    /// Returns whether any file is at the target that was not there before the rename; `None` if the time limit has
    /// passed. If it returns `false`, every file is at the source.
    async fn has_arrived(&mut self) -> Result<Option<bool>> {
        let is_missing = |file: &RecordedFile| self.record.missing.as_ref() == Some(&file.from);
        if self.record.not_arrived >= self.record.files.len()
            && let Some(index) = self.record.files.iter().position(is_missing)
        {
            let file = &self.record.files[index];
            if !self.is_at_source(file).await? && !self.is_at_target(file).await? {
                return Err(missing_at_both(&file.from));
            }
            // Further files may be missing after this one.
            (self.record.not_arrived, self.record.missing) = (index, None);
        }
        while let Some(file) = self.record.files.get(self.record.not_arrived).cloned() {
            if !self.begin_step() {
                return Ok(None);
            }
            if self.is_at_target(&file).await? {
                return Ok(Some(true));
            }
            if self.record.missing.is_none() && !self.is_at_source(&file).await? {
                self.record.missing = Some(file.from);
            }
            self.record.not_arrived += 1;
            self.is_changed = true;
        }
        match &self.record.missing {
            Some(missing) => Err(missing_at_both(missing)),
            None => Ok(Some(false)),
        }
    }

    /// Returns whether anything is at the source of `file`.
    async fn is_at_source(&self, file: &RecordedFile) -> Result<bool> {
        match self.composite.stat(&self.cx, StatRequest::new(file.from.clone())).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error.or_path(&file.from)),
        }
    }

    /// Returns whether a file is at the target of `file` that was not there before the rename.
    async fn is_at_target(&self, file: &RecordedFile) -> Result<bool> {
        let is_at_target = match self.composite.stat(&self.cx, StatRequest::new(file.to.clone())).await {
            Ok(existing) if existing.version == file.replaces => Ok(false),
            Ok(_) if file.replaced_digest.is_none() => Ok(true),
            Ok(_) => self
                .composite
                .fetch(&self.cx, &file.to)
                .await
                .map(|existing| !file.is_replaced(&existing.version, &existing.content)),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error),
        };
        is_at_target.map_err(|error| error.or_path(&file.to))
    }

    /// Removes directories that a rename has created without moving a file, and creates empty directories at the
    /// source that its rollback had not restored.
    async fn roll_back(&self) -> Result<RecoveryOutcome> {
        for directory in self.record.empty.iter().filter(|_| self.record.is_rolling_back) {
            let below = directory.strip_prefix(&self.record.to).unwrap_or_default();
            let created = self.composite.make_directory(&self.cx, &self.record.from.join(below)?).await;
            // If another entry is there by now, it stays.
            if let Err(error) = created
                && error.is_temporary()
            {
                return Err(error);
            }
        }
        if !self.record.replaced && self.record.is_of_directory() {
            self.remove_created_directories().await;
        }
        Ok(RecoveryOutcome::RolledBack)
    }

    /// Removes the empty directories that the rename needed at the target.
    async fn remove_created_directories(&self) {
        let root = StatRequest::new(self.record.to.clone());
        if !self.composite.stat(&self.cx, root).await.is_ok_and(|existing| existing.is_dir) {
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
        // In reverse order of paths a directory comes before its parent. A directory that is not empty stays, as it may
        // belong to another caller.
        for directory in needed.into_iter().rev() {
            let _ = self.composite.remove_marker(&self.cx, &directory).await;
            let _ = self.composite.delete(&self.cx, DeleteRequest::new(directory).only_empty()).await;
        }
    }

    /// Moves the files that are not settled; returns those that stay at the source, or `None` if the time limit has
    /// passed.
    ///
    /// # Errors
    ///
    /// A temporary error, at which the remaining files are left; otherwise the first error, after all other files
    /// were moved.
    async fn finish_files(&mut self) -> Result<Option<Vec<VfsPath>>> {
        let files = mem::take(&mut self.record.files);
        (self.record.not_arrived, self.record.missing) = (0, None);
        let (mut links, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.kind == EntryKind::Link);
        let (mut failure, mut failed, mut left) = (None, Vec::new(), Vec::new());
        let needed = self.place_links(&mut links, &mut failure).await;
        let mut files: VecDeque<_> = links.into_iter().chain(files).collect();
        let Some(mut needed) = needed else {
            self.record.files = files.into();
            return failure.map_or(Ok(None), Err);
        };
        while let Some(file) = files.pop_front() {
            if failure.as_ref().is_some_and(Error::is_temporary) || !self.begin_step() {
                files.push_front(file);
                break;
            }
            let settled = match self.file_action(&file, &needed).await {
                Ok(FileAction::Defer) => {
                    failed.push(file);
                    continue;
                }
                Ok(FileAction::Keep) => Ok(false),
                Ok(FileAction::Move) => self.settle_file(&file).await,
                Err(error) => Err(error),
            };
            match settled {
                Ok(is_moved) => {
                    self.is_changed = true;
                    if is_moved {
                        self.record.has_arrived = true;
                    } else {
                        left.push(file.from);
                    }
                }
                Err(error) => {
                    add_failure(&mut failure, error);
                    if file.kind == EntryKind::Link {
                        self.add_link_target(&file.from, &mut needed, &mut failure).await;
                    }
                    failed.push(file);
                }
            }
        }
        let is_complete = files.is_empty();
        // The next recovery begins with those that were not tried.
        self.is_changed |= !is_complete && !failed.is_empty();
        files.extend(failed);
        self.record.files = files.into();
        failure.map_or(Ok(is_complete.then_some(left)), Err)
    }

    /// Copies the links that are not at the target; returns the paths that must stay at the source for links that
    /// could not be copied, or `None` if not all were tried.
    ///
    /// A link may lead to another one or to a file of this rename, so that nothing is deleted before it is at the
    /// target.
    async fn place_links(
        &mut self,
        links: &mut [RecordedFile],
        failure: &mut Option<Error>,
    ) -> Option<HashSet<VfsPath>> {
        let mut needed = HashSet::new();
        for link in links.iter_mut().filter(|link| !link.is_placed) {
            if !self.begin_step() {
                return None;
            }
            let placed = match self.place_file(link).await {
                // The target of the link stays, also if this recovery ends before it reaches that file.
                Ok(FilePlacement::OnlyAtSource) => {
                    self.real_path(&link.from).await.map(|real| self.record.pinned.extend(real))
                }
                placed => placed.map(drop),
            };
            match placed {
                Ok(()) => {
                    link.is_placed = true;
                    self.is_changed = true;
                }
                Err(error) => {
                    add_failure(failure, error);
                    self.add_link_target(&link.from, &mut needed, failure).await;
                }
            }
            if failure.as_ref().is_some_and(Error::is_temporary) {
                return None;
            }
        }
        Some(needed)
    }

    /// Adds the path to which the link at `link` leads, if it is in the mount.
    async fn add_link_target(&self, link: &VfsPath, needed: &mut HashSet<VfsPath>, failure: &mut Option<Error>) {
        match self.real_path(link).await {
            Ok(real) => needed.extend(real),
            Err(error) => add_failure(failure, error),
        }
    }

    /// Returns the real path of `path`; `None` if it is outside the mount.
    async fn real_path(&self, path: &VfsPath) -> Result<Option<VfsPath>> {
        match self.composite.resolve(&self.cx, ResolveRequest::new(path.clone())).await {
            Ok(resolved) => Ok(Some(resolved.path)),
            Err(error) if error.kind() == ErrorKind::PathEscape || error.is_absence() => Ok(None),
            Err(error) => Err(error.or_path(path)),
        }
    }

    /// Returns the action on `file`, if links that lead to `needed` could not be copied.
    async fn file_action(&self, file: &RecordedFile, needed: &HashSet<VfsPath>) -> Result<FileAction> {
        if needed.is_empty() && self.record.pinned.is_empty() {
            return Ok(FileAction::Move);
        }
        // Resolving does not name the links on the way, but those lead to the same file.
        Ok(match self.real_path(&file.from).await? {
            Some(real) if needed.contains(&real) => FileAction::Defer,
            Some(real) if file.kind == EntryKind::File && self.record.pinned.contains(&real) => FileAction::Keep,
            _ => FileAction::Move,
        })
    }

    /// Copies a file, unless that was done, and deletes its source; `false` if something stays at the source.
    async fn settle_file(&self, file: &RecordedFile) -> Result<bool> {
        let is_moved = match self.place_file(file).await? {
            FilePlacement::Both(version) => self.remove_source(file, version).await.map(|()| true),
            FilePlacement::NotAtSource => self.clear_missing(file).await,
            FilePlacement::OnlyAtSource => Ok(false),
        };
        is_moved.map_err(|error| error.or_path(&file.from))
    }

    /// Copies a file, unless it is at the target or must stay at the source.
    async fn place_file(&self, file: &RecordedFile) -> Result<FilePlacement> {
        let source = match self.composite.fetch(&self.cx, &file.from).await {
            Ok(source) => source,
            Err(error) if error.is_absence() => return Ok(FilePlacement::NotAtSource),
            Err(error) => return Err(error.or_path(&file.from)),
        };
        self.place_source(file, source).await.map_err(|error| error.or_path(&file.to))
    }

    /// Copies `source`, the content of a file, unless it is at the target or must stay at the source.
    async fn place_source(&self, file: &RecordedFile, source: VersionedContent) -> Result<FilePlacement> {
        let existing = match self.composite.fetch(&self.cx, &file.to).await {
            Ok(target) => Some(target),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // A link may lead to the source itself.
        if self.composite.kind(&self.cx, &file.to).await? == EntryKind::Link {
            return Err(link_at_target(&file.to));
        }
        if existing.as_ref().is_some_and(|existing| existing.version == source.version) && self.do_versions_name_files()
        {
            return Err(same_files(&file.to));
        }
        // A rollback writes sources again, in new versions. After a failed rollback, other contents may belong to another caller.
        let is_restored = |existing: &VersionedContent| file.is_restored && existing.content == source.content;
        let is_expected =
            source.version == file.version || self.record.is_rolling_back || existing.as_ref().is_some_and(is_restored);
        let is_untouched =
            existing.as_ref().is_none_or(|existing| file.is_replaced(&existing.version, &existing.content));
        match existing {
            _ if !is_expected && is_untouched => return Ok(FilePlacement::OnlyAtSource),
            _ if !is_expected => return Err(Error::conflict(&file.from, Some(source.version))),
            Some(existing) if existing.content == source.content => {}
            Some(existing) if !is_untouched => return Err(Error::conflict(&file.to, Some(existing.version))),
            existing => {
                if let Some(notice) = &self.notice {
                    notice.send();
                }
                self.composite.write_copy(&self.cx, &file.to, &source, existing.as_ref()).await?;
                self.composite.verify_copy(&self.cx, &file.to, &source).await?;
            }
        }
        Ok(FilePlacement::Both(source.version))
    }

    fn do_versions_name_files(&self) -> bool {
        versions_name_files(self.record.source.identity.as_ref(), self.record.target.identity.as_ref())
    }

    /// Deletes the source of a file that is at the target, in the version whose content is there.
    async fn remove_source(&self, file: &RecordedFile, version: Version) -> Result<()> {
        // The removal of a link has no version as its precondition, so the kind is checked last.
        let kind = self.composite.kind(&self.cx, &file.from).await?;
        if kind == EntryKind::Link && file.kind == EntryKind::File {
            return Err(Error::conflict(&file.from, Some(version)));
        }
        self.composite.delete(&self.cx, kind.removal(file.from.clone(), version)).await.map(drop)
    }

    /// Verifies that a file which cannot be read at the source is at the target; `false` if a link stays at the
    /// source.
    ///
    /// A dangling link whose target was moved with it is removed.
    async fn clear_missing(&self, file: &RecordedFile) -> Result<bool> {
        let is_at_target = self.is_at_target(file).await?;
        if file.kind == EntryKind::File || self.composite.kind(&self.cx, &file.from).await? != EntryKind::Link {
            return if is_at_target { Ok(true) } else { Err(missing_at_both(&file.from)) };
        }
        let real = self.composite.resolve(&self.cx, ResolveRequest::new(file.from.clone())).await?.path;
        if !is_at_target || !real.starts_with(&self.record.from) {
            return Ok(false);
        }
        self.composite.delete(&self.cx, DeleteRequest::new(file.from.clone())).await.map(|_| true)
    }
}

/// Stores the first failure, or the temporary one at which a recovery ends.
fn add_failure(failure: &mut Option<Error>, error: Error) {
    if error.is_temporary() || failure.is_none() {
        *failure = Some(error);
    }
}

/// Returns the error for an end at which other files are mounted than when the rename was recorded.
fn other_mount(end: &VfsPath, recorded: &RecordedMount, current: &RecordedMount) -> Error {
    let describe = |mount: &RecordedMount| match &mount.identity {
        Some(identity) => format!("{identity} at '{}'", mount.path),
        None => format!("an unnamed backend at '{}'", mount.path),
    };
    let message = format!(
        "the move was recorded with {}, but this namespace has {}; open the configuration that it was recorded with, or \
         remove the record if both ends are correct",
        describe(recorded),
        describe(current)
    );
    Error::new(ErrorKind::CrossBackend, message).with_path(end)
}

/// Returns the error for an end in which a backend is mounted now.
fn mount_inside(end: &VfsPath, at: &VfsPath) -> Error {
    let message = format!(
        "a backend is mounted at '{at}' since the move was recorded; open the configuration that it was recorded with, or remove \
         the record if both ends are correct"
    );
    Error::new(ErrorKind::CrossBackend, message).with_path(end)
}

/// Returns the error for a file that may be the same at both ends, of which none must be deleted.
fn same_files(path: &VfsPath) -> Error {
    let message = "both ends may be the same file, so none is deleted; mount different files, or remove the record";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Returns the error for a file that is at neither end.
fn missing_at_both(path: &VfsPath) -> Error {
    let message = "the file is neither at the source nor at the target; mount the disk that it is on, or remove the record if it \
                   was deleted";
    Error::new(ErrorKind::NotFound, message).with_path(path)
}
